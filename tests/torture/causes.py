"""Faults of which it is documented what they may break: of these, the consequences are counted, not condemned."""

from bisect import bisect_right
from collections import defaultdict

ANY = "*"


class Causes:
    def __init__(self, lines):
        self.of_lock, self.wipes, self.stops = defaultdict(list), [], defaultdict(list)
        for line in lines:
            if line["op"] == "fault" and "lock" in line:
                self.of_lock[line["lock"]].append(line)
            if line["op"] == "fault" and line.get("wiped"):
                self.wipes.append(line)
            if line["op"] == "fault" and "actor" in line:
                self.stops[line["actor"]].append(line)

    def of(self, name, begin, end):
        """The fault that hit a lock in that time, if one did."""
        return last(self.of_lock[name], begin, end) or last(self.of_lock[ANY], begin, end)

    def wiped(self, begin, end):
        return last(self.wipes, begin, end)

    def stopped(self, actor, begin, end):
        return last(self.stops[actor], begin, end)


def last(faults, begin, end):
    """The last of them that was in that time; they come one after the other."""
    at = bisect_right(faults, end, key=lambda fault: fault["at"]) - 1
    return faults[at] if at >= 0 and faults[at]["until"] >= begin else None
