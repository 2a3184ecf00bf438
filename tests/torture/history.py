"""What happened: a line of JSON for each operation, with the times of one monotonic clock."""

import json
import threading
import time

# How an operation ended: with an answer, with an error that says that nothing was done, or so that nobody knows.
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"


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


def now():
    """Milliseconds, of a clock that all processes of the machine share."""
    return time.monotonic() * 1000


def load(path):
    with open(path) as file:
        return [json.loads(line) for line in file]
