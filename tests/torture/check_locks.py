"""Whether a history keeps the promises about locks. Each check takes O(n log n); what it finds is a list of sentences."""

from bisect import bisect_right
from collections import Counter, defaultdict
from itertools import pairwise

from causes import Causes
from history import OK
from waits import HAND_OVER_MS, Stillness, waits_of

# How much later than the deadline a process of a loaded machine may come to say that it was told.
TOLD_LATE_MS = 3000
# No fault silences everybody for longer: then the machine itself stands still.
LONGEST_SILENCE_MS = 4000
# How long the faults go on having consequences: leases of the dead, and their places in the line.
SETTLING_MS = 6000
# What a lease's deadline is earlier than its ttl, and rounding.
MARGIN, ROUNDING_MS = 0.01, 5
# Of an answer, of a player that was killed, and what the faults can cause.
KINDS = {None, "the player has ended", "the player had ended before", "StoreUnavailable", "Indeterminate", "LockTimeout",
         "LeaseLost", "LeaseExpired", "StaleReceipt", "WrongType", "Corrupt"}
LOSSES = {"LeaseLost", "LeaseExpired"}


class Locks:
    def __init__(self, lines):
        self.lines, self.causes, self.stillness = lines, Causes(lines), Stillness(lines)
        self.grants = [line for line in lines if line["op"] == "acquire" and line["end"] == OK]
        self.by_name = grouped(self.grants, "name")
        # The overlaps that have a documented cause.
        self.excused = Counter()
        self.calms_known = self.calms()

    def checks(self):
        return {
            "L1 a thing takes no smaller fence, and takes the holder's": self.fenced(),
            "L1 nobody writes after one whose lease came later": self.stale_writes(),
            "L2 one holder at a time": self.overlaps(),
            "L3 fences grow": self.fences(),
            "L4 nobody's call ends another's lease": self.ended(),
            "L5 a lease is valid when it is returned": self.stillborn(),
            "L6 a loss is told by the deadline": self.told(),
            "L7 hand-over is bounded while all is calm": self.hand_over(),
            "L1, L2 nothing written under a lock is overwritten": self.shelves(),
            "an inherited lease is the parent's": self.forked(),
            "each error is of a kind that the faults can cause": self.errors(),
            "a process ends as it is told, and answers until then": self.exits(),
        }

    def fenced(self):
        """Writes in the order in which the thing took them."""
        last, holders = defaultdict(int), {(grant["name"], grant["fence"]): grant for grant in self.grants}
        for line in self.lines:
            if line["op"] != "write":
                continue
            name, fence = line["name"], line["fence"]
            if line["taken"] and fence < last[name]:
                yield f"{name}: fence {fence} after {last[name]}"
            grant = holders.get((name, fence))
            if not line["taken"] and grant is not None and line["at"] < until(grant):
                if not self.causes.of(name, grant["invoked"], line["at"]):
                    yield f"{name}: fence {fence} was refused, though it was the holder's"
            last[name] = max(last[name], fence)

    def stale_writes(self):
        """Of those that were taken: by the times of the leases, whatever their fences are."""
        holders = {(grant["name"], grant["fence"], grant["actor"]): grant for grant in self.grants}
        latest = {}
        for line in self.lines:
            grant = holders.get((line["name"], line["fence"], line["actor"])) if line["op"] == "write" else None
            if grant is None or not line["taken"]:
                continue
            before = latest.setdefault(line["name"], grant)
            if grant["completed"] < before["invoked"]:
                yield f"{line['name']}: {told(grant)} at {line['at']:.0f}, after {told(before)}"
            if grant["invoked"] > before["invoked"]:
                latest[line["name"]] = grant

    def overlaps(self):
        for name, of_name in self.by_name.items():
            for one, other in overlapping(of_name):
                cause = self.causes.of(name, one["invoked"], other["completed"])
                if cause is None:
                    yield f"{name}: {told(one)} until {until(one):.0f}, {told(other)} from {other['completed']:.0f}"
                else:
                    self.excused[cause["name"]] += 1

    def fences(self):
        """A grant that was asked for after another one had come has a larger fence."""
        for name, of_name in self.by_name.items():
            for grant, largest in not_grown(of_name, "fence"):
                yield f"{name}: {told(grant)} after fence {largest}"
            for fence, count in Counter(grant["fence"] for grant in of_name).items():
                if count > 1:
                    yield f"{name}: fence {fence} was given {count} times"

    def ended(self):
        """A lease that was over before its time, though nobody had done anything to its key."""
        ends = {(line["name"], line["fence"]): line for line in self.lines
                if line["op"] in ("release", "extend") and line["error"] in LOSSES}
        for grant in self.grants:
            line = ends.get((grant["name"], grant["fence"]))
            if line is not None and line["completed"] < grant["deadline"]:
                if not self.causes.of(grant["name"], grant["invoked"], line["completed"]):
                    yield f"{grant['name']}: {told(grant)} was {line['error']} {spare(grant, line):.0f} ms early"

    def stillborn(self):
        """It was looked at before its ttl can have passed."""
        for grant in self.grants:
            least = grant["invoked"] + grant["ttl"] * (1 - MARGIN) - ROUNDING_MS
            if grant["seen"] and not grant["valid"] and grant["looked"] < least:
                if not self.causes.of(grant["name"], grant["invoked"], grant["looked"]):
                    yield f"{grant['name']}: {told(grant)} was over {least - grant['looked']:.0f} ms early"

    def told(self):
        for line in self.lines:
            if line["op"] != "told":
                continue
            if not line["was_told"] or line["valid"] or line["loss"] is None:
                yield f"{line['name']}: {line['actor']} was not told of the end of {line['fence']}"
            late = line["at"] - line["latest"] - TOLD_LATE_MS
            if late <= 0 or self.stillness.within(line["latest"], line["at"]) > LONGEST_SILENCE_MS:
                continue
            if not self.causes.stopped(line["actor"], line["latest"], line["at"]):
                yield f"{line['name']}: {line['actor']} was told {late + TOLD_LATE_MS:.0f} ms late"

    def hand_over(self):
        """While somebody waits, whether he gets it or not; and that there are grants at all."""
        for name, waits in waits_of(self.lines, self.stillness).items():
            for calm in self.calms_known:
                for wait in waits.between(calm["at"], calm["until"]):
                    yield from unserved(name, waits, wait, calm)
        granted = {(name, self.calm_at(grant["completed"])) for name, of_name in self.by_name.items() for grant in of_name}
        for number, calm in enumerate(self.calms_known):
            for name in calm["locks"]:
                if (name, number) not in granted:
                    yield f"{name}: nobody got it in a calm time"

    def calms(self):
        """Without the time in which faults of before have consequences."""
        calms = [{**line, "at": line["at"] + SETTLING_MS} for line in self.lines if line["op"] == "calm"]
        return [line for line in calms if line["until"] > line["at"]]

    def calm_at(self, moment):
        calms = self.calms_known
        at = bisect_right(calms, moment, key=lambda calm: calm["at"]) - 1
        return at if at >= 0 and moment < calms[at]["until"] else None

    def is_calm(self, begin, end):
        return self.calm_at(begin) is not None and self.calm_at(begin) == self.calm_at(end)

    def stood_still(self):
        return sum(self.stillness.within(calm["at"], calm["until"]) for calm in self.calms_known)

    def hand_overs(self):
        """Name, how long it took, and when it began."""
        released = {(line["name"], line["fence"]): line for line in self.lines
                    if line["op"] == "release" and line["end"] == OK}
        for name, of_name in self.by_name.items():
            for one, other in pairwise(sorted(of_name, key=lambda grant: grant["fence"])):
                release = released.get((name, one["fence"]))
                if release is not None and other["invoked"] < release["invoked"]:
                    yield name, max(0, other["completed"] - release["completed"]), release["completed"]

    def shelves(self):
        written = defaultdict(list)
        for line in self.lines:
            if line["op"] == "write" and line["taken"] and "item" in line:
                written[line["name"]].append(line["item"])
        for line in self.lines:
            if line["op"] == "shelf":
                name, items = line["name"], line["items"]
                if items != written[name]:
                    yield f"{name}: {len(written[name])} were put there, {len(set(items))} are there"
                if name.startswith("sale") and len(items) > 10:
                    yield f"{name}: {len(items)} of 10 were sold"

    def forked(self):
        for line in self.lines:
            if line["op"] != "fork" or line["end"] != OK:
                continue
            if (line["extended"], line["released"], line["status"]) != ("Forked", "Forked", 0):
                yield (f"{line['actor']}: the child's extend was {line['extended']}, its release {line['released']}, and it "
                       f"ended with {line['status']}")

    def errors(self):
        strange = Counter((line["op"], line["error"]) for line in self.lines if line.get("error") not in KINDS)
        for (op, error), count in strange.items():
            yield f"{op}: {error}, {count} times"

    def exits(self):
        for line in self.lines:
            if line["op"] == "exit" and line["code"] != 0:
                yield f"{line['actor']} ({line['language']}): {line['code']}"


