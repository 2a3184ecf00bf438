"""The wheel and the sdist."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dist import SAID, bring, example, installed, only, says, times, with_url
from roots import ROOT, WORK, Missing

PLACE = ROOT / "tests" / "packages"


def code(url):
    return with_url(example("bindings-python", "python"), url)


def project(root, name, url):
    place, inside = root.fresh(name)
    bring(place, f"stanchion-*manylinux*_{root.cpu}.whl")
    (place / "example.py").write_text(code(url))
    return place, inside


def wheel(root, url):
    _, inside = project(root, "wheel", url)
    took = installed(root, "python3 -m venv venv && venv/bin/pip install --no-index --quiet ./*.whl", inside)
    ran = says(root, "venv/bin/python example.py", inside)
    says(root, f"venv/bin/stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside)
    return times(took, ran)


def uv_program(root):
    """uv as its wheel has it, in the root."""
    kept = WORK.parent / "python-tools"
    wanted, mark = (PLACE / "requirements.txt").read_text(), kept / "requirements.txt"
    if not mark.exists() or mark.read_text() != wanted:
        shutil.rmtree(kept, ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--root-user-action", "ignore", "--target", kept, "-r",
             PLACE / "requirements.txt"],
            check=False)
        if done.returncode != 0:
            raise Missing("pip cannot fetch tests/packages/requirements.txt here")
        mark.write_text(wanted)
    shutil.copy(kept / "bin" / "uv", root.place / "usr" / "local" / "bin" / "uv")


def uv(root, url):
    uv_program(root)
    _, inside = project(root, "uv", url)
    own = {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_PYTHON": "/usr/bin/python3", "UV_PYTHON_DOWNLOADS": "never"}
    took = installed(root, "uv venv --quiet venv && uv pip install --quiet --python venv ./*.whl", inside, **own)
    ran = says(root, "venv/bin/python example.py", inside)
    says(root, f"uv tool run --from ./*.whl stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside, **own)
    return times(took, ran)


def pipx(root, url):
    """The command line alone, in a place of its own."""
    _, inside = project(root, "pipx", url)
    took = installed(root, "pipx install ./*.whl", inside, PIP_NO_INDEX="1")
    return times(took, says(root, f".local/bin/stanchion run invoice:42 --url {url} -- echo '{SAID}'", inside))


def sdist():
    """It needs Rust, and nothing else: pip alone fetches what builds it, and compiles, for minutes."""
    if shutil.which("cargo") is None:
        raise Missing("there is no cargo")
    # The second time cargo has the libraries of others.
    env = {**os.environ, "CARGO_TARGET_DIR": str(WORK.parent / "sdist"), "CARGO_INCREMENTAL": "0"}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "example.py").write_text(code("sqlite:app.db"))
        began = time.monotonic()
        for command in (
                [sys.executable, "-m", "venv", "venv"],
                # No file of a wheel may be taken instead.
                ["venv/bin/pip", "install", "--quiet", "--no-binary", "stanchion", only("stanchion-[0-9]*.[0-9].tar.gz")]):
            subprocess.run(command, cwd=place, env=env, check=True)
        took = time.monotonic() - began
        done = subprocess.run(["venv/bin/python", "example.py"], cwd=place, stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 0 and SAID in done.stdout, done.stdout
        subprocess.run(["venv/bin/stanchion", "--version"], cwd=place, stdout=subprocess.DEVNULL, check=True)
    return f"built and installed in {took:.0f} s"


CASES = {"wheel": wheel, "uv": uv, "pipx": pipx}
ONCE = {}
# On this machine, not in a root.
HERE = {"sdist": sdist}
