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


class Quorum:
    """Three servers that vote. It has not everything, so only scenarios that name it are played there."""

    name, shared, moves_clock, only_if_named = "quorum", True, False, True

    def __enter__(self):
        self.servers = []
        for _ in range(3):
            self.servers.append(Server().__enter__())
        return self

    def __exit__(self, *problem):
        for server in self.servers:
            server.__exit__(*problem)

    def fresh(self):
        for server in self.servers:
            if server.command("FLUSHALL") != "+OK":
                raise RuntimeError("redis-server was not emptied")
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis-quorum://{hosts}/?rejoin_after=0"


STORES = {store.name: store for store in (Memory, Sqlite, Redis, Quorum)}


def has(store, scenario):
    """Whether a scenario is for such a store at all."""
    named = getattr(scenario, "stores", None) or []
    if getattr(store, "only_if_named", False):
        return store.name in named
    return named != [Quorum.name]
