"""Speed of the PHP package, as ratios: ours and a baseline interleaved in one run, since machines are noisy.

Builds the release library, starts a redis-server of its own, prints a table, and writes bench-php.json into the target
directory. The server is pinned to one core and all clients to another, as in the other benchmarks. Names of sections as
arguments run only those: `python3 bindings-c/php/tests/bench pair drain`. With --alone, the library of the profile dev.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from stores import PROJECT, Stores, build  # noqa: E402

# The table is that of the Python package's benchmark.
sys.path.append(str(PROJECT / "bindings-python" / "tests" / "bench"))
import sections  # noqa: E402
from report import Report  # noqa: E402

SECTIONS = [sections.pair, sections.queue, sections.contend, sections.hand_over, sections.drain]
ALONE = "--alone"


def pin(server):
    """The server on one core, this process and what it starts on another."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return print("not pinned (one core): the figures include the scheduler's moods")
    os.sched_setaffinity(server, {cores[0]})
    os.sched_setaffinity(0, {cores[1]})
    print(f"redis-server runs on core {cores[0]}, all clients on core {cores[1]}")


def load():
    print("load average of the machine: " + ", ".join(f"{load:.1f}" for load in os.getloadavg()), flush=True)


def main():
    wanted = [argument for argument in sys.argv[1:] if argument != ALONE]
    names = [section.__name__ for section in SECTIONS]
    if unknown := [name for name in wanted if name not in names]:
        sys.exit(f"no section {unknown[0]!r}; there are: {', '.join(names)}")
    report = Report("bench-php.json")
    with Stores() as stores:
        library = build(stores.folder, alone=True, profile="dev" if ALONE in sys.argv else "release")
        pin(stores.server.pid)
        load()
        php = sections.Php(stores, library)
        for section, name in zip(SECTIONS, names):
            if not wanted or name in wanted:
                section(php, report)
    load()
    report.finish()


if __name__ == "__main__":
    main()
