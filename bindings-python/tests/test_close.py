"""What closing a client ends: its calls, its leases, its threads and its connections."""

import asyncio
import subprocess
import sys
import threading

import pytest

import stanchion
from stanchion import aio

# A process that hangs ends at this deadline, and fails the test.
DEADLINE = 60
WAIT = 30

# Each of the clients has had a connection for its calls, one for hints, and threads. They are kept: nothing goes by itself.
CLIENTS = """
import asyncio, os, resource, sys, threading, time, stanchion
from stanchion import aio

resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
closed = []

def one(url, holder):
    client = stanchion.connect(url)
    lease = client.lock("held").acquire(ttl=60)
    waiting = threading.Thread(target=waits, args=(client,))
    waiting.start()
    while holder.lock("busy").holder().waiters == 0: pass
    client.close()
    waiting.join()
    closed.append((client, lease))

def waits(client):
    try:
        client.lock("busy").acquire(wait=60)
    except stanchion.Closed:
        return
    os._exit(3)

async def one_of_asyncio(url, holder):
    client = await aio.connect(url)
    lease = await client.lock("held").acquire(ttl=60)
    waiting = asyncio.ensure_future(client.lock("busy").acquire(wait=60))
    while (await holder.lock("busy").holder()).waiters == 0: pass
    await client.close()
    try:
        await waiting
        os._exit(3)
    except stanchion.Closed:
        closed.append((client, lease))

def tells(): return len(os.listdir("/proc/self/task"))

async def of_asyncio(url):
    async with aio.connect(url) as holder:
        await holder.lock("busy").acquire()
        for number in range(30):
            await one_of_asyncio(url, holder)

if sys.argv[2] == "asyncio":
    asyncio.run(of_asyncio(sys.argv[1]))
else:
    with stanchion.connect(sys.argv[1]) as holder:
        busy = holder.lock("busy").acquire()
        one(sys.argv[1], holder)
        threads = tells()
        for number in range(30):
            one(sys.argv[1], holder)
        # The last thread that made calls for one of Python's ends by itself.
        deadline = time.monotonic() + 30
        while tells() > threads:
            assert time.monotonic() < deadline, (tells(), threads)
print(len(closed))
"""


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
def test_closed_clients_keep_neither_connections_nor_threads(shared_url, face):
    ended = subprocess.run(
        [sys.executable, "-c", CLIENTS, shared_url, face], capture_output=True, text=True, timeout=DEADLINE)
    assert ended.stderr == ""
    assert int(ended.stdout) >= 30


def test_a_closed_client_refuses_and_its_objects_say_so(url):
    with stanchion.connect(url) as other:
        client = stanchion.connect(url)
        lock, queue = client.lock("a"), client.queue("q")
        lease = lock.acquire()
        client.close()
        for call in (lock.acquire, lock.try_acquire, queue.stats, lambda: client.cached("c", 60, dict), client.locks):
            with pytest.raises(stanchion.Closed, match="the client was closed; open another one"):
                call()
        assert not lease.valid
        assert client.metrics()
        client.close()
        assert other.lock("a").try_acquire() is not None


def test_a_worker_ends_when_its_client_is_closed(url):
    client = stanchion.connect(url)
    ended = []
    began = threading.Event()
    client.queue("q").enqueue("a")

    def run():
        try:
            client.queue("q").worker(lambda claim: began.set()).run(signals=False)
        except stanchion.Closed:
            ended.append(True)

    running = threading.Thread(target=run)
    running.start()
    assert began.wait(WAIT)
    client.close()
    running.join(WAIT)
    assert ended == [True]


def test_a_client_of_asyncio_that_is_closed_ends_what_waits(url):
    async def main():
        async with aio.connect(url) as other:
            await other.lock("a").acquire()
            await other.queue("q").configure(events=10)
            client = await aio.connect(url)
            waiting = [asyncio.ensure_future(client.lock("a").acquire(wait=60)) for _ in range(3)]
            waiting.append(asyncio.ensure_future(client.queue("q").claim(wait=60)))
            waiting.append(asyncio.ensure_future(client.queue("q").events().__anext__()))
            while (await other.lock("a").holder()).waiters < 3:
                await asyncio.sleep(0)
            await client.close()
            ended = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(one) for one in ended] == [stanchion.Closed] * 5
            assert (await other.lock("a").holder()).waiters == 0

    asyncio.run(main())
