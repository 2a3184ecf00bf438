"""The stores that scenarios are played on."""

import shutil
import tempfile
from pathlib import Path

from server import Server


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
        self.file = self.folder / f"{self.count}.db"
        return f"sqlite:{self.file}"


class Redis(Server):
    name, shared, moves_clock = "redis", True, False

    def fresh(self):
        if self.command("FLUSHALL") != "+OK":
            raise RuntimeError("redis-server was not emptied")
        return self.url


STORES = {store.name: store for store in (Memory, Sqlite, Redis)}
