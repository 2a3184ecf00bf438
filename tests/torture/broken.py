"""Histories that break a promise each, and one that keeps them all: a check that cannot fail checks nothing."""

import copy

import checker
from history import OK, UNKNOWN

WHO = {"actor": "a", "language": "rust"}


def grant(fence, invoked, completed, deadline, left, **more):
    return {**WHO, "op": "acquire", "end": OK, "name": "l", "fence": fence, "valid": True, "invoked": invoked,
            "completed": completed, "deadline": deadline, "left": left, **more}


def write(fence, taken=True):
    return {**WHO, "op": "write", "name": "l", "fence": fence, "taken": taken}


def enqueue(task):
    return {**WHO, "op": "enqueue", "end": OK, "id": task, "payload": f"of {task}", "invoked": 0, "completed": 1}


def claim(task, receipt, attempt, invoked, completed, left, **more):
    return {**WHO, "op": "claim", "end": OK, "id": task, "payload": f"of {task}", "receipt": receipt, "attempt": attempt,
            "invoked": invoked, "completed": completed, "deadline": completed + 100, "left": left, "due": 5, "wall": 5,
            "put_back": False, **more}


def ack(task, completed, end=OK):
    return {**WHO, "op": "ack", "end": end, "id": task, "invoked": completed - 1, "completed": completed}


KEPT = [
    grant(1, 0, 1, 50, 10), write(1), grant(2, 5, 11, 60, 20), write(2), write(1, taken=False),
    enqueue("t"), claim("t", 1, 1, 2, 3, 10), claim("t", 2, 2, 11, 12, 20, put_back=True), claim("t", 3, 2, 21, 22, 30),
    ack("t", 31), enqueue("dead"), claim("dead", 4, 1, 40, 41, 50), {**WHO, "op": "left", "ids": ["dead"]},
]

# What breaks each of them: more lines, or a change of one.
BREAKS = {
    "L1": [write(1)],
    "L2": [grant(3, 12, 15, 70, 65)],
    "L3": [grant(2, 30, 31, 90, 40)],
    "L5": [grant(3, 100, 101, 150, 150, valid=False)],
    "Q1": [enqueue("lost")],
    "Q2": [claim("t", 9, 3, 25, 200, 210, payload="another")],
    "Q3": [claim("t", 9, 3, 23, 24, 40)],
    "Q4": [claim("t", 9, 3, 32, 132, 140)],
    "Q6": [claim("t", 9, 3, 25, 200, 210, due=9)],
    "Q8": [claim("t", 9, 2, 25, 200, 210)],
}


def main():
    wrong = [f"{name} finds fault with a history that keeps it" for name, found in found_in(KEPT).items() if found]
    for letter, more in BREAKS.items():
        found = {name.split()[0] for name, sentences in found_in(KEPT + more).items() if sentences}
        if letter not in found:
            wrong.append(f"{letter} does not find what breaks it")
    unheard = {**WHO, "op": "claim", "end": UNKNOWN, "id": None, "invoked": 1, "completed": 2}
    skipped = [claim("t", 9, 4, 200, 201, 210)]
    if not found_in(KEPT[:-4] + skipped)[EIGHT] or found_in(KEPT[:-4] + skipped + [unheard])[EIGHT]:
        wrong.append("Q8 does not count claims that nobody heard of")
    names = {name.split()[0] for name in found_in(KEPT)}
    wrong += [f"{letter} is not broken here" for letter in sorted(names - set(BREAKS))]
    for problem in wrong:
        print(f"FAILED {problem}")
    passed, verdict = len(BREAKS) + 2 - len(wrong), "FAILED" if wrong else "ok"
    print(f"test result: {verdict}. {passed} passed; {len(wrong)} failed; 0 ignored;")
    return 1 if wrong else 0


def found_in(lines):
    return {name: list(found) for name, found in checker.verdicts(copy.deepcopy(lines)).items()}


EIGHT = "Q8 attempts are counted"
