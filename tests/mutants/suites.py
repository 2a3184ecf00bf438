"""Where the tests are, what they are called, and how they are built and run."""

import re
from functools import cache
from pathlib import Path

import packages

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests" / "suites"
CORE = ROOT / "core" / "src"

# The programs of tests; "core" stands for the unit tests of the library, "c", "python" and "node" for those of the packages.
PROGRAMS = {path.name: path for path in TESTS.iterdir() if path.is_dir()} | {"core": CORE}
SUITES = {*PROGRAMS, *packages.ALL}
# Both packages, also where one would do: with other features the dependencies would be built once more.
PACKAGES = ["-p", "stanchion", "-p", "stanchion-tests"]
# So many schedules are played: a mutant shows itself in the first hundreds.
ENVIRONMENT = {"STANCHION_SCHEDULES": "5000", "RUST_TEST_THREADS": "8"}

RESULT = re.compile(r"^test (\S+) \.\.\. (ok|FAILED|ignored)", re.M)
MACRO = re.compile(r"^macro_rules! (\w+) \{\n(.*?)^\}", re.M | re.S)
# What a macro makes of one function: a test for each store, face or clock.
MADE = re.compile(r"#\[test\]\s+fn (\w+)\(\)")
STORES = re.compile(r"on_stores! \{ \[([\w ]+)\]")


def build(suite, target):
    """The commands that build it."""
    if suite in packages.ALL:
        return packages.ALL[suite].build(PACKAGES, target)
    commands = [["cargo", "test", "--locked", *PACKAGES, *chosen(suite), "--no-run"]]
    if suite == "cli":
        # Its tests run the program.
        commands.append(["cargo", "build", "--locked", *PACKAGES, "-p", "stanchion-cli", "--lib", "--bin", "stanchion"])
    return commands


def play(suite, tests, target):
    """The command that runs these tests."""
    if suite in packages.ALL:
        return packages.ALL[suite].play(tests, target)
    return ["cargo", "test", "--locked", "--no-fail-fast", *PACKAGES, *chosen(suite), "--", "--exact", *tests]


def results(suite, tests, output):
    """Each test's result: "ok", "FAILED", or another word."""
    if suite in packages.ALL:
        return packages.ALL[suite].results(tests, output)
    return dict(RESULT.findall(output))


def chosen(suite):
    return ["--lib"] if suite == "core" else ["--test", suite]


def has_test(suite, test):
    """Whether cargo would find a test of this path."""
    return tuple(test.split("::")) in tests(suite)


def names(suite, name):
    """Whether tests of the suite have this name, or the end of their modules': `turns`, `turns::server_frozen`."""
    wanted = f"::{name}::"
    return any(wanted in f"::{'::'.join(test)}::" for test in tests(suite))


@cache
def tests(suite):
    """The paths of all tests: modules, a function, and perhaps the variant that a macro makes."""
    if suite in packages.ALL:
        return packages.ALL[suite].tests()
    texts = {path: path.read_text() for path in sorted(PROGRAMS[suite].rglob("*.rs"))}
    made = {}
    # Those of the suite itself count.
    for text in [*(path.read_text() for path in sorted((ROOT / "tests" / "src").rglob("*.rs"))), *texts.values()]:
        for macro, body in MACRO.findall(text):
            stores = [store for stores in STORES.findall(body) for store in stores.split()]
            faces = [f"{store}_{face}" for store in stores for face in ("async", "blocking")]
            made[macro] = MADE.findall(body) + faces
    found = set()
    for path, text in texts.items():
        parts = path.relative_to(PROGRAMS[suite]).with_suffix("").parts
        modules = tuple(part for part in parts if part not in ("mod", "main", "lib"))
        if suite == "core" and modules[-1:] != ("tests",) and "tests" not in modules:
            # At the end of the file that they test.
            modules += ("tests",)
        found |= {modules + test for test in tests_in(text, made)}
    return found


def tests_in(text, made):
    macro, is_test = None, False
    for line in text.splitlines():
        if begun := re.match(r"(\w+)! ?\{$", line):
            macro = begun[1]
        elif line.startswith("}"):
            macro = None
        elif re.match(r"\s*#\[(?:tokio::)?test\b", line):
            is_test = True
        elif function := re.match(r"( *)(?:pub )?(?:async )?fn (\w+)", line):
            if is_test:
                yield (function[2],)
            elif made.get(macro) and len(function[1]) == 4:
                yield from ((function[2], variant) for variant in made[macro])
            is_test = False