def unserved(name, waits, wait, calm):
    """As far as all is calm."""
    idle = waits.idle(max(wait["invoked"], calm["at"]), min(wait["completed"], calm["until"]))
    if idle > HAND_OVER_MS:
        yield f"{name}: nobody had it for {idle:.0f} ms while {wait['actor']} ({wait['language']}) waited"
    other = waits.passed(wait, calm["until"]) if wait["invoked"] >= calm["at"] else None
    if other is not None:
        yield f"{name}: {told(other)} got it before {wait['actor']} ({wait['language']}), who asked much earlier"


def not_grown(lines, number):
    """Those whose number is no larger than one that had been given before they were asked for, with the largest of these."""
    done = sorted(lines, key=lambda line: line["completed"])
    largest, at = 0, 0
    for line in sorted(lines, key=lambda line: line["invoked"]):
        while at < len(done) and done[at]["completed"] < line["invoked"]:
            largest = max(largest, done[at][number])
            at += 1
        if line[number] <= largest:
            yield line, largest


def grouped(lines, key):
    groups = defaultdict(list)
    for line in lines:
        groups[line[key]].append(line)
    return groups


def overlapping(held):
    """Two that were held at the same time: from when one was surely given until it was surely given up."""
    latest = None
    for one in sorted(held, key=lambda one: one["completed"]):
        if latest is not None and one["completed"] < until(latest):
            yield latest, one
        if latest is None or until(one) > until(latest):
            latest = one


def until(one):
    return min(one["deadline"], one["left"])


def told(one):
    return f"{one['actor']} ({one['language']}, {one.get('fence') or one.get('receipt')})"


def spare(grant, line):
    return grant["deadline"] - line["completed"]
