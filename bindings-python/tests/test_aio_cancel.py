"""Cancelling, timeouts, task groups: whoever gives up in asyncio leaves nothing behind."""

import asyncio
import contextlib
import sys

import pytest
import uvloop

import stanchion
from stanchion import aio


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Runs a coroutine function on a new loop."""
    def run(main):
        loop = asyncio.new_event_loop() if request.param == "asyncio" else uvloop.new_event_loop()
        try:
            return loop.run_until_complete(asyncio.wait_for(main(), 60))
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    return run


async def turns(count):
    for _ in range(count):
        await asyncio.sleep(0)


async def free_soon(client, name):
    """The lock is free, as soon as what was given up is cleaned up, and nobody waits for it."""
    async with client.lock(name).hold(wait=30):
        holder = await client.lock(name).holder()
        assert holder is None or holder.waiters == 0


def test_an_acquire_that_is_cancelled_anywhere(run, url):
    async def main():
        async with aio.connect(url) as client:
            kept = []  # Exceptions and their tracebacks must not keep a lease alive.
            for step in range(30):
                task = asyncio.ensure_future(client.lock("a").acquire(ttl=600))
                if step < 10:
                    await turns(step)
                else:
                    await asyncio.sleep(step / 20_000)
                task.cancel()
                try:
                    await (await task).release()
                except asyncio.CancelledError as error:
                    kept.append(error)
            await free_soon(client, "a")

    run(main)


async def cancelled_when_answered(coroutine):
    """Cancels a task after its answer has come and before it has seen it."""
    task = asyncio.ensure_future(coroutine)
    await turns(1)
    waiter = task._fut_waiter
    while not waiter.done():
        await asyncio.sleep(0)
    task.cancel()
    del waiter
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    return raised.value


def test_a_release_that_is_cancelled_before_it_began(run, url):
    async def main():
        client = await aio.connect(url)
        lease = await client.lock("a").acquire()
        release = asyncio.ensure_future(lease.release())
        await asyncio.sleep(0)  # It has been handed over, and is given up in the same turn of the loop.
        release.cancel()
        kept = (await asyncio.gather(release, return_exceptions=True))[0]
        assert isinstance(kept, (asyncio.CancelledError, type(None)))
        await (await client.lock("a").acquire(wait=5)).release()
        del kept

    run(main)


def test_an_answer_that_comes_together_with_the_cancelling(run, url):
    async def main():
        async with aio.connect(url) as client:
            # The exceptions' tracebacks keep nothing alive.
            kept = [await cancelled_when_answered(client.lock("a").acquire(ttl=600))]
            await free_soon(client, "a")
            await client.queue("q").enqueue("a")
            kept.append(await cancelled_when_answered(client.queue("q").claim()))
            (claim,) = await client.queue("q").claim(wait=30)
            assert claim.attempt == 1
            await claim.ack()

    run(main)


def test_timeouts(run, url):
    async def main():
        async with aio.connect(url) as client:
            lock = client.lock("a")
            await client.queue("q").configure(events=10)
            async with lock:
                for _ in range(3):
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(lock.acquire(60), 0.05)
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(client.queue("q").claim(wait=60), 0.05)
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(client.queue("q").events().__anext__(), 0.05)
                if sys.version_info >= (3, 11):
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.05), lock.hold(60):
                            pass
                assert lock.owned()
            await free_soon(client, "a")
            if sys.version_info >= (3, 11):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05), lock:
                        await asyncio.sleep(60)
            assert not await lock.locked()

    run(main)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.TaskGroup is of Python 3.11")
def test_a_task_group(run, url):
    async def main():
        async with aio.connect(url) as client:
            lock = client.lock("a")

            async def hold():
                async with lock.hold(60):
                    await asyncio.sleep(60)

            async def fail():
                await asyncio.sleep(0.1)
                raise KeyError("mine")

            with pytest.raises(BaseExceptionGroup) as raised:
                async with asyncio.TaskGroup() as group:
                    for _ in range(3):
                        group.create_task(hold())
                    group.create_task(fail())
            assert [type(error) for error in raised.value.exceptions] == [KeyError]
            await free_soon(client, "a")

            with pytest.raises(BaseExceptionGroup) as raised:
                async with asyncio.TaskGroup() as group:
                    async with lock.hold(ttl=0.1):
                        await asyncio.sleep(60)
            assert [type(error) for error in raised.value.exceptions] == [stanchion.LeaseExpired]

    run(main)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells who cancelled a task from 3.11 on")
def test_a_loss_does_not_hide_that_the_task_was_cancelled(run, url):
    async def main():
        async with aio.connect(url) as client:
            async def body():
                async with client.lock("a").hold(ttl=0.1):
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.sleep(60)  # Cancelled by the loss,
                    task.cancel()  # and by somebody else.
                    await asyncio.sleep(60)

            task = asyncio.ensure_future(body())
            with pytest.raises(asyncio.CancelledError):
                await task

    run(main)


def test_a_block_may_be_left_by_another_task(run, url):
    async def main():
        async with aio.connect(url) as client:
            lock = client.lock("a")

            async def resource():
                async with lock as lease:
                    yield lease

            generator = resource()
            assert (await asyncio.ensure_future(generator.__anext__())).valid
            await asyncio.ensure_future(generator.aclose())
            assert not await lock.locked()
            stack = contextlib.AsyncExitStack()
            await asyncio.ensure_future(stack.enter_async_context(lock.hold()))
            assert await lock.locked()
            await stack.aclose()
            assert not await lock.locked()

    run(main)


def test_a_cancelled_worker_waits_for_its_handlers(run, url):
    async def main():
        async with aio.connect(url) as client:
            queue, begun, ended = client.queue("q"), asyncio.Event(), []
            await queue.enqueue("a")

            async def handler(claim):
                begun.set()
                try:
                    await asyncio.sleep(60)
                finally:
                    await turns(5)
                    ended.append(claim.id)

            task = asyncio.ensure_future(queue.worker(handler).run())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert ended == ["a"]
            (claim,) = await queue.claim(wait=30)
            await claim.ack()

    run(main)


def test_hooks_that_fail_do_not_fail_tasks(run, url):
    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            await queue.enqueue_many(["a", ("bad", b"", None, None, None, None, 1)])

            async def handler(claim):
                if claim.id == "bad":
                    raise RuntimeError("no luck")

            def fail(*args):
                raise ZeroDivisionError

            worker = queue.worker(handler, after=fail, failed=fail, on_event=fail)
            report = await worker.run(until_empty=True)
            assert (report.completed, report.dead) == (1, 1)

    run(main)


def test_a_client_after_its_loop_has_ended(url):
    async def begin():
        client = await aio.connect(url)
        return client, await client.lock("a").acquire(ttl=600)

    client, lease = asyncio.run(begin())
    assert lease.valid and lease.remaining > 0 and not lease.lost.is_set() and "a" in repr(lease)
    assert not client.lock("a").owned()
    with pytest.raises(RuntimeError):
        client.lock("a").holder().send(None)

    async def end():
        await lease.extend(600)
        await lease.release()
        assert not await client.lock("a").locked()

    asyncio.run(end())


def test_nothing_piles_up(url):
    import gc
    import os

    async def work(client, count):
        for number in range(count):
            async with client.lock("a"):
                pass
            await client.lock(f"left{number}").try_acquire(ttl=0.05)

    async def cancelled(client, count):
        async with client.lock("a"):
            for _ in range(count):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(client.lock("a").acquire(60), 0.001)

    def state():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(gc.get_objects())

    async def connected():
        return await aio.connect(url)

    client = asyncio.run(connected())
    asyncio.run(work(client, 60))
    asyncio.run(cancelled(client, 10))
    before = state()
    for _ in range(10):
        asyncio.run(work(client, 30))
        asyncio.run(cancelled(client, 10))
    after = state()
    assert after[0] <= before[0] + 2 and after[1] - before[1] < 300, (before, after)
