"""How results come to an event loop, and what is left of a loop that was closed."""

import asyncio
import gc
import os
import socket
import time

import pytest
import uvloop

import stanchion
from stanchion import aio
from stanchion.aio._loop import _driver

MANY = 20_000
DEADLINE = 60


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def new_loop(request):
    return request.param


def test_a_crowd_of_results_leaves_the_loop_its_turns(new_loop):
    async def main():
        async with aio.connect("memory:") as client:
            loop, seen = asyncio.get_running_loop(), []
            tasks = [asyncio.ensure_future(client.lock("a").locked()) for _ in range(MANY)]

            def first_is_done(task):
                # Of the tasks that are done so far, each has had a turn of the loop since its result came.
                if not seen:
                    seen.append(None)
                    loop.call_soon(lambda: seen.append(sum(task.done() for task in tasks)))

            for task in tasks:
                task.add_done_callback(first_is_done)
            assert await asyncio.gather(*tasks) == [False] * MANY
            return seen[1]

    loop = new_loop()
    try:
        # Two or three batches may come until the callback has its turn.
        assert loop.run_until_complete(main()) <= MANY // 10
    finally:
        loop.close()


def test_the_loop_itself_works_on_the_calls_and_reads_the_wake_ups(new_loop, redis_url):
    async def main():
        async with aio.connect(redis_url) as client:
            lock = client.lock("worked on by the loop")
            lease = await lock.acquire()
            waiting = asyncio.ensure_future(lock.acquire(wait=20))
            given_up = asyncio.ensure_future(lock.acquire(wait=20))
            while len(await lock.waiters()) < 2:
                pass
            given_up.cancel()
            while len(await lock.waiters()) > 1:
                pass
            await lease.release()
            next_one = await waiting
            assert next_one.fence > lease.fence
            await next_one.release()
            # More than a socket takes at once.
            queue, payload = client.queue("worked on by the loop"), b"x" * 900_000
            await asyncio.gather(*(queue.enqueue(str(number), payload) for number in range(20)))
            [claim] = await queue.claim()
            assert claim.payload == payload
            await claim.ack()
            return [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]

    before = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
    loop = new_loop()
    try:
        after = loop.run_until_complete(main())
        assert after.count("stanchion-wake") == before.count("stanchion-wake")
    finally:
        loop.close()


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def abandon(new_loop, url, name):
    """Closes a loop on which an acquire waits."""
    async def main():
        client = await aio.connect(url)
        waiting = asyncio.ensure_future(client.lock(name).acquire(600))
        while not await client.lock(name).waiters():
            pass
        waiting._log_destroy_pending = False  # Of no interest here.

    loop = new_loop()
    loop.run_until_complete(main())
    loop.close()


def test_a_loop_that_was_closed_leaves_nothing(new_loop, redis_url):
    name = f"busy for {new_loop.__module__}"
    with stanchion.connect(redis_url) as client, client.lock(name):
        for _ in range(5):
            abandon(new_loop, redis_url, name)
        before = descriptors()
        for _ in range(50):
            abandon(new_loop, redis_url, name)
        # Those of the last loop are closed when there is another one; connections a little after their client.
        deadline = time.monotonic() + DEADLINE
        while descriptors() > before + 10 or len(client.lock(name).waiters()) > 1:
            assert time.monotonic() < deadline, (before, descriptors(), client.lock(name).waiters())
            time.sleep(0.01)


def test_a_socket_that_is_closed_in_the_turn_that_opened_it_is_not_watched(new_loop):
    """As a server that is gone makes of each attempt to connect: its file is closed before the loop hears of it."""

    async def run():
        driver = _driver(asyncio.get_running_loop())
        ours, theirs = socket.socketpair()
        file = ours.detach()
        os.close(file)
        driver._fulfil([("watch", 901, file), ("watch_writes", 901, 1), ("unwatch", 901, 0)])
        assert 901 not in driver._files
        # One that was watched before, and whose file is another one's now.
        file = theirs.fileno()
        driver._fulfil([("watch", 902, file)])
        theirs.close()
        driver._fulfil([("watch_writes", 902, 1), ("unwatch", 902, 0)])
        assert 902 not in driver._files

    loop = new_loop()
    loop.run_until_complete(run())
    loop.close()
