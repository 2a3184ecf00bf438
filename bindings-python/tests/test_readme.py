"""What the package's README shows: every block of Python runs, and the table has every exception."""

import os
import re
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest

import stanchion

HERE = Path(__file__).resolve()
README = (HERE.parents[1] / "README.md").read_text()
DOCS = HERE.parents[2] / "docs"
PAGES = {
    "README": README, **{str(path.relative_to(DOCS).with_suffix("")): path.read_text() for path in sorted(DOCS.rglob("*.md"))}}


def blocks(language, pages):
    """Also those in tabs, which are indented."""
    return {
        f"{page}-{number}": textwrap.dedent(block) for page, text in pages.items()
        for number, (_, block) in enumerate(re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.M | re.S))}


BLOCKS = blocks("python", PAGES)
SHELL = blocks("sh", {page: text for page, text in PAGES.items() if page.startswith("guides/")})


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_the_block_runs(block, redis_url, tmp_path):
    mark = uuid.uuid4().hex[:8]
    url = f"{redis_url}/?lock_prefix=L{mark}:&queue_prefix=Q{mark}:"
    is_test = block.startswith("def test_")
    path = tmp_path / ("test_block.py" if is_test else "block.py")
    path.write_text(block.replace("redis://localhost", url))
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", path.name] if is_test else [path.name]
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("block", SHELL.values(), ids=SHELL)
def test_the_shell_of_a_guide_runs(block, redis_url, tmp_path):
    mark = uuid.uuid4().hex[:8]
    url = f"{redis_url}/?lock_prefix=L{mark}:&queue_prefix=Q{mark}:"
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "STANCHION_URL": url}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.replace("redis://localhost", url)], cwd=tmp_path, env=env,
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_exception_is_in_the_table():
    table = set(re.findall(r"^\| `(\w+)` \|", README, re.M))
    kinds = {
        name for name in stanchion.__all__
        if isinstance(getattr(stanchion, name), type) and issubclass(getattr(stanchion, name), stanchion.StanchionError)}
    assert table == kinds - {"StanchionError"}
    for name, base in re.findall(r"^\| `(\w+)` \|[^|]*\| `(\w+)` \|$", README, re.M):
        kind = getattr(stanchion, name)
        assert base in [above.__name__ for above in kind.__mro__], name


def test_the_examples_exist():
    for path in re.findall(r"\]\((examples/\w+\.py)\)", README):
        assert (Path(__file__).resolve().parents[1] / path).exists(), path
