"""Fifty threads that want the same value. Arguments: URL, folder, how many callers there are in all."""

import json
import sys
import threading
import time
from pathlib import Path

import stanchion

url, folder, everybody = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
client = stanchion.connect(url)
told = []


def compute():
    deadline = time.monotonic() + 60
    while (folder / "arrived").stat().st_size < everybody:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    with open(folder / "computed", "a") as note:
        note.write(f"python {time.monotonic_ns()}\n")
    return {"price": 9.99}


def call():
    with open(folder / "arrived", "a") as note:
        note.write("x")
    value = client.cached("price:7", ttl=60, compute=compute, wait=60)
    told.append([value, str(time.monotonic_ns())])


threads = [threading.Thread(target=call) for _ in range(50)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(told))
