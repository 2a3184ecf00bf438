"""Those who use the library: each a process of some language, which is killed and stopped now and then."""

import random
import threading
import time

from history import FAILED, OK, UNKNOWN, now

LOCKS = 3
# Errors after which it is not known whether the request was carried out.
DOUBTFUL = {"Indeterminate", "StoreUnavailable", "the driver has ended"}
# No call takes longer than its wait and the client's timeout.
ANSWER_S = 60


class Worker(threading.Thread):
    """Drives one process, and starts another when it has ended."""

    def __init__(self, name, storm, seed):
        super().__init__(daemon=True)
        self.name, self.storm = name, storm
        self.dice = random.Random(f"{seed} {name}")
        self.language = self.driver = None
        self.open = False

    def run(self):
        while not self.storm.is_over():
            try:
                self.prepare()
                self.turn()
            except (RuntimeError, TimeoutError, BrokenPipeError) as problem:
                self.storm.surprised(self.name, problem)
                self.replace()
        if self.driver is not None:
            self.driver.end()

    def prepare(self):
        if self.driver is None:
            self.language = self.dice.choice(self.storm.languages)
            self.driver = self.language.start()
            self.open = False
        if not self.open:
            self.open = "ok" in self.ask("client.open", url=self.storm.url)

    def replace(self):
        """The process was killed, or hangs."""
        driver, self.driver = self.driver, None
        if driver is not None:
            driver.kill()

    def ask(self, op, **arguments):
        answer = self.driver.begin(self.name, op, **arguments).answer(ANSWER_S)
        if answer.get("error", {}).get("kind") == "the driver has ended":
            self.replace()
        return answer

    def did(self, op, answer, invoked, **told):
        """Notes an operation; how it ended."""
        kind = answer.get("error", {}).get("kind")
        end = OK if kind is None else UNKNOWN if kind in DOUBTFUL else FAILED
        self.storm.history.note(
            op=op, actor=self.name, language=self.language.name, invoked=invoked, completed=now(), end=end, error=kind,
            **told)
        return end


class Locker(Worker):
    """Writes to registers that a lock guards, each time with its fence."""

    def turn(self):
        name = f"register:{self.dice.randrange(LOCKS)}"
        ttl = self.dice.choice([800, 1500, 3000])
        renew = self.dice.random() < 0.5
        invoked = now()
        answer = self.ask("lock.acquire", lock=name, ttl_ms=ttl, renew=renew, wait_ms=self.dice.choice([200, 2000]))
        granted = answer.get("ok")
        if granted is None:
            if self.did("acquire", answer, invoked, name=name, fence=None) == UNKNOWN:
                time.sleep(0.05)
            return
        completed = now()
        look = self.ask("lease.look").get("ok") or {"valid": False, "remaining_ms": 0}
        # What was left when it was looked at: the lease is surely ours until then.
        deadline = completed + look["remaining_ms"] if look["valid"] else completed
        if look["valid"]:
            self.storm.registers.write(self, name, granted["fence"])
            time.sleep(self.dice.choice([0, 0.002, 0.02]))
        left = now()
        self.storm.history.note(
            op="acquire", actor=self.name, language=self.language.name, invoked=invoked, completed=completed, end=OK,
            error=None, name=name, fence=granted["fence"], valid=look["valid"], deadline=deadline, left=left)
        if self.dice.random() < 0.9 and self.driver is not None:
            self.did("release", self.ask("lease.release"), left, name=name, fence=granted["fence"])


class Producer(Worker):
    """Puts tasks in, each once."""

    def turn(self):
        if self.storm.is_calm():
            return time.sleep(0.05)
        number = self.storm.number()
        task, payload = f"task:{number}", f"{number} {self.dice.random()}".encode().hex()
        invoked = now()
        answer = self.ask(
            "queue.enqueue", queue="q", id=task, payload={"$hex": payload}, max_attempts=1000,
            delay_ms=self.dice.choice([0, 0, 0, 300]), priority=self.dice.randrange(3))
        self.did("enqueue", answer, invoked, id=task, payload=payload)
        time.sleep(0.002)


class Consumer(Worker):
    """Works on tasks; some fail, some are given back, some are dropped with their process."""

    def turn(self):
        invoked = now()
        answer = self.ask("queue.claim", queue="q", lease_ms=2000, renew=self.dice.random() < 0.5, wait_ms=500)
        completed, wall = now(), time.time() * 1000
        claims = answer.get("ok")
        if not claims:
            if claims is None:
                self.did("claim", answer, invoked, id=None)
                time.sleep(0.05)
            return
        (claim,) = claims
        look = self.ask("claim.look").get("ok") or {"valid": False, "remaining_ms": 0}
        deadline = completed + look["remaining_ms"] if look["valid"] else completed
        verdict = "ack" if self.storm.is_calm() else self.dice.choices(["ack", "nack", "put_back"], [8, 1, 1])[0]
        left = now()
        self.storm.history.note(
            op="claim", actor=self.name, language=self.language.name, invoked=invoked, completed=completed, end=OK,
            error=None, id=claim["id"], payload=claim["payload"], attempt=claim["attempt"], receipt=claim["receipt"],
            due=claim["due_ms"], wall=wall, valid=look["valid"], deadline=deadline, left=left,
            put_back=verdict == "put_back")
        if self.driver is None:
            return
        arguments = {"delay_ms": self.dice.choice([0, 100])} if verdict == "nack" else {}
        self.did(
            verdict, self.ask(f"claim.{verdict}", **arguments), left, id=claim["id"], receipt=claim["receipt"])


class Registers:
    """The resource behind the locks: it refuses a fence that is smaller than one it has seen."""

    def __init__(self, history):
        self.history, self.fences, self.lock = history, {}, threading.Lock()

    def write(self, worker, name, fence):
        with self.lock:
            taken = fence >= self.fences.get(name, 0)
            if taken:
                self.fences[name] = fence
            self.history.note(
                op="write", actor=worker.name, language=worker.language.name, name=name, fence=fence, taken=taken,
                at=now())
