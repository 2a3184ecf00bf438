"""Speed of the Python package, as ratios: ours and a baseline interleaved in one run, since machines are noisy.

Builds a release wheel, installs it into an environment of its own beside what it is compared with, starts a
redis-server of its own, prints a table, and writes bench-python.json into the target directory. The server is
pinned to one core and all clients to another, as in the benchmark of the core. Names of sections as arguments run
only those: `python3 bindings-python/tests/bench pair drain`.
"""

import importlib
import os
import sys

SECTIONS = ["pair", "tasks", "hand_over", "drain", "package"]
MEASURE = "--measure"


def measure(wheel, wanted):
    from report import Report
    from server import Server, pin

    if (cores := pin()) is None:
        print("not pinned (one core, or no way to choose): the figures include the scheduler's moods")
    else:
        print(f"redis-server runs on core {cores[0]}, all clients on core {cores[1]}")
    print("load average of the machine: " + ", ".join(f"{load:.1f}" for load in os.getloadavg()))
    report = Report("bench-python.json")
    with Server(cores) as server:
        for name in SECTIONS:
            if not wanted or name in wanted:
                importlib.import_module(name).run(server, wheel, report)
    print("load average of the machine: " + ", ".join(f"{load:.1f}" for load in os.getloadavg()))
    report.finish()


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == [MEASURE]:
        return measure(arguments[1], arguments[2:])
    unknown = [name for name in arguments if name not in SECTIONS]
    if unknown:
        sys.exit(f"no section {unknown[0]!r}; there are: {', '.join(SECTIONS)}")
    import prepare

    python, wheel = prepare.environment()
    sys.stdout.flush()
    os.execv(python, [str(python), os.path.dirname(os.path.abspath(__file__)), MEASURE, str(wheel), *arguments])


if __name__ == "__main__":
    main()
