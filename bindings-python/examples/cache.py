"""A cache whose values are computed by one caller at a time, however many ask at once.

    python cache.py sqlite:cache.db
"""

import sys
import threading
import time

import stanchion

values = {}
computed = 0


def price(client, key):
    if key not in values:
        with client.lock(f"cache:{key}").hold(wait=30):
            if key not in values:  # Somebody may have computed it while this one waited.
                values[key] = compute(key)
    return values[key]


def compute(key):
    global computed
    computed += 1
    time.sleep(0.1)
    return len(key)


if __name__ == "__main__":
    with stanchion.connect(sys.argv[1]) as client:
        callers = [threading.Thread(target=price, args=(client, "apples")) for _ in range(20)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    print(f"20 callers, {computed} computation")
