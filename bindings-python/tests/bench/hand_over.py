"""Eight processes on one lock: how long it lies idle between two holders, and who gets it."""

import statistics
import subprocess
import sys
import time

import redis

from report import jain, percentile

PROCESSES, ROUNDS = 8, 3
HOLD, THINK, LASTS = 0.005, 0.010, 4.0
FIGURES = ("idle gap p50", "idle gap p99", "share of time held", "Jain fairness", "grants")


def run(server, wheel, report):
    report.section(f"hand-over, {PROCESSES} processes that hold for {HOLD * 1e3:.0f} ms")
    kinds = ("stanchion", "blpop", "redis-py")
    found = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind in kinds:
            found[kind].append(one_run(kind, server))
    ours, blpop, polled = ([statistics.median(column) for column in zip(*found[kind])] for kind in kinds)
    report.note("hand-over, idle gap p50", ours[0], "ms", at_most=0.25)
    report.note("hand-over, share of time held", ours[2], "", at_least=0.95)
    for name, other in (("BLPOP", blpop), ("redis-py's Lock", polled)):
        for figure, a, b in zip(FIGURES, ours, other):
            report.compare(f"{figure}, against {name}", a, b, "ms" if "gap" in figure else "")


def one_run(kind, server):
    """The figures of one run with one kind of lock."""
    client = redis.Redis(port=server.port)
    client.delete("bench:blpop")
    client.rpush("bench:blpop", "token")
    children = [
        subprocess.Popen(
            [sys.executable, __file__, kind, str(server.port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)]
    try:
        for child in children:
            child.stdout.readline()
        for child in children:
            child.stdin.write("begin\n")
            child.stdin.flush()
        held = [[tuple(map(int, line.split())) for line in child.stdout] for child in children]
        if any(child.wait() for child in children):
            raise RuntimeError(f"a process with {kind} failed")
    finally:
        for child in children:
            child.kill()
    return figures(held)


def figures(held):
    holds = sorted(hold for own in held for hold in own)
    # Only while all processes take part.
    cut = len(holds) // 10
    holds = holds[cut:len(holds) - cut]
    gaps = [after[0] - before[1] for before, after in zip(holds, holds[1:])]
    if min(gaps) < 0:
        raise RuntimeError("two processes held the lock at once")
    share = sum(end - begin for begin, end in holds) / (holds[-1][1] - holds[0][0])
    counts = [len(own) for own in held]
    return percentile(gaps, 0.5) / 1e6, percentile(gaps, 0.99) / 1e6, share, jain(counts), sum(counts)


def child(kind, port):
    """One of the processes: acquires, holds, releases, thinks, and in the end prints when it held."""
    acquire, release = lock(kind, port)
    print("ready", flush=True)
    sys.stdin.readline()
    holds, end = [], time.monotonic() + LASTS
    while time.monotonic() < end:
        lease = acquire()
        begin = time.monotonic_ns()
        time.sleep(HOLD)
        holds.append((begin, time.monotonic_ns()))
        release(lease)
        time.sleep(THINK)
    print("\n".join(f"{begin} {end}" for begin, end in holds))


def lock(kind, port):
    if kind == "stanchion":
        import stanchion

        mine = stanchion.connect(f"redis://127.0.0.1:{port}").lock("bench:hand-over")
        return mine.acquire, lambda lease: lease.release()
    client = redis.Redis(port=port)
    client.ping()
    if kind == "blpop":
        return lambda: client.blpop(["bench:blpop"]), lambda _: client.rpush("bench:blpop", "token")
    theirs = client.lock("bench:polled", timeout=30)
    return theirs.acquire, lambda _: theirs.release()


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]))
