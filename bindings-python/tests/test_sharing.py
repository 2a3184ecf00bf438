"""What is shared between threads, copied, pickled, or handed to another process."""

import asyncio
import copy
import logging
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import stanchion
from stanchion import aio


def in_another_process(program, *args):
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


RESUME = (
    "import pickle, stanchion, sys\nclient = stanchion.connect(sys.argv[1])\n"
    "lease = client.resume_lease(pickle.loads(bytes.fromhex(sys.argv[2])))\n"
    "print(lease.fence, lease.name, lease.valid)\n")
RESUME_AIO = (
    "import asyncio, pickle, sys\nfrom stanchion import aio\nasync def main():\n"
    "    client = await aio.connect(sys.argv[1])\n"
    "    lease = await client.resume_lease(pickle.loads(bytes.fromhex(sys.argv[2])))\n"
    "    print(lease.fence, lease.name, lease.valid)\n{end}\nasyncio.run(main())\n")


@pytest.mark.parametrize("giver", ["blocking", "asyncio"])
@pytest.mark.parametrize("taker", ["blocking", "asyncio"])
def test_a_lease_travels_to_another_process(shared_url, giver, taker):
    async def detach():
        async with aio.connect(shared_url) as client:
            lease = await client.lock("a").acquire()
            return lease.fence, await lease.detach(60)

    with stanchion.connect(shared_url) as client:
        if giver == "asyncio":
            fence, handle = asyncio.run(detach())
        else:
            lease = client.lock("a").acquire()
            fence, handle = lease.fence, lease.detach(60)
            assert not lease.valid
        assert isinstance(handle, str) and client.lock("a").locked()
        program = RESUME + "lease.release()\n" if taker == "blocking" else RESUME_AIO.format(end="    await lease.release()")
        said = in_another_process(program, shared_url, pickle.dumps(handle).hex())
        assert said == f"{fence} a True\n" and not client.lock("a").locked()
        with pytest.raises(stanchion.LeaseLost):
            client.resume_lease(handle)


def test_the_lease_of_a_dead_taker_runs_out(shared_url):
    with stanchion.connect(shared_url) as client:
        # Long enough for the start of a process, on whatever machine.
        handle = client.lock("a").acquire(ttl=5, renew=True).detach(5)
        in_another_process(
            RESUME + "assert client.lock('a').locked()\nimport os; sys.stdout.flush(); os._exit(0)\n", shared_url,
            pickle.dumps(handle).hex())
        client.lock("a").acquire(wait=30).release()


@pytest.mark.parametrize("error", [
    stanchion.LockTimeout, stanchion.LeaseLost, stanchion.LeaseExpired, stanchion.InvalidArgument, stanchion.StoreUnavailable,
    stanchion.QueueFull, stanchion.Internal])
def test_exceptions_are_picklable(error):
    from stanchion._errors import make

    made = make(error.__name__, error.code, "said so", "acquire", "a", True)
    for copied in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert type(copied) is error and str(copied) == "said so" and copied.args == ("said so",)
        assert (copied.code, copied.operation, copied.name, copied.retryable) == (error.code, "acquire", "a", True)


def test_results_are_picklable(client):
    queue = client.queue("q")
    values = [
        queue.enqueue("a", b"x"), queue.get("a"), queue.stats(), queue.list("ready"), client.queue_names(), queue.remove("a"),
        queue.reschedule("a", 5), stanchion.WorkerReport(1), stanchion.Task("a", b"x", on_duplicate=stanchion.Throttle(5))]
    with client.lock("a"):
        values.append(client.lock("a").holder())
    for value in values:
        assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)


def test_what_may_be_copied_and_what_may_not(client):
    lock, queue = client.lock("a", ttl=7), client.queue("q")
    settings = copy.deepcopy({"client": client, "lock": lock, "queues": client.queues(["q"])})
    assert settings["client"] is client and copy.copy(client) is client
    with settings["lock"] as lease:
        assert lock.locked() and lock.owned() and lease.remaining <= 7
        for copying in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="detach"):
                copying(lease)
    queue.enqueue("a")
    (claim,) = settings["queues"].claim()
    with pytest.raises(TypeError, match="claim"):
        pickle.dumps(claim)
    claim.ack()


def test_one_client_for_many_threads(client):
    counter, lock, queue = [0], client.lock("a"), client.queue("q")

    def work(number):
        for _ in range(10):
            with lock.hold(wait=60):
                before = counter[0]
                queue.enqueue(f"{number}:{before}")
                counter[0] = before + 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert counter == [80] and len(queue) == 80 and not lock.locked()


def test_a_lock_is_not_reentrant_but_blocks_nest(client):
    lock = client.lock("a", wait=0.05)
    with lock:
        with pytest.raises(stanchion.LockTimeout):
            with lock:
                pass
        assert lock.owned()
        with client.lock("b"), client.lock("c") as inner:
            assert inner.valid
    assert not lock.locked()


