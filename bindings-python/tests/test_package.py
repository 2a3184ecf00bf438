"""The package itself: the test fixture, versions, what an import costs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import stanchion
from stanchion.testing import Clock, aio_memory_client, memory_client

ROOT = Path(__file__).resolve().parents[2]


def test_time_passes_when_the_test_says_so(stanchion_client, stanchion_clock):
    lease = stanchion_client.lock("a").acquire(ttl=30)
    queue = stanchion_client.queue("q")
    queue.enqueue("later", delay=3600)
    assert queue.claim() == []
    stanchion_clock.advance(29)
    assert lease.valid
    stanchion_clock.advance(3600)
    assert lease.lost.is_set() and not lease.valid
    assert [claim.id for claim in queue.claim()] == ["later"]
    with pytest.raises(stanchion.LeaseLost):
        lease.release()


def test_a_memory_client_for_asyncio():
    import asyncio

    async def main():
        clock = Clock()
        async with aio_memory_client(clock) as client:
            lease = await client.lock("a").acquire(ttl=30)
            clock.advance(31)
            assert lease.lost.is_set()

    asyncio.run(main())


def test_memory_clients_are_apart_unless_named():
    with memory_client() as one, memory_client() as other, one.lock("a"):
        assert not other.lock("a").locked()
    with memory_client(name="shared") as one, memory_client(name="shared") as other, one.lock("a"):
        assert other.lock("a").locked()


def test_one_version_for_all():
    manifest = (ROOT / "Cargo.toml").read_text()
    assert stanchion.__version__ == re.search(r'^version = "(.+)"', manifest, re.M)[1]


def test_the_package_is_the_installed_one():
    assert "site-packages" in stanchion.__file__


def test_an_import_starts_nothing():
    program = "import stanchion, sys, threading, os\nassert 'asyncio' not in sys.modules\nprint(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_every_public_name_has_documentation():
    for name in stanchion.__all__:
        assert getattr(stanchion, name).__doc__, name


def readme_examples():
    text = (ROOT / "README.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("example", readme_examples())
def test_the_readme_runs(example, tmp_path):
    program = example.replace("redis://localhost", f"sqlite:{tmp_path}/app.db")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_tracebacks_name_exceptions_as_programs_do():
    assert {kind.__module__ for kind in vars(stanchion).values() if isinstance(kind, type)
            and issubclass(kind, stanchion.StanchionError)} == {"stanchion"}


def test_words_print_as_themselves():
    assert f"{stanchion.Outcome.ADDED} {stanchion.TaskState.DEAD}" == "added dead"
