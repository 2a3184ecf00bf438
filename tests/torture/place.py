"""The server that is tortured: one of our own, or somebody's, where only our own keys are touched."""

import shutil
import socket
from urllib.parse import unquote, urlsplit

from server import Server

# Part of each key that a run makes.
MARK = "stanchion-torture:"
PREFIXES = {"lock_prefix": f"{MARK}lock:", "queue_prefix": f"{MARK}queue:"}
ANSWER_S = 20


def queue_key(kind, queue):
    """Of what the library keeps of a queue besides its intake."""
    return f"stanchion:{kind}:{{{PREFIXES['queue_prefix']}{queue}}}"


class Console:
    """Commands past the library."""

    def __init__(self, host, port, user="", password="", database="0"):
        self.host, self.port, self.database = host, port, database
        self.login = [word for word in (user, password) if word]

    def ask(self, *words):
        """The answer; an error is the text that begins with -."""
        return self.all_of([words])[0]

    def all_of(self, commands):
        before = [["AUTH", *self.login]] if self.login else []
        before += [["SELECT", self.database]] if self.database != "0" else []
        with socket.create_connection((self.host, self.port), ANSWER_S) as connection:
            connection.sendall(b"".join(map(encoded, before + commands)))
            answers = connection.makefile("rb")
            return [answer(answers) for _ in before + commands][len(before):]

    def keys(self):
        cursor, found = "0", set()
        while True:
            cursor, some = self.ask("SCAN", cursor, "COUNT", "1000")
            found.update(some)
            if cursor == "0":
                return sorted(found)

    def lives(self, keys):
        """How long each has to live, in milliseconds; less than zero without an end."""
        return dict(zip(keys, self.all_of([["PTTL", key] for key in keys]))) if keys else {}


def encoded(words):
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def answer(lines):
    line = lines.readline().rstrip(b"\r\n")
    if not line:
        raise ConnectionError("the server has closed the connection")
    kind, rest = chr(line[0]), line[1:].decode()
    if kind == ":":
        return int(rest)
    if kind == "$":
        return None if rest == "-1" else lines.read(int(rest) + 2)[:-2].decode(errors="replace")
    if kind == "*":
        return [answer(lines) for _ in range(int(rest))]
    return rest if kind == "+" else f"-{rest}"


class Ours(Server):
    """Loses nothing that it has acknowledged, unless it is told to."""

    is_ours = True

    def __init__(self):
        # A foreign script makes it busy soon.
        super().__init__("--appendonly", "yes", "--appendfsync", "always", "--busy-reply-threshold", "50")

    def __enter__(self):
        super().__enter__()
        self.console = Console("127.0.0.1", self.port)
        return self

    @property
    def upstream(self):
        return f"127.0.0.1:{self.port}"

    def behind(self, port):
        return f"redis://127.0.0.1:{port}"

    def start_again(self, empty=False):
        if empty:
            shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)
        if not self.start():
            raise SystemExit("somebody else has taken the server's port")


class Theirs:
    """Nothing is done to its process, its settings, or keys of others; it has to be empty, and is so again afterwards."""

    is_ours = False

    def __init__(self, url):
        self.url = url
        self.parts = urlsplit(url)
        if self.parts.scheme != "redis":
            raise SystemExit("the faults need a plain connection: redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]")
        user, password = (unquote(part or "") for part in (self.parts.username, self.parts.password))
        database = self.parts.path.strip("/") or "0"
        self.console = Console(self.parts.hostname, self.parts.port or 6379, user, password, database)
        self.upstream = f"{self.console.host}:{self.console.port}"

    def behind(self, port):
        login, _, _ = self.parts.netloc.rpartition("@")
        return self.parts._replace(netloc=f"{login}@127.0.0.1:{port}" if login else f"127.0.0.1:{port}").geturl()

    def __enter__(self):
        others = [key for key in self.console.keys() if MARK not in key]
        if others:
            raise SystemExit(f"the server is in use: it has {len(others)} keys of others, such as {others[0]}")
        self.clean()
        return self

    def __exit__(self, *_):
        self.clean()

    def clean(self):
        for key in self.console.keys():
            if MARK in key:
                self.console.ask("DEL", key)
