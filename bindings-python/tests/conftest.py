"""The stores that the tests run on: memory, an SQLite file, and a redis-server of their own."""

import itertools
import shutil
import socket
import subprocess
import time
import uuid

import pytest

import stanchion

DATABASES = 4_000
_databases = itertools.count(1)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    server = shutil.which("redis-server") or shutil.which("valkey-server")
    assert server, "redis-server is missing: make deps"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--databases", str(DATABASES), "--dir",
         str(tmp_path_factory.mktemp("redis"))], stdout=subprocess.DEVNULL)
    try:
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def url(request, tmp_path):
    """A store's URL; names in it are this test's own."""
    if request.param == "memory":
        return f"memory:{uuid.uuid4()}"
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/test.db"
    return _own(request.getfixturevalue("redis_url"))


@pytest.fixture(params=["sqlite", "redis"])
def shared_url(request, tmp_path):
    """The URL of a store that other processes can open, too."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/test.db"
    return _own(request.getfixturevalue("redis_url"))


def _own(url):
    """A database that no other test uses: what is listed in it is the test's own."""
    return f"{url}/{next(_databases)}"


@pytest.fixture
def client(url):
    with stanchion.connect(url) as client:
        yield client
