"""Tasks that do nothing, drained by one process: what a worker costs. Each kind in a process of its own, in turn."""

import statistics
import subprocess
import sys
from pathlib import Path

import redis

ROUNDS = 3
# How many tasks in one round, so that each takes about as long; and how many times as fast we want to be.
KINDS = {
    "dramatiq": (4_000, 3, "dramatiq, 8 threads"),
    "rq": (600, 10, "RQ, SimpleWorker"),
    "huey": (8_000, 1.5, "huey, 4 threads"),
    "bare": (30_000, None, "a bare loop: 8 tasks per script call"),
}
OURS = {"stanchion": (20_000, "worker, 8 threads"), "stanchion-aio": (20_000, "aio worker, 8 coroutines")}
DRAINERS = Path(__file__).with_name("drainers.py")


def run(server, wheel, report):
    report.section("worker drain of no-op tasks, one process")
    counts = {kind: row[0] for kind, row in {**OURS, **KINDS}.items()}
    rates = {kind: [] for kind in counts}
    for _ in range(ROUNDS):
        for kind, count in counts.items():
            redis.Redis(port=server.port).flushall()
            rates[kind].append(drained(kind, count, server))
    middle = {kind: statistics.median(values) for kind, values in rates.items()}
    for ours, (_, title) in OURS.items():
        for kind, (_, bound, other) in KINDS.items():
            # The bounds are those of the blocking worker.
            at_least = bound if ours == "stanchion" else None
            report.compare(f"{title}, against {other}", middle[ours], middle[kind], "tasks/s", at_least=at_least)


def drained(kind, count, server):
    """Tasks per second."""
    done = subprocess.run(
        [sys.executable, str(DRAINERS), kind, str(server.port), str(count)],
        stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)
