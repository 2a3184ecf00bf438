"""Whether each slot of each schedule got its task: one, whoever was killed, whatever his clock showed.

A history is what was delivered, and where the schedules ended: `Told`.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

# Before the deploy and after it: one schedule stays and gets another payload, one goes, one comes.
KEPT, GONE, NEW = "kept", "gone", "new"
PERIOD_MS = 1000


@dataclass(frozen=True)
class Delivery:
    """A task as a worker got it."""

    id: str
    payload: str
    attempt: int
    # Whether the store has taken its ack.
    acked: bool = True

    def slot(self):
        """The schedule, and when the slot was due."""
        schedule, _, time = self.id.rpartition("@")
        return schedule, round(datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


@dataclass
class Told:
    # In the order of their answers.
    deliveries: list
    # By the server's clock, between what the deploy may have happened.
    deploy: tuple
    # How many slots each schedule says it has fired, in the end.
    fired: dict
    # What lists of the older generation have changed since: nothing.
    changed: list = field(default_factory=list)

    def slots(self):
        """Of each schedule, when each slot was due, and its deliveries."""
        slots = defaultdict(lambda: defaultdict(list))
        for delivery in self.deliveries:
            schedule, due = delivery.slot()
            slots[schedule][due].append(delivery)
        return slots

    def findings(self):
        slots = self.slots()
        yield from (f"nothing of {name!r} was delivered" for name in (KEPT, GONE, NEW) if not slots[name])
        for name in (KEPT, GONE, NEW):
            yield from self.gaps(name, sorted(slots[name]))
            for deliveries in slots[name].values():
                yield from twice(deliveries)
        yield from self.uncounted(slots)
        yield from self.deployed(slots)
        yield from (f"a list of the older generation: {what}" for what in self.changed)

    def gaps(self, name, dues):
        for before, after in pairwise(dues):
            if after - before != PERIOD_MS:
                yield f"{name!r}: after the slot at {before} comes the one at {after}"

    def uncounted(self, slots):
        for name, fired in self.fired.items():
            if fired != len(slots[name]):
                yield f"{name!r}: {fired} were fired, and tasks of {len(slots[name])} slots were delivered"

    def deployed(self, slots):
        before, after = self.deploy
        late = [due for due in slots[GONE] if due > after]
        early = [due for due in slots[NEW] if due < before]
        yield from (f"{GONE!r}: a slot at {due}, {due - after} ms after the deploy" for due in late)
        yield from (f"{NEW!r}: a slot at {due}, {before - due} ms before the deploy" for due in early)
        if slots[NEW] and min(slots[NEW]) > after + PERIOD_MS:
            yield f"{NEW!r}: the first slot is at {min(slots[NEW])}, {min(slots[NEW]) - after} ms after the deploy"
        payloads = [slots[KEPT][due][0].payload for due in sorted(slots[KEPT])]
        if payloads != sorted(payloads) or set(payloads) != {"1", "2"}:
            yield f"{KEPT!r}: its payloads went {' '.join(payloads)}"


def twice(deliveries):
    """Of one slot: it is delivered again after a kill, as the next attempt of the same task."""
    name = deliveries[0].id
    attempts = Counter(delivery.attempt for delivery in deliveries)
    yield from (f"{name}: attempt {attempt} was delivered {count} times" for attempt, count in attempts.items() if count > 1)
    acked = [delivery.attempt for delivery in deliveries if delivery.acked]
    if len(acked) > 1:
        yield f"{name}: it was done in attempts {acked}"


def at(name, second, payload, attempt=1, **more):
    return Delivery(f"{name}@2027-01-01T00:00:{second:02}Z", payload, attempt, **more)


def kept():
    """A history that is as it should be: a deploy after four seconds, and a worker killed in the fifth."""
    start = at(KEPT, 0, "1").slot()[1]
    deliveries = [at(KEPT, second, "1" if second < 4 else "2") for second in range(8)]
    deliveries += [at(GONE, second, "1") for second in range(4)] + [at(NEW, second, "2") for second in range(4, 8)]
    deliveries += [at(KEPT, 8, "2", acked=False), at(KEPT, 8, "2", attempt=2)]
    return Told(deliveries, (start + 3400, start + 3500), {KEPT: 9, NEW: 4})


def broken():
    """Histories that are not, each in one way."""
    told = kept()
    slots = told.deliveries

    def without(name, second):
        return [delivery for delivery in slots if delivery.id != at(name, second, "").id]

    def changed(deliveries, **fired):
        return replace(told, deliveries=deliveries, fired={**told.fired, **fired})

    return {
        "a slot is lost": changed(without(KEPT, 2), kept=8),
        "a slot is lost in the deploy": changed(without(KEPT, 4), kept=8),
        "a slot is fired and its task lost": changed(without(NEW, 7)),
        "a slot is fired twice": changed(slots, new=5),
        "a slot has two tasks": changed([*slots, at(NEW, 5, "2", acked=False)]),
        "a task is done twice": changed([*slots, at(NEW, 5, "2", attempt=2)]),
        "the older generation brings its schedule back": changed([*slots, at(GONE, 4, "1")]),
        "the older generation brings its payload back": changed([*without(KEPT, 6), at(KEPT, 6, "1")]),
        "the newer one comes late": changed(without(NEW, 4), new=3),
        "an older list says that it changed something": replace(told, changed=["{'added': 1}"]),
        "nothing happens": replace(told, deliveries=[], fired={}),
    }


def checked():
    """That this fails for what is broken, and for nothing else: what is not so."""
    if found := list(kept().findings()):
        yield f"the checker finds fault with a good history: {found}"
    yield from (f"the checker does not see that {what}" for what, told in broken().items() if not list(told.findings()))
