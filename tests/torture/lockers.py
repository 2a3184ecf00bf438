"""Workers that use locks: each does something to a thing that a lock guards, with the fence of its lease."""

import threading
import time

from history import OK, UNKNOWN, now
from workers import Worker

# Of each thing that is not used up.
COUNT = 3
# What a sale has to sell.
STOCK = 10
TTLS_MS = [800, 1500, 3000]
WAITS_MS = [200, 2000]
# While all is calm they wait for longer than a hand-over may take.
CALM_WAIT_MS = 10_000
# How many writers come back to it when their leases may be over, or have been renewed.
LINGERING = 0.02
# The longest of them.
LONGEST_MS = max(TTLS_MS)


def lasting():
    """The names of the locks that are there from the beginning to the end."""
    return [f"{thing}:{number}" for thing in ("register", "set") for number in range(COUNT)]


class Things:
    """What locks guard: each refuses a fence that is smaller than one it has seen, to readers, too."""

    def __init__(self, history):
        self.history, self.fences, self.items, self.lock = history, {}, {}, threading.Lock()
        self.sale = 0

    def write(self, worker, name, fence, **told):
        with self.lock:
            return self.touched(worker, name, fence, **told)

    def read(self, worker, name, fence):
        with self.lock:
            return self.touched(worker, name, fence) and list(self.items.get(name, []))

    def replace(self, worker, name, fence, items):
        """Its last one is new."""
        with self.lock:
            if self.touched(worker, name, fence, item=items[-1]):
                self.items[name] = items
                if name == f"sale:{self.sale}" and len(items) >= STOCK:
                    self.sale += 1

    def touched(self, worker, name, fence, **told):
        taken = fence >= self.fences.get(name, 0)
        if taken:
            self.fences[name] = fence
        worker.note("write", name=name, fence=fence, taken=taken, at=now(), **told)
        return taken

    def tell(self):
        for name, items in self.items.items():
            self.history.note(op="shelf", name=name, items=items)


class Locker(Worker):
    def turn(self):
        things = self.storm.things
        name = self.dice.choice([*lasting(), f"sale:{things.sale}"])
        self.guarded(name, self.dice.choice(TTLS_MS), self.dice.random() < 0.5)

    def guarded(self, name, ttl, renew):
        wait = CALM_WAIT_MS if self.storm.is_calm() else self.dice.choice(WAITS_MS)
        invoked, player = now(), self.player
        answer = self.ask("lock.acquire", lock=name, ttl_ms=ttl, renew=renew, wait_ms=wait)
        if "ok" not in answer:
            if self.did("acquire", answer, invoked, name=name, fence=None) == UNKNOWN:
                self.give_up_time()
            return
        completed, fence = now(), answer["ok"]["fence"]
        line = self.held("acquire", self.ask("lease.look"), invoked, completed, name=name, fence=fence, ttl=ttl,
                         renewed=renew)
        if line["valid"]:
            self.visit(name, fence, line)
        left = self.moment(player)
        self.note(**line, left=left, op="acquire")
        self.give_up(name, fence, ttl, renew, left)

    def give_up(self, name, fence, ttl, renew, left):
        """Mostly by a release; sometimes it is left to its end."""
        chance = self.dice.random()
        if chance < 0.03 and not renew:
            # One that is renewed would be kept until the garbage is collected.
            return
        if chance < 0.1 and not renew and ttl == min(TTLS_MS):
            return self.wait_for_the_end(name, fence, ttl)
        if chance < 0.3 and not self.extended(name, fence) and not renew:
            return
        self.did("release", self.ask("lease.release"), left, name=name, fence=fence)

    def visit(self, name, fence, line):
        things = self.storm.things
        if name.startswith("register"):
            things.write(self, name, fence)
            if self.dice.random() < LINGERING:
                # It does not care whether it is the holder still: the register does.
                self.linger("lease.look", line, self.dice.uniform(0, 2 * LONGEST_MS / 1000))
                things.write(self, name, fence)
            return
        found = things.read(self, name, fence)
        time.sleep(self.dice.choice([0, 0.002, 0.02]))
        if found is False or name.startswith("sale") and len(found) >= STOCK:
            return
        things.replace(self, name, fence, [*found, self.storm.number()])

    def extended(self, name, fence):
        """It is given up for the others' sake already; whether it is the store's still."""
        invoked = now()
        answer = self.ask("lease.extend", ttl_ms=LONGEST_MS)
        return self.did("extend", answer, invoked, name=name, fence=fence) == OK

    def wait_for_the_end(self, name, fence, ttl):
        """It is told no later than the deadline."""
        look = self.ask("lease.look")
        latest = now() + look["ok"]["remaining_ms"] if "ok" in look else None
        answer = self.ask("lease.wait_lost", time_ms=10 * ttl)
        told = now()
        after = self.ask("lease.look").get("ok")
        if latest is not None and after is not None and "ok" in answer:
            self.note("told", name=name, fence=fence, latest=latest, at=told, was_told=answer["ok"],
                      valid=after["valid"], loss=after["loss"])
