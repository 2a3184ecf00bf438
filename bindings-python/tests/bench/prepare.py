"""The environment that is measured in: a release wheel beside what it is compared with."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
PACKAGE = TESTS.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", PACKAGE.parent / "target")).resolve()
VENV = TARGET / "venv-python-bench"
WHEELS = TARGET / "wheels-bench"


def environment():
    """The interpreter, and the wheel that it has."""
    requirements = (TESTS / "requirements-bench.txt").read_text()
    maturin = next(line for line in (TESTS / "requirements.txt").read_text().splitlines() if "maturin" in line)
    mark = VENV / "requirements-bench.txt"
    wanted = f"{requirements}{maturin}\n"
    pip = [str(VENV / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    if not mark.exists() or mark.read_text() != wanted:
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([*pip, "-r", str(TESTS / "requirements-bench.txt"), maturin], check=True)
        mark.write_text(wanted)
    shutil.rmtree(WHEELS, ignore_errors=True)
    build = ["build", "--locked", "--release", "--out", str(WHEELS)]
    subprocess.run([str(VENV / "bin" / "maturin"), *build], cwd=PACKAGE, check=True)
    wheel = next(WHEELS.glob("*.whl"))
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel)], check=True)
    return VENV / "bin" / "python", wheel
