"""Acquire and release of a free lock, blocking, against redis-py's lock and bare hiredis calls in C."""

import shutil
import subprocess
import time
from pathlib import Path

import redis
import stanchion

from prepare import TARGET
from report import percentile

# Turns of each side, which alternate; pairs in one turn. A processor that was busy or idle just before answers faster or
# slower for some hundred pairs: with short turns, who came before one would be measured.
TURNS, PAIRS = 10, 1_000
HIREDIS = Path(__file__).with_name("pair.c")


def run(server, wheel, report):
    report.section("blocking acquire + release, p50")
    lock = stanchion.connect(server.url).lock("bench:pair")
    other = redis.Redis(port=server.port).lock("bench:redis-py", timeout=30)

    def our_pair():
        lock.acquire().release()

    def other_pair():
        other.acquire()
        other.release()

    bare = start_bare(server)
    ours, theirs, bares = [], [], []
    for _ in range(TURNS):
        timed(ours, our_pair)
        timed(theirs, other_pair)
        if bare is not None:
            bare.stdin.write(f"{PAIRS}\n")
            bare.stdin.flush()
            bares += [int(bare.stdout.readline()) / 1e9 for _ in range(PAIRS)]
    if bare is not None:
        bare.stdin.close()
        bare.wait()
    compare(report, "redis-py's Lock, with hiredis", ours, theirs, 0.80)
    if bares:
        compare(report, "bare hiredis calls in C", ours, bares, 1.20)


def timed(samples, pair):
    for _ in range(PAIRS):
        begin = time.perf_counter()
        pair()
        samples.append(time.perf_counter() - begin)


def compare(report, name, ours, theirs, at_most):
    for part, bound in ((0.5, at_most), (0.99, None)):
        a, b = (percentile(samples, part) * 1e6 for samples in (ours, theirs))
        report.compare(f"pair p{part * 100:.0f}, against {name}", a, b, "us", at_most=bound)


def start_bare(server):
    """The program in C; None, and a line that says why, if it cannot be built."""
    program = TARGET / "bench-pair"
    if shutil.which("cc") is None:
        print("bare hiredis: not measured: no C compiler (Debian: apt-get install gcc libc6-dev)")
        return None
    built = subprocess.run(
        ["cc", "-O2", "-o", str(program), str(HIREDIS), "-lhiredis"], stderr=subprocess.PIPE, text=True)
    if built.returncode:
        first = next((line for line in built.stderr.splitlines() if "error" in line), built.stderr.strip())
        print(f"bare hiredis: not measured (Debian: apt-get install libhiredis-dev): {first}")
        return None
    return subprocess.Popen(
        [str(program), str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
