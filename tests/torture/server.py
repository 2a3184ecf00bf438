"""A Redis server that loses nothing it has acknowledged."""

import shutil
import socket
import subprocess
import tempfile
import time

START_S = 20


class Server:
    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="stanchion-torture-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
             "--appendfsync", "always"], cwd=self.folder, stdout=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("redis-server does not answer")
            time.sleep(0.01)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def answers(self):
        try:
            return self.command("PING") == "+PONG"
        except OSError:
            return False

    def command(self, text):
        """The first line of the answer."""
        with self.connection() as connection:
            connection.sendall(f"{text}\r\n".encode())
            return connection.makefile().readline().strip()

    def keys(self):
        with self.connection() as connection:
            connection.sendall(b"KEYS *\r\n")
            lines = connection.makefile()
            count = int(lines.readline()[1:])
            return sorted(lines.readline() and lines.readline().strip() for _ in range(count))

    def expires(self, key):
        return int(self.command(f"PTTL {key}")[1:]) > 0

    def connection(self):
        return socket.create_connection(("127.0.0.1", self.port), START_S)
