"""`run_workers`: one process that works on several queues."""

import asyncio
import signal
import subprocess
import sys
import threading
import traceback

import pytest

import stanchion
from stanchion import aio

# What is waited for here comes at once, if the machine has the time.
WAIT = 60


def test_two_queues_are_worked_on_at_the_same_time(client):
    both = threading.Barrier(2)
    for name in "ab":
        client.queue(name).enqueue("task")
    workers = [client.queue(name).worker(lambda claim: both.wait(WAIT)) for name in "ab"]
    reports = stanchion.run_workers(*workers, until_empty=True)
    assert [report.completed for report in reports] == [1, 1]


def test_each_worker_has_its_own_concurrency(client):
    shares = {"critical": 3, "low": 1}
    full, most = threading.Barrier(sum(shares.values())), dict.fromkeys(shares, 0)
    running, lock = dict.fromkeys(shares, 0), threading.Lock()

    def handler(claim):
        with lock:
            running[claim.queue] += 1
            most[claim.queue] = max(most[claim.queue], running[claim.queue])
        full.wait(WAIT)
        with lock:
            running[claim.queue] -= 1

    for name, share in shares.items():
        client.queue(name).enqueue_many([f"task {number}" for number in range(2 * share)])
    workers = [client.queue(name).worker(handler, concurrency=share) for name, share in shares.items()]
    reports = stanchion.run_workers(*workers, until_empty=True)
    assert [report.completed for report in reports] == [6, 2] and most == shares


def test_several_workers_on_one_queue_and_on_queues_of_several_clients(client):
    both, all_three = threading.Barrier(2), threading.Barrier(3)

    def handler(claim):
        (both if claim.queue == "b" else all_three).wait(WAIT)

    with stanchion.connect("memory:") as other:
        client.queue("a").enqueue_many(["1", "2"])
        other.queue("a").enqueue("3")
        queues = [client.queue("a"), client.queue("a"), other.queue("a")]
        reports = stanchion.run_workers(*(queue.worker(handler) for queue in queues), until_empty=True)
        assert [report.completed for report in reports] == [1, 1, 1]


@pytest.fixture(params=["blocking", "asyncio"])
def face(request):
    """Enqueues, makes a worker of a queue, and runs workers; all in one thread."""
    with stanchion.connect("memory:") as client:
        if request.param == "blocking":
            yield Face(client, lambda result: result, stanchion.run_workers)
            return
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(aio.connect("memory:")._open())
    yield Face(client, loop.run_until_complete, aio.run_workers)
    loop.run_until_complete(client.close())
    loop.close()


class Face:
    def __init__(self, client, result, run_workers):
        self.client, self._result, self._run_workers = client, result, run_workers

    def enqueue(self, name, *ids):
        for id in ids:
            self._result(self.client.queue(name).enqueue(id))

    def live(self, name):
        return self._result(self.client.queue(name).stats()).live

    def worker(self, name, handler=lambda claim: None, **options):
        return self.client.queue(name).worker(handler, **options)

    def run(self, *workers, **how):
        return self._result(self._run_workers(*workers, **how))

    def run_alone(self, worker, **how):
        return self._result(worker.run(**how))


def test_reports_are_in_the_order_of_the_workers(face):
    for number, name in enumerate("abc"):
        face.enqueue(name, *(f"task {task}" for task in range(number)))
    for names in ("abc", "cab"):
        reports = face.run(*map(face.worker, names), until_empty=True)
        assert [report.completed for report in reports] == ([0, 1, 2] if names == "abc" else [0, 0, 0])
    face.enqueue("a", "1", "2", "3")
    face.enqueue("b", "1")
    assert [report.completed for report in face.run(*map(face.worker, "cba"), until_empty=True)] == [0, 1, 3]


def test_a_stop_of_one_worker_lets_the_others_go_on(face):
    face.enqueue("a", "1", "2")
    face.enqueue("b", "1", "2")
    stopped = face.worker("a", lambda claim: stopped.stop())
    other = face.worker("b")
    assert [report.completed for report in face.run(stopped, other, until_empty=True)] == [1, 2]
    # It was for that run.
    assert face.run_alone(stopped, until_empty=True).completed == 1


@pytest.mark.parametrize("how", ["none", "twice", "list", "no worker"])
def test_bad_input_is_refused_before_anything_starts(face, how):
    face.enqueue("a", "task")
    worker = face.worker("a")
    workers, said = {
        "none": ([], r"run_workers\(\): no worker"),
        "twice": ([worker, face.worker("b"), worker], r"run_workers\(\): worker 3 is worker 1 once more"),
        "list": ([[worker]], r"run_workers\(\): worker 1 must be .*say run_workers\(\*workers\)"),
        "no worker": ([worker, print], r"run_workers\(\): worker 2 must be "),
    }[how]
    with pytest.raises(stanchion.InvalidArgument, match=said):
        face.run(*workers, until_empty=True)
    assert face.live("a") == 1
    assert face.run_alone(worker, until_empty=True).completed == 1


