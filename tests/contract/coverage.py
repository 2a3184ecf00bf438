"""Whether the scenarios have everything: each option of each operation, each word that an answer can say.

What there is, the core tells (surface.py) and vectors/operations.json and vectors/words.json; what no scenario needs to
have, these tell with a reason. A reason for something that a scenario has, or that is not there any more, fails, too.
"""

import json
import re

from languages import DRIVERS, TESTS
from scenarios import WORDS
from surface import TOLD, rust, snake

OPERATIONS = json.loads((TESTS / "vectors" / "operations.json").read_text())
VOCABULARY = json.loads((TESTS / "vectors" / "words.json").read_text())
# What drivers are told in other words: `scenarios.py` makes a URL of them.
NOT_SENT = {"scheme", "user", "query"}


def missing(played):
    """What is wrong, each in a line."""
    steps = [step for scenario in played for step in scenario.steps if "do" in step]
    return [*options(steps), *words(steps), *unheard()]


def arguments(operation):
    """All that an operation takes, without units."""
    told = OPERATIONS[operation]
    noun = TOLD.get(told.get("options of"))
    named = set(told.get("takes", []))
    return {plain(name) for name in named} | (rust(noun) - set(noun.get("rust_only", {})) if noun else set())


def plain(name):
    return re.sub(r"_ms$", "", name)


def options(steps):
    used = {}
    for step in steps:
        used.setdefault(step["do"], set()).update(
            plain(name) for name in step if name not in WORDS or name == "as")
    for operation in sorted(set(used) - set(OPERATIONS)):
        yield f"vectors/operations.json lacks {operation}"
    for operation, told in OPERATIONS.items():
        there, seen = arguments(operation), used.get(operation, set())
        yield from compared(f"{operation} with", there, seen, told.get("unseen", {}))
        for strange in sorted(seen - there):
            yield f"{operation} takes no {strange}"


def words(steps):
    for kind, told in VOCABULARY.items():
        there = set(told["words"]) if "words" in told else core_words(TOLD[kind])
        found = set()
        for step in steps:
            places = [step.get("expect"), {"kind": step["error"]} if isinstance(step.get("error"), str) else step.get("error")]
            for place in places if "answers" in told else [step]:
                found |= said(place, told.get("answers") or told["arguments"])
        yield from compared(f"{kind}:", there, found, told.get("unseen", {}))


def core_words(noun):
    """As the core says them: kinds of errors by their names, others in small letters."""
    return set(re.findall(r'Self::\w+ => "(\w+)"', source(noun)))


def source(noun):
    where, name = noun["rust"].split(":")
    text = (TESTS.parent / "core" / "src" / where).read_text()
    return re.search(rf"^impl {name} \{{\n(.*?)^\}}", text, re.M | re.S)[1]


def compared(what, there, seen, unseen):
    for word in sorted(there - seen - set(unseen)):
        yield f"no scenario has {what} {word}"
    for word in sorted(set(unseen) & seen):
        yield f"a scenario has {what} {word}, which is said to be unseen"
    for word in sorted(set(unseen) - there):
        yield f"{what} {word} is said to be unseen, and is not there"


def said(place, key):
    """The words that stand under a key, however deep; of an object that says more, its keys."""
    if isinstance(place, list):
        return set().union(*(said(one, key) for one in place))
    if not isinstance(place, dict):
        return set()
    found = set().union(*(said(one, key) for one in place.values()))
    value = place.get(key)
    return found | ({value} if isinstance(value, str) else set(value) if isinstance(value, dict) else set())


def unheard():
    """An argument that a driver never names is one that it ignores."""
    for folder in sorted(path for path in DRIVERS.iterdir() if path.is_dir()):
        text = "\n".join(path.read_text() for path in sorted(folder.iterdir()) if path.is_file())
        for operation in OPERATIONS:
            told = OPERATIONS[operation]
            known = NOT_SENT | set(told.get("unseen", {})) | set(told.get("ignored", {}).get(folder.name, {}))
            for name in sorted(arguments(operation) - known):
                if not re.search(rf"\b{name}(_ms)?\b", text):
                    yield f"the driver in {folder.name} never looks at {name} of {operation}"
