"""A worker on the demo's schedule. Argument and output are those of core/examples/slots/worker.rs."""

import sys
import time

import stanchion

LEASE = 2
# How long a task takes, in seconds.
WORK = 1.1


def say(line):
    # One write: a line is never cut by a kill.
    sys.stdout.write(line)
    sys.stdout.flush()


def tick(claim):
    say(f"begin {claim.id}\n")
    time.sleep(WORK)
    say(f"end {claim.id}\n")


stanchion.connect().queue(sys.argv[1]).worker(tick, lease=LEASE).run()
