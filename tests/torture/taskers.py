"""Workers that use queues: some put tasks in, some work on them."""

import time

from history import UNKNOWN, now
from languages import LANGUAGES
from workers import Worker

# Tasks that are put in once each; tasks of which there is one of an id at a time; tasks whose claims are cancelled; tasks
# with keys, of each of which one runs at a time.
QUEUES = QUEUE, DOUBLES, CANCELLED, KEYED = "q", "d", "c", "k"
KEYS, KEY_CONCURRENCY = 24, 1
# Between two tasks.
REST_S = 0.02
IDS = 5
LEASE_MS = 2000
# How many claims are kept for longer than a lease.
LINGERING = 0.005
# Tasks that fail until they are dead.
POISON = "poison"
POISON_ATTEMPTS = 3
POISONED = 0.01
WINDOW_MS = 1500
POLICIES = ["keep", "skip", "replace", {"debounce_ms": 3000}, {"throttle_ms": WINDOW_MS}]


class Producer(Worker):
    """Puts tasks in, each once; some for later."""

    queue = QUEUE
    together = 1

    def turn(self):
        if self.storm.is_draining():
            return time.sleep(0.05)
        for _ in range(self.together):
            self.put_in()
        time.sleep(REST_S * self.together)

    def put_in(self):
        number = self.storm.number()
        poisoned = self.dice.random() < POISONED
        task = f"{POISON if poisoned else 'task'}:{number}"
        payload = f"{number} {self.dice.random()}".encode().hex()
        told = {"delay_ms": self.dice.choice([0, 0, 0, 300, 1500]), "priority": self.dice.randrange(3),
                "max_attempts": POISON_ATTEMPTS if poisoned else 1000, **self.more()}
        invoked = now()
        answer = self.ask("queue.enqueue", queue=self.queue, id=task, payload={"$hex": payload}, **told)
        if self.did("enqueue", answer, invoked, queue=self.queue, id=task, payload=payload, **told) == UNKNOWN:
            self.give_up_time()

    def more(self):
        """What else its tasks have."""
        return {}


class KeyedProducer(Producer):
    """Several tasks of a key at once: while one of them runs, the others are held."""

    queue = KEYED
    together = 3
    key = None

    def languages(self):
        return with_keys(self.storm)

    def turn(self):
        self.key = f"key:{self.dice.randrange(KEYS)}"
        super().turn()

    def more(self):
        return {"key": self.key}


def with_keys(storm):
    """The languages without the release before, which knows no keys."""
    return [language for language in storm.languages if language.name in LANGUAGES]


class Doubler(Worker):
    """Puts the same few ids in, again and again: what becomes of it is told by its outcome."""

    def turn(self):
        if self.storm.is_draining():
            return time.sleep(0.05)
        task, policy = f"id:{self.dice.randrange(IDS)}", self.dice.choice(POLICIES)
        payload = f"{self.storm.number()} of {task}".encode().hex()
        invoked, delay = now(), self.dice.choice([0, 200])
        answer = self.ask(
            "queue.enqueue", queue=DOUBLES, id=task, payload={"$hex": payload}, max_attempts=1000, delay_ms=delay,
            on_duplicate=policy)
        done = answer.get("ok") or {}
        end = self.did(
            "enqueue", answer, invoked, queue=DOUBLES, id=task, payload=payload, outcome=done.get("outcome"),
            version=done.get("version"), delay_ms=delay, policy=policy if isinstance(policy, str) else next(iter(policy)))
        if end == UNKNOWN:
            self.give_up_time()


class Consumer(Worker):
    """Works on tasks; some fail, some are given back, some are dropped with their process."""

    queue = QUEUE

    def turn(self):
        invoked, player = now(), self.player
        renew = self.dice.random() < 0.5
        answer = self.ask("queue.claim", queue=self.queue, lease_ms=LEASE_MS, renew=renew, wait_ms=500)
        completed, wall = now(), time.time() * 1000
        claims = answer.get("ok")
        if not claims:
            if claims is None:
                self.did("claim", answer, invoked, queue=self.queue, id=None)
                self.give_up_time()
            elif completed - invoked > LEASE_MS / 2:
                # What it was given may have come too late.
                self.note("claim", invoked=invoked, completed=completed, end=UNKNOWN, error=None, queue=self.queue, id=None)
            return
        (claim,) = claims
        line = self.held(
            "claim", self.ask("claim.look"), invoked, completed, queue=self.queue, wall=wall, due=claim["due_ms"],
            ttl=LEASE_MS, **{key: claim[key] for key in ("id", "payload", "attempt", "receipt", "version", "priority")})
        if line["valid"] and not self.storm.is_draining() and self.dice.random() < LINGERING:
            prolong = None if renew else lambda: self.ask("claim.extend", lease_ms=LEASE_MS)
            self.linger("claim.look", line, self.dice.uniform(1, 2) * LEASE_MS / 1000, prolong)
        verdict = self.verdict(claim)
        left = self.moment(player)
        arguments = {"delay_ms": self.dice.choice([0, 100])} if verdict == "nack" else {}
        answer = self.ask(f"claim.{verdict}", **arguments)
        self.note(**line, left=left, op="claim", given_back=self.is_told_to_end(player))
        self.did(verdict, answer, left, queue=self.queue, id=claim["id"], payload=claim["payload"],
                 receipt=claim["receipt"], **arguments)

    def verdict(self, claim):
        if claim["id"].startswith(POISON):
            return "nack"
        if self.storm.is_draining():
            return "ack"
        return self.dice.choices(["ack", "nack", "put_back"], [8, 1, 1])[0]


class DoublesConsumer(Consumer):
    queue = DOUBLES


class CancelledConsumer(Consumer):
    queue = CANCELLED


class KeyedConsumer(Consumer):
    queue = KEYED

    def languages(self):
        return with_keys(self.storm)

    def verdict(self, claim):
        """It works for a moment, in which another of the key could run."""
        time.sleep(self.dice.choice([0, 0.002, 0.02]))
        return super().verdict(claim)
