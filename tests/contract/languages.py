"""The drivers: how each is built and started."""

import os
import sys
from pathlib import Path

from drivers import Language

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
DRIVERS = TESTS / "drivers"


def python():
    interpreter = needed(TARGET / "venv-python" / "bin" / "python", "bindings-python/tests/run")
    return Language("python", [interpreter, DRIVERS / "python" / "driver.py"])


def node():
    modules = needed(TARGET / "node-app" / "node_modules", "bindings-node/tests/run")
    return Language("node", ["node", DRIVERS / "node" / "driver.cjs"], {"NODE_PATH": str(modules)})


def needed(path, made_by):
    """What the tests of a package have left there."""
    if not path.exists():
        sys.exit(f"{path} is missing; run first: {made_by}")
    return path


LANGUAGES = {"python": python}
