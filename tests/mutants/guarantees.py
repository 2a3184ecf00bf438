"""docs/GUARANTEES.md: each promise ends with the mark of its proof, [^mark], which stands at the end of the page,
[^mark]: SUITE `test`, `test`; mutants `name`. What it names must exist.

docs/FAULTS.md: each row of a table ends with the mark of its tests, or says that there is no test."""

import re
from pathlib import Path

import suites

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "GUARANTEES.md"
FAULTS = ROOT / "docs" / "FAULTS.md"
TESTS = ROOT / "tests" / "suites"
# A promise and its mark; a mark and its proof.
PROMISE = re.compile(r"^- (.*?)(?: \[\^([\w-]+)\])?$", re.M)
PROOF = re.compile(r"^\[\^([\w-]+)\]: (.*)$", re.M)
NOT_PROMISED = re.compile(r"^## Not promised\n.*?(?=^## )", re.M | re.S)
# An invariant or a fault, its number first, and its mark.
ROW = re.compile(r"^\| (\w+ \| [^|]*?) \|.*?(?:\[\^([\w-]+)\])? \|$", re.M)
# A line of prose with a mark.
PROSE = re.compile(r"^([^|\n]+) \[\^([\w-]+)\]$", re.M)
NAME = re.compile(r"`([^`]+)`")
# What stands in the file that is named before it: the title of a scenario, or the name of a test.
TITLE = re.compile(r"“([^”]+)”")
# These play in every run of the simulator and of the small worlds; they are named by their folder: locks::BlindRelease.
SIMULATED = re.compile(r"ALL: \[Self; \d+\] =\s*\[(.*?)\]", re.S)


def simulated():
    return {f"{path.parent.name}::{name}" for path in [*TESTS.glob("simulator/*/mutant.rs"), TESTS / "worlds" / "mutant.rs"]
            for name in re.findall(r"Self::(\w+)", SIMULATED.search(path.read_text())[1])}


def problems(every):
    """How many promises there are, and what is wrong with them, each in a line."""
    mutants = {mutant.name: mutant for mutant in every}
    known = set(mutants) | simulated()
    page = NOT_PROMISED.sub("", PAGE.read_text())
    promises, proofs = PROMISE.findall(page), PROOF.findall(page)
    named, wrong = set(), marks(PAGE, promises, proofs)
    for promise, mark in promises:
        short = f"{PAGE.name}: “{promise[:60]}...”"
        bugs, tests = parts_of(dict(proofs).get(mark, ""))
        named |= set(bugs)
        wrong += [f"{short} there is no mutant {name}" for name in bugs if name not in known]
        wrong += [f"{short} {problem}" for part, names in tests for problem in of_tests(part, names)]
        wrong += [f"{short} names no test that catches {name}" for name in bugs
                  if name in mutants and not is_caught(mutants[name], tests)]
    wrong += [f"{PAGE.name}: no promise names the mutant {name}" for name in sorted(known - named)]
    return len(promises), wrong


def problems_of_faults(every):
    """How many rows the tables of docs/FAULTS.md have, and what is wrong with them, each in a line."""
    known = {mutant.name for mutant in every} | simulated()
    page = FAULTS.read_text()
    rows, proofs = list(ROW.finditer(page)), PROOF.findall(page)
    marked = [row.groups() for row in rows if row[2] or "No test" not in row[0]]
    wrong = marks(FAULTS, marked + PROSE.findall(page), proofs)
    for mark, proof in proofs:
        bugs, tests = parts_of(proof)
        problems = [] if any(names for _, names in tests) else ["names no test"]
        problems += [f"there is no mutant {name}" for name in bugs if name not in known]
        problems += [problem for part, names in tests for problem in of_tests(part, names)]
        wrong += [f"{FAULTS.name}: [^{mark}] {problem}" for problem in problems]
    return len(rows), wrong


def marks(page, promises, proofs):
    """What is wrong with the marks: each is that of one promise, and of one proof."""
    used, given = [mark for _, mark in promises], [mark for mark, _ in proofs]
    wrong = [f"{page.name}: “{promise[:60]}...” does not end with the mark of its proof"
             for promise, mark in promises if given.count(mark) != 1]
    wrong += [f"{page.name}: [^{mark}] is not the mark of one promise" for mark in given if used.count(mark) != 1]
    return wrong


def parts_of(proof):
    """The mutants that a proof names, and its references to tests, each with the names in it."""
    bugs, tests = [], []
    for part in filter(None, map(str.strip, proof.split(";"))):
        names = NAME.findall(part)
        if is_about_mutants(part):
            bugs += names
        else:
            tests.append((part, names))
    return bugs, tests


def is_caught(mutant, tests):
    """Whether one of these references is to a test that catches the mutant."""
    named = [name for part, names in tests if suite_of(part) == mutant.suite for name in names]
    return any(f"::{name}::" in f"::{test}::" for name in named for test in mutant.caught_by)


def is_about_mutants(part):
    return part.startswith(("mutant ", "mutants "))


def suite_of(part):
    return re.match(r"(?:queue )?(\w*)", part)[1]


def of_tests(part, names):
    """What is wrong with a reference to tests: a suite and its tests, a command of make, or a file."""
    suite = suite_of(part)
    if suite in suites.SUITES:
        return [f"there is no test {name} in {suite}" for name in names if not suites.names(suite, name)]
    if suite:
        return [f"there is no suite {suite}"]
    wrong = [f"there is no {name}" for name in names if not exists(name)]
    return wrong or [f"there is no “{title}” in {name}" for title in TITLE.findall(part) for name in names
                     if title not in (ROOT / name).read_text()]


def exists(name):
    if name.startswith("make "):
        return f"\n{name.split()[1]}:" in (ROOT / "Makefile").read_text()
    return (ROOT / name).exists()
