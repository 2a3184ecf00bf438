"""The stores that the tests use: a server on a free port, and files in a folder of their own."""

import itertools
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_S = 20
# How often another port is tried when somebody else took it first.
PORT_ATTEMPTS = 8


class Stores:
    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="stanchion-c-"))
        self.files = itertools.count()
        self.log = self.folder / "redis.log"
        if not any(self.start() for _ in range(PORT_ATTEMPTS)):
            raise RuntimeError(f"redis-server ended: {self.log.read_text()}")
        return self

    def start(self):
        """Whether the server has got its port."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log.unlink(missing_ok=True)
        self.server = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
             "--logfile", str(self.log)], cwd=self.folder)
        deadline = time.monotonic() + START_S
        while self.server.poll() is None:
            if self.is_ready():
                return True
            if time.monotonic() > deadline:
                self.server.kill()
                raise RuntimeError(f"redis-server is not ready after {START_S} s: {self.log.read_text()}")
            time.sleep(0.01)
        return False

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_ready(self):
        """By its log: on the port it may be somebody else that answers."""
        return self.log.exists() and "Ready to accept connections" in self.log.read_text(errors="replace")

    def redis(self):
        return f"redis://127.0.0.1:{self.port}"

    def sqlite(self):
        """Another file each time."""
        return f"sqlite:{self.folder}/{next(self.files)}.db"
