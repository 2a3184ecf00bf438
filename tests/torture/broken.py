"""Histories that break a promise each, and one that keeps them all: a check that cannot fail checks nothing."""

import copy

from checker import Verdict
from check_locks import SETTLING_MS
from history import OK, UNKNOWN

WHO = {"actor": "a", "language": "rust"}
# When all is calm.
CALM = 100_000
AT_EASE = CALM + SETTLING_MS


def grant(fence, invoked, completed, deadline, left, name="l", valid=True, **more):
    return {**WHO, "op": "acquire", "end": OK, "error": None, "name": name, "fence": fence, "valid": valid, "ttl": 60,
            "seen": True, "looked": completed, "latest": deadline, "loss": None, "invoked": invoked,
            "completed": completed, "deadline": deadline, "left": left, **more}


def write(fence, at=5, taken=True, name="l", **more):
    return {**WHO, "op": "write", "name": name, "fence": fence, "taken": taken, "at": at, **more}


def end(op, fence, invoked, completed, error=None, name="l"):
    return {**WHO, "op": op, "end": "failed" if error else OK, "error": error, "name": name, "fence": fence,
            "invoked": invoked, "completed": completed}


def told(at, was_told=True, valid=False, loss="expired"):
    return {**WHO, "op": "told", "name": "l", "fence": 1, "latest": 50, "at": at, "was_told": was_told, "valid": valid,
            "loss": loss}


def fault(name, at, until, **more):
    return {"op": "fault", "name": name, "at": at, "until": until, **more}


def enqueue(task, completed=1, priority=0, most=1000, payload=None):
    return {**WHO, "op": "enqueue", "end": OK, "error": None, "queue": "q", "id": task, "invoked": 0,
            "payload": payload or f"of {task}", "completed": completed, "priority": priority, "max_attempts": most,
            "delay_ms": 0}


def double(payload, version, invoked, completed, outcome="added", policy="keep"):
    return {**WHO, "op": "enqueue", "end": OK, "error": None, "queue": "d", "id": "i", "payload": payload,
            "invoked": invoked, "completed": completed, "outcome": outcome, "policy": policy, "version": version}


def claim(task, receipt, attempt, invoked, completed, left, payload=None, **more):
    return {**WHO, "op": "claim", "end": OK, "error": None, "queue": "q", "id": task, "receipt": receipt,
            "payload": payload or f"of {task}", "attempt": attempt, "version": 1, "priority": 0, "invoked": invoked,
            "completed": completed, "deadline": completed + 100, "left": left, "due": 5, "wall": 5, "put_back": False,
            **more}


def ack(task, completed, payload=None, queue="q"):
    return {**WHO, "op": "ack", "end": OK, "error": None, "queue": queue, "id": task, "payload": payload or f"of {task}",
            "receipt": 0, "invoked": completed - 1, "completed": completed}


def left(task, state="dead", attempts=3, most=3):
    return {"op": "left", "tasks": [{"queue": "q", "id": task, "state": state, "payload": f"of {task}",
                                     "attempts": attempts, "max_attempts": most}]}


LOCKS = [
    grant(1, 0, 1, 50, 10), write(1), grant(2, 5, 11, 60, 20), write(2, 12), write(1, 60, taken=False), told(51),
    write(2, 13, name="set:0", item=7), {"op": "shelf", "name": "set:0", "items": [7]},
    {"op": "calm", "at": CALM, "until": CALM + 60_000, "locks": ["l"]},
    grant(7, AT_EASE, AT_EASE + 1, AT_EASE + 50, AT_EASE + 10), end("release", 7, AT_EASE + 10, AT_EASE + 11),
    grant(8, AT_EASE + 5, AT_EASE + 12, AT_EASE + 80, AT_EASE + 20),
    {**WHO, "op": "fork", "end": OK, "invoked": 1, "completed": 2, "inherited": "Forked", "status": 0},
    {**WHO, "op": "exit", "code": 0}, {"op": "keys", "keys": []},
]
QUEUES = [
    {"op": "clocks", "offset": 0},
    enqueue("t"), claim("t", 1, 1, 2, 3, 10), claim("t", 2, 2, 11, 12, 20, put_back=True), claim("t", 3, 2, 21, 22, 30),
    ack("t", 31), enqueue("poison", most=3), claim("poison", 5, 1, 40, 41, 50), claim("poison", 6, 2, 50, 51, 60),
    claim("poison", 7, 3, 60, 61, 70), left("poison"),
    double("x", 11, 100, 101), double("y", 12, 110, 111, "kept"), double("z", 13, 120, 121, "replaced", "replace"),
    claim("i", 21, 1, 130, 131, 140, payload="z", queue="d", version=13), ack("i", 141, payload="z", queue="d"),
    double("w", 31, 5000, 5001, "added", "throttle_ms"), ack("i", 5010, payload="w", queue="d"),
]
KEPT = LOCKS + QUEUES

