"""What happens to the tasks of a queue, as an iterator."""

import asyncio
import dataclasses
import gc
import itertools
import threading
from datetime import datetime, timedelta, timezone

import pytest

import stanchion
from stanchion import aio

WAIT = 30


def questions(client):
    """How many questions to the store were answered."""
    return client.metrics()["stanchion_store_request_seconds_count"]


class Thread(threading.Thread):
    """Iterates over events of a client of its own, and is known to wait for them."""

    def __init__(self, url, **options):
        super().__init__(daemon=True)
        self.client, self.options = stanchion.connect(url), options
        self.queue, self.told, self.ended = self.client.queue("q"), [], None
        self.more = threading.Condition()
        before = questions(self.client)
        self.start()
        self.until(lambda: questions(self.client) > before, 0.01)

    def run(self):
        try:
            for event in self.queue.events(**self.options):
                with self.more:
                    self.told.append(event)
                    self.more.notify_all()
        except BaseException as error:
            self.ended = error

    def until(self, holds, again=None):
        for _ in range(3_000):
            with self.more:
                if holds():
                    return
                self.more.wait(again or WAIT)
        raise AssertionError(self.told, self.ended)


@pytest.fixture
def queue(client):
    queue = client.queue("q")
    queue.configure(events=100)
    return queue


def test_an_event_says_what_happened(client):
    queue = client.queue("q")
    assert queue.stats().events == 0
    queue.configure(events=100)
    assert queue.stats().events == 100
    queue.configure(dead_max=5)
    assert queue.stats().events == 100
    before = datetime.now(timezone.utc) - timedelta(seconds=5)
    done = queue.enqueue("a", max_attempts=2)
    (claim,) = queue.claim()
    claim.progress(b"half")
    claim.nack(delay=0, reason="first")
    (claim,) = queue.claim()
    claim.nack(delay=0, reason="ümlaut")
    told = list(queue.events(after=0, wait=0))
    assert [(one.what, one.attempt, one.reason) for one in told] == [
        ("added", 0, None), ("started", 1, None), ("progress", 1, None), ("failed", 1, "first"), ("started", 2, None),
        ("dead", 2, "ümlaut")]
    assert {(one.id, one.version, one.missed) for one in told} == {("a", done.version, False)}
    assert [one.number - told[0].number for one in told] == list(range(6))
    assert all(before < one.at < before + timedelta(seconds=60) for one in told)
    assert type(told[0]) is stanchion.TaskEvent
    with pytest.raises(dataclasses.FrozenInstanceError):
        told[0].what = "done"
    queue.enqueue("b")
    queue.cancel("b")
    queue.enqueue("c")
    queue.remove("c")
    queue.enqueue("d")
    for claim in queue.claim():
        claim.put_back()
    for claim in queue.claim():
        claim.ack()
    assert [one.what for one in queue.events(after=told[-1].number, wait=timedelta(0))] == [
        "added", "cancelled", "added", "removed", "added", "started", "put_back", "started", "done"]


def test_a_loop_ends_when_nothing_has_happened_for_the_wait(queue):
    assert list(queue.events(wait=0)) == list(queue.events(wait=0.05)) == list(queue.events(after=0, wait=0.05)) == []
    queue.enqueue_many([f"{number}" for number in range(50)])
    assert [event.id for event in queue.events(after=0, wait=0.05)] == [f"{number}" for number in range(50)]
    # Without a number, what was before does not count.
    assert list(queue.events(wait=0)) == list(queue.events(wait=0.05)) == []


def test_more_than_a_page_comes_in_its_order(queue):
    queue.configure(events=2_000)
    queue.enqueue_many([f"{number}" for number in range(1_200)])
    told = list(queue.events(after=0, wait=0))
    assert [event.id for event in told] == [f"{number}" for number in range(1_200)]
    assert not any(event.missed for event in told)


def test_the_first_after_a_gap_says_so(queue):
    queue.enqueue("first")
    (first,) = queue.events(after=0, wait=0)
    assert not first.missed
    # A queue that keeps none drops those that it has kept.
    queue.configure(events=0)
    queue.configure(events=100)
    queue.enqueue_many(["a", "b"])
    for wait in (0, 0.05):
        told = [(event.id, event.missed) for event in queue.events(after=first.number, wait=wait)]
        assert told == [("a", True), ("b", False)]
    assert not any(event.missed for event in queue.events(after=0, wait=0))


def test_a_loop_without_a_wait_goes_on(url, queue):
    queue.enqueue("before")
    watching = Thread(url)
    for number in range(5):
        queue.enqueue(f"{number}")
        watching.until(lambda: len(watching.told) > number)
    assert [event.id for event in watching.told] == [f"{number}" for number in range(5)]
    assert watching.is_alive() and not any(event.missed for event in watching.told)
    watching.client.close()
    watching.join(WAIT)
    assert not watching.is_alive()


def test_a_wait_begins_anew_with_each_event(url, queue):
    watching = Thread(url, wait=3)
    for number in range(3):
        queue.enqueue(f"{number}")
        watching.until(lambda: len(watching.told) > number)
    watching.join(WAIT)
    assert not watching.is_alive() and watching.ended is None and len(watching.told) == 3
    watching.client.close()


def test_the_question_is_asked_when_the_loop_begins(client, queue):
    before = questions(client)
    events = queue.events()
    queue.events(after=0)
    assert questions(client) == before
    queue.enqueue("before the loop")
    assert questions(client) == before + 1
    events.close()
    assert questions(client) == before + 1 and list(events) == []


