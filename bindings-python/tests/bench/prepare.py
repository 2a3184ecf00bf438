"""The environment that is measured in: a release wheel beside what it is compared with."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import wheelhouse  # noqa: E402

TARGET = wheelhouse.TARGET


def environment():
    """The interpreter, and the wheel that it has."""
    wheel = wheelhouse.build("release")
    programs = wheelhouse.kept_venv("venv-python-bench", TESTS / "requirements-bench.txt")
    quiet = ["--quiet", "--disable-pip-version-check"]
    wheelhouse.run(programs / "pip", "install", *quiet, "--no-deps", "--force-reinstall", wheel)
    return programs / "python", wheel
