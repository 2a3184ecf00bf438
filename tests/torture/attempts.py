"""Q8: attempts are counted. No number comes twice, and each that is missing is that of a claim which nobody heard of."""

from bisect import bisect_left, insort
from collections import defaultdict
from itertools import pairwise

from check_locks import until
from history import FAILED, OK, UNKNOWN
from taskers import LEASE_MS

# How late a claim can be carried out whose process was killed: the longest that a fault holds it up, and a moment.
LATE_MS = 4000


class Attempts:
    def __init__(self, lines, enqueues, claims_of_tasks):
        self.enqueues, self.claims_of_tasks = enqueues, claims_of_tasks
        self.put_backs = {(line["payload"], line["receipt"]): line["end"] for line in lines if line["op"] == "put_back"}
        self.unheard = [line for line in lines if line["op"] == "claim" and is_unheard(line)]

    def findings(self):
        gaps = defaultdict(list)
        for claims in self.claims_of_tasks:
            of_queue = gaps[claims[0]["queue"]]
            first, sent = claims[0], self.enqueues.get(claims[0]["payload"])
            of_queue += gap(first, first["attempt"] - 1, sent["invoked"] if sent else 0)
            for one, other in pairwise(claims):
                least, most = self.steps(one)
                step = other["attempt"] - one["attempt"]
                if step < least:
                    yield f"{one['id']}: attempt {other['attempt']} after {one['attempt']}"
                of_queue += gap(other, step - most, until(one))
        for queue, of_queue in gaps.items():
            calls = [call for call in self.unheard if call["queue"] == queue]
            yield from unexplained(of_queue, calls)

    def steps(self, claim):
        """By how much the number of the next claim is larger: at least and at most, if nobody claims in between."""
        end = self.put_backs.get((claim["payload"], claim["receipt"]))
        if end == OK:
            return 0, 0
        return (0, 1) if end == UNKNOWN or end != FAILED and claim.get("given_back") else (1, 1)


def gap(claim, missing, since):
    """So many attempts between then and this claim."""
    return [(claim["completed"], since, claim)] * missing


def unexplained(gaps, calls):
    """Each call explains as many as it can have lost, in its time. The one that explains least of what comes is used."""
    calls = sorted(calls, key=lambda call: call["invoked"])
    ends, at = [], 0
    for end, since, claim in sorted(gaps, key=lambda one: one[:2]):
        while at < len(calls) and calls[at]["invoked"] <= end:
            for _ in range(most_lost(calls[at])):
                insort(ends, calls[at]["completed"] + LATE_MS)
            at += 1
        place = bisect_left(ends, since)
        if place == len(ends):
            yield f"{claim['id']}: attempt {claim['attempt']}, and nobody can have made one before it"
        else:
            ends.pop(place)


def most_lost(call):
    """It asks again for what came too late."""
    return 1 + int((call["completed"] - call["invoked"]) // LEASE_MS)


def is_unheard(line):
    """Or it was heard after something else had come too late."""
    return line["end"] == UNKNOWN or line["end"] == OK and line["completed"] - line["invoked"] > LEASE_MS / 2
