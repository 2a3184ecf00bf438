"""What is measured: for each section the programs that run, and the figures made of what they print."""

import os
import statistics
import subprocess
from pathlib import Path

from report import percentile

HERE = Path(__file__).resolve().parent
ROUNDS = 3
USERS = 4
HOLDERS = 8
# Taken ahead, as in drain.php.
AHEAD = "prefetch 16"
# How many tasks in one round, so that each takes about as long; and what they need.
THEIRS = {
    "laravel": (1_500, "Laravel's, Redis queue", "php-illuminate-queue php-illuminate-redis php-illuminate-events"),
    "messenger": (2_000, "Messenger's, Redis transport", "php-symfony-redis-messenger"),
}
OURS = {
    "stanchion": (5_000, "our worker", list(THEIRS)),
    "stanchion_ahead": (20_000, f"our worker, {AHEAD}", list(THEIRS)),
    "laravel_stanchion": (2_000, "Laravel's, our queue", ["laravel"]),
    "laravel_ahead": (5_000, f"Laravel's, our queue, {AHEAD}", ["laravel"]),
    "messenger_stanchion": (2_000, "Messenger's, our transport", ["messenger"]),
    "messenger_ahead": (5_000, f"Messenger's, our transport, {AHEAD}", ["messenger"]),
}
TIMES_AS_FAST = 3


class Php:
    """Runs programs of this folder beside one server."""

    def __init__(self, stores, library):
        self._stores = stores
        self._env = {**os.environ, "STANCHION_LIB": str(library)}

    def start(self, program, *arguments):
        arguments = [*map(str, arguments), str(self._stores.port)]
        return subprocess.Popen(
            ["php", HERE / f"{program}.php", *arguments], env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)

    def run(self, program, *arguments):
        """Its lines."""
        self._stores.ask("FLUSHALL")
        process = self.start(program, *arguments)
        lines = process.communicate()[0].splitlines()
        if process.returncode:
            raise RuntimeError(f"{program}.php failed")
        return lines

    def together(self, processes, program, kind):
        """The lines of each of several processes that begin at once."""
        self._stores.ask("FLUSHALL")
        children = [self.start(program, kind) for _ in range(processes)]
        try:
            for child in children:
                child.stdout.readline()
            for child in children:
                child.stdin.write("begin\n")
                child.stdin.flush()
            lines = [child.stdout.read().splitlines() for child in children]
            if any(child.wait() for child in children):
                raise RuntimeError(f"a process of {program}.php failed")
        finally:
            for child in children:
                child.kill()
        return lines


def pair(php, report):
    report.section("acquire + release of a free lock")
    taken = timed(php.run("pair"))
    compare(report, "pair", "bare phpredis", taken["ours"], taken["bare"], 1.20)
    if "symfony" in taken:
        compare(report, "pair", "symfony/lock on phpredis", taken["ours"], taken["symfony"], 0.60)
    else:
        print("symfony/lock: not measured (Debian: apt-get install php-symfony-lock)")


def queue(php, report):
    report.section("an id put into a queue and taken out again")
    taken = timed(php.run("queue"))
    compare(report, "enqueue + claim + ack", "the older class", taken["ours"], taken["old"], 0.50)
    compare(report, "Compat enqueue + pop", "the older class", taken["compat"], taken["old"], 0.50)


def timed(lines):
    """Microseconds by name."""
    taken = {}
    for line in lines:
        name, nanos = line.split()
        taken.setdefault(name, []).append(int(nanos) / 1e3)
    return taken


def compare(report, name, other, ours, theirs, at_most):
    for part, bound in ((0.5, at_most), (0.99, None)):
        a, b = percentile(ours, part), percentile(theirs, part)
        report.compare(f"{name} p{part * 100:.0f}, against {other}", a, b, "us", at_most=bound)


def contend(php, report):
    report.section(f"the same, {USERS} processes on one queue")
    found = {kind: [] for kind in ("ours", "compat", "old")}
    for _ in range(ROUNDS):
        for kind, means in found.items():
            taken = [int(line) / 1e3 for lines in php.together(USERS, "contend", kind) for line in lines]
            means.append(statistics.mean(taken))
    ours, compat, old = (statistics.median(means) for means in found.values())
    report.compare("enqueue + claim + ack, mean, against the older class", ours, old, "us", at_most=0.50)
    report.compare("Compat enqueue + pop, mean, against the older class", compat, old, "us", at_most=0.50)


def hand_over(php, report):
    report.section(f"hand-over, {HOLDERS} processes that hold for 5 ms")
    found = {kind: [] for kind in ("ours", "blpop")}
    for _ in range(ROUNDS):
        for kind, figures in found.items():
            figures.append(idle(php.together(HOLDERS, "hand_over", kind)))
    ours, bare = ([statistics.median(column) for column in zip(*figures)] for figures in found.values())
    report.note("idle gap p50", ours[0], "ms", at_most=0.25)
    report.note("share of time held", ours[2], "", at_least=0.95)
    for name, a, b in zip(("idle gap p50", "idle gap p99", "share of time held"), ours, bare):
        report.compare(f"{name}, against bare BLPOP", a, b, "ms" if "gap" in name else "")


def idle(printed):
    """The gap between two holders in milliseconds, the median and p99, and the share of the time that it was held."""
    holds = sorted(tuple(map(int, line.split())) for lines in printed for line in lines)
    # Only while all take part.
    cut = len(holds) // 10
    holds = holds[cut:-cut]
    gaps = [(after[0] - before[1]) / 1e6 for before, after in zip(holds, holds[1:])]
    if min(gaps) < 0:
        raise RuntimeError("two held the lock at once")
    held = sum(end - begin for begin, end in holds)
    return percentile(gaps, 0.5), percentile(gaps, 0.99), held / (holds[-1][1] - holds[0][0])


def drain(php, report):
    report.section("worker drain of no-op tasks, one process")
    there = {kind for kind in [*THEIRS, *OURS] if php.run("drain", kind, 0)[-1] != "missing"}
    for kind, (_, name, packages) in THEIRS.items():
        if kind not in there:
            print(f"{name}: not measured (Debian: apt-get install {packages})")
    rates = {kind: [] for kind in [*THEIRS, *OURS] if kind in there}
    for _ in range(ROUNDS):
        for kind, found in rates.items():
            count = (THEIRS.get(kind) or OURS[kind])[0]
            found.append(float(php.run("drain", kind, count)[-1]))
    middle = {kind: statistics.median(found) for kind, found in rates.items()}
    for ours, (_, title, others) in OURS.items():
        for other in others:
            if ours in there and other in there:
                name = f"{title}, against {THEIRS[other][1]}"
                report.compare(name, middle[ours], middle[other], "tasks/s", at_least=TIMES_AS_FAST)
