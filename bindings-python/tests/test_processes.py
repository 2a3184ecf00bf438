"""Signals, forks, and processes that die."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import stanchion


# Ctrl-C is noticed within 0.2 s, if the machine has the time. Everything here would last 60 s or longer without it.
NOTICED = 20


def assert_interruptible(call):
    """Ctrl-C ends the call with KeyboardInterrupt, long before it would end by itself."""
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    assert time.monotonic() - sent[0] < NOTICED
    timer.join()


def test_ctrl_c_ends_a_wait_and_leaves_nothing(client):
    lock, queue = client.lock("a"), client.queue("q")
    lease = lock.acquire()
    assert_interruptible(lambda: lock.acquire(wait=60))
    assert_interruptible(lambda: queue.claim(wait=60))
    assert_interruptible(lambda: client.queues(["q", "r"]).claim(wait=60))
    queue.configure(events=10)
    assert_interruptible(lambda: list(queue.events()))
    assert_interruptible(lambda: lease.lost.wait(60))
    assert_interruptible(lease.lost.wait)
    assert lock.holder().waiters == 0
    lease.release()
    lock.acquire(wait=5).release()


def server_of(redis_url):
    found = subprocess.check_output(["redis-cli", "-u", redis_url, "info", "server"], text=True)
    return int(found.split("process_id:")[1].split()[0])


def test_ctrl_c_ends_a_call_to_a_server_that_does_not_answer(redis_url):
    client = stanchion.connect(redis_url, timeout=60)
    lock, queue = client.lock("frozen"), client.queue("frozen")
    lease = lock.acquire(ttl=600)
    pid = server_of(redis_url)
    calls = [
        lambda: lease.extend(600), lambda: lock.acquire(wait=60), lock.holder, lambda: queue.enqueue("a"), queue.claim,
        queue.stats, lambda: list(queue.events(wait=0)), queue.purge, lambda: stanchion.connect(redis_url, timeout=60), client.locks, lease.release]
    for call in calls:
        assert lock.locked()  # The store is awake until a moment before it freezes.
        os.kill(pid, signal.SIGSTOP)
        try:
            assert_interruptible(call)
        finally:
            os.kill(pid, signal.SIGCONT)
    queue.purge()


class Twice(logging.Handler):
    """Sends SIGINT when told to, and once more when the worker has taken the first one for a request to drain: two at
    once would be one."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.sent, self.drains = None, threading.Event()
        # Not by whoever logs: that is still the handler of the first one.
        threading.Thread(target=lambda: self.drains.wait(60) and self.send(), daemon=True).start()

    def send(self):
        self.sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def emit(self, record):
        if "draining" in record.getMessage():
            self.drains.set()


@pytest.fixture
def twice():
    log, interrupts = logging.getLogger("stanchion"), Twice()
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(interrupts)
    yield interrupts
    log.removeHandler(interrupts)
    log.setLevel(level)


def test_ctrl_c_twice_ends_a_worker_whose_handler_does_not(client, twice):
    queue, over = client.queue("q"), threading.Event()
    queue.enqueue("a")
    worker = queue.worker(lambda claim: (twice.send(), over.wait(60)))
    with pytest.raises(KeyboardInterrupt):
        worker.run()
    assert time.monotonic() - twice.sent < NOTICED
    over.set()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_twice_ends_a_worker_although_the_server_does_not_answer(redis_url, twice):
    queue, over = stanchion.connect(redis_url).queue("frozen"), threading.Event()
    pid = server_of(redis_url)
    queue.enqueue("a")

    def handler(claim):
        os.kill(pid, signal.SIGSTOP)
        twice.send()
        over.wait(60)

    try:
        with pytest.raises(KeyboardInterrupt):
            queue.worker(handler).run()
        assert time.monotonic() - twice.sent < NOTICED
    finally:
        os.kill(pid, signal.SIGCONT)
        over.set()
    queue.purge()


