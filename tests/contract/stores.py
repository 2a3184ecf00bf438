"""The stores that scenarios are played on."""

import shutil
import tempfile
from pathlib import Path

import languages
from proxy import Proxy
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
    proxy = None

    def fresh(self):
        if self.command("FLUSHALL") != "+OK":
            raise RuntimeError("redis-server was not emptied")
        return self.url

    def behind_proxy(self):
        """The URL of the empty store behind a proxy that does nothing unusual yet."""
        self.fresh()
        if self.proxy is None:
            self.proxy = Proxy(languages.proxy(), f"127.0.0.1:{self.port}")
        self.proxy.order("behave")
        self.proxy.order("scripts")
        return self.proxy.url

    def __exit__(self, *problem):
        if self.proxy is not None:
            self.proxy.end()
        super().__exit__(*problem)


STORES = {store.name: store for store in (Memory, Sqlite, Redis)}
