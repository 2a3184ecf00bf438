"""The mutants: data, in the files beside this one."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import suites

ROOT = Path(__file__).resolve().parent.parent.parent
KEYS = {"name", "promise", "file", "from", "to", "suite", "caught_by"}
# Which tests must pass all the same, for mutants that do not name their own: `control`.
CONTROLS = Path(__file__).with_name("controls.json")


@dataclass(frozen=True)
class Mutant:
    """`caught_by`: tests of the suite, all of which must fail when `before`, in the file, is `after`; those of `control`
    must pass: it is this that has been broken, and not everything."""

    name: str
    promise: str
    file: str
    before: str
    after: str
    suite: str
    caught_by: tuple
    control: tuple


def load():
    files = [path for path in sorted(Path(__file__).parent.glob("*.json")) if path != CONTROLS]
    return [read(path, one) for path in files for one in json.loads(path.read_text())]


def read(path, one):
    if set(one) - {"control"} != KEYS:
        raise SystemExit(f"{path.name}: {one.get('name', one)}: it has to have {', '.join(sorted(KEYS))}")
    control = one["control"] if "control" in one else usual_control(one["suite"], one["file"])
    return Mutant(one["name"], one["promise"], one["file"], text(one["from"]), text(one["to"]), one["suite"],
                  tuple(one["caught_by"]), tuple(control))


def usual_control(suite, file):
    """What controls.json tells for the suite, of the place that is nearest to the file."""
    places = json.loads(CONTROLS.read_text()).get(suite, {})
    near = [place for place in places if file.startswith(place)]
    return places[max(near, key=len)] if near else []


def text(lines):
    """A text of several lines is a list."""
    return lines if isinstance(lines, str) else "\n".join(lines)


def mutated(mutant, source):
    return source.replace(mutant.before, mutant.after)


def problems(mutant):
    """What is wrong with it, each in a line."""
    path = ROOT / mutant.file
    if not path.is_file():
        yield f"{mutant.name}: there is no {mutant.file}"
    else:
        found = path.read_text().count(mutant.before)
        if found != 1:
            yield f"{mutant.name}: what it changes occurs {found} times in {mutant.file}"
    if mutant.before == mutant.after:
        yield f"{mutant.name}: it changes nothing"
    if mutant.suite not in suites.SUITES:
        yield f"{mutant.name}: there is no suite {mutant.suite}"
        return
    if not mutant.caught_by:
        yield f"{mutant.name}: nothing catches it"
    if not mutant.control:
        yield f"{mutant.name}: no test must pass all the same; {CONTROLS.name} has none for {mutant.suite}"
    for test in set(mutant.caught_by) & set(mutant.control):
        yield f"{mutant.name}: {test} cannot both fail and pass"
    for test in mutant.caught_by + mutant.control:
        if not suites.has_test(mutant.suite, test):
            yield f"{mutant.name}: there is no test {test} in {mutant.suite}"


def doubles(every):
    counts = Counter(mutant.name for mutant in every)
    return [f"{name}: there are {count} of this name" for name, count in counts.items() if count > 1]


def idle_controls(every):
    """What controls.json has that no mutant asks for, such as a place that was renamed."""
    for suite, places in json.loads(CONTROLS.read_text()).items():
        asked = [tuple(mutant.control) for mutant in every if mutant.suite == suite]
        for place, tests in places.items():
            if not (ROOT / place).exists():
                yield f"{CONTROLS.name}: there is no {place}"
            elif tuple(tests) not in asked:
                yield f"{CONTROLS.name}: no mutant asks for what {suite} has for {place}"
