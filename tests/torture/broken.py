"""Histories that break a promise each, and one that keeps them all: a check that cannot fail checks nothing."""

import copy
from types import SimpleNamespace

from checker import Verdict
from check_locks import SETTLING_MS
from faults import DAY_MS, Faults
from history import HELD_MS, OK, UNKNOWN
from place import MARK, queue_key
from storm import STATES

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


def held_on(at, long):
    return grant(9, at, at + 1, at + long, at + long)


def fork(extended="Forked", released="Forked", status=0):
    return {**WHO, "op": "fork", "end": OK, "invoked": 1, "completed": 2, "extended": extended, "released": released,
            "status": status}


def timeout(invoked, completed):
    return {**end("acquire", None, invoked, completed, "LockTimeout"), "actor": "late"}


def told(at, was_told=True, valid=False, loss="expired"):
    return {**WHO, "op": "told", "name": "l", "fence": 1, "latest": 50, "at": at, "was_told": was_told, "valid": valid,
            "loss": loss}


def fault(name, at, until, **more):
    return {"op": "fault", "name": name, "at": at, "until": until, **more}


def enqueue(task, completed=1, priority=0, most=1000, payload=None, delay=0, **more):
    return {**WHO, "op": "enqueue", "end": OK, "error": None, "queue": "q", "id": task, "invoked": 0,
            "payload": payload or f"of {task}", "completed": completed, "priority": priority, "max_attempts": most,
            "delay_ms": delay, **more}


def double(payload, version, invoked, completed, outcome="added", policy="keep", task="i"):
    return {**WHO, "op": "enqueue", "end": OK, "error": None, "queue": "d", "id": task, "payload": payload,
            "invoked": invoked, "completed": completed, "outcome": outcome, "policy": policy, "version": version,
            "delay_ms": 0}


def doubtful(line):
    return {**line, "end": UNKNOWN, "error": "Indeterminate", "outcome": None, "version": None}


def claim(task, receipt, attempt, invoked, completed, left, payload=None, **more):
    return {**WHO, "op": "claim", "end": OK, "error": None, "queue": "q", "id": task, "receipt": receipt,
            "payload": payload or f"of {task}", "attempt": attempt, "version": 1, "priority": 0, "invoked": invoked,
            "completed": completed, "deadline": completed + 100, "left": left, "due": 5, "wall": 5, "given_back": False,
            **more}


def unheard(invoked, completed, queue="q"):
    return {**WHO, "op": "claim", "end": UNKNOWN, "error": None, "queue": queue, "id": None, "invoked": invoked,
            "completed": completed}


def ack(task, completed, payload=None, queue="q", receipt=0, verb="ack", **more):
    return {**WHO, "op": verb, "end": OK, "error": None, "queue": queue, "id": task, "payload": payload or f"of {task}",
            "receipt": receipt, "invoked": completed - 1, "completed": completed, **more}


def double_claim(payload, receipt, invoked):
    return claim("i", receipt, 1, invoked, invoked + 1, invoked + 10, payload=payload, queue="d", version=100)


def double_ack(payload):
    return ack("i", 10_000, payload=payload, queue="d")


def keyed(task, key, invoked, left):
    """A task of a key, as it is put in, claimed and acked."""
    receipt, task = 1000 + invoked, f"keyed {task}"
    return [enqueue(task, queue="k", key=f"key:{key}"), claim(task, receipt, 1, invoked, invoked + 1, left, queue="k"),
            ack(task, left + 1, queue="k", receipt=receipt)]


def stale(line):
    return {**line, "end": "failed", "error": "StaleReceipt"}


def wipe(at, *live):
    return fault("server flushed", at, at + 1, lock="*", wiped=True, live=list(live))


def left(task, state="dead", attempts=3, most=3):
    return {"op": "left", "tasks": [{"queue": "q", "id": task, "state": state, "payload": f"of {task}",
                                     "attempts": attempts, "max_attempts": most}]}


