"""The stores that the tests use: a server on a free port, and files in a folder of their own."""

import itertools
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_S = 20


class Stores:
    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="stanchion-c-"))
        self.files = itertools.count()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.server = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            cwd=self.folder, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + START_S
        while not self.answers():
            if time.monotonic() > deadline or self.server.poll() is not None:
                raise RuntimeError("redis-server does not answer")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def redis(self):
        return f"redis://127.0.0.1:{self.port}"

    def sqlite(self):
        """Another file each time."""
        return f"sqlite:{self.folder}/{next(self.files)}.db"
