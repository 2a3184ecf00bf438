"""Whether everything was played, in each language: each option of each operation, each word that an answer can say.

What there is, the core tells (surface.py) and vectors/operations.json and vectors/words.json; what no scenario needs to
have, or what a language cannot have, these tell with a reason. A reason for something that was played, or that is not
there any more, fails, too. A step counts when it was carried out and its answer was as expected.
"""

import json
import re

import surface
from languages import PLAYERS, TESTS
from scenarios import WORDS
from surface import TOLD, rust

OPERATIONS = json.loads((TESTS / "vectors" / "operations.json").read_text())
# What players are told in other words: `scenarios.py` makes a URL of them.
NOT_SENT = {"scheme", "user", "query"}
VOCABULARY = json.loads((TESTS / "vectors" / "words.json").read_text())


def missing(done, known):
    """What is wrong, each in a line. `known` are the operations that each player has."""
    for operation in sorted(set.union(*known.values()) ^ set(OPERATIONS)):
        yield f"not both in vectors/operations.json and in a player: {operation}"
    for language in known:
        steps = [step for one, step in done if one == language]
        for problem in (*options(steps, language), *words(steps, language), *unheard(language)):
            yield f"{language}: {problem}"


def arguments(operation):
    """All that an operation takes, without units."""
    told = OPERATIONS[operation]
    noun = TOLD.get(told.get("options of"))
    named = set(told.get("takes", []))
    return {plain(name) for name in named} | (rust(noun) - set(noun.get("rust_only", {})) if noun else set())


def plain(name):
    return re.sub(r"_ms$", "", name)


def options(steps, language):
    used = {}
    for step in steps:
        used.setdefault(step["do"], set()).update(
            plain(name) for name in step if name not in WORDS or name == "as")
    for operation, told in OPERATIONS.items():
        cannot = language in told.get("cannot", {})
        if cannot or operation not in used:
            if cannot == (operation in used):
                yield f"{operation} was {'played, though it is said that it cannot be' if cannot else 'not played'}"
            continue
        there, seen = arguments(operation), used.get(operation, set())
        yield from compared(f"{operation} with", there, seen, unseen(told, language))
        for strange in sorted(seen - there):
            yield f"{operation} takes no {strange}"


def words(steps, language):
    for kind, told in VOCABULARY.items():
        there = set(told["words"]) if "words" in told else core_words(TOLD[kind])
        found = set()
        for step in steps:
            places = [step.get("expect"), {"kind": step["error"]} if isinstance(step.get("error"), str) else step.get("error")]
            for place in places if "answers" in told else [step]:
                found |= said(place, told.get("answers") or told["arguments"])
        reasons = unseen(told, language)
        # "*": none of them is seen in this language.
        yield from compared(f"{kind}:", there, found, dict.fromkeys(there) if "*" in reasons else reasons)


def unseen(told, language):
    """What need not be played, with the reasons: anywhere, or in this language."""
    return told.get("unseen", {}) | told.get("unseen in", {}).get(language, {})


def unheard(language):
    """What was played may have been ignored: an argument that a player does not even name."""
    folder = PLAYERS / language.removesuffix("-async")
    text = "\n".join(path.read_text() for path in sorted(folder.iterdir()) if path.is_file())
    for operation, told in OPERATIONS.items():
        if language in told.get("cannot", {}):
            continue
        for name in sorted(arguments(operation) - NOT_SENT - set(unseen(told, language))):
            if not re.search(rf"\b{name}(_ms)?\b", text):
                yield f"the player never names {name} of {operation}"


def core_words(noun):
    """As the core says them: kinds of errors by their names, others in small letters."""
    return set(re.findall(r'Self::\w+ => "(\w+)"', source(noun)))


def source(noun):
    name, text = surface.source(noun)
    return re.search(rf"^impl {name} \{{\n(.*?)^\}}", text, re.M | re.S)[1]


def compared(what, there, seen, unseen):
    for word in sorted(there - seen - set(unseen)):
        yield f"not played: {what} {word}"
    for word in sorted(set(unseen) & seen):
        yield f"played, though it is said to be unseen: {what} {word}"
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
