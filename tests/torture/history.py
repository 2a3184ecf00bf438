"""What happened: a line of JSON for each operation, with the times of one monotonic clock."""

import json
import threading
import time

# How an operation ended: with an answer, with an error that says that nothing was done, or so that nobody knows.
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
# Errors after which it is not known whether the request was carried out.
DOUBTFUL = {"Indeterminate", "StoreUnavailable", "the player has ended"}
# How late a copy of a request may come that was held up on its way.
HELD_MS = 15_000


class History:
    def __init__(self, path):
        self.file = open(path, "w")
        self.lock = threading.Lock()
        self.lines = []

    def note(self, **told):
        with self.lock:
            self.lines.append(told)
            self.file.write(json.dumps(told) + "\n")

    def close(self):
        self.file.close()


def end_of(answer):
    return end_of_kind(answer.get("error", {}).get("kind"))


def end_of_kind(kind):
    return OK if kind is None else UNKNOWN if kind in DOUBTFUL else FAILED


def now():
    """Milliseconds, of a clock that all processes of the machine share."""
    return time.monotonic() * 1000


def load(path):
    with open(path) as file:
        return [json.loads(line) for line in file]
