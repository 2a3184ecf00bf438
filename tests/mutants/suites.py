"""Where the tests are, and what cargo calls them."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests" / "tests"
CORE = ROOT / "core" / "src"

# The programs of tests; "core" stands for the unit tests of the library.
SUITES = {path.name: path for path in TESTS.iterdir() if path.is_dir()} | {"core": CORE}
# Both packages, also where one would do: with other features the dependencies would be built once more.
PACKAGES = ["-p", "stanchion", "-p", "stanchion-tests"]
# So many schedules are played: a mutant shows itself in the first hundreds.
ENVIRONMENT = {"STANCHION_SCHEDULES": "20000", "RUST_TEST_THREADS": "8"}
# What a macro makes of one test: for each store, face or clock.
VARIANT = re.compile(r"(memory|sqlite|redis)_(async|blocking)|through_(async|blocking)|asynchronous|blocking|sqlite|redis")


def target(suite):
    return ["--lib"] if suite == "core" else ["--test", suite]


def has_test(suite, test):
    """Whether cargo would find a test of this path: modules, a function, and perhaps the variant a macro makes."""
    *modules, last = test.split("::")
    if VARIANT.fullmatch(last) and modules:
        *modules, last = modules
    return last in functions(suite, tuple(modules))


def names(suite, name):
    """Whether the suite has a test, or a module of tests, of this name. Modules before it may be left out."""
    *modules, last = name.split("::")
    if any(last in functions(suite, path) for path in paths(suite) if path[len(path) - len(modules):] == tuple(modules)):
        return True
    return module(suite, tuple(name.split("::"))) is not None


@cache
def paths(suite):
    """The paths of all modules with a file."""
    found = [path.relative_to(SUITES[suite]).with_suffix("").parts for path in SUITES[suite].rglob("*.rs")]
    return [tuple(part for part in parts if part not in ("mod", "main", "lib")) for parts in found]


@cache
def functions(suite, modules):
    """The functions in the file of a module."""
    path = module(suite, modules)
    if path is None or not path.is_file():
        return frozenset()
    return frozenset(re.findall(r"^\s*(?:pub(?:\([a-z]+\))? )?(?:async )?fn (\w+)", path.read_text(), re.M))


def module(suite, modules):
    """The file of a module; the folder, if that is all there is. Unit tests are at the end of the file they test."""
    place = SUITES[suite].joinpath(*modules)
    files = [place / name for name in ("mod.rs", "main.rs", "lib.rs")]
    if modules:
        files.insert(0, place.with_suffix(".rs"))
    for path in files:
        if path.is_file():
            return path
    if modules and modules[-1] == "tests":
        return module(suite, modules[:-1])
    return place if modules and place.is_dir() else None
