"""What an answer has to look like.

An expectation is JSON. An object asks for the fields that it names, a list for all of its elements. "$name" stands for
a value: the first time it takes it, later it must be the same. An object with one key that begins with "$" is a test:

    {"$more": 5} {"$least": 5} {"$most": 5} {"$between": [5, 9]}    numbers
    {"$has": "text"}                                                a text that contains another
    {"$like": "[0-9]+"}                                             a text that is like the pattern from end to end
    {"$json": ...}                                                  a text that is JSON, and what it says
    {"$after": ["$time", 5, 9]}                                     a number so much larger than another
    {"$not": ...}                                                   anything else
    {"$either": [...]}                                              one of these
    {"$any": true}                                                  anything, but not null
    {"$only": {...}}                                                an object with these fields and no others
    {"$set": [...]}                                                 a list with these elements in any order
"""


import json
import re


class Mismatch(Exception):
    """An answer that is not as expected; says where."""


def match(expected, found, names, where="the answer"):
    if isinstance(expected, dict) and len(expected) == 1 and next(iter(expected)).startswith("$"):
        (test, operand), = expected.items()
        TESTS[test](operand, found, names, where)
    elif isinstance(expected, dict):
        want(isinstance(found, dict), where, expected, found)
        for key, value in expected.items():
            want(key in found, f"{where}.{key}", value, "nothing")
            match(value, found[key], names, f"{where}.{key}")
    elif isinstance(expected, list):
        want(isinstance(found, list) and len(found) == len(expected), where, expected, found)
        for number, (one, other) in enumerate(zip(expected, found)):
            match(one, other, names, f"{where}[{number}]")
    elif isinstance(expected, str) and expected.startswith("$"):
        want(names.setdefault(expected[1:], found) == found, where, f"{expected} = {names[expected[1:]]!r}", found)
    else:
        want(same(expected, found), where, expected, found)


def same(one, other):
    """1 is 1.0, but not true."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def fill(value, names):
    """The arguments of a step: each "$name" is what it stands for."""
    if isinstance(value, dict):
        return {key: fill(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [fill(one, names) for one in value]
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in names:
            raise Mismatch(f"{value} stands for nothing yet")
        return names[value[1:]]
    return value


def want(holds, where, expected, found):
    if not holds:
        raise Mismatch(f"{where}: expected {expected!r}, found {found!r}")


def number(test, text):
    def check(operand, found, names, where):
        operand = fill(operand, names)
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        want(is_number and test(operand, found), where, f"{text} {operand}", found)

    return check


def has(operand, found, names, where):
    want(isinstance(found, str) and operand in found, where, f"a text with {operand!r}", found)


def like(operand, found, names, where):
    want(isinstance(found, str) and re.fullmatch(operand, found), where, f"a text like {operand}", found)


def as_json(operand, found, names, where):
    match(operand, json.loads(found), names, where)


def after(operand, found, names, where):
    start, least, most = fill(operand, names)
    want(start + least <= found <= start + most, where, f"{start} and {least} to {most} more", found)


def anything(operand, found, names, where):
    want(found is not None, where, "anything", found)


def only(operand, found, names, where):
    match(operand, found, names, where)
    want(set(operand) == set(found), where, f"only {sorted(operand)}", sorted(found))


def nothing_like(operand, found, names, where):
    try:
        match(operand, found, dict(names), where)
    except Mismatch:
        return
    raise Mismatch(f"{where}: found {found!r}")


def one_of(operand, found, names, where):
    for expected in operand:
        trial = dict(names)
        try:
            match(expected, found, trial, where)
        except Mismatch:
            continue
        names.update(trial)
        return
    want(False, where, f"one of {operand!r}", found)


def in_any_order(operand, found, names, where):
    want(isinstance(found, list) and len(found) == len(operand), where, operand, found)
    left = list(found)
    for expected in operand:
        for one in left:
            trial = dict(names)
            try:
                match(expected, one, trial, where)
            except Mismatch:
                continue
            names.update(trial)
            left.remove(one)
            break
        else:
            want(False, where, expected, left)


TESTS = {
    "$more": number(lambda bound, found: found > bound, "more than"),
    "$least": number(lambda bound, found: found >= bound, "at least"),
    "$most": number(lambda bound, found: found <= bound, "at most"),
    "$between": number(lambda bounds, found: bounds[0] <= found <= bounds[1], "between"),
    "$has": has,
    "$like": like,
    "$json": as_json,
    "$after": after,
    "$any": anything,
    "$only": only,
    "$not": nothing_like,
    "$either": one_of,
    "$set": in_any_order,
}