LOCKS = [
    grant(1, 0, 1, 50, 10), write(1), grant(2, 5, 11, 60, 20), write(2, 12), write(1, 60, taken=False), told(51),
    write(2, 13, name="set:0", item=7), {"op": "shelf", "name": "set:0", "items": [7]},
    {"op": "calm", "at": CALM, "until": CALM + 60_000, "locks": ["l"]},
    grant(7, AT_EASE, AT_EASE + 1, AT_EASE + 50, AT_EASE + 10), end("release", 7, AT_EASE + 10, AT_EASE + 11),
    grant(8, AT_EASE + 5, AT_EASE + 12, AT_EASE + 80, AT_EASE + 20),
    fork(), {**WHO, "op": "exit", "code": 0}, {"op": "keys", "keys": []}, {"op": "languages", "names": ["rust"]},
]
QUEUES = [
    {"op": "clocks", "offset": 0},
    enqueue("t"), claim("t", 1, 1, 2, 3, 10), claim("t", 2, 2, 11, 12, 20),
    ack("t", 21, receipt=2, verb="put_back"), claim("t", 3, 2, 21, 22, 30), ack("t", 31, receipt=3),
    enqueue("poison", most=3), claim("poison", 5, 1, 40, 41, 50), claim("poison", 6, 2, 50, 51, 60),
    claim("poison", 7, 3, 60, 61, 70), left("poison"),
    # Of a key, one after the other; each of the second key when the lease of the one before is over.
    *keyed("r", 1, 200, 220), *keyed("s", 1, 230, 250), *keyed("t", 2, 200, 220), *keyed("u", 2, 400, 900),
    *keyed("v", 2, 502, 520),
    double("x", 11, 100, 101), double("y", 12, 110, 111, "kept"), double("z", 13, 120, 121, "replaced", "replace"),
    claim("i", 21, 1, 130, 131, 140, payload="z", queue="d", version=13), ack("i", 141, payload="z", queue="d"),
    double("w", 31, 5000, 5001, "added", "throttle_ms"), ack("i", 5010, payload="w", queue="d"),
]
# Otherwise it would look as if the machine stood still.
OTHERS = [{**WHO, "op": "cancel", "end": OK, "error": None, "invoked": at, "completed": at}
          for at in range(0, CALM + 70_000, 200)]
KEPT = LOCKS + QUEUES + OTHERS

