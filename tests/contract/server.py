"""A redis-server on a port of its own."""

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_S = 20
# How often another port is tried when somebody else took it first.
PORT_ATTEMPTS = 8


class Server:
    """With `--appendonly yes --appendfsync always` it loses nothing that it has acknowledged, also when it is killed."""

    def __init__(self, *options):
        self.options = options
        # One for all commands: also a server that takes no more connections can be talked to.
        self.connection = None

    def __enter__(self):
        # Not as the Rust tests call theirs: these sweep away what a killed server has left.
        self.folder = Path(tempfile.mkdtemp(prefix="stanchion-server-"))
        self.log = self.folder / "log"
        for _ in range(PORT_ATTEMPTS):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            if self.start():
                return self
        raise SystemExit(f"redis-server ended: {self.log.read_text()}")

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def start(self):
        """Whether it has got its port. It is asked by its log: on the port it may be somebody else that answers."""
        self.log.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--logfile", str(self.log),
             *self.options], cwd=self.folder)
        end = time.monotonic() + START_S
        while self.process.poll() is None:
            if self.log.exists() and "Ready to accept connections" in self.log.read_text(errors="replace"):
                return True
            if time.monotonic() > end:
                self.kill()
                raise SystemExit(f"redis-server is not ready after {START_S} s: {self.log.read_text()}")
            time.sleep(0.01)
        return False

    def kill(self):
        self.hang_up()
        self.process.kill()
        self.process.wait()

    def command(self, words):
        """The first line of the answer."""
        return self.ask(words)[0]

    def value(self, words):
        """The text that is the answer."""
        return self.ask(words)[1]

    def keys(self):
        return sorted(key.decode(errors="replace") for _, key in self.ask("KEYS *")[1])

    def expires(self, key):
        return int(self.command(f"PTTL {key}")[1:]) > 0

    def ask(self, words):
        """The answer: its first line, and what comes after it."""
        for _ in range(2):
            if self.connection is None:
                self.connection = socket.create_connection(("127.0.0.1", self.port), START_S)
            try:
                self.connection.sendall(encoded(words))
                with self.connection.makefile("rb") as answer:
                    return read(answer)
            except ConnectionError:
                # The server has closed it since.
                self.hang_up()
        raise RuntimeError("redis-server hangs up")

    def hang_up(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def read(answer):
    line = answer.readline().decode(errors="replace").strip()
    if not line:
        raise ConnectionResetError
    count = int(line[1:]) if line[0] in "$*" else 0
    if line[0] == "*":
        return line, [read(answer) for _ in range(count)]
    return line, answer.read(count + 2)[:-2] if line[0] == "$" and count >= 0 else None


def encoded(words):
    """A command in one line as a person writes it, or word by word, whatever is in them."""
    if isinstance(words, str):
        return f"{words}\r\n".encode()
    parts = [word if isinstance(word, bytes) else word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
