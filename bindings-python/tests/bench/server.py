"""A redis-server for the benchmark, on a core of its own."""

import os
import shutil
import socket
import subprocess
import tempfile
import time

import redis

STARTS_WITHIN = 10


def pin():
    """Pins this process, and so those it starts, to one core; that one and another, for the server."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return None
    os.sched_setaffinity(0, {cores[1]})
    return cores[0], cores[1]


class Server:
    """Runs while the block does."""

    def __init__(self, cores):
        self._cores = cores

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self._directory = tempfile.mkdtemp(prefix="stanchion-bench-")
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self._directory]
        self._process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        if self._cores is not None:
            # Before it starts threads, which inherit it.
            os.sched_setaffinity(self._process.pid, {self._cores[0]})
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait(self):
        client, deadline = redis.Redis(port=self.port), time.monotonic() + STARTS_WITHIN
        while True:
            try:
                client.ping()
                return
            except redis.ConnectionError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
