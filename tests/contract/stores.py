"""The stores that scenarios are played on."""

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_S = 20


class Memory:
    name, shared, moves_clock = "memory", False, True

    def __enter__(self):
        self.count = 0
        return self

    def __exit__(self, *_):
        pass

    def fresh(self):
        """The URL of an empty store."""
        self.count += 1
        return f"memory:{self.count}"


class Sqlite:
    name, shared, moves_clock = "sqlite", True, False

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="stanchion-contract-"))
        self.count = 0
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self):
        self.count += 1
        return f"sqlite:{self.folder}/{self.count}.db"


class Redis:
    name, shared, moves_clock = "redis", True, False

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="stanchion-contract-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.server = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            cwd=self.folder, stdout=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while not self.answers():
            if time.monotonic() > end or self.server.poll() is not None:
                raise SystemExit("redis-server does not answer")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self):
        try:
            return self.command("PING") == "+PONG"
        except OSError:
            return False

    def command(self, text):
        with socket.create_connection(("127.0.0.1", self.port), START_S) as connection:
            connection.sendall(f"{text}\r\n".encode())
            return connection.makefile().readline().strip()

    def fresh(self):
        if self.command("FLUSHALL") != "+OK":
            raise RuntimeError("redis-server was not emptied")
        return f"redis://127.0.0.1:{self.port}"


STORES = {store.name: store for store in (Memory, Sqlite, Redis)}