def test_workers_of_the_other_face_are_refused(client):
    async def main():
        async with aio.connect("memory:") as other:
            workers = [client.queue("a").worker(print), other.queue("a").worker(print)]
            with pytest.raises(stanchion.InvalidArgument, match="worker 2 must be a stanchion.Worker, not Worker <stanchion.aio"):
                stanchion.run_workers(*workers)
            with pytest.raises(stanchion.InvalidArgument, match="worker 1 must be a stanchion.aio.Worker, not Worker <stanchion"):
                await aio.run_workers(*workers)

    asyncio.run(main())


def test_one_that_runs_already_is_refused_before_the_others_start(face):
    face.enqueue("a", "task")
    idle, busy = map(face.worker, "ab")
    with busy._running(), pytest.raises(stanchion.InvalidArgument, match="already running"):
        face.run(idle, busy, until_empty=True)
    assert face.run_alone(idle, until_empty=True).completed == 1


def test_all_errors_are_told(face):
    def fails(error):
        def make(until_empty):
            raise error
        return make

    workers, errors = [face.worker(name) for name in "abc"], [KeyError("a"), OSError("b")]
    errors[1].__cause__ = ValueError("why b")
    workers[0]._make, workers[1]._make = map(fails, errors)
    with pytest.raises((KeyError, OSError)) as raised:
        face.run(*workers, until_empty=True)
    text = "".join(traceback.format_exception(type(raised.value), raised.value, raised.value.__traceback__))
    assert "KeyError: 'a'" in text and "OSError: b" in text and "ValueError: why b" in text


def test_an_error_that_all_have_is_raised_once(face):
    error = ValueError("of all")

    def make(until_empty):
        raise error

    workers = [face.worker(name) for name in "ab"]
    for worker in workers:
        worker._make = make
    with pytest.raises(ValueError, match="of all") as raised:
        face.run(*workers, until_empty=True)
    assert raised.value.__context__ is None


def test_an_error_of_one_drains_the_others(url):
    doomed, client = stanchion.connect("memory:"), stanchion.connect(url)
    client.queue("b").enqueue_many(["1", "2"])
    failed, done = threading.Event(), []

    def handler(claim):
        doomed.close()
        if failed.wait(WAIT):
            done.append((claim.id, claim.lost.is_set()))
        stop()  # Or the test would not end if nobody else did that.

    first, second = doomed.queue("a").worker(print), client.queue("b").worker(handler)
    stop = second.stop
    second.stop = lambda: (stop(), failed.set())
    with pytest.raises(stanchion.Closed):
        stanchion.run_workers(first, second)
    assert done == [("1", False)] and client.queue("b").stats().live == 1
    client.close()


def test_an_error_of_one_drains_the_others_of_asyncio(url):
    async def main():
        async with aio.connect(url) as client:
            doomed = await aio.connect("memory:")
            await client.queue("b").enqueue_many(["1", "2"])
            failed, done = asyncio.Event(), []

            async def handler(claim):
                await doomed.close()
                try:
                    await asyncio.wait_for(failed.wait(), WAIT)
                    done.append((claim.id, claim.lost.is_set()))
                finally:
                    stop()  # Or the test would not end if nobody else did that.

            first, second = doomed.queue("a").worker(print), client.queue("b").worker(handler)
            stop = second.stop
            second.stop = lambda: (stop(), failed.set())
            with pytest.raises(stanchion.Closed):
                await aio.run_workers(first, second)
            assert done == [("1", False)] and (await client.queue("b").stats()).live == 1

    asyncio.run(main())


def test_two_queues_of_asyncio_are_worked_on_at_the_same_time(url):
    async def main():
        async with aio.connect(url) as client:
            began = {name: asyncio.Event() for name in "ab"}

            async def handler(claim):
                began[claim.queue].set()
                await asyncio.wait_for(began["b" if claim.queue == "a" else "a"].wait(), WAIT)

            for name in "ab":
                await client.queue(name).enqueue("task")
            workers = [client.queue(name).worker(handler) for name in "ab"]
            reports = await aio.run_workers(*workers, until_empty=True)
            assert [report.completed for report in reports] == [1, 1]

    asyncio.run(main())


def test_cancelled_it_cancels_the_handlers_of_all(url):
    async def main():
        async with aio.connect(url) as client:
            began, ended = asyncio.Semaphore(0), []

            async def handler(claim):
                began.release()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(claim.queue)

            for name in "ab":
                await client.queue(name).enqueue("task")
            workers = [client.queue(name).worker(handler) for name in "ab"]
            running = asyncio.ensure_future(aio.run_workers(*workers))
            for _ in "ab":
                await asyncio.wait_for(began.acquire(), WAIT)
            running.cancel()
            in_time, _ = await asyncio.wait([running], timeout=WAIT)
            for worker in workers if not in_time else ():
                worker.hurry()  # Or the test would not end.
            with pytest.raises(asyncio.CancelledError):
                await running
            assert in_time
            assert sorted(ended) == ["a", "b"]
            for name in "ab":
                (claim,) = await client.queue(name).claim(wait=WAIT)
                assert claim.attempt == 1, "the attempt did not count"
                await claim.ack()
            # And they may run again.
            assert [one.completed for one in await aio.run_workers(*workers, until_empty=True)] == [0, 0]

    asyncio.run(main())


