"""Whether no two tasks of a key ran at once, and whether all of them were done, whoever was killed.

A history is what was claimed, and how the queue was in the beginning and in the end: `Told`.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

from history import FAILED, OK, UNKNOWN

# Tasks of each key: while one is in line or runs, the other is held.
OF_A_KEY = 2
FOREVER = float("inf")
# What the statistics of a queue count, besides what is over.
LIVE = ("scheduled", "ready", "claimed", "held", "successors")
ENDED = (*LIVE, "dead", "keys_waiting")


@dataclass
class Claim:
    """A run of a task; its times are milliseconds of one clock."""

    id: str
    key: str
    receipt: int
    language: str
    # When it was asked for, and when the answer came.
    invoked: float
    completed: float
    # Its lease ends no earlier.
    deadline: float
    # When a verdict was sent, which one, and what became of it; nothing if the worker was killed before.
    left: float = FOREVER
    verdict: str = None
    end: str = None

    def until(self):
        """So long it had the key for itself. Of one who was killed that is the whole lease."""
        return min(self.deadline, self.left)

    def is_done(self):
        return self.verdict == "ack" and self.end == OK

    def may_be_done(self):
        return self.verdict == "ack" and self.end != FAILED


def ids(keys):
    """Of each task, and its key."""
    return {f"{number}/{one}": f"key:{number}" for number in range(keys) for one in range(OF_A_KEY)}


@dataclass
class Told:
    # How many there were.
    keys: int
    claims: list
    # The statistics when all was put in, and in the end.
    before: dict
    after: dict
    # What the store still knows of keys.
    left: list
    languages: set
    kills: int

    def findings(self):
        yield from self.overlaps()
        yield from self.done()
        yield from self.ended()
        yield from self.tried()

    def overlaps(self):
        """Claims of a key in the order in which the store gave them: each is over when the next one's answer is there."""
        for key, claims in grouped(self.claims, "key").items():
            latest = None
            for claim in sorted(claims, key=lambda claim: claim.receipt):
                if latest is not None and claim.completed < latest.until():
                    yield f"{key}: two at once: {latest}; {claim}"
                if latest is None or claim.until() > latest.until():
                    latest = claim

    def done(self):
        """Each task once, and nothing else."""
        put_in, by_id = ids(self.keys), grouped(self.claims, "id")
        yield from (f"{task}: nobody has got it" for task in put_in if task not in by_id)
        for task, claims in by_id.items():
            if any(claim.key != put_in.get(task) for claim in claims):
                yield f"{task}: not what was put in: {claims}"
            last = max(claims, key=lambda claim: claim.receipt)
            if not last.may_be_done():
                yield f"{task}: it was not done in the end: {last}"
            earlier = [claim for claim in claims if claim is not last and claim.is_done()]
            yield from (f"{task}: it came again after its ack: {claim}; {last}" for claim in earlier)
        receipts = Counter(claim.receipt for claim in self.claims)
        yield from (f"receipt {receipt} was given {count} times" for receipt, count in receipts.items() if count > 1)

    def ended(self):
        tasks = self.keys * OF_A_KEY
        if self.after["acked"] != tasks:
            yield f"{self.after['acked']} of {tasks} tasks were acked"
        yield from (f"{self.after[state]} are {state} in the end" for state in ENDED if self.after[state])
        yield from (f"{key!r} is known in the end" for key in self.left)

    def tried(self):
        """That it was as it was meant to be: otherwise all of this says little."""
        if (self.before["ready"], self.before["held"]) != (self.keys, self.keys * (OF_A_KEY - 1)):
            yield f"in the beginning {self.before['ready']} were in line, and {self.before['held']} held"
        for language in self.languages - {claim.language for claim in self.claims if claim.is_done()}:
            yield f"nobody in {language} has done anything"
        if self.kills == 0:
            yield "nobody was killed"


def grouped(claims, field):
    groups = defaultdict(list)
    for claim in claims:
        groups[getattr(claim, field)].append(claim)
    return groups


LEASE_MS = 100


def run(task, receipt, at, verdict="ack", end=OK, left=None, **more):
    number = task.partition("/")[0]
    claim = Claim(task, f"key:{number}", receipt, "c", at, at + 1, at + LEASE_MS, at + 10 if left is None else left, verdict, end)
    return Claim(**{**vars(claim), **more})


def killed(task, receipt, at):
    return run(task, receipt, at, verdict=None, end=None, left=FOREVER)


def kept():
    """A history that is as it should be: of the second key a worker is killed, one comes late, and one gives its task back."""
    claims = [
        run("0/0", 10, 0), run("0/1", 20, 11), killed("1/0", 30, 5), run("1/1", 40, 106, verdict="nack"),
        run("1/0", 50, 120, end=FAILED, left=300), run("1/1", 60, 230, end=UNKNOWN), run("1/0", 70, 310, verdict="put_back"),
        run("1/1", 80, 400), run("1/0", 90, 420, language="php"),
    ]
    none = dict.fromkeys(ENDED, 0)
    return Told(2, claims, {**none, "ready": 2, "held": 2}, {**none, "acked": 4}, [], {"c", "php"}, 1)


def broken():
    """Histories that are not, each in one way, by what has to be found: more claims, without some, or with other words."""
    def history(*more, without=(), **words):
        told = kept()
        told.claims = [claim for claim in told.claims if claim.receipt not in without] + list(more)
        return Told(**{**vars(told), **words})

    after, before = kept().after, kept().before
    return {
        "two at once": [
            history(run("0/1", 20, 5), without=[20]), history(run("0/0", 11, 5)),
            # While the lease of one goes on that was killed, or whose verdict was not heard.
            history(run("1/1", 31, 50, verdict="nack")), history(run("1/0", 61, 235, verdict="nack")),
            # One whose answer was late.
            history(run("0/0", 10, 0, completed=30, left=35), run("0/1", 20, 2), without=[10, 20])],
        "nobody has got it": [history(without=[10]), Told(2, [], before, after, [], set(), 1)],
        "not done in the end": [history(without=[90]), history(killed("0/1", 91, 500)), history(run("0/1", 91, 500, end=FAILED))],
        "again after its ack": [history(run("0/0", 91, 500)), history(run("0/0", 91, 500, verdict="nack"))],
        "not what was put in": [history(run("2/0", 91, 500)), history(run("0/0", 10, 0, key="key:1"), without=[10])],
        "was given 2 times": [history(run("0/1", 10, 11), without=[20])],
        "of 4 tasks were acked": [history(after={**after, "acked": acked}) for acked in (3, 5)],
        **{f"{state} in the end": [history(after={**after, state: 1})] for state in ENDED},
        "is known in the end": [history(left=["key:1"])],
        "in the beginning": [history(before={**before, "ready": 4, "held": 0})],
        "nobody in node": [history(languages={"c", "php", "node"})],
        "nobody was killed": [history(kills=0)],
    }


def checked():
    """That this fails for what is broken, and for nothing else: what is not so."""
    if found := list(kept().findings()):
        yield f"the checker finds fault with a good history: {found}"
    for what, histories in broken().items():
        for told in histories:
            if not any(what in finding for finding in told.findings()):
                yield f"the checker does not find {what!r} in {told}"