# What breaks each of them: more lines.
BREAKS = {
    "L1 a": [[write(1, 100)], [write(2, 15, taken=False)]],
    # However large its fence is.
    "L1 nobody": [[grant(30, 200, 201, 230, 220), grant(29, 250, 251, 290, 280), write(29, 260), write(30, 270)]],
    # One that was renewed is held until the deadline that was seen last.
    "L2": [[grant(3, 12, 15, 70, 65)], [grant(3, 200, 201, 900, 700, "r"), grant(4, 300, 690, 800, 750, "r")]],
    "L3": [[grant(2, 30, 31, 90, 40)], [grant(1, 200, 201, 290, 240)]],
    "L4": [[end("release", 2, 20, 21, "LeaseLost")], [end("extend", 2, 20, 21, "LeaseExpired")]],
    "L5": [[grant(9, 200, 201, 201, 201, valid=False)]],
    "L6": [[told(51, was_told=False)], [told(51, valid=True)], [told(51, loss=None)], [told(9000)]],
    "L7": [[end("release", 8, AT_EASE + 20, AT_EASE + 21),
            grant(9, AT_EASE + 5, AT_EASE + 9000, AT_EASE + 9900, AT_EASE + 9100)],
           [{"op": "calm", "at": 2 * CALM, "until": 3 * CALM, "locks": ["l"]}],
           [timeout(AT_EASE + 100, AT_EASE + 10_100)],
           [held_on(AT_EASE + 100, 7000), timeout(AT_EASE + 200, AT_EASE + 13_000)],
           # As far as it is calm.
           [timeout(CALM + 53_000, CALM + 63_000)],
           # It goes by the order of asking.
           [held_on(AT_EASE + 100, 7000), grant(10, AT_EASE + 6000, AT_EASE + 7200, AT_EASE + 9000, AT_EASE + 8900),
            {**grant(11, AT_EASE + 200, AT_EASE + 9000, AT_EASE + 9100, AT_EASE + 9050), "actor": "late"}]],
    "L1, L2": [[write(2, 14, name="set:0", item=8)], [{"op": "shelf", "name": "set:0", "items": [7, 7]}],
               [{"op": "shelf", "name": "sale:0", "items": list(range(11))},
                *[write(2, 14, name="sale:0", item=item) for item in range(11)]]],
    "an inherited": [[fork(extended=None)], [fork(released=None)], [fork(released="LeaseLost")], [fork(status=6)]],
    "each error": [[{**end("release", 1, 20, 21), "error": kind, "end": "failed"}] for kind in ("panic", "Internal")],
    "a process": [[{**WHO, "op": "exit", "code": -11}]],
    "L8": [[{"op": "keys", "keys": ["Lock:l"]}]],
    "Q1": [
        [enqueue("lost")], [double("v", 40, 9000, 9001)],
        # An ack that was not carried out: the task was given out again, and then not any more.
        [enqueue("lost"), claim("lost", 40, 1, 300, 301, 310), doubtful(ack("lost", 311, receipt=40)),
         claim("lost", 41, 2, 500, 501, 510)],
        [enqueue("lost"), {**ack("lost", 311), "end": "failed", "error": "StaleReceipt"}],
        # What came later did not take its place: it found nothing, or was kept, or came after another successor.
        [double("v", 40, 9000, 9001), double("u", 41, 9010, 9011, "added", "replace"), double_ack("u")],
        [double("v", 40, 9000, 9001), double("u", 41, 9010, 9011, "kept")],
        [double("v", 40, 9000, 9001), double("u", 41, 9010, 9011, "successor"),
         double("s", 42, 9020, 9021, "successor"), double("r", 43, 9030, 9031, "replaced", "replace"),
         *map(double_ack, "usr")],
        [double("v", 40, 9000, 9001), double("u", 41, 9010, 9011, "added"), double_ack("u"),
         doubtful(double("r", 0, 9020, 9021, policy="replace"))],
        [double("v", 40, 9000 + HELD_MS, 9001 + HELD_MS), doubtful(double("r", 0, 8000, 8500, policy="replace"))],
        [double("v", 40, 9000, 9001), doubtful(double("r", 0, 9020, 9021))]],
    "Q2": [[claim("t", 9, 3, 25, 200, 210, payload="another")], [claim("t", 9, 3, 25, 200, 210, payload="of poison")]],
    "Q3 one": [[claim("t", 9, 3, 23, 24, 40)],
               # One that was prolonged is held until the deadline that was seen last.
               [enqueue("long"), {**claim("long", 40, 1, 300, 301, 900), "deadline": 950}, ack("long", 901, receipt=40),
                claim("long", 41, 2, 700, 800, 810)]],
    "Q3, Q4": [[stale(ack("t", 25, receipt=3))], [stale(ack("t", 25, receipt=3, verb="nack", delay_ms=0))]],
    "Q4": [[claim("t", 9, 3, 32, 132, 140)]],
    "Q5": [[claim("i", 22, 1, 150, 151, 160, payload="y", queue="d", version=14)],
           [claim("i", 22, 1, 150, 151, 160, payload="x", queue="d", version=11)],
           [double("u", 12, 300, 301, "kept")], [double("u", 32, 5100, 5101, "kept", "throttle_ms")]],
    "Q6": [[claim("t", 9, 3, 25, 200, 210, due=9)],
           # Whatever it says of itself.
           [enqueue("later", delay=300), claim("later", 40, 1, 200, 280, 290), ack("later", 291)],
           [{**double("v", 40, 9000, 9001), "delay_ms": 300}, double_claim("v", 45, 9200), double_ack("v")],
           [enqueue("later"), claim("later", 40, 1, 200, 201, 210),
            ack("later", 211, receipt=40, verb="nack", delay_ms=90), claim("later", 41, 2, 220, 250, 260),
            ack("later", 261)]],
    "Q7": [[enqueue("urgent", 100, 2), enqueue("idle"), claim("idle", 30, 1, 300, 301, 310),
            claim("urgent", 31, 1, 320, 321, 330), ack("idle", 311), ack("urgent", 331)],
           # A claim that nobody heard of, but of another queue, or long before.
           [enqueue("urgent", 100, 2), enqueue("idle"), claim("idle", 30, 1, 300, 301, 310),
            claim("urgent", 31, 1, 320, 321, 330), ack("idle", 311), ack("urgent", 331), unheard(290, 295, queue="d")],
           [enqueue("urgent", 9000, 2), enqueue("idle"), claim("idle", 30, 1, 9300, 9301, 9310),
            claim("urgent", 31, 1, 9320, 9321, 9330), ack("idle", 9311), ack("urgent", 9331), unheard(290, 295)],
           [enqueue("first", completed=100), {**enqueue("second", completed=120), "invoked": 110},
            claim("second", 30, 1, 300, 301, 310), claim("first", 31, 1, 320, 321, 330), ack("first", 331),
            ack("second", 311)]],
    "Q8": [[claim("t", 9, 2, 25, 200, 210)], [claim("t", 9, 5, 25, 200, 210)],
           # Nobody heard of one, but not then; or of another queue; or only of one.
           [claim("t", 9, 4, 25, 200, 210), unheard(201, 300)],
           [enqueue("u"), claim("u", 40, 1, 5000, 5001, 5010), claim("u", 41, 3, 5200, 5201, 5210), ack("u", 5211),
            unheard(5, 6)],
           [claim("t", 9, 4, 25, 200, 210), unheard(100, 150, queue="d")],
           [claim("t", 9, 5, 25, 200, 210), unheard(100, 150)],
           [claim("t", 9, 4, 25, 200, 210), unheard(100, 150), enqueue("u"), claim("u", 40, 2, 201, 202, 210),
            ack("u", 211)],
           # It was given back, and counted all the same; or the other way round.
           [enqueue("u"), claim("u", 40, 1, 201, 202, 210), ack("u", 211, receipt=40, verb="put_back"),
            claim("u", 41, 2, 220, 221, 230), ack("u", 231)],
           [enqueue("u"), claim("u", 40, 1, 201, 202, 210), stale(ack("u", 400, receipt=40, verb="put_back")),
            claim("u", 41, 1, 420, 421, 430), ack("u", 431)]],
    "Q9": [[claim("poison", 9, 4, 80, 81, 90)], [left("poison", attempts=2)], [left("poison", state="ready")],
           [enqueue("good"), left("good", attempts=1, most=1000)]],
    "Q10, Q11": [[enqueue("good"), left("good", state=state, attempts=0)] for state in STATES if state != "dead"],
    "Q11": [keyed("w", 1, 210, 215), keyed("w", 1, 225, 235), keyed("w", 2, 490, 495),
            # Also if a server was emptied, but before, or after.
            [*keyed("w", 1, 210, 215), wipe(190)], [*keyed("w", 1, 210, 215), wipe(212)]],
    "with memory": [[{**ack("t", 31), "no_memory": True}]],
    "each language": [[{"op": "languages", "names": ["rust", "node"]}],
                      [{"op": "languages", "names": ["c"]}, {**grant(50, 900, 901, 910, 905), "language": "c"}]],
}

