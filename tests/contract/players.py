"""Processes that carry out steps in one language each, and speak JSON lines: a request each way.

    {"call": 1, "actor": "one", "op": "lock.acquire", "lock": "a", "ttl_ms": 30000, "as": "lease"}
    {"call": 1, "ok": {"name": "a", "fence": 17, "token": "..."}}
    {"call": 2, "error": {"kind": "LockTimeout", "code": -1, "message": "...", "retryable": false}}
    {"call": 3, "cannot": "a Duration is never negative"}

Calls of one actor are made in their order; calls of several actors go on at the same time.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

ACTORS = ["one", "two", "three", "four", "five"]
# No call of a scenario takes so long.
ANSWER_S = 30
# Every password of the tests. Whoever says it, even in a log, has told a secret.
CANARY = "c4n4ry-pa55w0rd"
# What the players have said about it besides their answers.
LEAKS = []


class Player:
    """One process of a player."""

    def __init__(self, command, env):
        # The backtrace of a panic that a scenario asks for is noise.
        inherited = {name: value for name, value in os.environ.items() if name != "STANCHION_URL"} | {"RUST_BACKTRACE": "0"}
        self.process = subprocess.Popen(
            [str(part) for part in command], env={**inherited, **env}, text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace")
        self.lock = threading.Lock()
        self.calls = {}
        self.last = 0
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.overhear, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            if CANARY in line:
                hidden = line.replace(CANARY, "(the password)")
                LEAKS.append(hidden.strip())
                answer = {"call": answer["call"], "error": {"kind": "a password was told", "message": hidden}}
            with self.lock:
                call = self.calls.pop(answer["call"])
            call.end(answer)
        with self.lock:
            calls, self.calls = self.calls, None
        for call in calls.values():
            call.end({"error": {"kind": "the player has ended", "message": "see above"}})

    def overhear(self):
        """What it says without being asked."""
        for line in self.process.stderr:
            if CANARY in line:
                LEAKS.append(line.replace(CANARY, "(the password)").strip())
            sys.stderr.write(line.replace(CANARY, "(the password)"))

    def begin(self, actor, op, **arguments):
        """Sends a request; the answer comes later."""
        call = Call()
        with self.lock:
            if self.calls is None:
                raise RuntimeError("the player has ended")
            self.last += 1
            self.calls[self.last] = call
            line = json.dumps({"call": self.last, "actor": actor, "op": op, **arguments})
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        return call

    def ask(self, actor, op, **arguments):
        return self.begin(actor, op, **arguments).answer()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Ends it as its language would have it; how it ended."""
        self.process.stdin.close()
        try:
            return self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return "did not end"


class Call:
    """A request that was sent."""

    def __init__(self):
        self.done = threading.Event()
        self.found = None

    def end(self, answer):
        self.found = answer
        self.done.set()

    def answer(self, within=ANSWER_S):
        if not self.done.wait(within):
            raise TimeoutError(f"no answer within {within} s")
        return self.found


class Language:
    """How to start a player, and what it can do."""

    def __init__(self, name, command, env=None, threads=True):
        self.name, self.command, self.env = name, command, env or {}
        # Whether one process can make several calls at the same time.
        self.threads = threads

    def start(self):
        return Player(self.command, self.env)


class Crew:
    """The actors on one store: a process for all if the store is in memory, else one for each."""

    def __init__(self, languages, shared):
        self.languages, self.shared = languages, shared
        self.turn = 0
        self.players = {}
        # Those that did not end as they should.
        self.crashed = []

    def shuffle(self, languages):
        """Gives the actors other languages, if there are several: in time each meets each, in every part."""
        self.languages = languages
        self.turn += 1

    def language(self, actor):
        number = ACTORS.index(actor)
        count = len(self.languages)
        first, step = self.turn % count, 1 + self.turn // count % max(1, count - 1)
        return self.languages[(first + number * step) % count]

    def of(self, actor):
        language = self.language(actor)
        key = (actor if self.shared else "", language.name)
        if key not in self.players:
            self.players[key] = language.start()
        return self.players[key]

    def kill(self, actor):
        self.players.pop((actor, self.language(actor).name)).kill()

    def dismiss(self):
        """Ends all of them, one of which hangs or has ended; others come when they are needed."""
        for player in self.players.values():
            player.kill()
        self.players.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for (_, language), player in self.players.items():
            if (how := ending(player.end())) is not None:
                self.crashed.append(f"the player in {language} {how}")


def ending(status):
    """What is wrong with how a process has ended: nothing with 0."""
    if isinstance(status, str):
        return status
    return None if status == 0 else f"ended by signal {-status}" if status < 0 else f"ended with exit code {status}"


def folder(language):
    return Path(__file__).resolve().parent.parent / "players" / language
