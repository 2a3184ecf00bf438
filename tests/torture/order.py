"""Q7: of what is due, the higher priority comes first, then what became ready first.

What was put in for later becomes ready when a claim finds it due: it comes after what was put in for now meanwhile.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import accumulate
from operator import attrgetter

from check_locks import told
from history import OK
from taskers import LEASE_MS, QUEUE

# The store goes by milliseconds.
TICK_MS = 2
# How long a claim that nobody heard of can keep a task.
HIDDEN_MS = LEASE_MS + 1000


class Task:
    """A task that was given out, and when it was due and ready: surely, or at the earliest."""

    def __init__(self, enqueue, first, offset, promotions):
        due = first["due"] - offset
        self.priority, self.first = enqueue["priority"], first
        self.due = max(enqueue["completed"], due) + TICK_MS
        self.ready = self.due if enqueue["delay_ms"] == 0 else promotions.after(self.due)
        self.earliest = max(enqueue["invoked"], due) - TICK_MS


def out_of_order(enqueues, by_payload, lines):
    tasks = list(given_out(enqueues, by_payload, lines))
    by_priority = defaultdict(list)
    for task in tasks:
        by_priority[task.priority].append(task)
    due = {priority: Line(of_priority, "due") for priority, of_priority in by_priority.items()}
    ready = {priority: Line(of_priority, "ready") for priority, of_priority in by_priority.items()}
    hidden = Hidden(lines)
    for task in tasks:
        claim = task.first
        before = [ready[task.priority].longest(min(claim["invoked"], task.earliest))]
        before += [line.longest(claim["invoked"]) for priority, line in due.items() if priority > task.priority]
        for other in before:
            if other is not None and other.first["invoked"] > claim["completed"]:
                if not hidden.between(other.due - HIDDEN_MS, claim["completed"]):
                    yield f"{claim['id']}: {told(claim)} before {other.first['id']}"


def given_out(enqueues, by_payload, lines):
    offset = next((line["offset"] for line in lines if line["op"] == "clocks"), None)
    promotions = Promotions(lines)
    for payload, of_payload in by_payload.items():
        enqueue = enqueues.get(payload)
        if offset is None or enqueue is None or enqueue["queue"] != QUEUE or enqueue["end"] != OK:
            continue
        first = min(of_payload, key=lambda claim: claim["receipt"])
        if first["attempt"] == 1:
            yield Task(enqueue, first, offset, promotions)


class Promotions:
    """Each claim makes ready what is due."""

    def __init__(self, lines):
        claims = sorted((line["invoked"], line["completed"]) for line in lines
                        if line["op"] == "claim" and line["end"] == OK and line["queue"] == QUEUE)
        self.begins = [begin for begin, _ in claims]
        self.ends = list(accumulate((end for _, end in reversed(claims)), min))[::-1]

    def after(self, moment):
        at = bisect_right(self.begins, moment)
        return self.ends[at] if at < len(self.ends) else float("inf")


class Line:
    """Those of one priority by when they were surely due, or ready; of those until some moment, the one claimed last."""

    def __init__(self, tasks, since):
        in_order = sorted(tasks, key=attrgetter(since))
        self.times = [getattr(task, since) for task in in_order]
        self.last = list(accumulate(in_order, lambda one, other: max(one, other, key=asked)))

    def longest(self, moment):
        at = bisect_left(self.times, moment)
        return self.last[at - 1] if at else None


def asked(task):
    return task.first["invoked"]


class Hidden:
    """Claims that nobody heard of, and calls that were given up: they may have had a task for a while, also some time
    after they were given up, and what they give back goes to the end of the line."""

    def __init__(self, lines):
        spans = sorted((line["invoked"], line["completed"]) for line in lines
                       if line["op"] == "claim" and line["queue"] == QUEUE
                       and (line["end"] != OK or line["completed"] - line["invoked"] > HIDDEN_MS))
        self.begins = [begin for begin, _ in spans]
        self.ends = list(accumulate((end for _, end in spans), max))

    def between(self, begin, end):
        at = bisect_right(self.begins, end)
        return at > 0 and self.ends[at - 1] > begin
