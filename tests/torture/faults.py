"""What goes wrong, by a seed: one thing after the other, each done for a while and undone.

Which rows of docs/FAULTS.md they stand for is told in README.md.
"""

import random
import time
from contextlib import contextmanager

import on_keys
import on_links
import on_processes
import on_server
from history import now
from lockers import LONGEST_MS, lasting
from place import MARK, PREFIXES, queue_key


class Faults:
    def __init__(self, storm, seed):
        self.storm = storm
        # What happens within a fault does not change which one comes next.
        self.dice, self.order = random.Random(f"{seed} faults"), random.Random(f"{seed} order")
        kinds = on_processes.FAULTS + on_links.FAULTS + on_keys.FAULTS
        # Those that need the server for themselves.
        self.kinds = kinds + on_server.FAULTS if storm.place.is_ours else kinds
        self.next = []

    @property
    def place(self):
        return self.storm.place

    @property
    def proxy(self):
        return self.storm.proxy

    def strike(self):
        """Each kind comes once before one comes again."""
        self.next = self.next or self.order.sample(self.kinds, len(self.kinds))
        name, fault = self.next.pop()
        with self.noted(name, struck=True):
            fault(self)

    @contextmanager
    def noted(self, name, **told):
        """What happens meanwhile has this cause."""
        begin = now()
        try:
            yield told
        finally:
            self.storm.history.note(op="fault", name=name, at=begin, until=now(), **told)

    def pause(self, least, most):
        time.sleep(self.dice.uniform(least, most))

    def command(self, *words):
        return self.place.console.ask(*words)

    def lock(self):
        """The name of some lock, and its key."""
        name = self.dice.choice(lasting())
        return name, PREFIXES["lock_prefix"] + name

    def heal(self):
        """Everything works again, whatever was done and not undone."""
        self.proxy.order("behave")
        for worker in self.storm.workers:
            on_processes.wake(worker.player)
        if self.place.is_ours:
            on_server.heal(self)
        for name in lasting():
            key = PREFIXES["lock_prefix"] + name
            if self.command("TYPE", key) not in ("string", "none"):
                self.command("DEL", key)
            self.give_time(key)

    def give_time(self, key):
        """Somebody took its time away, and its holder may have died since."""
        if self.command("PTTL", key) == -1:
            self.command("PEXPIRE", key, LONGEST_MS + 1000)

    def leftovers(self, graves=(), purged=True):
        """Our keys that will not go away by themselves soon, besides records, which have their time, and besides what
        the dead of these queues are in. Until a queue is purged, its record lives as long as its dead might."""
        theirs = {queue_key(kind, queue) for kind in ("dead", "expired", "grave", "body") for queue in graves}
        keys = [key for key in self.place.console.keys() if MARK in key and key not in theirs]
        lives, records = self.place.console.lives(keys), {**RECORDS, **({} if purged else QUEUES_WITH_DEAD)}
        return [key for key in keys if lives[key] != GONE and not 0 < lives[key] <= longest_life(key, records)]


def longest_life(key, records):
    return next((life for kind, life in records.items() if key.startswith(kind)), RUN_OUT_MS)


# What outlives the leases and the tasks: records of locks for 20 minutes and some, those of queues for seven days and an
# hour, or an hour longer than their dead, the last answers to clients for a minute and their lease or timeout, of ten
# minutes at most here.
MINUTE_MS, DAY_MS = 60_000, 24 * 3_600_000
RECORDS = {"stanchion:meta:": 25 * MINUTE_MS, "stanchion:queue:": 7 * DAY_MS + 61 * MINUTE_MS, "stanchion:call:": 10 * MINUTE_MS}
QUEUES_WITH_DEAD = {"stanchion:queue:": 90 * DAY_MS + 61 * MINUTE_MS}
# Leases of the workers live for seconds, the line of those who waited for a minute.
RUN_OUT_MS = 61_000
# What a server says of the life of a key that is not there.
GONE = -2
