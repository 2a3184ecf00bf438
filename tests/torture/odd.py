"""Workers that fork with a lease in their hands, and that cancel what they have asked for."""

import time
from pathlib import Path

from drivers import Language
from history import OK, UNKNOWN, now
from lockers import lasting
from place import PREFIXES
from taskers import QUEUE
from workers import Worker

FORKED = "forked"
# Between two calls that are cancelled.
REST_S = 0.2


def odd(languages, name, driver):
    """The driver of a language with more operations."""
    (language,) = (language for language in languages if language.name == name)
    return Language(name, [language.command[0], Path(__file__).resolve().parent / driver], language.env)


class Odds:
    def __init__(self, languages):
        self.python, self.node = odd(languages, "python", "odd_driver.py"), odd(languages, "node", "odd_driver.cjs")


class Forker(Worker):
    """The child works with a connection of its own; what it has inherited is the parent's, and stays so."""

    def languages(self):
        return [self.storm.odds.python]

    def turn(self):
        invoked, other = now(), self.dice.choice(lasting())
        # Its own, so that nothing but the library can take it.
        answer = self.ask("odd.fork", lock=FORKED, other=other)
        done = answer.get("ok")
        if done is None:
            if self.did("fork", answer, invoked) == UNKNOWN:
                self.give_up_time()
            return
        child = done["child"] or {"inherited": "the child has said nothing", "own": {}}
        self.note("fork", invoked=invoked, completed=now(), end=OK, error=None, status=done["status"],
                  inherited=child["inherited"], released=done["released"])
        if "fence" in child["own"]:
            own = {**child["own"], "name": other, "ttl": 3000, "valid": True, "loss": None, "seen": False}
            self.note("acquire", **own, end=OK, error=None, looked=own["left"], latest=own["deadline"])


class Canceller(Worker):
    """What was cancelled leaves nothing behind: the others get on, and in the end there are no keys."""

    def languages(self):
        return [self.storm.odds.python, self.storm.odds.node]

    def turn(self):
        what = {"lock": self.dice.choice(lasting())} if self.dice.random() < 0.6 else {"queue": QUEUE}
        invoked = now()
        answer = self.ask(
            "odd.cancel", url=self.storm.behind, after_ms=self.dice.choice([0, 1, 3, 10, 100, 600]), **what, **PREFIXES)
        time.sleep(REST_S)
        self.did("cancel", answer, invoked, what=next(iter(what)), found=(answer.get("ok") or {}).get("found"))
        if "queue" in what:
            # Nobody knows whether something was claimed: it comes again.
            self.did("claim", {"error": {"kind": "Indeterminate"}}, invoked, queue=QUEUE, id=None)
