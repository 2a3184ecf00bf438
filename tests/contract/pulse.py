"""Whether this machine stood still: what a scenario says of times holds only where they pass."""

import threading
import time

# A beat, and how much later than that it may come: a lease in the scenarios lasts for 100 ms and more.
BEAT_S = 0.02
HELD_UP_S = 0.1

_standstills = []


def feel():
    """Begins to take note."""
    threading.Thread(target=_beat, daemon=True).start()


def _beat():
    while True:
        began = time.monotonic()
        time.sleep(BEAT_S)
        late = time.monotonic() - began - BEAT_S
        if late > HELD_UP_S:
            _standstills.append((began, late))


def stood_still(since):
    """For how many seconds at once it has stood still since then, at most."""
    # One that is not over yet is noted by the next beat.
    time.sleep(2 * BEAT_S)
    return max((late for began, late in list(_standstills) if began + late > since), default=0)
