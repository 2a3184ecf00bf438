"""L7: whoever waits while all is calm gets the lock soon after nobody has it, and in the order of asking."""

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate, pairwise

from history import OK
from lockers import LONGEST_MS

# How long a lock that somebody waits for may be nobody's: a grant window for one who is gone, a poll, and a loaded
# machine. After so long it is also known who is in line.
HAND_OVER_MS = 5000
# If nobody's call of any kind comes back for so long, the machine or the server stands still.
STILL_MS = 250
# A waiter of a machine that stands still for longer can lose its place.
STILL_IN_LINE_MS = 1000


class Stillness:
    """The times in which the machine stood still."""

    def __init__(self, lines):
        moments = sorted(line["completed"] for line in lines if line.get("end") == OK)
        spans = [(one, other) for one, other in pairwise(moments) if other - one > STILL_MS]
        self.begins = [begin for begin, _ in spans]
        self.ends = [end for _, end in spans]
        self.before = list(accumulate((end - begin for begin, end in spans), initial=0))

    def until(self, moment):
        at = bisect_left(self.begins, moment)
        return self.before[at] - max(0, self.ends[at - 1] - moment if at else 0)

    def within(self, begin, end):
        return self.until(end) - self.until(begin)


class Waits:
    """Of one lock: those who waited, whether they got it or not, and when it was held."""

    def __init__(self, acquires, ends, stillness):
        self.stillness = stillness
        self.waits = sorted(acquires, key=lambda line: line["invoked"])
        self.begins = [line["invoked"] for line in self.waits]
        self.grants = sorted((line for line in acquires if line["end"] == OK), key=lambda line: line["completed"])
        self.starts = [grant["completed"] for grant in self.grants]
        self.over = [over(grant, ends.get((grant["name"], grant["fence"]), ())) for grant in self.grants]
        self.latest = list(accumulate(self.over, max))

    def between(self, begin, end):
        """Those who waited in that time."""
        longest = max((line["completed"] - line["invoked"] for line in self.waits), default=0)
        for line in self.waits[bisect_left(self.begins, begin - longest):bisect_left(self.begins, end)]:
            if line["completed"] > begin:
                yield line

    def idle(self, begin, end):
        """The longest time in which nobody is known to have had it, though the machine went on."""
        longest, free = 0, begin
        for at in range(bisect_left(self.latest, begin), bisect_left(self.starts, end)):
            longest = max(longest, self.moving(free, self.starts[at]))
            free = max(free, self.over[at])
        return max(longest, self.moving(free, end))

    def moving(self, begin, end):
        return end - begin - self.stillness.within(begin, end) if begin < end else 0

    def passed(self, wait, end):
        """One who asked much later, and got it earlier."""
        asked = wait["invoked"] + HAND_OVER_MS
        for at in range(bisect_left(self.starts, asked), bisect_left(self.starts, min(end, wait["completed"]))):
            if self.grants[at]["invoked"] > asked:
                stood_still = self.stillness.within(wait["invoked"], self.starts[at])
                return self.grants[at] if stood_still < STILL_IN_LINE_MS else None
        return None


def over(grant, ends):
    """When the store surely has it back: by its release, or by its end."""
    released = [line["completed"] for line in ends if line["op"] == "release" and line["end"] == OK]
    if released:
        return min(released)
    return max([grant["latest"], grant["left"], *(line["completed"] + LONGEST_MS for line in ends)])


def waits_of(lines, stillness):
    """Name -> its waits."""
    acquires, ends = defaultdict(list), defaultdict(list)
    for line in lines:
        if line["op"] == "acquire":
            acquires[line["name"]].append(line)
        elif line["op"] in ("release", "extend"):
            ends[line["name"], line["fence"]].append(line)
    return {name: Waits(of_name, ends, stillness) for name, of_name in acquires.items()}
