"""docs/GUARANTEES.md: each promise ends with its proofs, *(SUITE `test`, `test`; mutants `name`)*, and they must exist."""

import re
from pathlib import Path

import suites

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "GUARANTEES.md"
SIMULATOR = ROOT / "tests" / "tests" / "simulator"
PROOFS = re.compile(r"\*\((.*?)\)\*", re.S)
NAME = re.compile(r"`([^`]+)`")
# These play in every run of the simulator; they are named by the kind of schedules: locks::BlindRelease.
SIMULATED = re.compile(r"ALL: \[Self; \d+\] = \[(.*?)\]", re.S)


def simulated():
    return {f"{path.parent.name}::{name}" for path in SIMULATOR.glob("*/mutant.rs")
            for name in re.findall(r"Self::(\w+)", SIMULATED.search(path.read_text())[1])}


def problems(every):
    """How many promises there are, and what is wrong with them, each in a line."""
    known = {mutant.name for mutant in every} | simulated()
    promises = re.findall(r"^- (.*)$", PAGE.read_text(), re.M)
    named, wrong = set(), []
    for promise in promises:
        short = f"{PAGE.name}: “{promise[:60]}...”"
        if not promise.endswith(")*"):
            wrong.append(f"{short} does not end with its proofs")
        for part in (part.strip() for proofs in PROOFS.findall(promise) for part in proofs.split(";")):
            names = NAME.findall(part)
            if is_about_mutants(part):
                named |= set(names)
                wrong += [f"{short} there is no mutant {name}" for name in names if name not in known]
            else:
                wrong += [f"{short} {problem}" for problem in of_tests(part, names)]
    wrong += [f"{PAGE.name}: no promise names the mutant {name}" for name in sorted(known - named)]
    return len(promises), wrong


def is_about_mutants(part):
    return part.startswith(("mutant ", "mutants "))


def of_tests(part, names):
    """What is wrong with a reference to tests: a suite and its tests, a command of make, or a file."""
    suite = re.match(r"(?:queue )?(\w*)", part)[1]
    if suite in suites.SUITES:
        return [f"there is no test {name} in {suite}" for name in names if not suites.names(suite, name)]
    if suite:
        return [f"there is no suite {suite}"]
    return [f"there is no {name}" for name in names if not exists(name)]


def exists(name):
    if name.startswith("make "):
        return f"\n{name.split()[1]}:" in (ROOT / "Makefile").read_text()
    return (ROOT / name).exists()
