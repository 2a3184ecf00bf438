"""The stores that the tests run on: memory, an SQLite file, and a redis-server of their own."""

import itertools
import shutil
import socket
import subprocess
import time
import uuid

import pytest

import stanchion

DATABASES = 4_000
# How long a server may take to start, and how often another port is tried.
START_S = 20
PORT_ATTEMPTS = 8
_databases = itertools.count(1)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    url, process = _start_redis(tmp_path_factory)
    yield url
    _end(process)


@pytest.fixture
def mortal(tmp_path_factory):
    """A server of the test's own: its URL, and its process, which the test may kill."""
    url, process = _start_redis(tmp_path_factory)
    yield url, process
    _end(process)


def _end(process):
    process.kill()
    process.wait()


def _start_redis(tmp_path_factory):
    server = shutil.which("redis-server") or shutil.which("valkey-server")
    assert server, "redis-server is missing: make deps"
    for _ in range(PORT_ATTEMPTS):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        folder = tmp_path_factory.mktemp("redis")
        process = subprocess.Popen(
            [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--databases", str(DATABASES), "--dir",
             str(folder), "--logfile", str(folder / "log")])
        if _is_ready(process, folder / "log"):
            return f"redis://127.0.0.1:{port}", process
    raise RuntimeError((folder / "log").read_text())


def _is_ready(process, log):
    """Whether the server has the port; if somebody else has taken it meanwhile, the server ends. It is asked by its log:
    on the port it may be the other one that answers."""
    deadline = time.monotonic() + START_S
    while process.poll() is None:
        if log.exists() and "Ready to accept connections" in log.read_text(errors="replace"):
            return True
        if time.monotonic() > deadline:
            _end(process)
            raise RuntimeError(f"redis-server is not ready after {START_S} s: {log.read_text()}")
        time.sleep(0.01)
    return False


@pytest.fixture(params=["memory", "sqlite", "redis"])
def url(request, tmp_path):
    """A store's URL; names in it are this test's own."""
    if request.param == "memory":
        return f"memory:{uuid.uuid4()}"
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/test.db"
    return _own(request.getfixturevalue("redis_url"))


@pytest.fixture(params=["sqlite", "redis"])
def shared_url(request, tmp_path):
    """The URL of a store that other processes can open, too."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/test.db"
    return _own(request.getfixturevalue("redis_url"))


def _own(url):
    """A database that no other test uses: what is listed in it is the test's own."""
    return f"{url}/{next(_databases)}"


@pytest.fixture
def client(url):
    with stanchion.connect(url) as client:
        yield client