def test_a_loop_that_is_left_leaves_nothing(client, queue):
    queue.enqueue_many(["a", "b", "c"])
    before, threads = questions(client), threading.active_count()
    for event in queue.events(after=0):
        break
    assert questions(client) == before + 1 and threading.active_count() == threads
    # It went no further: the others are still to come, also by another loop.
    assert [other.id for other in queue.events(after=event.number, wait=0)] == ["b", "c"]
    events = queue.events(after=0)
    assert [event.id for event in itertools.islice(events, 2)] == ["a", "b"]
    assert next(events).id == "c"


def test_a_client_that_is_closed_ends_the_loop(url, queue):
    for options in ({}, {"after": 0}, {"wait": 600}):
        watching = Thread(url, **options)
        watching.client.close()
        watching.join(WAIT)
        assert type(watching.ended) is stanchion.Closed, watching.ended
    with pytest.raises(stanchion.Closed):
        next(watching.queue.events())


def test_a_queue_that_keeps_none_says_so(url, client):
    for options in ({}, {"after": 0, "wait": 0}, {"wait": 600}):
        with pytest.raises(stanchion.Unsupported, match="^events \"q\": the queue keeps no events") as raised:
            next(client.queue("q").events(**options))
        assert (raised.value.operation, raised.value.name) == ("events", "q")

    async def main():
        async with aio.connect(url) as client:
            with pytest.raises(stanchion.Unsupported):
                async for _ in client.queue("q").events():
                    pass

    asyncio.run(asyncio.wait_for(main(), 60))


def test_turned_off_while_somebody_watches(url, queue):
    watching = Thread(url)
    queue.enqueue("a")
    watching.until(lambda: watching.told)
    queue.configure(events=0)
    watching.join(WAIT)
    assert type(watching.ended) is stanchion.Unsupported
    watching.client.close()


async def asks(client, task):
    """Until a task has asked, and waits."""
    before = questions(client)
    while questions(client) == before:
        assert not task.done()
        await asyncio.sleep(0)


def test_asyncio(url):
    async def main():
        before = asyncio.all_tasks()
        async with aio.connect(url) as client, aio.connect(url) as other:
            queue, told = client.queue("q"), []
            await other.queue("q").configure(events=100)
            assert (await queue.stats()).events == 100
            await other.queue("q").enqueue("before")

            async def watch(**options):
                async for event in queue.events(**options):
                    told.append(event)

            watching = asyncio.ensure_future(watch())
            await asks(client, watching)
            for number in range(3):
                await other.queue("q").enqueue(f"{number}")
                while len(told) <= number:
                    await asyncio.sleep(0)
            assert [event.id for event in told] == ["0", "1", "2"] and not watching.done()
            # Cancelled, it ends at once, and leaves nothing behind.
            watching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await watching
            assert asyncio.all_tasks() == before
            assert [event.id async for event in queue.events(after=told[0].number, wait=0)] == ["1", "2"]
            assert [event async for event in queue.events(wait=0.05)] == []
            async for event in queue.events(after=0):
                assert type(event) is stanchion.TaskEvent and event.id == "before"
                break
            gc.collect()
            while asyncio.all_tasks() != before:
                await asyncio.sleep(0)
            await queue.configure(events=0)
            await queue.configure(events=100)
            await queue.enqueue_many(["a", "b"])
            assert [(event.id, event.missed) async for event in queue.events(after=event.number, wait=0)] == [
                ("a", True), ("b", False)]
            # Closed, it ends, too.
            watching = asyncio.ensure_future(watch(wait=600))
            await asks(client, watching)
            await client.close()
            with pytest.raises(stanchion.Closed):
                await watching

    asyncio.run(asyncio.wait_for(main(), 120))


def test_a_wait_that_is_cancelled_anywhere(url):
    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            await queue.configure(events=100)
            for step in range(20):
                # Before it was sent, on its way, and answered.
                task = asyncio.ensure_future(queue.events().__anext__())
                for _ in range(step):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await queue.enqueue("a")
            assert [event.id async for event in queue.events(after=0, wait=0)] == ["a"]

    asyncio.run(asyncio.wait_for(main(), 60))


WRONG = {
    "after must be a whole number from 0 on, not int -1": {"after": -1},
    "after must be a whole number from 0 on, not str '1'": {"after": "1"},
    "after must be a whole number from 0 on, not float 1.0": {"after": 1.0},
    "wait must be a time span from 0 s on, not int -1": {"wait": -1},
    "wait must be a number of seconds or a timedelta, not str '1'": {"wait": "1"},
}


@pytest.mark.parametrize("options", WRONG.values(), ids=list(WRONG))
def test_bad_arguments_are_refused_before_anything_is_sent(client, queue, options):
    before = questions(client)
    with pytest.raises(stanchion.InvalidArgument) as raised:
        next(queue.events(**options))
    assert questions(client) == before
    assert f"events(): {dict(zip(map(str, WRONG.values()), WRONG))[str(options)]}" == str(raised.value)


def test_bounds(client, queue):
    before = questions(client)
    with pytest.raises(stanchion.InvalidArgument, match='^events "q": wait is over 365 days$'):
        next(queue.events(wait=366 * 86_400))
    with pytest.raises(stanchion.InvalidArgument, match='^configure "q": events is over 100,000$'):
        queue.configure(events=100_001)
    with pytest.raises(TypeError):
        queue.events(5)
    assert questions(client) == before and queue.stats().events == 100
