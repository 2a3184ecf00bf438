"""What a history says: a verdict on each promise, and the table. The letters are those of docs/FAULTS.md."""

from collections import Counter

from check_locks import Locks
from check_queues import Queues
from history import OK, UNKNOWN

# How many of the findings of a check are shown.
SHOWN = 10
OPERATIONS = [("grants", "acquire"), ("tasks put in", "enqueue"), ("claims", "claim"), ("acks", "ack"), ("forks", "fork"),
              ("calls cancelled", "cancel")]


class Verdict:
    def __init__(self, lines):
        self.lines, self.locks, self.queues = lines, Locks(lines), Queues(lines)
        keys = [f"{key} is left" for line in lines if line["op"] == "keys" for key in line["keys"]]
        checks = {**self.locks.checks(), **self.queues.checks(), "L8, Q10 nothing but records is left": keys,
                  "each language took part": self.absent()}
        self.findings = {name: list(found) for name, found in checks.items()}

    def absent(self):
        """Each was given a lock and a task, at the least."""
        did = {(line["op"], line["language"]) for line in self.lines if line.get("end") == OK}
        for line in self.lines:
            if line["op"] == "languages":
                yield from (f"{name}: no {op}" for name in line["names"] for op in ("acquire", "claim")
                            if (op, name) not in did)

    def is_kept(self):
        return not any(self.findings.values())

    def show(self):
        for title, told in self.table():
            print(f"{title:28} {told}")
        for name, found in self.findings.items():
            print(f"{'FAILED' if found else 'ok':6} {name}")
            for sentence in found[:SHOWN]:
                print(f"       {sentence}")
            if found[SHOWN:]:
                print(f"       and {len(found) - SHOWN} more")

    def table(self):
        ends = Counter((line["op"], line["end"]) for line in self.lines if "end" in line)
        times = [line["completed"] for line in self.lines if "completed" in line] or [0]
        yield "hours", f"{(max(times) - min(times)) / 3_600_000:.2f}"
        faults = Counter(line["name"] for line in self.lines if line["op"] == "fault" and line.get("struck"))
        yield "faults", f"{sum(faults.values())}: " + counted(faults)
        for title, op in OPERATIONS:
            yield title, f"{ends[op, OK]} ({ends[op, UNKNOWN]} more without an answer)"
        refused = sum(line["op"] == "write" and not line["taken"] for line in self.lines)
        stale = self.findings["L1 nobody writes after one whose lease came later"]
        yield "stale writes accepted", f"{len(stale)} ({refused} refused)"
        yield "tasks lost", len(self.findings["Q1 nothing acknowledged is lost"])
        yield "tasks forgotten, by cause", counted(self.queues.lost_to)
        yield "delivered again", self.queues.duplicates()
        yield "overlaps of leases, by cause", counted(self.locks.excused)
        yield "overlaps of claims, by cause", counted(self.queues.excused)
        yield "hand-over, 99 of 100", self.hand_over()
        yield "stood still while calm", f"{self.locks.stood_still():.0f} ms"

    def hand_over(self):
        every = list(self.locks.hand_overs())
        calm = [took for _, took, at in every if self.locks.is_calm(at, at + took)]
        return f"{percentile(calm)} while calm, {percentile([took for _, took, _ in every])} in all"


def counted(counter):
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items())) or "none"


def percentile(times):
    return f"{sorted(times)[len(times) * 99 // 100]:.1f} ms" if times else "none"
