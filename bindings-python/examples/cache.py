"""A cache that many processes share: a value that is missing is computed by one of them, and the others wait for it.

    python cache.py redis://localhost
    python cache.py sqlite:locks.db    # without a server
"""

import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

import stanchion

PROCESSES, CALLS = 4, 5


def cached(client, folder, key, compute):
    """The value from the cache, which is a folder with a file for each key."""
    path = Path(folder) / key
    if not path.exists():
        with client.lock(f"cache:{key}").hold(wait=30):
            # Somebody may have computed it while this one waited.
            if not path.exists():
                new = path.with_suffix(".new")
                new.write_text(compute(key))
                new.rename(path)
    return path.read_text()


def slow_price(key):
    print(f"computing the price of {key}", flush=True)
    time.sleep(0.2)
    return str(len(key))


def ask(url, folder):
    with stanchion.connect(url) as client:
        for _ in range(CALLS):
            assert cached(client, folder, "apples", slow_price) == "6"


def main(url):
    with tempfile.TemporaryDirectory() as folder:
        processes = [multiprocessing.Process(target=ask, args=(url, folder)) for _ in range(PROCESSES)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if any(process.exitcode for process in processes):
            sys.exit("a process failed")
    print(f"{PROCESSES * CALLS} calls in {PROCESSES} processes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
