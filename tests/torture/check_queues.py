"""Whether a history keeps the promises about queues. Each check takes O(n log n); what it finds is a list of sentences.

Each enqueue has a payload of its own: what it put in is known by that.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import pairwise

from attempts import Attempts
from causes import Causes
from check_locks import LOSSES, grouped, not_grown, overlapping, told
from history import HELD_MS, OK
from losses import PUT_IN, REPLACING, Losses
from order import TICK_MS, out_of_order
from taskers import DOUBLES, POISON, WINDOW_MS

VERDICTS = {"ack", "nack", "put_back"}
# What may fail for want of memory.
ADDING = {"acquire", "enqueue", "cancel", "fork"}


class Queues:
    def __init__(self, lines):
        self.lines, self.causes = lines, Causes(lines)
        self.claims = [line for line in lines if line["op"] == "claim" and line["end"] == OK]
        self.enqueues = {line["payload"]: line for line in lines if line["op"] == "enqueue"}
        self.left = {task["payload"]: task for line in lines if line["op"] == "left" for task in line["tasks"]}
        self.by_payload = grouped(self.claims, "payload")
        self.doubles = grouped([line for line in self.enqueues.values() if line["queue"] == DOUBLES], "id")
        self.losses = Losses(lines, self.enqueues, self.by_payload, self.doubles, self.left)
        # What had a documented cause.
        self.excused, self.lost_to = Counter(), self.losses.excused

    def checks(self):
        return {
            "Q1 nothing acknowledged is lost": self.losses.findings(),
            "Q2 payloads are as they were": self.payloads(),
            "Q3 one claim of a task at a time": self.overlaps(both(self.claims, "queue", "id")),
            "Q3, Q4 nobody's call ends another's claim": self.ended(),
            "Q4 a settled task does not come again": self.again(),
            "Q5 de-duplication is exact": self.doubled(),
            "Q6 never before it is due": self.early(),
            "Q7 by priority, then as they became ready": out_of_order(self.enqueues, self.by_payload, self.lines),
            "Q8 attempts are counted": Attempts(self.lines, self.enqueues, self.deliveries()).findings(),
            "Q9 dead after exactly so many attempts": self.dead(),
            "Q11 of a key no more run at once than its concurrency": self.overlaps(self.by_key()),
            "Q10, Q11 nothing is left pending or held": self.pending(),
            "with memory full, what gives back works": self.memory(),
        }

    def payloads(self):
        for claim in self.claims:
            sent = self.enqueues.get(claim["payload"])
            if sent is None:
                yield f"{claim['id']}: {told(claim)} got a payload that nobody has sent"
            elif sent["id"] != claim["id"]:
                yield f"{claim['id']}: {told(claim)} got the payload of {sent['id']}"

    def overlaps(self, groups):
        """Two claims of a group at a time: of a task, or of a key, as one of its tasks may run. An emptied server has
        forgotten what is claimed, and that limit, which it gets again before the fault is over."""
        for (queue, name), of_group in groups.items():
            for one, other in overlapping(of_group):
                cause = self.causes.wiped(one["invoked"], other["completed"])
                if cause is None:
                    yield f"{queue} {name}: {told(one)}, and {told(other)} at {other['completed']:.0f}"
                else:
                    self.excused[cause["name"]] += 1

    def by_key(self):
        """The claims of tasks with keys."""
        groups = defaultdict(list)
        for claim in self.claims:
            if key := self.enqueues.get(claim["payload"], {}).get("key"):
                groups[claim["queue"], key].append(claim)
        return groups

    def ended(self):
        """A claim that was over before its time, though nobody had emptied the server, or ended its process."""
        claims = {(claim["payload"], claim["receipt"]): claim for claim in self.claims if not claim["given_back"]}
        for line in self.lines:
            claim = claims.get((line["payload"], line["receipt"])) if line["op"] in VERDICTS else None
            if claim is None or line["error"] not in LOSSES | {"StaleReceipt"}:
                continue
            early = claim["deadline"] - line["completed"]
            if early > 0 and not self.causes.wiped(claim["invoked"], line["completed"]):
                yield f"{claim['id']}: {told(claim)} was {line['error']} {early:.0f} ms early"

    def again(self):
        """A claim that was asked for after the task was acked."""
        acked = {line["payload"]: line["completed"] for line in self.lines if line["op"] == "ack" and line["end"] == OK}
        for claim in self.claims:
            if claim["invoked"] > acked.get(claim["payload"], float("inf")) and not self.is_put_in_anew(claim):
                yield f"{claim['id']}: {told(claim)} after its ack"

    def is_put_in_anew(self, claim):
        """By a copy of its enqueue that came after the store had lost its memory."""
        sent = self.enqueues.get(claim["payload"])
        return sent is not None and self.causes.wiped(sent["invoked"], sent["completed"] + HELD_MS)

    def doubled(self):
        for payload, of_payload in self.by_payload.items():
            line = self.enqueues.get(payload)
            if line is not None and line["end"] == OK and line.get("outcome") in ("kept", "throttled", "skipped"):
                yield f"{line['id']}: {told(of_payload[0])} got what was {line['outcome']}"
        claims = grouped([claim for claim in self.claims if claim["queue"] == DOUBLES], "id")
        for task, of_id in self.doubles.items():
            accepted = [line for line in of_id if line["end"] == OK and line["outcome"] not in ("throttled", "skipped")]
            yield from versions(task, accepted)
            yield from outdated(task, accepted, claims[task])
            yield from self.throttled(task, accepted)

    def throttled(self, task, accepted):
        """One in a window, whatever became of the task."""
        of_policy = sorted((line for line in accepted if line["policy"] == "throttle_ms"), key=lambda one: one["invoked"])
        for one, other in pairwise(of_policy):
            if other["completed"] - one["invoked"] < WINDOW_MS:
                if not self.causes.wiped(one["invoked"], other["completed"]):
                    yield f"{task}: {other['actor']} was not throttled after {one['actor']}"

    def early(self):
        """By what the claim says of the wall clock, which the store goes by on the same machine; and by what was asked
        for when it was put in, and when it was given back."""
        delayed = grouped([line for line in self.lines if line["op"] == "nack" and line["end"] == OK], "payload")
        for claim in self.claims:
            if claim["wall"] + 1 < claim["due"]:
                yield f"{claim['id']}: {claim['due'] - claim['wall']:.0f} ms early"
            sent = self.enqueues.get(claim["payload"])
            # A debounced one may have come before, and be due by that.
            asked = [sent] if sent is not None and sent.get("policy") != "debounce_ms" else []
            asked += [nack for nack in delayed[claim["payload"]] if nack["receipt"] < claim["receipt"]]
            for line in asked:
                early = line["invoked"] + line["delay_ms"] - claim["completed"]
                if early > TICK_MS and not self.is_put_in_anew(claim):
                    yield f"{claim['id']}: {told(claim)} {early:.0f} ms early after its {line['op']}"

    def deliveries(self):
        """The claims of each task in their order."""
        for of_payload in self.by_payload.values():
            in_order = sorted(of_payload, key=lambda claim: claim["receipt"])
            if not self.is_put_in_anew(in_order[0]):
                yield in_order

    def dead(self):
        for claim in self.claims:
            most = self.enqueues.get(claim["payload"], {}).get("max_attempts", claim["attempt"])
            if claim["attempt"] > most:
                yield f"{claim['id']}: attempt {claim['attempt']} of {most}"
        for task in self.left.values():
            is_poison = task["id"].startswith(POISON)
            if is_poison != (task["state"] == "dead"):
                yield f"{task['id']}: it is {task['state']}"
            elif is_poison and task["attempts"] != task["max_attempts"]:
                yield f"{task['id']}: dead after {task['attempts']} of {task['max_attempts']}"

    def pending(self):
        """When all is drained."""
        for task in self.left.values():
            if task["state"] != "dead":
                yield f"{task['queue']} {task['id']}: it is {task['state']}"

    def memory(self):
        for line in self.lines:
            if line.get("no_memory") and line["op"] not in ADDING:
                yield f"{line['op']} by {line['actor']} ({line['language']})"

    def duplicates(self):
        """Deliveries after one that was neither given back nor failed."""
        given_up = {(line["payload"], line["receipt"]) for line in self.lines
                    if line["op"] in ("nack", "put_back") and line["end"] == OK}
        return sum((one["payload"], one["receipt"]) not in given_up for of_payload in self.by_payload.values()
                   for one in sorted(of_payload, key=lambda claim: claim["receipt"])[:-1])


def both(lines, one, other):
    groups = defaultdict(list)
    for line in lines:
        groups[line[one], line[other]].append(line)
    return groups


def versions(task, accepted):
    """Each accepted enqueue raises the version."""
    for line, largest in not_grown(accepted, "version"):
        yield f"{task}: version {line['version']} after {largest}"


def outdated(task, accepted, claims):
    """What was replaced before it was claimed does not come any more."""
    effective = sorted((line for line in accepted if line["outcome"] == "added" or line["outcome"] in PUT_IN
                        and line["policy"] in REPLACING), key=lambda line: line["completed"])
    times, largest = [line["completed"] for line in effective], [0]
    for line in effective:
        largest.append(max(largest[-1], line["version"]))
    for claim in claims:
        least = largest[bisect_left(times, claim["invoked"])]
        if claim["version"] < least:
            yield f"{task}: {told(claim)} got version {claim['version']} after {least}"
