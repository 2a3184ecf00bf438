"""What the package costs before it does anything: time to import, size of the wheel."""

import os
import statistics
import subprocess
import sys

TIMES = 11


def run(server, wheel, report):
    report.section(f"import and wheel, median of {TIMES}")
    taken = [(imported("stanchion"), imported("redis")) for _ in range(TIMES)]
    ours, theirs = (statistics.median(column) for column in zip(*taken))
    report.note("import stanchion", ours, "ms", at_most=60)
    report.compare("import stanchion, against import redis", ours, theirs, "ms")
    report.note("wheel", os.path.getsize(wheel) / 1e6, "MB", at_most=6)


def imported(module):
    """How many milliseconds an import takes in a new process."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {module}"], stderr=subprocess.PIPE, text=True, check=True)
    return int(done.stderr.strip().splitlines()[-1].split("|")[1]) / 1e3