def test_ctrl_c_ends_an_idle_worker(client):
    # The first one drains it, as soon as it catches signals.
    sent = []

    def interrupt():
        while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            time.sleep(0.005)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert client.queue("q").worker(print).run().completed == 0
    assert time.monotonic() - sent[0] < NOTICED
    thread.join()


def test_an_exception_of_any_signal_handler_ends_a_wait(client):
    class Alarm(Exception):
        pass

    def ring(number, frame):
        # A handler may use the library itself.
        assert client.lock("b").try_acquire() is not None
        raise Alarm

    lease, before = client.lock("a").acquire(), signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Alarm):
            client.lock("a").acquire(wait=60)
    finally:
        signal.signal(signal.SIGALRM, before)
    lease.release()


def in_child(body):
    """Runs a function in a forked child; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(30)
            body()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork(shared_url):
    client = stanchion.connect(shared_url)
    lock = client.lock("a")
    lease = lock.acquire()

    def child():
        with pytest.raises(stanchion.Forked):
            lease.release()
        with pytest.raises(stanchion.Forked):
            lease.extend(5)
        assert not lease.valid
        assert lock.try_acquire() is None
        with client.lock("b"):
            pass
        client.queue("q").enqueue("x")

    assert in_child(child) == 0
    assert lease.valid and lock.try_acquire() is None and len(client.queue("q")) == 1
    lease.release()


def use(url, name):
    with stanchion.connect(url) as client, client.lock(name).hold(wait=20):
        client.queue("q").enqueue(None)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(shared_url, method):
    client = stanchion.connect(shared_url)
    with client.lock("other"):
        context = multiprocessing.get_context(method)
        processes = [context.Process(target=use, args=(shared_url, "a")) for _ in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0, 0, 0]
        assert len(client.queue("q")) == 3


def test_a_fork_under_asyncio(redis_url):
    import asyncio

    from stanchion import aio

    async def use():
        async with aio.connect(redis_url) as client:
            async with client.lock("aio-fork"):
                return True

    def inherited(lease):
        assert not lease.valid and not lease.lost.is_set()
        with pytest.raises(stanchion.Forked):
            lease.check()

    async def main():
        client = await aio.connect(redis_url)
        lease = await client.lock("parents").acquire()
        assert in_child(lambda: inherited(lease)) == 0
        assert lease.valid
        await lease.release()
        await client.close()

    assert asyncio.run(use())
    assert in_child(lambda: asyncio.run(use())) == 0
    assert asyncio.run(use())


def test_a_killed_worker_loses_no_task(shared_url):
    client = stanchion.connect(shared_url)
    client.queue("q").enqueue("a")
    program = (
        "import stanchion, sys, time\n"
        "q = stanchion.connect(sys.argv[1]).queue('q')\n"
        "q.worker(lambda claim: (print('begun', flush=True), time.sleep(60)), lease=1, max_run=60).run()\n")
    worker = subprocess.Popen([sys.executable, "-c", program, shared_url], stdout=subprocess.PIPE, text=True)
    assert worker.stdout.readline() == "begun\n"
    worker.kill()
    worker.wait()
    (claim,) = client.queue("q").claim(wait=20)
    assert (claim.id, claim.attempt) == ("a", 2)
    claim.ack()


@pytest.mark.parametrize("ending", ["sys.exit(3)", "raise SystemExit(3)", "os._exit(3)"])
def test_exit_while_busy(shared_url, ending):
    program = (
        "import os, stanchion, sys, threading, time\n"
        "c = stanchion.connect(sys.argv[1])\n"
        "lease = c.lock('a').acquire()\n"
        "for _ in range(3):\n"
        "    threading.Thread(target=lambda: c.queue('q').claim(wait=60), daemon=True).start()\n"
        "time.sleep(0.2)\n" + ending)
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program, shared_url], timeout=30, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "") and time.monotonic() - begin < 10


def test_a_worker_process_drains_on_sigterm(shared_url):
    client = stanchion.connect(shared_url)
    client.queue("q").enqueue_many(["a", "b"])
    program = (
        "import stanchion, sys, time\n"
        "q = stanchion.connect(sys.argv[1]).queue('q')\n"
        "print(q.worker(lambda claim: (print('begun', flush=True), time.sleep(1))).run())\n")
    worker = subprocess.Popen([sys.executable, "-c", program, shared_url], stdout=subprocess.PIPE, text=True)
    assert worker.stdout.readline() == "begun\n"
    worker.send_signal(signal.SIGTERM)
    out, _ = worker.communicate(timeout=30)
    assert worker.returncode == 0 and "completed=1" in out and len(client.queue("q")) == 1


@pytest.mark.parametrize("program", [
    "import stanchion, sys\n"
    "def handler(claim):\n"
    "    print('begun', flush=True)\n"
    "    if claim.lost.wait(60): raise RuntimeError('told to end')\n"
    "print(stanchion.connect(sys.argv[1]).queue('q').worker(handler, grace=0.3, lease=600).run())\n",
    "import asyncio, stanchion.aio, sys\n"
    "async def handler(claim):\n"
    "    print('begun', flush=True)\n"
    "    await asyncio.sleep(60)\n"
    "async def main():\n"
    "    async with stanchion.aio.connect(sys.argv[1]) as client:\n"
    "        print(await client.queue('q').worker(handler, grace=0.3, lease=600).run())\n"
    "asyncio.run(main())\n"], ids=["threads", "asyncio"])
def test_a_worker_process_gives_its_handlers_grace_and_their_tasks_go_back(shared_url, program):
    queue = stanchion.connect(shared_url).queue("q")
    queue.enqueue_many(["a", "b"])
    worker = subprocess.Popen([sys.executable, "-c", program, shared_url], stdout=subprocess.PIPE, text=True)
    assert worker.stdout.readline() == "begun\n"
    begin = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    out, _ = worker.communicate(timeout=30)
    assert worker.returncode == 0 and "completed=0, failed=0, dead=0, lost=0" in out and time.monotonic() - begin >= 0.3
    assert [(queue.get(id).state.value, queue.get(id).attempts) for id in ("a", "b")] == [("ready", 0)] * 2


def test_a_thread_that_does_not_listen_is_left_behind(shared_url):
    client = stanchion.connect(shared_url)
    client.queue("q").enqueue("a")
    program = (
        "import stanchion, sys, time\n"
        "q = stanchion.connect(sys.argv[1]).queue('q')\n"
        "q.worker(lambda claim: (print('begun', flush=True), time.sleep(600)), lease=600, on_event=lambda e: print(e.what)).run()\n"
        "print('over')\n")
    worker = subprocess.Popen([sys.executable, "-c", program, shared_url], stdout=subprocess.PIPE, text=True)
    assert worker.stdout.readline() == "begun\n"
    worker.send_signal(signal.SIGTERM)
    time.sleep(0.3)  # Two that come together are one.
    worker.send_signal(signal.SIGTERM)  # No grace is left.
    out, _ = worker.communicate(timeout=30)
    assert worker.returncode == 0 and out.split()[-1] == "over" and "stuck" in out


def test_a_worker_whose_threads_all_hang_says_so(shared_url):
    client = stanchion.connect(shared_url)
    client.queue("q").enqueue("a")
    program = (
        "import os, stanchion, sys, time\n"
        "q = stanchion.connect(sys.argv[1]).queue('q')\n"
        "tell = lambda event: event.what == 'stuck' and (print(event.id, event.reason, flush=True), os._exit(0))\n"
        "q.worker(lambda claim: time.sleep(600), lease=1, max_run=1, on_event=tell).run()\n")
    done = subprocess.run([sys.executable, "-c", program, shared_url], timeout=60, capture_output=True, text=True)
    assert done.stdout.startswith("a 0 more tasks"), done
