"""Keys, rates and limits: of threads, of asyncio, and in workers."""

import asyncio
import pickle
from datetime import timedelta

import pytest

import stanchion
from stanchion import Rate, aio
from stanchion.testing import aio_memory_client, memory_client


def test_limits_are_shown_as_they_were_set(client):
    queue = client.queue("q")
    queue.configure(max_running=7, rate=Rate(20, timedelta(seconds=2), burst=5), key_concurrency=3, key_rate=Rate(1, 0.5))
    stats = queue.stats()
    assert (stats.max_running, stats.rate, stats.key_concurrency, stats.key_rate) == (7, Rate(20, 2, 5), 3, Rate(1, 0.5, 1))
    queue.configure(max_running=None, rate=None)
    stats = queue.stats()
    assert (stats.max_running, stats.rate, stats.key_concurrency) == (None, None, 3), "what is not given stays"
    queue.limit_key("k", rate=Rate(100, timedelta(minutes=10)))
    assert queue.get_key("k").limits == stanchion.KeyLimits(None, Rate(100, 600), 1)
    assert pickle.loads(pickle.dumps(queue.get_key("k"))) == queue.get_key("k")
    queue.limit_key("k")
    assert queue.get_key("k").limits is None


def test_what_is_held_counts_as_live(client):
    queue = client.queue("q")
    queue.enqueue_many([{"id": name, "key": "k"} for name in "abc"])
    stats = queue.stats()
    assert (stats.ready, stats.held, stats.live, len(queue)) == (1, 2, 3, 3)
    assert [task.id for task in queue.list(stanchion.TaskState.HELD)] == ["b", "c"]
    page = queue.list_keys()
    assert (len(page), page[0].key, page.next) == (1, "k", None) and [one.held for one in page] == [2]


def test_a_gate_is_a_word(client):
    queue = client.queue("q")
    queue.pause()
    assert queue.stats().gate is stanchion.Gate.PAUSED and f"{queue.stats().gate}" == "paused"


def test_functions_of_a_kind_have_a_key(client):
    queue = client.queue("q")
    seen = []

    @queue.task("work", key="of all")
    def work():
        seen.append(stanchion.current_claim().key)

    work.enqueue()
    work.options(key="of one").enqueue()
    queue.worker(kinds=[work]).run(until_empty=True, signals=False)
    assert sorted(seen) == ["of all", "of one"]


def test_a_schedule_has_a_key(client):
    queue = client.queue("q")

    @queue.scheduled("@daily", id="s", key="reports")
    def report():
        pass

    queue.sync_scheduled("app", 1)
    assert queue.get_schedule("s").key == "reports"


def throttles_once(seen):
    def handle(claim):
        seen.append(claim.attempt)
        return claim.throttle(0) if len(seen) == 1 else None

    return handle


def test_a_handler_that_throttles_has_settled():
    with memory_client() as client:
        queue, seen = client.queue("q"), []
        queue.enqueue("a")
        report = queue.worker(throttles_once(seen)).run(until_empty=True, signals=False)
        assert (seen, report.completed, report.failed) == ([1, 1], 1, 0), "it was put back, without an attempt, and done then"


def test_a_handler_of_asyncio_that_throttles_has_settled():
    async def main():
        async with aio_memory_client() as client:
            queue, seen = client.queue("q"), []
            await queue.enqueue("a", key="k")

            async def handle(claim):
                seen.append(claim.attempt)
                if len(seen) == 1:
                    await claim.throttle(0)

            report = await queue.worker(handle).run(until_empty=True)
            assert (seen, report.completed, report.failed) == ([1, 1], 1, 0)

    asyncio.run(main())


def test_the_end_of_a_block_leaves_a_throttled_claim_alone(client):
    queue = client.queue("q")
    queue.enqueue("a", key="k")
    with queue.claim()[0] as claim:
        claim.throttle(600)
    assert queue.stats().acked == 0 and queue.get_key("k").opens_in > 500


def test_asyncio_has_the_same(url):
    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            await queue.configure(key_concurrency=1, rate=Rate(100, 1, burst=100))
            await queue.enqueue_many([{"id": name, "key": "k"} for name in "ab"])
            (claim,) = await queue.claim(max=5)
            assert claim.key == "k"
            await queue.limit_key("k", concurrency=2, weight=2)
            assert (await queue.get_key("k")).limits == stanchion.KeyLimits(2, None, 2)
            assert [key.key for key in await queue.list_keys()] == ["k"]
            assert [done for done in await queue.settle([claim.throttled(600)])] == [None]
            assert await queue.claim(max=5) == []
            stats = await queue.stats()
            assert (stats.rate, stats.key_concurrency, stats.gate) == (Rate(100, 1, 100), 1, "open")

    asyncio.run(main())


@pytest.mark.parametrize("bad", ["20/s", 20, (20, 1), {"count": 20}])
def test_a_rate_is_a_rate(client, bad):
    queue = client.queue("q")
    for call in (lambda: queue.configure(rate=bad), lambda: queue.configure(key_rate=bad), lambda: queue.limit_key("k", rate=bad)):
        with pytest.raises(stanchion.InvalidArgument, match="must be a Rate"):
            call()
