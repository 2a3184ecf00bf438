"""Speed of the PHP package: a pair of acquire and release beside bare calls of the extension redis, interleaved in one run,
and how long a lock lies idle between two of eight processes.

Builds the release library, starts a redis-server of its own, prints a table, and writes bench-php.json into the target
directory. With --alone, the library of the profile dev.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from stores import TARGET, Stores, build  # noqa: E402

PROCESSES = 8
PAIR_RATIO, GAP_MS, SHARE = 1.20, 0.25, 0.95


def percentile(samples, part):
    return sorted(samples)[round((len(samples) - 1) * part)]


def pin(server):
    """The server on one core, this process and what it starts on another."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return print("not pinned (one core): the figures include the scheduler's moods")
    os.sched_setaffinity(server, {cores[0]})
    os.sched_setaffinity(0, {cores[1]})
    print(f"redis-server runs on core {cores[0]}, all clients on core {cores[1]}")


def pairs(port, env):
    """Medians of both sides, in microseconds."""
    done = subprocess.run(["php", HERE / "pair.php", str(port)], env=env, check=True, stdout=subprocess.PIPE, text=True)
    samples = {"ours": [], "bare": []}
    for line in done.stdout.splitlines():
        name, nanos = line.split()
        samples[name].append(int(nanos) / 1e3)
    return percentile(samples["ours"], 0.5), percentile(samples["bare"], 0.5)


def hand_over(port, env):
    """The median gap in milliseconds, and the share of the time for which the lock was held."""
    children = [
        subprocess.Popen(["php", HERE / "hand_over.php", str(port)], env=env, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.stdin.write("begin\n")
        child.stdin.flush()
    holds = sorted(tuple(map(int, line.split())) for child in children for line in child.stdout)
    if any(child.wait() for child in children):
        raise RuntimeError("a process failed")
    # Only while all take part.
    cut = len(holds) // 10
    holds = holds[cut:-cut]
    gaps = [(after[0] - before[1]) / 1e6 for before, after in zip(holds, holds[1:])]
    assert min(gaps) >= 0, "two held the lock at once"
    held = sum(end - begin for begin, end in holds)
    return percentile(gaps, 0.5), held / (holds[-1][1] - holds[0][0])


def main():
    alone = "--alone" in sys.argv
    with Stores() as stores:
        library = build(stores.folder, alone=True, profile="dev" if alone else "release")
        env = {**os.environ, "STANCHION_LIB": str(library)}
        gap, share = hand_over(stores.port, env)
        pin(stores.server.pid)
        ours, bare = pairs(stores.port, env)
    rows = [
        ("acquire + release, p50, against bare calls", f"{ours:.1f} us / {bare:.1f} us", ours / bare, f"<= {PAIR_RATIO}",
         ours / bare <= PAIR_RATIO),
        (f"idle gap p50, {PROCESSES} processes, ms", "", gap, f"<= {GAP_MS}", gap <= GAP_MS),
        ("share of the time that it is held", "", share, f">= {SHARE}", share >= SHARE),
    ]
    for name, figures, value, target, met in rows:
        print(f"{name:<46} {figures:>22} {value:>8.3f}  {target}  {'met' if met else 'MISSED'}")
    (TARGET / "bench-php.json").write_text(json.dumps(
        [dict(name=name, value=value, target=target, met=met) for name, _, value, target, met in rows], indent=1))


if __name__ == "__main__":
    main()
