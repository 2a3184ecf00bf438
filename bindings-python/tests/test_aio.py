"""The same for asyncio, on the standard loop and on uvloop."""

import asyncio
import gc
import os
import signal
import time

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


def test_a_lock(run, url):
    async def main():
        async with aio.connect(url) as client:
            lock = client.lock("a")
            async with lock as lease:
                assert lease.fence > 0 and lease.valid and lock.owned() and await lock.locked()
                assert await lock.try_acquire() is None
                with pytest.raises(stanchion.LockTimeout):
                    await lock.acquire(wait=0.05)
                assert (await lock.holder()).fence == lease.fence
                assert not await asyncio.ensure_future(owned(lock))
                await lock.extend(60)
                assert lease.remaining > 50

            @lock.hold(wait=1)
            async def body(x):
                return x + 1

            assert await body(1) == 2 and not await lock.locked()
            handle = await (await lock.acquire()).detach(30)
            await (await client.resume_lease(handle)).release()
            await lock.acquire()
            await lock.release(cooldown=30)
            assert await lock.try_acquire() is None
            assert await lock.break_lease() in (True, False)

    async def owned(lock):
        return lock.owned()

    run(main)


def test_a_queue(run, url):
    async def main():
        client = await aio.connect(url)
        queue = client.queue("q")
        done = await queue.enqueue("a", {"x": 1}, priority=2)
        assert done.outcome == "added"
        results = await queue.enqueue_many(["b", ("c", b"y")])
        assert [one.outcome for one in results] == ["added", "added"]
        assert (await queue.stats()).live == 3 and (await queue.get("c")).payload == b"y"
        claims = await queue.claim(max=10)
        assert claims[0].json == {"x": 1}
        async with claims[0]:
            pass
        with pytest.raises(RuntimeError):
            async with claims[1]:
                raise RuntimeError("no luck")
        await claims[2].bury("x")
        assert [task.id for task in await queue.list("dead")] == [claims[2].id]
        assert await queue.kick(1) == 1 and (await queue.pop(1))[0].id == claims[2].id
        await queue.enqueue_many([("user:1", b"x"), ("user:2", b"x"), ("user:3", b"x")])
        await queue.settle([claim.buried(f"no {claim.id}") for claim in await queue.claim(max=10)])
        first = await queue.list("dead", max=1, prefix="user:", payloads=False)
        assert first[0].payload == b"" and first[0].size > 0
        second = await queue.list("dead", first.next, prefix="user:")
        assert len(second) == 2 and second[0].payload == b"x" and second.next is None
        assert await queue.remove_dead(receipts=[first[0].receipt]) == 1
        assert await queue.kick(reason=second[0].reason, older_than=0) == 1
        assert await queue.remove_dead(prefix="user:") == 1
        assert await queue.remove(second[0].id)
        await queue.pause()
        assert await queue.claim() == []
        await queue.resume()
        assert await queue.purge() == 1 and "q" in await client.queue_names()
        await client.close()

    run(main)


def test_a_cancelled_acquire_leaves_nothing(run, url):
    async def main():
        async with aio.connect(url) as client:
            lock = client.lock("a")
            lease = await lock.acquire()
            waiters = [asyncio.ensure_future(lock.acquire(wait=30)) for _ in range(5)]
            await asyncio.sleep(0.2)
            for waiter in waiters:
                waiter.cancel()
            await asyncio.gather(*waiters, return_exceptions=True)
            # Those who gave up leave the line in the background.
            while (await lock.holder()).waiters > 0:
                await asyncio.sleep(0.005)
            await lease.release()
            for delay in range(20):
                task = asyncio.ensure_future(lock.acquire())
                await asyncio.sleep(delay / 10_000)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                del task
            gc.collect()
            await (await lock.acquire(wait=5)).release()

    run(main)


