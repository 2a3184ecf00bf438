"""Builds the wheel, and environments to install it in: for the tests and for the demo."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", PACKAGE.parent / "target")).resolve()
BUILD_REQUIREMENTS = HERE / "requirements-build.txt"


def run(*command, **options):
    return subprocess.run([str(part) for part in command], cwd=PACKAGE, check=True, **options)


def venv(name, *packages):
    """A new virtual environment with these packages; where its programs are."""
    path = TARGET / name
    shutil.rmtree(path, ignore_errors=True)
    run(sys.executable, "-m", "venv", path)
    run(path / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return path / "bin"


def kept_venv(name, requirements):
    """The same, kept as long as its requirements do not change."""
    mark = TARGET / name / "requirements.txt"
    if not mark.exists() or mark.read_text() != requirements.read_text():
        venv(name, "-r", requirements)
        shutil.copy(requirements, mark)
    return TARGET / name / "bin"


def build(profile, sdist=False):
    """A new wheel."""
    maturin = kept_venv("venv-python-tools", BUILD_REQUIREMENTS) / "maturin"
    folder = TARGET / f"wheels-{profile}"
    shutil.rmtree(folder, ignore_errors=True)
    # For tests, of crates that have been built with these features.
    features = ["--features", "workspace"] if profile == "dev" else []
    run(maturin, "build", "--locked", "--profile", profile, *features, "--out", folder)
    if sdist:
        run(maturin, "sdist", "--out", folder)
    return next(folder.glob("*.whl"))
