"""Those who use the library: each a process of some language, which is killed and stopped now and then."""

import random
import signal
import threading
import time

from history import OK, end_of, now
from place import PREFIXES

# No call takes longer than its wait and the client's timeout.
ANSWER_S = 60
ENDED = "the player has ended"
# So it could not even be asked: nothing was done.
NOT_ASKED = "the player had ended before"
# How often one who lingers with a lease looks whether it is valid still.
LOOK_S = 0.3
# How many of the workers are behind the proxy; the others see the server itself.
BEHIND = 0.8


class Worker(threading.Thread):
    """Drives one process, and starts another when it has ended."""

    def __init__(self, name, storm, seed, number):
        super().__init__(name=name, daemon=True)
        self.storm = storm
        # Of the language of its next process: of as many workers as there are languages, each begins with another one.
        self.number = number
        self.dice = random.Random(f"{seed} {name}")
        self.language = self.player = None
        self.open = False
        # The process that was told to end, by the end of its orders, and when.
        self.told_to_end, self.told_at = None, None

    def run(self):
        while not self.storm.is_over():
            try:
                if self.is_prepared():
                    self.turn()
                else:
                    self.give_up_time()
            except TimeoutError as problem:
                self.note("exit", code=str(problem))
                self.replace()
            time.sleep(self.storm.pace)
        if self.player is not None and (code := self.player.end()) != 0:
            self.note("exit", code=code)

    def languages(self):
        return self.storm.languages

    def is_prepared(self):
        if self.player is None:
            self.language = self.languages()[self.number % len(self.languages())]
            self.number += 1
            self.player = self.language.start()
            self.open = False
        if not self.open:
            url = self.storm.behind if self.dice.random() < BEHIND else self.storm.place.url
            self.open = "ok" in self.ask("client.open", url=url, **PREFIXES)
        return self.open and self.player is not None

    def replace(self):
        """The process was killed, or hangs. Another end that nobody ordered is a crash."""
        player, self.player = self.player, None
        if player is None or player is self.told_to_end:
            return
        player.kill()
        code = player.process.returncode
        if code != -signal.SIGKILL:
            self.note("exit", code=f"{code}, and nobody told it to end")

    def ask(self, op, **arguments):
        if self.player is None:
            return {"error": {"kind": NOT_ASKED}}
        try:
            answer = self.player.begin(self.name, op, **arguments).answer(ANSWER_S)
        except (RuntimeError, BrokenPipeError, ValueError) as problem:
            # It was killed, or told to end, meanwhile.
            self.storm.surprised(self.name, problem)
            answer = {"error": {"kind": NOT_ASKED}}
        if answer.get("error", {}).get("kind") in (ENDED, NOT_ASKED):
            self.replace()
        return answer

    def note(self, op, **told):
        self.storm.history.note(op=op, actor=self.name, language=self.language.name, **told)

    def did(self, op, answer, invoked, **told):
        """Notes an operation; how it ended."""
        error, end = answer.get("error", {}), end_of(answer)
        if "out of memory" in error.get("message", ""):
            told["no_memory"] = True
        self.note(op, invoked=invoked, completed=now(), end=end, error=error.get("kind"), **told)
        return end

    def held(self, op, look, invoked, completed, **told):
        """Notes what was given: surely ours from the answer to what was left when it was looked at."""
        looked = now()
        found = look.get("ok") or {"valid": False, "remaining_ms": 0, "loss": None}
        valid, remaining = found["valid"], found["remaining_ms"]
        seen = {"valid": valid, "looked": looked, "loss": found["loss"], "seen": "ok" in look}
        line = {**told, **seen, "invoked": invoked, "completed": completed, "end": OK, "error": None,
                "deadline": completed + remaining if valid else completed, "latest": looked + remaining}
        return line

    def linger(self, look, line, seconds, prolong=None):
        """Keeps what it has for so long; the last deadline that it knows of is told. It may be prolonged meanwhile."""
        end = now() + 1000 * seconds
        while now() < end and self.player is not None:
            time.sleep(LOOK_S)
            if prolong is not None:
                prolong()
            asked, found = now(), self.ask(look).get("ok")
            if found and found["valid"]:
                line["deadline"] = max(line["deadline"], asked + found["remaining_ms"])
                line["latest"] = max(line["latest"], now() + found["remaining_ms"])

    def is_told_to_end(self, player):
        """A process that ends gives back what it has."""
        return player is self.told_to_end

    def moment(self, player):
        """Until now what this process has was its own; unless it was told to end."""
        return self.told_at if self.is_told_to_end(player) else now()

    def give_up_time(self):
        time.sleep(0.05)