def test_a_cancelled_claim_loses_no_task(run, url):
    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            task = asyncio.ensure_future(queue.claim(wait=30))
            await asyncio.sleep(0.1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await queue.enqueue("a")
            for delay in range(10):
                task = asyncio.ensure_future(queue.claim())
                await asyncio.sleep(delay / 10_000)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                del task
            gc.collect()
            claims = await queue.claim(wait=10)
            assert [claim.id for claim in claims] == ["a"]
            await claims[0].ack()

    run(main)


def test_the_body_is_cancelled_when_the_lease_is_lost(run, url):
    async def main():
        async with aio.connect(url) as client:
            lock = client.lock("a")
            begin = time.monotonic()
            with pytest.raises(stanchion.LeaseExpired):
                async with lock.hold(ttl=0.1):
                    await asyncio.sleep(30)
            assert time.monotonic() - begin < 5
            await asyncio.sleep(0)  # This task itself goes on.
            with pytest.raises(stanchion.LeaseExpired):
                async with lock.hold(ttl=0.1, cancel_on_loss=False) as lease:
                    await lease.lost.wait()
                    await asyncio.sleep(0.05)
            with pytest.raises(KeyError) as raised:
                async with lock.hold(ttl=0.1, cancel_on_loss=False) as lease:
                    await lease.lost.wait()
                    raise KeyError("mine")
            assert isinstance(raised.value.__context__, stanchion.LeaseLost)

    run(main)


def test_a_client_works_under_several_loops_in_turn(redis_url):
    async def opened():
        return await aio.connect(redis_url)

    async def use(client, name):
        async with client.lock(name):
            return 7

    client = asyncio.run(opened())
    assert asyncio.run(use(client, "loops")) == 7
    loop = uvloop.new_event_loop()
    assert loop.run_until_complete(use(client, "loops")) == 7
    loop.close()
    assert asyncio.run(use(client, "loops")) == 7


def test_a_worker(run, url):
    async def main():
        async with aio.connect(url) as client:
            queue, seen, hooks = client.queue("q"), [], []
            await queue.enqueue_many([(f"t{number}", number) for number in range(30)])
            await queue.enqueue("bad", 99, max_attempts=1)

            async def handler(claim):
                await asyncio.sleep(0)
                if claim.json == 99:
                    raise RuntimeError("no luck")
                seen.append(claim.json)

            worker = queue.worker(handler, concurrency=8, failed=lambda claim, error: hooks.append(str(error)))
            report = await worker.run(until_empty=True)
            assert sorted(seen) == list(range(30)) and (report.completed, report.dead) == (30, 1)
            assert hooks == ["no luck"] and (await queue.get("bad")).reason == "RuntimeError: no luck"

    run(main)


def test_a_worker_drains_after_a_signal(run, url, caplog):
    caplog.set_level("INFO", "stanchion")

    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            await queue.enqueue_many(["a", "b"])

            async def handler(claim):
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0.3)

            assert (await queue.worker(handler).run()).completed == 1
            assert (await queue.stats()).live == 1

    run(main)
    assert f"draining after signal {signal.SIGTERM:d}" in caplog.text


def test_signals_reach_all_workers_and_who_caught_them_before(run, url):
    heard = []

    def mine(number, frame):
        heard.append(number)

    async def main():
        async with aio.connect(url) as client:
            await client.queue("a").enqueue("a")

            async def handler(claim):
                os.kill(os.getpid(), signal.SIGTERM)

            workers = [client.queue(name).worker(handler) for name in "ab"]
            reports = await asyncio.gather(*(worker.run() for worker in workers))
            assert [report.completed for report in reports] == [1, 0]
            assert heard == [signal.SIGTERM]
            assert signal.getsignal(signal.SIGTERM) is mine, "it was given back"

    before = signal.signal(signal.SIGTERM, mine)
    try:
        run(main)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_worker_that_leaves_signals_alone(run, url):
    heard = []

    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            await queue.enqueue_many(["a", "b"])

            async def handler(claim):
                os.kill(os.getpid(), signal.SIGTERM)

            report = await queue.worker(handler).run(until_empty=True, signals=False)
            assert (report.completed, heard) == (2, ["mine"] * 2)

    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("mine"))
    try:
        run(main)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_store_that_has_died_does_not_hide_the_loss(run, mortal):
    url, process = mortal

    async def body():
        async with aio.connect(url, timeout=0.5) as client:
            with pytest.raises(stanchion.LeaseLost, match="cannot tell"):
                async with client.lock("a").hold(ttl=1):
                    process.kill()
                    await asyncio.sleep(60)

    run(body)


def test_a_plain_function_is_a_handler_too(run, url):
    async def main():
        async with aio.connect(url) as client:
            queue, ran = client.queue("q"), []
            await queue.enqueue_many([("a", 1), ("b", 2)])
            report = await queue.worker(lambda claim: ran.append(claim.id)).run(until_empty=True)
            assert (report.completed, report.failed, sorted(ran)) == (2, 0, ["a", "b"])
            await queue.enqueue("c", max_attempts=1)
            report = await queue.worker(lambda claim: (step for step in "abc")).run(until_empty=True)
            assert report.dead == 1 and "nobody runs" in (await queue.get("c")).reason

    run(main)


def test_a_lost_claims_handler_is_cancelled(run, url):
    async def main():
        async with aio.connect(url) as client:
            queue, ended = client.queue("q"), []
            # Delivered once: otherwise it may come back before the worker has stopped.
            await queue.enqueue("a", max_attempts=1)

            async def handler(claim):
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    ended.append(claim.id)
                    worker.stop()
                    raise

            worker = queue.worker(handler, lease=0.3, max_run=0.3)
            report = await worker.run()
            assert ended == ["a"] and report.lost == 1

    run(main)


def test_bad_arguments(run):
    async def main():
        client = await aio.connect("memory:")
        with pytest.raises(stanchion.InvalidArgument):
            await client.lock("a").acquire(ttl="10")
        with pytest.raises(stanchion.InvalidArgument):
            await client.queue("").stats()
        with pytest.raises(stanchion.StoreUnavailable):
            await aio.connect("redis://127.0.0.1:1", timeout=0.2)

    run(main)
