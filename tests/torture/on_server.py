"""Faults of the server itself."""

import signal
import threading
import time

from place import Console, queue_key
from taskers import KEY_CONCURRENCY, QUEUES

ANY = "*"
# It is killed long before.
PAUSE_MS = 60_000


def stopped(faults):
    faults.place.process.send_signal(signal.SIGSTOP)
    faults.pause(0.1, 3)
    faults.place.process.send_signal(signal.SIGCONT)


def killed(faults):
    """What it has acknowledged is in its log."""
    faults.place.kill()
    faults.pause(0, 0.5)
    faults.place.start_again()


def killed_and_empty(faults):
    """All that it has known is lost; but no fence falls."""
    with faults.noted("server back empty", lock=ANY, wiped=True) as told:
        # What it is asked from here on, it does not come to.
        told["live"] = last_tasks(faults, before=["CLIENT", "PAUSE", PAUSE_MS, "ALL"])
        faults.place.kill()
        faults.pause(0, 0.5)
        faults.place.start_again(empty=True)
        # Until then nothing limits the keys.
        faults.storm.limit_keys(KEY_CONCURRENCY)


def flushed(faults):
    with faults.noted("server flushed", lock=ANY, wiped=True) as told:
        told["live"] = last_tasks(faults, after=["FLUSHALL"])
        faults.storm.limit_keys(KEY_CONCURRENCY)


def last_tasks(faults, before=None, after=None):
    """The payloads of all tasks, living and dead, in the moment of this command."""
    reads = [["HVALS", queue_key(kind, queue)] for queue in QUEUES for kind in ("body", "grave")]
    *_, answers = faults.place.console.all_of([["MULTI"], *filter(None, [before, *reads, after]), ["EXEC"]])
    if not isinstance(answers, list) or any(isinstance(one, str) and one.startswith("-") for one in answers):
        raise SystemExit(f"the server does not tell what it has: {answers}")
    # A body without headers is a zero byte and the payload; the rest are the records of the dead.
    values = [value for found in answers if isinstance(found, list) for value in found]
    return sorted(value[1:].encode().hex() for value in values if value.startswith("\0"))


def scripts_flushed(faults):
    for _ in range(50):
        faults.command("SCRIPT", "FLUSH")
        time.sleep(0.01)


def clients_killed(faults):
    for _ in range(faults.dice.randint(1, 20)):
        for kind in ("normal", "pubsub"):
            faults.command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
        faults.pause(0, 0.1)


def clients_paused(faults):
    faults.command("CLIENT", "PAUSE", faults.dice.randint(50, 1500), "ALL")
    faults.pause(0, 1)


def idle_closed(faults):
    faults.command("CONFIG", "SET", "timeout", "1")
    faults.pause(1, 3)
    faults.command("CONFIG", "SET", "timeout", "0")


def memory_full(faults):
    """What adds fails whole; what gives back works."""
    with faults.noted("no memory"):
        faults.command("CONFIG", "SET", "maxmemory", "1")
        faults.pause(0.1, 2)
        faults.command("CONFIG", "SET", "maxmemory", "0")


def demoted(faults):
    """A replica of a master that does not answer: it refuses to write."""
    faults.command("REPLICAOF", "127.0.0.1", "1")
    faults.pause(0.1, 2)
    faults.command("REPLICAOF", "NO", "ONE")


def replicas_missing(faults):
    faults.command("CONFIG", "SET", "min-replicas-to-write", "1")
    faults.pause(0.1, 2)
    faults.command("CONFIG", "SET", "min-replicas-to-write", "0")


def busy(faults):
    """A stranger's script runs and runs."""
    console = Console("127.0.0.1", faults.place.port)
    endless = threading.Thread(target=ask_quietly, args=(console, "EVAL", "while true do end", "0"), daemon=True)
    endless.start()
    faults.pause(0.1, 1.5)
    # It may have begun a moment ago.
    while endless.is_alive():
        faults.command("SCRIPT", "KILL")
        endless.join(0.05)


def ask_quietly(console, *words):
    try:
        console.ask(*words)
    except OSError:
        pass


def heal(faults):
    faults.place.process.send_signal(signal.SIGCONT)
    for words in (["CONFIG", "SET", "maxmemory", "0"], ["CONFIG", "SET", "timeout", "0"], ["CLIENT", "UNPAUSE"],
                  ["CONFIG", "SET", "min-replicas-to-write", "0"], ["REPLICAOF", "NO", "ONE"]):
        faults.command(*words)


FAULTS = [
    ("server stopped", stopped),
    ("server killed", killed),
    ("server back empty", killed_and_empty),
    ("server flushed", flushed),
    ("scripts flushed", scripts_flushed),
    ("clients killed", clients_killed),
    ("clients paused", clients_paused),
    ("idle connections closed", idle_closed),
    ("memory full", memory_full),
    ("server demoted", demoted),
    ("replicas missing", replicas_missing),
    ("server busy", busy),
]
