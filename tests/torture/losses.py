"""Q1: nothing acknowledged is lost. What was put in for sure is acked, or there at the end; or it had to go.

It had to go with a server that was emptied, if it was there in that moment; and for a later one of its id.
"""

from collections import Counter
from itertools import islice

from history import FAILED, HELD_MS, OK, UNKNOWN

# Policies whose payload takes the place of what waits, and of the retry of what runs.
REPLACING = {"replace", "debounce_ms"}
# What an enqueue is that puts its payload in.
PUT_IN = {"added", "successor", "replaced"}


class Losses:
    def __init__(self, lines, enqueues, by_payload, doubles, left):
        self.enqueues, self.left = enqueues, left
        self.acked = {line["payload"] for line in lines if line["op"] == "ack" and may_be_done(line, by_payload)}
        self.wiped = {payload: line["name"] for line in lines if line["op"] == "fault" for payload in line.get("live", ())}
        self.lives = {task: Lives(of_id) for task, of_id in doubles.items()}
        # What was forgotten, by its cause.
        self.excused = Counter()

    def findings(self):
        for payload, line in self.enqueues.items():
            if line["end"] != OK or payload in self.acked or payload in self.left:
                continue
            if "policy" in line and (line["outcome"] not in PUT_IN or self.lives[line["id"]].is_replaced(line)):
                continue
            if payload in self.wiped:
                self.excused[self.wiped[payload]] += 1
            else:
                yield f"{line['id']}: put in by {line['actor']} ({line['language']}), {line.get('outcome') or 'added'}"


def may_be_done(ack, by_payload):
    """One whose answer is not known was not carried out if the task was given out again."""
    if ack["end"] == FAILED:
        return False
    return ack["end"] == OK or all(claim["receipt"] <= ack["receipt"] for claim in by_payload.get(ack["payload"], ()))


class Lives:
    """The enqueues of one id, by version: which of them can have taken the place of which."""

    def __init__(self, of_id):
        self.put_in = sorted((line for line in of_id if line["end"] == OK and line["outcome"] in PUT_IN), key=version)
        self.place = {line["payload"]: place for place, line in enumerate(self.put_in)}
        self.unknown = [line for line in of_id if line["end"] == UNKNOWN and line["policy"] in REPLACING]

    def is_replaced(self, line):
        """By one before the next that was added, when nothing was there. If a successor came it was running, and if
        another successor came it was over."""
        successors, over = 0, float("inf")
        for later in islice(self.put_in, self.place[line["payload"]] + 1, None):
            successors += later["outcome"] == "successor"
            if later["outcome"] == "added" or successors == 2:
                over = later["completed"]
                break
            if later["policy"] in REPLACING:
                return True
        return any(one["invoked"] < over and one["completed"] + HELD_MS > line["invoked"] for one in self.unknown)


def version(line):
    return line["version"]
