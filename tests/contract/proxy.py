"""The proxy before a Redis server, which loses, delays, doubles and refuses as it is told: tests/src/bin/proxy.rs."""

import json
import subprocess
import threading


class Proxy:
    def __init__(self, program, upstream):
        self.process = subprocess.Popen(
            [str(program), upstream], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.Lock()
        self.port = json.loads(self.process.stdout.readline())["port"]

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def order(self, do, **arguments):
        """What it answers; it obeys at once."""
        with self.lock:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())["ok"]

    def end(self):
        self.process.stdin.close()
        if (status := self.process.wait()) != 0:
            raise RuntimeError(f"the proxy ended with {status}")
