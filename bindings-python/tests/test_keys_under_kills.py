"""Tasks with keys, whose workers are killed in the middle of them."""

import random
import subprocess
import sys
import time
from itertools import count

import pytest

import stanchion

KEYS = 20
TASKS = 1_000
WORKERS = 4
KILLS = 15
# Nothing takes so long, unless something is broken; in seconds.
PATIENCE = 120

# A run that was acknowledged has had its lease to its end. Monotonic time is one for all processes.
WORKER = """
import random, sys, time, stanchion
url, file = sys.argv[1:]
queue = stanchion.connect(url).queue("q")
with open(file, "a", buffering=1) as runs:
    while True:
        claims = queue.claim(max=3, lease=0.5, wait=1)
        begun = time.monotonic()
        for claim in claims:
            time.sleep(random.random() * 0.005)
            ended = time.monotonic()
            chance = random.random()
            try:
                if chance < 0.8:
                    claim.ack()
                    runs.write(f"{claim.key} {begun} {ended}\\n")
                elif chance < 0.9:
                    claim.nack(delay=0)
                else:
                    claim.put_back()
            except stanchion.StanchionError:
                pass
"""


def overlaps(files):
    """How often two acknowledged runs of a key were at the same time."""
    runs = {}
    for line in "".join(file.read_text() for file in files).splitlines():
        key, begun, ended = line.split()
        runs.setdefault(key, []).append((float(begun), float(ended)))
    runs = [sorted(one) for one in runs.values()]
    return sum(later[0] < earlier[1] for one in runs for earlier, later in zip(one, one[1:]))


@pytest.mark.parametrize("most", [1, None])
def test_two_of_a_key_never_run_at_once_and_none_is_left_held(shared_url, tmp_path, most):
    # Without a limit they do: so the test would see it.
    queue = stanchion.connect(shared_url).queue("q")
    queue.configure(key_concurrency=most)
    queue.enqueue_many([
        stanchion.Task(id=f"t{number}", key=f"k{number % KEYS}", max_attempts=1_000) for number in range(TASKS)])
    numbers, files, workers = count(), [], []

    def start():
        files.append(tmp_path / f"runs-{next(numbers)}")
        files[-1].touch()
        return subprocess.Popen([sys.executable, "-c", WORKER, shared_url, files[-1]])

    try:
        workers += [start() for _ in range(WORKERS)]
        until, kills = time.monotonic() + PATIENCE, 0
        # Each time some more are done, one is killed.
        while (stats := queue.stats()).live > 0:
            assert time.monotonic() < until, stats
            if kills < KILLS and stats.acked >= (kills + 1) * TASKS // (KILLS + 5):
                kills += 1
                victim = workers.pop(random.randrange(WORKERS))
                victim.kill()
                victim.wait()
                workers.append(start())
            time.sleep(0.05)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert (stats.acked, stats.held, kills) == (TASKS, 0, KILLS)
    assert (overlaps(files) == 0) == (most is not None)
