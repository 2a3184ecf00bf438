"""The ends of programs, leases and tasks: exits, losses, poison tasks, panics."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import stanchion
from stanchion import _stanchion, aio

# A process that hangs ends at this deadline, and fails the test; one that ends as it should takes far less.
DEADLINE = 30


def python(program, *args, **options):
    return subprocess.run(
        [sys.executable, "-c", program, *args], capture_output=True, text=True, timeout=DEADLINE, **options)


BUSY = """
import asyncio, os, stanchion, sys, threading, time
from stanchion import aio
client = stanchion.connect(sys.argv[1], timeout=60)
lease = client.lock("held").acquire(ttl=600)
client.lock("busy").acquire(ttl=600)
ready = threading.Barrier(8)
def waits(call):
    ready.wait()
    call()
def spins():
    ready.wait()
    while True:
        with client.lock("spin", ttl=600).hold(wait=60): pass
def loops():
    async def main():
        async with aio.connect(sys.argv[1], timeout=60) as other:
            calls = [other.queue("none").claim(wait=600), other.lock("busy").acquire(600)]
            tasks = [asyncio.ensure_future(call) for call in calls]
            await asyncio.sleep(0)
            ready.wait()
            await asyncio.gather(*tasks)
    asyncio.run(main())
worker = client.queue("jobs").worker(lambda claim: time.sleep(600), concurrency=2)
for target in (
        lambda: waits(lambda: client.queue("none").claim(wait=600)), lambda: waits(lambda: client.lock("busy").acquire(600)),
        lambda: waits(lambda: lease.lost.wait(600)), lambda: waits(worker.run), spins, spins, loops):
    threading.Thread(target=target, daemon=True).start()
ready.wait()
begin = time.monotonic()
import atexit
"""

ENDINGS = {
    "sys.exit(3)": 3, "raise SystemExit(3)": 3, "os._exit(3)": 3, "raise RuntimeError('unhandled')": 1, "pass": 0,
    "import signal; os.kill(os.getpid(), signal.SIGTERM)": -signal.SIGTERM}


@pytest.mark.parametrize("ending, code", ENDINGS.items())
def test_a_busy_program_ends(shared_url, ending, code):
    stanchion.connect(shared_url).queue("jobs").enqueue("endless")
    # The waits last 600 s, and an acknowledged end would wait for them.
    done = python(BUSY + ending, shared_url)
    assert done.returncode == code, done.stderr
    assert ("unhandled" in done.stderr) == (code == 1) and "panicked" not in done.stderr
    if code != 1:
        assert done.stderr == ""


CONNECTING = """
import asyncio, stanchion, sys, threading
from stanchion import aio
sys.setswitchinterval(1e-6)
ready = threading.Barrier(5)
def loops():
    async def main():
        async def connects():
            while True:
                async with aio.connect(sys.argv[1]) as client:
                    await client.lock("none").holder()
        connecting = asyncio.gather(*(connects() for _ in range(4)))
        await asyncio.sleep(0)
        ready.wait()
        await connecting
    asyncio.run(main())
for _ in range(4):
    threading.Thread(target=loops, daemon=True).start()
ready.wait()
"""


def test_a_client_that_is_opened_at_the_end_keeps_no_lease_from_its_release(shared_url):
    done = python("""
import sys, weakref, stanchion
from stanchion import _exit
class Opened(weakref.WeakSet):
    disturbed = False
    def __iter__(self):
        for one in super().__iter__():
            yield one
            if not self.disturbed:
                # As if another thread had opened one: what a set says then.
                self.disturbed = True
                raise RuntimeError("Set changed size during iteration")
