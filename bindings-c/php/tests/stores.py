"""What the tests run on: the library, a redis-server of their own, and folders that go away."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
PROJECT = PACKAGE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target")).resolve()
START_S = 20
# How often another port is tried when somebody else took it first.
PORT_ATTEMPTS = 8


def run(*command, **options):
    return subprocess.run([str(part) for part in command], text=True, **options)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until(condition, what, seconds=START_S):
    """Waits for something to become true; what it was."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"for {seconds} s not: {what}")
        time.sleep(0.01)
    return found


def on_free_port(start, is_ready):
    """Starts a server on a port that nobody else has: the server, and its port. Whether it is ready is for the server to
    say: on the port it may be somebody else that answers, who has taken it meanwhile. The server ends then."""
    for _ in range(PORT_ATTEMPTS):
        port = free_port()
        server = start(port)
        try:
            until(lambda: server.poll() is not None or is_ready(), f"{server.args[0]} is ready")
        except AssertionError:
            server.kill()
            raise
        if server.poll() is None:
            return server, port
    raise AssertionError(f"{server.args[0]} ended {PORT_ATTEMPTS} times: {server.returncode}")


def build(folder, alone=False, profile="dev"):
    """The library, as the other tests have built it, and stripped as `make install` does it; copied, since others may build
    it again meanwhile."""
    packages = ["-p", "stanchion-c"] if alone else ["--workspace"]
    run("cargo", "build", "--quiet", "--locked", "--profile", profile, *packages, cwd=PROJECT, check=True,
        env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
    built = TARGET / ("debug" if profile == "dev" else profile) / "libstanchion.so"
    library = Path(shutil.copy(built, folder))
    run("strip", "--strip-unneeded", library, check=True)
    return library


class Stores:
    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="stanchion-php-"))
        # Servers that are not root have files here.
        self.folder.chmod(0o755)
        log = self.folder / "redis.log"
        self.server, self.port = on_free_port(lambda port: subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--databases", "1000", "--logfile",
             str(log)], cwd=self.folder),
            lambda: log.exists() and "Ready to accept connections" in log.read_text(errors="replace"))
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def redis(self, database=0):
        return f"redis://127.0.0.1:{self.port}/{database}"

    def ask(self, *command, database=0):
        """What redis-cli answers."""
        return run("redis-cli", "-p", self.port, "-n", database, *command, check=True,
                   stdout=subprocess.PIPE).stdout.strip()