# What breaks each of them: more lines.
BREAKS = {
    "L1 a": [[write(1, 100)], [write(2, 15, taken=False)]],
    "L2": [[grant(3, 12, 15, 70, 65)]],
    "L3": [[grant(2, 30, 31, 90, 40)], [grant(1, 200, 201, 290, 240)]],
    "L4": [[end("release", 2, 20, 21, "LeaseLost")], [end("extend", 2, 20, 21, "LeaseExpired")]],
    "L5": [[grant(9, 200, 201, 201, 201, valid=False)]],
    "L6": [[told(51, was_told=False)], [told(51, valid=True)], [told(51, loss=None)], [told(9000)]],
    "L7": [[end("release", 8, AT_EASE + 20, AT_EASE + 21), grant(9, AT_EASE + 5, AT_EASE + 9000, AT_EASE + 9900,
                                                                 AT_EASE + 9100)],
           [{"op": "calm", "at": 2 * CALM, "until": 3 * CALM, "locks": ["l"]}]],
    "L1, L2": [[write(2, 14, name="set:0", item=8)], [{"op": "shelf", "name": "set:0", "items": [7, 7]}],
               [{"op": "shelf", "name": "sale:0", "items": list(range(11))},
                *[write(2, 14, name="sale:0", item=item) for item in range(11)]]],
    "an inherited": [[{**WHO, "op": "fork", "end": OK, "invoked": 1, "completed": 2, "inherited": None, "status": 0}],
                     [{**WHO, "op": "fork", "end": OK, "invoked": 1, "completed": 2, "inherited": "Forked", "status": 6}]],
    "each error": [[{**end("release", 1, 20, 21), "error": kind, "end": "failed"}] for kind in ("panic", "Internal")],
    "a process": [[{**WHO, "op": "exit", "code": -11}]],
    "L8": [[{"op": "keys", "keys": ["Lock:l"]}]],
    "Q1": [[enqueue("lost")], [double("v", 40, 9000, 9001)]],
    "Q2": [[claim("t", 9, 3, 25, 200, 210, payload="another")], [claim("t", 9, 3, 25, 200, 210, payload="of poison")]],
    "Q3": [[claim("t", 9, 3, 23, 24, 40)]],
    "Q4": [[claim("t", 9, 3, 32, 132, 140)]],
    "Q5": [[claim("i", 22, 1, 150, 151, 160, payload="y", queue="d", version=14)],
           [claim("i", 22, 1, 150, 151, 160, payload="x", queue="d", version=11)],
           [double("u", 12, 300, 301, "kept")], [double("u", 32, 5100, 5101, "kept", "throttle_ms")]],
    "Q6": [[claim("t", 9, 3, 25, 200, 210, due=9)]],
    "Q7": [[enqueue("urgent", priority=2), enqueue("idle"), claim("idle", 30, 1, 300, 301, 310),
            claim("urgent", 31, 1, 320, 321, 330), ack("idle", 311), ack("urgent", 331)],
           [enqueue("first", completed=100), {**enqueue("second", completed=120), "invoked": 110},
            claim("second", 30, 1, 300, 301, 310), claim("first", 31, 1, 320, 321, 330), ack("first", 331),
            ack("second", 311)]],
    "Q8": [[claim("t", 9, 2, 25, 200, 210)], [claim("t", 9, 5, 25, 200, 210)]],
    "Q9": [[claim("poison", 9, 4, 80, 81, 90)], [left("poison", attempts=2)], [left("poison", state="ready")],
           [enqueue("good"), left("good", attempts=1, most=1000)]],
    "with memory": [[{**ack("t", 31), "no_memory": True}]],
}

# What has a cause is counted, not found.
EXCUSED = {
    "an overlap": [grant(3, 12, 15, 70, 65), fault("key deleted", 13, 14, lock="l")],
    "a lease that ended early": [end("release", 2, 20, 21, "LeaseLost"), fault("server flushed", 13, 14, lock="*")],
    "a lost task": [enqueue("lost"), fault("server flushed", 1, 2, lock="*", wiped=True)],
    "one told late in a stopped process": [told(9000), fault("stopped", 40, 60, actor="a")],
    "a claim that nobody heard of": [
        claim("t", 9, 4, 25, 200, 210), {**claim("t", 0, 0, 26, 27, 28), "end": UNKNOWN, "payload": None}],
}
# These break a promise all the same: the cause came too late, or was another lock's.
NO_EXCUSE = {
    "L2": [grant(3, 12, 15, 70, 65), fault("key deleted", 16, 17, lock="l"), fault("key deleted", 13, 14, lock="m")],
    "Q1": [enqueue("lost", completed=30), fault("server flushed", -2, -1, lock="*", wiped=True)],
}


def main():
    wrong = [f"{name} finds fault with a history that keeps it: {found}" for name, found in found_in([]).items() if found]
    rows = [(letter, more) for letter, every in BREAKS.items() for more in every] + list(NO_EXCUSE.items())
    for letter, more in rows:
        if not any(found for name, found in found_in(more).items() if is_of(name, letter)):
            wrong.append(f"{letter} does not find what breaks it: {more}")
    for what, more in EXCUSED.items():
        wrong += [f"{name} does not know the cause of {what}" for name, found in found_in(more).items()
                  if found]
    wrong += [f"{name} is not broken here" for name in found_in([]) if not any(is_of(name, letter) for letter in BREAKS)]
    for problem in wrong:
        print(f"FAILED {problem}")
    passed, verdict = 1 + len(rows) + len(EXCUSED) - len(wrong), "FAILED" if wrong else "ok"
    print(f"test result: {verdict}. {passed} passed; {len(wrong)} failed; 0 ignored;")
    return 1 if wrong else 0


def is_of(name, letter):
    return name == letter or name.startswith(f"{letter} ") or name.startswith(f"{letter},")


def found_in(more):
    lines = copy.deepcopy(KEPT)
    # Of what is told once, the last counts.
    for line in more:
        if line["op"] in ("left", "shelf"):
            lines = [one for one in lines if (one["op"], one.get("name")) != (line["op"], line.get("name"))]
    return Verdict(lines + copy.deepcopy(more)).findings