_exit._clients = Opened()
client = stanchion.connect(sys.argv[1])
lease = client.lock("held at the end").acquire(ttl=600)
""", shared_url)
    assert (done.returncode, done.stderr) == (0, "")
    with stanchion.connect(shared_url) as client:
        assert not client.lock("held at the end").locked()


def test_event_loops_of_daemon_threads_do_not_abort_the_program(shared_url):
    # Their threads end wherever they ask for the GIL next: often while sockets are taken up, or results given out.
    for _ in range(10):
        done = python(CONNECTING, shared_url)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("ending", ["sys.exit(3)", "pass", "1/0"])
def test_leases_are_released_at_the_end_of_the_program(shared_url, ending):
    program = (
        "import stanchion, sys\nclient = stanchion.connect(sys.argv[1])\n"
        "leases = [client.lock(f'a{n}').acquire(ttl=600) for n in range(20)]\n" + ending)
    python(program, shared_url)
    with stanchion.connect(shared_url) as client:
        assert len(client.locks()) == 0


def test_leases_of_asyncio_are_released_at_the_end_of_the_program(shared_url):
    program = (
        "import asyncio, sys\nfrom stanchion import aio\n"
        "async def main():\n    client = await aio.connect(sys.argv[1])\n"
        "    for n in range(20): await client.lock(f'a{n}').acquire(ttl=600)\n"
        "asyncio.run(main())\n")
    done = python(program, shared_url)
    assert (done.returncode, done.stderr) == (0, "")
    with stanchion.connect(shared_url) as client:
        assert len(client.locks()) == 0


def test_the_end_does_not_wait_for_a_frozen_server(redis_url):
    client = stanchion.connect(redis_url)
    program = (
        "import os, stanchion, sys\nclient = stanchion.connect(sys.argv[1], timeout=60)\n"
        "lease = client.lock('end-frozen').acquire(ttl=5)\nos.kill(int(sys.argv[2]), 19)\n")
    pid = server_pid(redis_url)
    try:
        begin = time.monotonic()
        done = python(program, redis_url, str(pid))
        took = time.monotonic() - begin
    finally:
        os.kill(pid, signal.SIGCONT)
    # The lease's release would be tried for 60 s; half a second is given to it.
    assert (done.returncode, done.stderr) == (0, "") and took < 10
    client.lock("end-frozen").acquire(wait=20).release()


def test_a_child_ends_without_releasing_its_parents_leases(shared_url):
    program = (
        "import os, stanchion, sys\nclient = stanchion.connect(sys.argv[1])\nlease = client.lock('a').acquire()\n"
        "pid = os.fork()\nif pid == 0: sys.exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), lease.valid, client.lock('a').locked())\n")
    done = python(program, shared_url)
    assert (done.stdout, done.stderr) == ("5 True True\n", "")


def server_pid(url):
    info = subprocess.check_output(["redis-cli", "-u", url, "info", "server"], text=True)
    return int(info.split("process_id:")[1].split()[0])


def hold_the_gil(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1_000_000))


def test_a_held_gil_loses_no_lease(client):
    switch = sys.getswitchinterval()
    sys.setswitchinterval(60)  # No thread of Python gets a turn meanwhile.
    try:
        kept = client.lock("a").acquire(ttl=6, renew=True)
        with pytest.raises(stanchion.LeaseExpired):
            with client.lock("b").hold(ttl=6, renew=True, max_hold=7) as lease:
                hold_the_gil(9)
                assert lease.lost.is_set() and lease.lost.reason == "max_hold"
        assert kept.valid and not kept.lost.is_set()
        kept.release()
    finally:
        sys.setswitchinterval(switch)


def test_a_blocked_event_loop_loses_no_lease(url):
    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            await queue.enqueue("a")
            async with client.lock("a").hold(ttl=2, renew=True) as kept:
                with pytest.raises(stanchion.LeaseExpired):
                    loose = client.lock("b").hold(ttl=2, renew=True, max_hold=2.5, cancel_on_loss=False)
                    async with loose as lease:

                        async def handler(claim):
                            time.sleep(4)
                            assert claim.valid and kept.valid and lease.lost.is_set()

                        assert (await queue.worker(handler, lease=2).run(until_empty=True)).completed == 1

    asyncio.run(main())


def test_what_is_not_ours_stays_untouched(client):
    lock = client.lock("a")
    first = lock.acquire(ttl=0.06)
    assert first.lost.wait(DEADLINE)
    second = lock.acquire(ttl=60)
    for call in (first.release, lambda: first.extend(5), lambda: first.detach(5), first.check):
        with pytest.raises(stanchion.LeaseLost):
            call()
    assert second.valid and lock.holder().fence == second.fence
    handle = second.detach(60)
    with pytest.raises(stanchion.LeaseLost):
        second.release()
    token = second.token
    for forged in (handle.replace(token, token[::-1]), handle.replace(token, "0" * len(token)), handle[:-1], "", "{}",
                   "null", handle.replace("stanchion", "Stanchion")):
        with pytest.raises((stanchion.LeaseLost, stanchion.InvalidArgument)):
            client.resume_lease(forged)
    assert lock.locked()
    client.resume_lease(handle).release()


def test_poison_tasks(client):
    queue = client.queue("q")
    queue.enqueue("fails", b"payload", max_attempts=3)
    attempts, events = [], []

    def handler(claim):
        attempts.append(claim.attempt)
        raise RuntimeError("no luck")

    worker = queue.worker(handler, on_event=events.append)
    worker.run(until_empty=True)
    while queue.reschedule("fails", time.time()):
        worker.run(until_empty=True)
    dead = queue.get("fails")
    assert attempts == [1, 2, 3] and (dead.state, dead.attempts, dead.payload) == ("dead", 3, b"payload")
    assert dead.reason == "RuntimeError: no luck" and [(event.what, event.id, event.attempt) for event in events] == [("dead", "fails", 3)]

    queue.enqueue("endless", max_attempts=1)
    ended = threading.Event()
    # Long enough for the handler to begin although the machine stands still.
    report = queue.worker(
        lambda claim: (claim.lost.wait(DEADLINE), ended.set()), lease=2, max_run=2, on_event=events.append).run(until_empty=True)
    assert ended.is_set() and report.lost == 1 and events[1].what == "lost"

    queue.enqueue("twice")
    (claim,) = queue.claim(lease=60)
    claim.ack()
    claim.ack()
    queue.enqueue("late", max_attempts=2)
    (late,) = queue.claim(lease=0.06)
    assert late.lost.wait(DEADLINE)
    (again,) = queue.claim(lease=60, wait=DEADLINE)
    with pytest.raises(stanchion.StaleReceipt):
        late.ack()
    assert again.valid and again.attempt == 2 and again.receipt > late.receipt
    again.ack()

    from datetime import datetime, timezone

    last = datetime(9999, 12, 31, tzinfo=timezone.utc)
    assert queue.enqueue("far", due=last).due == last and queue.get("far").due == last
    assert queue.claim() == [] and [task.id for task in queue.list("scheduled")] == ["far"]


def test_a_task_that_kills_its_workers_dies(shared_url):
    queue = stanchion.connect(shared_url).queue("q")
    queue.enqueue("killer", max_attempts=2)
    program = (
        "import os, stanchion, sys\nqueue = stanchion.connect(sys.argv[1]).queue('q')\n"
        "print(queue.worker(lambda claim: os.kill(os.getpid(), 9), lease=0.3).run(until_empty=True))\n")
    ends = [python(program, shared_url) for _ in range(3)]
    assert [end.returncode for end in ends] == [-9, -9, 0], ends[-1].stderr
    dead = queue.get("killer")
    assert (dead.state, dead.attempts) == ("dead", 2) and dead.reason


def test_a_panic_is_an_ordinary_exception_everywhere(client, capfd):
    with pytest.raises(stanchion.Internal, match="on purpose"):
        _stanchion._panic()

    async def asynchronous():
        from stanchion.aio._loop import call

        with pytest.raises(stanchion.Internal, match="on purpose"):
            await call(_stanchion._panic_aio)

    asyncio.run(asynchronous())
    asyncio.run(asynchronous())
    queue = client.queue("q")
    queue.enqueue("a", max_attempts=1)
    report = queue.worker(lambda claim: _stanchion._panic()).run(until_empty=True)
    assert report.dead == 1 and "on purpose" in queue.get("a").reason
    queue.enqueue("b")
    assert queue.worker(lambda claim: None).run(until_empty=True).completed == 1


def test_nothing_piles_up(client, url):
    rounds = 300 if url.startswith("sqlite") else 1500
    lock, queue = client.lock("a"), client.queue("q")

    def work(count):
        for number in range(count):
            with lock:
                pass
            left = client.lock(f"left{number}").try_acquire(ttl=0.05)
            if number % 50 == 49:
                # However fast the store is, not many are left at one time.
                assert left.lost.wait(5)
            del left
            queue.enqueue(f"t{number}")
            for claim in queue.claim():
                claim.ack()

    def state():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(gc.get_objects())

    work(rounds // 5)
    before = state()
    work(rounds)
    after = state()
    assert after[0] <= before[0] + 1 and after[1] == before[1]
    # What is left of the last leases counts, not how many there were.
    assert after[2] - before[2] < rounds * 2 / 3, (before, after)