def test_on_another_thread_and_without_signals(client):
    before, heard = signal.getsignal(signal.SIGTERM), []
    client.queue("a").enqueue("task")
    workers = [
        client.queue("a").worker(lambda claim: heard.append(signal.getsignal(signal.SIGTERM))), client.queue("b").worker(print)]
    stanchion.run_workers(*workers, until_empty=True, signals=False)
    client.queue("a").enqueue("task")
    thread = threading.Thread(target=lambda: stanchion.run_workers(*workers, until_empty=True))
    thread.start()
    thread.join(WAIT)
    assert heard == [before] * 2


# Prints a line for each handler that began and for each worker that drains; then what became of them.
BLOCKING = """
import logging, sys, threading
import stanchion

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
client, both, over = stanchion.connect(sys.argv[1]), threading.Event(), threading.Event()
drains = []

def count(record):
    if "draining" in record.getMessage():
        drains.append(record)
        if len(drains) == 2:
            both.set()
    return True

logging.getLogger("stanchion").addFilter(count)

def drained(claim):
    assert both.wait(60)
    assert not claim.lost.wait(0.5), "it has its grace"

def taken(claim):
    assert claim.lost.wait(60)
    raise RuntimeError("the grace is over")

def stuck(claim):
    over.wait(60)

def done(claim):
    pass

def handler(claim):
    sys.stdout.write(f"began {claim.queue}\\n")  # At once: there are two threads.
    sys.stdout.flush()
    globals()[sys.argv[2]](claim)

workers = [client.queue(name).worker(handler) for name in "ab"]
try:
    print("reports", [(one.completed, one.failed, one.dead) for one in stanchion.run_workers(*workers)], flush=True)
except KeyboardInterrupt:
    print("interrupted", [one.name for one in threading.enumerate() if one.name.startswith("stanchion-run")], flush=True)
    over.set()
    sys.argv[2] = "done"
    print("again", workers[1].run(until_empty=True).completed > 0, flush=True)
"""

ASYNCIO = """
import asyncio, logging, sys
import stanchion, stanchion.aio

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")

async def main():
    drains, both = [], asyncio.Event()

    def count(record):
        if "draining" in record.getMessage():
            drains.append(record)
            if len(drains) == 2:
                both.set()
        return True

    logging.getLogger("stanchion").addFilter(count)
    async with stanchion.aio.connect(sys.argv[1]) as client:
        async def handler(claim):
            print("began", claim.queue, flush=True)
            if sys.argv[2] != "drained":
                await asyncio.Event().wait()
            await asyncio.wait_for(both.wait(), 60)
            await asyncio.sleep(0.5)  # It has its grace: without it, it would be cancelled.

        workers = [client.queue(name).worker(handler) for name in "ab"]
        reports = await stanchion.aio.run_workers(*workers)
        print("reports", [(one.completed, one.failed, one.dead) for one in reports], flush=True)

asyncio.run(main())
"""
PROGRAMS = {"blocking": BLOCKING, "asyncio": ASYNCIO}


@pytest.fixture(params=PROGRAMS)
def start(request, shared_url):
    """Starts the program, with two tasks in each queue, and waits until both workers are at one."""
    processes = []

    def start(handler):
        with stanchion.connect(shared_url) as client:
            for name in "ab":
                client.queue(name).enqueue_many(["1", "2"])
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAMS[request.param], shared_url, handler], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert sorted(process.stdout.readline() for _ in "ab") == ["began a\n", "began b\n"]
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def sees_both_drain(process, number):
    lines = [process.stdout.readline() for _ in "ab"]
    assert lines == [f"queue '{name}': draining after signal {number:d}\n" for name in "ab"]


def rest_of(process):
    # `communicate` would not see what was read ahead of the lines.
    rest = process.stdout.read()
    assert process.wait(WAIT) == 0
    return rest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_all(start, shared_url, number):
    process = start("drained")
    process.send_signal(number)
    sees_both_drain(process, number)
    assert rest_of(process) == "reports [(1, 0, 0), (1, 0, 0)]\n"
    with stanchion.connect(shared_url) as client:
        assert [client.queue(name).stats().live for name in "ab"] == [1, 1]


def test_a_second_signal_takes_the_grace_of_all(start, shared_url):
    process = start("taken")
    process.send_signal(signal.SIGTERM)
    sees_both_drain(process, signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert "reports [(0, 0, 0), (0, 0, 0)]\n" in rest_of(process)
    with stanchion.connect(shared_url) as client:
        for name in "ab":
            assert [(one.id, one.attempt) for one in client.queue(name).claim(max=2, wait=WAIT)] == [("1", 1), ("2", 1)]


@pytest.mark.parametrize("start", ["blocking"], indirect=True)
def test_a_second_ctrl_c_interrupts_and_leaves_no_worker(start, shared_url):
    process = start("stuck")
    process.send_signal(signal.SIGINT)
    sees_both_drain(process, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    out = rest_of(process)
    assert "interrupted []\n" in out and out.endswith("again True\n"), out
