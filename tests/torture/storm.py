"""The workers, their server, and how far it has gone."""

import threading
import time
from collections import Counter

from check_locks import SETTLING_MS
from history import now
from lockers import Locker, Things, lasting
from odd import Canceller, Forker, Odds
from place import PREFIXES
from taskers import (
    KEY_CONCURRENCY, KEYED, QUEUES, CancelledConsumer, Consumer, Doubler, DoublesConsumer, KeyedConsumer, KeyedProducer,
    Producer)

# How many of each kind: of those that show whether a language took part, as many as there are languages, with the release before.
CREW = [(Locker, 6), (Producer, 2), (Consumer, 6), (Doubler, 1), (DoublesConsumer, 2),
        (CancelledConsumer, 1), (KeyedProducer, 1), (KeyedConsumer, 3), (Forker, 1), (Canceller, 2)]
# Between two faults.
PAUSE_S = (0.1, 1)
# How long the faults go on until it is calm for a while: long enough to see that everybody gets on.
RAGE_S, CALM_S = 30, 18
# How long draining may take: the longest lease, backoffs, and what is left to do.
DRAIN_S = 90
STATES = ("scheduled", "ready", "claimed", "held", "dead")


class Storm:
    def __init__(self, languages, place, proxy, history, seed, pace):
        self.languages, self.place, self.proxy, self.history = languages, place, proxy, history
        # How long each worker rests between two turns.
        self.pace = pace
        self.behind = place.behind(proxy.port)
        self.things = Things(history)
        self.calm, self.draining, self.over = threading.Event(), threading.Event(), threading.Event()
        self.count, self.counting = 0, threading.Lock()
        self.surprises = Counter()
        self.odds = Odds(languages)
        self.workers = [kind(f"{kind.__name__.lower()} {number}", self, seed, number) for kind, count in CREW
                        for number in range(count)]

    def is_calm(self):
        return self.calm.is_set()

    def is_draining(self):
        return self.draining.is_set()

    def is_over(self):
        return self.over.is_set()

    def number(self):
        with self.counting:
            self.count += 1
            return self.count

    def surprised(self, name, problem):
        self.surprises[str(problem)] += 1

    def begin(self):
        self.history.note(op="clocks", offset=time.time() * 1000 - now())
        self.history.note(op="languages", names=[language.name for language in self.languages])
        self.limit_keys(KEY_CONCURRENCY)
        for worker in self.workers:
            worker.start()

    def limit_keys(self, concurrency):
        """By a process that no fault hits. A server that was emptied has forgotten it."""
        with self.languages[0].start() as player:
            player.ask("one", "client.open", url=self.place.url, **PREFIXES)
            answer = player.ask("one", "queue.configure", queue=KEYED, key_concurrency=concurrency)
            if "ok" not in answer:
                raise SystemExit(f"the keys have no limit: {answer}")

    def rage(self, seconds, faults):
        """Faults, and times of calm in between."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pause = min(end, time.monotonic() + RAGE_S)
            while time.monotonic() < pause:
                faults.pause(*PAUSE_S)
                faults.strike()
            self.rest(faults)

    def rest(self, faults):
        faults.heal()
        begin = now()
        time.sleep(SETTLING_MS / 1000)
        self.calm.set()
        time.sleep(CALM_S - SETTLING_MS / 1000)
        self.calm.clear()
        self.history.note(op="calm", at=begin, until=now(), locks=lasting())

    def drain(self, faults):
        """Until the queues are empty; what is left of them, if that takes too long."""
        self.draining.set()
        end = time.monotonic() + DRAIN_S
        with self.languages[0].start() as player:
            player.ask("one", "client.open", url=self.place.url, **PREFIXES)
            while time.monotonic() < end and not all(is_empty(player, queue) for queue in QUEUES):
                time.sleep(0.1)
            self.over.set()
            for worker in self.workers:
                worker.join(DRAIN_S)
            tasks = [task for queue in QUEUES for state in STATES for task in listed(player, queue, state)]
            self.history.note(op="left", tasks=tasks)
            # The record of a queue with settings stays.
            self.limit_keys(None)
            self.things.tell()
            # What a drained queue leaves would be purged, too.
            graves = {task["queue"] for task in tasks if is_dead(task)}
            self.history.note(op="keys", keys=faults.leftovers(graves, purged=False))
            for queue in QUEUES:
                player.ask("one", "queue.purge", queue=queue)
            player.ask("one", "client.close")
        self.history.note(op="keys", keys=faults.leftovers())


def is_dead(task):
    return task["state"] == "dead"


def is_empty(player, queue):
    found = player.ask("one", "queue.stats", queue=queue).get("ok")
    return found and not any(found[state] for state in ("scheduled", "ready", "claimed", "held", "successors"))


def listed(player, queue, state):
    page = None
    while True:
        more = {} if page is None else {"page": page}
        found = player.ask("one", "queue.list", queue=queue, state=state, max=1000, **more)["ok"]
        for task in found["items"]:
            yield {"queue": queue, **{key: task[key] for key in ("id", "state", "payload", "attempts", "max_attempts")}}
        page = found["next"]
        if page is None:
            return