# What has a cause is counted, not found.
EXCUSED = {
    "an overlap": [grant(3, 12, 15, 70, 65), fault("key deleted", 13, 14, lock="l")],
    "two of a key where the limit was forgotten": [*keyed("w", 1, 210, 215), wipe(205)],
    "a lease that ended early": [end("release", 2, 20, 21, "LeaseLost"), fault("server flushed", 13, 14, lock="*")],
    "a lost task": [enqueue("lost"), wipe(3, "of lost")],
    "a task that may be acked": [
        enqueue("u"), claim("u", 40, 1, 300, 301, 310), doubtful(ack("u", 311, receipt=40))],
    "one that was replaced": [
        double("v", 40, 9000, 9001), double("u", 41, 9010, 9011, "replaced", "debounce_ms"), double_ack("u")],
    "a retry whose successor took its place": [
        double("v", 40, 9000, 9001), double("u", 41, 9010, 9011, "successor"),
        double("r", 42, 9020, 9021, "replaced", "replace"), double_ack("r")],
    "one that may have been replaced": [
        double("v", 40, 9000, 9001), doubtful(double("r", 0, 8000, 8500, policy="replace"))],
    "a debounced one that is due by its first": [
        {**double("v", 40, 9000, 9001, policy="debounce_ms"), "delay_ms": 300}, double_claim("v", 45, 9200),
        double_ack("v")],
    "a claim that was over when its ack came": [stale(ack("t", 500, receipt=2))],
    "a claim that the end of its process gave back": [
        enqueue("u"), claim("u", 40, 1, 201, 202, 210, given_back=True), stale(ack("u", 211, receipt=40)),
        claim("u", 41, 1, 220, 221, 230), ack("u", 231)],
    "a lease that was renewed and then released": [
        grant(3, 200, 201, 900, 700, "r"), grant(4, 300, 701, 800, 750, "r")],
    "one who waited while others held it": [held_on(AT_EASE + 100, 9000), timeout(AT_EASE + 200, AT_EASE + 10_200)],
    "one who waited while the machine stood still": [
        timeout(3 * CALM, 3 * CALM + 10_000), grant(60, 3 * CALM, 3 * CALM + 11_000, 3 * CALM + 12_000, 3 * CALM + 11_500),
        {"op": "calm", "at": 3 * CALM - 10_000, "until": 4 * CALM, "locks": ["l"]}],
    "one who waited when it was not calm": [timeout(CALM - 10_000, CALM + 2000), timeout(CALM + 56_000, CALM + 66_000)],
    "one told late in a stopped process": [told(9000), fault("stopped", 40, 60, actor="a")],
    "one told late by a machine that stood still": [
        {**told(2 * CALM + 9000), "latest": 2 * CALM}, grant(60, 3 * CALM, 3 * CALM + 1, 3 * CALM + 50, 3 * CALM + 10)],
    "a claim that nobody heard of": [claim("t", 9, 4, 25, 200, 210), unheard(26, 27)],
    "one that it had for a while": [
        enqueue("urgent", 100, 2), enqueue("idle"), claim("idle", 30, 1, 300, 301, 310),
        claim("urgent", 31, 1, 320, 321, 330), ack("idle", 311), ack("urgent", 331), unheard(290, 295)],
    "two of them": [
        claim("t", 9, 4, 25, 200, 210), unheard(100, 150), enqueue("u"), claim("u", 40, 2, 201, 202, 210),
        ack("u", 211), unheard(5, 6)],
}
# These break a promise all the same: the cause came too late, or was another lock's.
NO_EXCUSE = {
    "L2": [grant(3, 12, 15, 70, 65), fault("key deleted", 16, 17, lock="l"), fault("key deleted", 13, 14, lock="m")],
    # It was not there any more when the server was emptied.
    "Q1": [enqueue("lost"), wipe(3, "of another")],
}
# Keys that are left, with what they have to live in ms; whether they have to be told of.
KEYS = [
    (f"{MARK}lock:l", -1, True), (f"{MARK}lock:l", 3000, False), (f"stanchion:meta:{MARK}l", -1, True),
    (f"stanchion:meta:{MARK}l", 1_300_000, False), (f"stanchion:meta:{MARK}l", 7 * DAY_MS, True),
    (f"stanchion:call:{MARK}q:1:1", 600_000, False), (f"stanchion:call:{MARK}q:1:1", 700_000, True),
    (f"stanchion:ended:{MARK}l:1", 700_000, True), (queue_key("state", "q"), -1, True),
    (queue_key("grave", "q"), -1, False), (queue_key("dead", "d"), -1, True), ("anybody's", -1, False),
    (queue_key("queue", "q"), 90 * DAY_MS, False), (queue_key("queue", "q"), 91 * DAY_MS, True),
    (queue_key("queue", "q"), -1, True),
]
# After a purge.
KEYS_LATER = [
    (queue_key("queue", "q"), 7 * DAY_MS, False), (queue_key("queue", "q"), 8 * DAY_MS, True),
    (queue_key("grave", "q"), -1, True),
]


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
    wrong += [f"{key} with {life} ms to live is {'not ' if told else ''}told of" for keys, purged in
              ((KEYS, False), (KEYS_LATER, True)) for key, life, told in keys if is_left(key, life, purged) != told]
    for problem in wrong:
        print(f"FAILED {problem}")
    passed, verdict = 1 + len(rows) + len(EXCUSED) + len(KEYS) + len(KEYS_LATER) - len(wrong), "FAILED" if wrong else "ok"
    print(f"test result: {verdict}. {passed} passed; {len(wrong)} failed; 0 ignored;")
    return 1 if wrong else 0


def is_of(name, letter):
    return name == letter or name.startswith(f"{letter} ") or name.startswith(f"{letter},")


def is_left(key, life, purged):
    """When there were dead tasks in q."""
    console = SimpleNamespace(keys=lambda: [key], lives=lambda keys: {key: life for key in keys})
    storm = SimpleNamespace(place=SimpleNamespace(console=console, is_ours=True))
    return Faults(storm, 0).leftovers(() if purged else {"q"}, purged) == [key]


def found_in(more):
    lines = copy.deepcopy(KEPT)
    # Of what is told once, the last counts.
    for line in more:
        if line["op"] in ("left", "shelf"):
            lines = [one for one in lines if (one["op"], one.get("name")) != (line["op"], line.get("name"))]
    return Verdict(lines + copy.deepcopy(more)).findings
