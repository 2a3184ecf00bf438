"""Q7: of what is ready, the higher priority comes first, then what became ready first."""

from collections import defaultdict
from itertools import accumulate
from bisect import bisect_left, bisect_right

from check_locks import told
from history import OK
from taskers import LEASE_MS, QUEUE

# The store goes by milliseconds.
TICK_MS = 2
# How long a claim that nobody heard of can keep a task.
HIDDEN_MS = LEASE_MS + 1000


class Ready:
    """A task from when it was surely ready until its first claim was asked for."""

    def __init__(self, enqueue, first, offset):
        due = first["due"] - offset
        self.enqueue, self.first = enqueue, first
        self.surely = max(enqueue["completed"], due) + TICK_MS
        self.earliest = max(enqueue["invoked"], due) - TICK_MS


def out_of_order(enqueues, by_payload, lines):
    tasks = list(ready(enqueues, by_payload, lines))
    waiting = defaultdict(list)
    for task in tasks:
        waiting[task.enqueue["priority"]].append(task)
    ordered = {priority: Line(of_priority) for priority, of_priority in waiting.items()}
    hidden = Hidden(lines)
    for task in tasks:
        claim = task.first
        for priority, line in ordered.items():
            if priority >= task.enqueue["priority"]:
                # Of the same priority, those that were ready before this one can have been.
                same = priority == task.enqueue["priority"]
                other = line.longest(min(claim["invoked"], task.earliest) if same else claim["invoked"])
                if other is not None and other.first["invoked"] > claim["completed"]:
                    if not hidden.between(other.surely - HIDDEN_MS, claim["completed"]):
                        yield f"{claim['id']}: {told(claim)} before {other.first['id']}"


def ready(enqueues, by_payload, lines):
    offset = next((line["offset"] for line in lines if line["op"] == "clocks"), None)
    for payload, of_payload in by_payload.items():
        enqueue = enqueues.get(payload)
        if offset is None or enqueue is None or enqueue["queue"] != QUEUE or enqueue["end"] != OK:
            continue
        first = min(of_payload, key=lambda claim: claim["receipt"])
        if first["attempt"] == 1:
            yield Ready(enqueue, first, offset)


class Line:
    """Those of one priority by when they were surely ready; of those until some moment, the one claimed last."""

    def __init__(self, tasks):
        self.tasks = sorted(tasks, key=lambda task: task.surely)
        self.times = [task.surely for task in self.tasks]
        self.last = list(accumulate(self.tasks, lambda one, other: max(one, other, key=asked)))

    def longest(self, moment):
        at = bisect_left(self.times, moment)
        return self.last[at - 1] if at else None


def asked(task):
    return task.first["invoked"]


class Hidden:
    """Claims that nobody heard of, and calls that were given up: they may have had a task for a while."""

    def __init__(self, lines):
        spans = sorted((line["invoked"], line["completed"]) for line in lines
                       if line["op"] == "claim" and line["queue"] == QUEUE
                       and (line["end"] != OK or line["completed"] - line["invoked"] > HIDDEN_MS))
        self.begins = [begin for begin, _ in spans]
        self.ends = list(accumulate((end for _, end in spans), max))

    def between(self, begin, end):
        at = bisect_right(self.begins, end)
        return at > 0 and self.ends[at - 1] > begin
