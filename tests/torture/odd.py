"""Workers that fork with a lease in their hands, and that cancel what they have asked for."""

import time
from pathlib import Path

from history import OK, UNKNOWN, end_of_kind, now
from lockers import lasting
from place import PREFIXES
from players import Language
from taskers import CANCELLED, Producer
from workers import Worker

FORKED = "forked"
# Of the leases of a forker and its child.
TTL_MS = 3000
# Between two calls that are cancelled.
REST_S = 0.2


def odd(languages, name, player):
    """The player of a language with more operations."""
    (language,) = (language for language in languages if language.name == name)
    return Language(name, [language.command[0], Path(__file__).resolve().parent / player], language.env)


class Odds:
    def __init__(self, languages):
        self.python, self.node = odd(languages, "python", "odd_player.py"), odd(languages, "node", "odd_player.cjs")


class Forker(Worker):
    """The child works with a connection of its own; what it has inherited is the parent's, and stays so."""

    def languages(self):
        return [self.storm.odds.python]

    def turn(self):
        invoked, player, other = now(), self.player, self.dice.choice(lasting())
        # Its own, so that nothing but the library can take it.
        answer = self.ask("odd.fork", lock=FORKED, other=other)
        done = answer.get("ok")
        if done is None:
            if self.did("fork", answer, invoked) == UNKNOWN:
                self.give_up_time()
            return
        child = done["child"] or {"extended": "the child has said nothing", "released": None, "own": None}
        self.note("fork", invoked=invoked, completed=now(), end=OK, error=None, status=done["status"],
                  extended=child["extended"], released=child["released"])
        if not self.is_told_to_end(player):
            # Such a process gives back what it has, in the middle of this.
            self.had(FORKED, done["own"])
        if child["own"] is not None:
            self.had(other, child["own"])

    def had(self, name, own):
        """A lease of the parent or of the child, from its acquisition to its release; or why there was none."""
        told = {key: own[key] for key in ("invoked", "completed", "error")}
        if own["error"] is not None:
            self.note("acquire", **told, name=name, fence=None, end=end_of_kind(own["error"]))
            return
        held = {key: own[key] for key in ("fence", "deadline", "latest", "looked", "left", "valid", "loss")}
        self.note("acquire", **told, **held, name=name, end=OK, ttl=TTL_MS, seen=True, renewed=own["renewed"])
        self.note("release", name=name, fence=own["fence"], invoked=own["left"], completed=own["over"],
                  error=own["released"], end=end_of_kind(own["released"]))


class Canceller(Producer):
    """What was cancelled leaves nothing behind: the others get on, and in the end there are no keys."""

    # Nobody knows what it has had for a while, which would excuse too much in the queue of others.
    queue = CANCELLED

    def languages(self):
        return [self.storm.odds.python, self.storm.odds.node]

    def turn(self):
        what = {"lock": self.dice.choice(lasting())} if self.dice.random() < 0.6 else {"queue": self.queue}
        if "queue" in what and not self.storm.is_draining() and self.dice.random() < 0.7:
            self.put_in()
        invoked = now()
        answer = self.ask(
            "odd.cancel", url=self.storm.behind, after_ms=self.dice.choice([0, 1, 3, 10, 100, 600]), **what, **PREFIXES)
        time.sleep(REST_S)
        self.did("cancel", answer, invoked, what=next(iter(what)), found=(answer.get("ok") or {}).get("found"))
        if "queue" in what:
            # Nobody knows whether something was claimed: it comes again.
            self.did("claim", {"error": {"kind": "Indeterminate"}}, invoked, queue=self.queue, id=None)
