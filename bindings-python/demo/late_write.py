"""A worker of the demo that is cancelled and writes all the same, too late.

Arguments and output are those of core/examples/late_write/worker.rs.
"""

import logging
import sqlite3
import sys
from contextlib import closing

import stanchion

LEASE = 2
ITEM = "chair"
# Nothing takes so long, unless something is broken; in seconds.
PATIENCE = 60


def say(line):
    # One write: lines never mix.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def write(file, euros, fence):
    """How many rows it changed: none if a later run has written before."""
    with closing(sqlite3.connect(file, timeout=PATIENCE)) as prices, prices:
        done = prices.execute(
            "UPDATE price SET euros = ?, fence = ? WHERE item = ? AND fence <= ?", (euros, fence, ITEM, fence))
        return done.rowcount


def reply(claim):
    """What the queue says to "done"."""
    try:
        claim.ack(claim.payload)
        return "accepted"
    except stanchion.StaleReceipt:
        return "stale"


def set_price(claim):
    fence = claim.receipt
    say(f"begin {fence}")
    claim.lost.wait(PATIENCE)
    say(f"lost {claim.lost.reason or 'no'}")
    # A good handler would end here. This one goes on, when it is told that the other one is done.
    sys.stdin.readline()
    say(f"wrote {write(file, int(claim.payload), fence)}")
    say(f"ack {reply(claim)}")


queue, file = sys.argv[1:]
# The loss is what the demo is about, and it says so itself.
logging.getLogger("stanchion").addFilter(lambda record: "was lost" not in record.getMessage())
stanchion.connect().queue(queue).worker(set_price, lease=LEASE).run()
