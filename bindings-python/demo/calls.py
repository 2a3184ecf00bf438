"""A caller of the demo's API. Arguments and output are those of core/examples/calls/worker.rs."""

import sys
import urllib.error
import urllib.request
from contextlib import nullcontext

import stanchion

NO_LIMITER = "-"
PER_SECOND = 20
# How long a call waits for its turn, in seconds.
PATIENCE = 60


def call(api):
    """The status of the answer."""
    try:
        with urllib.request.urlopen(api) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


api, name, calls = sys.argv[1:]
limiter = None if name == NO_LIMITER else stanchion.connect().limiter(name, PER_SECOND, per=1)
for _ in range(int(calls)):
    with limiter.turn(wait=PATIENCE) if limiter else nullcontext():
        # One write: lines never mix.
        sys.stdout.write(f"{call(api)}\n")
        sys.stdout.flush()