def test_a_generator_may_be_closed_by_another_thread(client):
    lock = client.lock("a")

    def resource():
        with lock as lease:
            yield lease

    generator = resource()
    assert next(generator).valid
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    assert not lock.locked()
    generator = resource()
    next(generator)
    del generator  # Collected, it is closed.
    assert not lock.locked()


def test_hooks_that_fail(client, caplog):
    queue = client.queue("q")

    def fail(*args):
        raise ZeroDivisionError

    queue.enqueue("a")
    assert queue.worker(lambda claim: None, after=fail).run(until_empty=True).completed == 1
    queue.enqueue("b", max_attempts=1)
    report = queue.worker(lambda claim: 1 / 0, failed=fail, on_event=fail).run(until_empty=True)
    assert report.dead == 1 and "hook" in caplog.text
    queue.enqueue("c", max_attempts=1)
    assert queue.worker(lambda claim: None, before=fail).run(until_empty=True).dead == 1
    queue.enqueue("d", max_attempts=1)
    assert queue.worker(lambda claim: sys.exit(5)).run(until_empty=True).dead == 1
    assert queue.get("d").reason == "SystemExit: 5"


class Unprintable(Exception):
    def __str__(self):
        raise ZeroDivisionError


def fails(error):
    def hook(*args):
        raise error

    return hook


class Broken(logging.Filter):
    def filter(self, record):
        raise SystemExit("the filter")


@pytest.mark.parametrize("options", [
    dict(handler=fails(Unprintable())),
    dict(handler=fails(ValueError()), failed=fails(SystemExit())),
    dict(handler=fails(ValueError()), on_event=fails(KeyboardInterrupt())),
    dict(handler=fails(ValueError()), before=fails(GeneratorExit())),
], ids=["unprintable", "failed", "on_event", "before"])
@pytest.mark.parametrize("filtered", [False, True], ids=["log", "broken log"])
def test_no_exception_costs_a_worker_its_threads(client, options, filtered, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda details: None)
    queue, log, broken = client.queue("q"), logging.getLogger("stanchion"), Broken()
    queue.enqueue_many([stanchion.Task(str(number), max_attempts=1) for number in range(4)])
    reports, worker = [], queue.worker(**options)
    thread = threading.Thread(target=lambda: reports.append(worker.run(until_empty=True)), daemon=True)
    if filtered:
        log.addFilter(broken)
    try:
        thread.start()
        thread.join(20)
    finally:
        log.removeFilter(broken)
    # With a log that fails, the worker's own last words do, too.
    assert not thread.is_alive() and queue.stats().dead == 4 and (filtered or reports[0].dead == 4)


def test_a_hook_that_exits_does_not_fail_its_task(client):
    queue, reports = client.queue("q"), []
    queue.enqueue("a")
    worker = queue.worker(lambda claim: None, after=fails(SystemExit()))
    thread = threading.Thread(target=lambda: reports.append(worker.run(until_empty=True)), daemon=True)
    thread.start()
    thread.join(20)
    assert reports and reports[0].completed == 1


def test_a_worker_runs_once_at_a_time(client):
    queue, begun, go = client.queue("q"), threading.Event(), threading.Event()

    def handler(claim):
        begun.set()
        assert go.wait(20)

    queue.enqueue("a")
    worker = queue.worker(handler)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    assert begun.wait(20)
    with pytest.raises(stanchion.InvalidArgument, match="already running"):
        worker.run()
    go.set()
    worker.stop()
    thread.join(20)
    assert not thread.is_alive()
    worker.run(until_empty=True)  # Again, but not at the same time.


def test_a_worker_of_asyncio_runs_once_at_a_time(url):
    async def main():
        client = await aio.connect(url)
        begun = asyncio.Event()

        async def handler(claim):
            begun.set()

        await client.queue("q").enqueue("a")
        worker = client.queue("q").worker(handler)
        running = asyncio.ensure_future(worker.run())
        await asyncio.wait_for(begun.wait(), 20)
        with pytest.raises(stanchion.InvalidArgument, match="already running"):
            await worker.run()
        worker.stop()
        assert (await asyncio.wait_for(running, 20)).completed == 1

    asyncio.run(main())


def test_expired_leases_are_forgotten(stanchion_client, stanchion_clock):
    for number in range(1_000):
        assert stanchion_client.lock(f"once{number}").try_acquire(ttl=1) is not None
        stanchion_clock.advance(2)
    assert len(stanchion_client._held.leases._names) <= 64


def test_a_subinterpreter_is_refused_clearly():
    interpreters = pytest.importorskip("_xxsubinterpreters", reason="this Python has no such module")
    interpreter = interpreters.create()
    try:
        with pytest.raises(interpreters.RunFailedError, match="(?i)subinterpreter"):
            interpreters.run_string(interpreter, f"import sys; sys.path[:] = {sys.path!r}; import stanchion")
    finally:
        interpreters.destroy(interpreter)


def test_the_faces_have_the_same_names():
    def public(thing):
        return {name for name in dir(thing) if not name.startswith("_")}

    for name in set(aio.__all__) - {"Connecting", "connect"}:
        missing = public(getattr(stanchion, name)) ^ public(getattr(aio, name))
        assert not missing, (name, missing)
