"""What runs of tasks say and how they end: kinds, timeouts, back-offs, progress, cancels, results."""

import asyncio
import threading
from datetime import datetime, timedelta, timezone

import pytest

import stanchion
from stanchion import aio, testing


def test_a_task_says_how_it_runs(client):
    queue = client.queue("q")
    queue.enqueue("plain")
    queue.enqueue_many([
        stanchion.Task("list", kind="send", timeout=1.5, backoff=[1, timedelta(minutes=1)], keep_result=60),
        {"id": "growing", "backoff": stanchion.Exponential(timedelta(seconds=1), 3, 60, 0)}])
    plain, pauses, growing = (queue.get(id) for id in ("plain", "list", "growing"))
    assert (plain.kind, plain.timeout, plain.backoff, plain.failures, plain.progress, plain.cancelled) == (
        None, None, None, [], b"", False)
    assert (pauses.kind, pauses.timeout, pauses.backoff, pauses.headers) == ("send", 1.5, [1, 60], {})
    assert growing.backoff == stanchion.Exponential(1, 3, 60, 0)
    assert {claim.id: claim.kind for claim in queue.claim(max=10)} == {"plain": None, "list": "send", "growing": None}
    # What comes out may go in again.
    for found in (pauses, growing):
        queue.enqueue(f"{found.id} again", backoff=found.backoff)
        assert queue.get(f"{found.id} again").backoff == found.backoff


def test_a_failed_run_waits_as_its_backoff_says():
    clock = testing.Clock()
    with testing.memory_client(clock) as client:
        queue = client.queue("q")
        queue.enqueue("a", b"", backoff=[5, 7])
        for attempt, pause in enumerate([5, 7, 7], 1):
            (claim,) = queue.claim()
            claim.nack(reason=f"failure {attempt}")
            clock.advance(pause - 0.5)
            assert queue.claim() == []
            clock.advance(0.5)
        failures = queue.get("a").failures
        assert [failure.reason for failure in failures] == ["failure 1", "failure 2", "failure 3"]
        assert [(failures[i + 1].at - failures[i].at).total_seconds() for i in range(2)] == [5, 7]


@pytest.mark.parametrize("of_task", [True, False], ids=["of the task", "of the claim"])
def test_a_run_that_takes_too_long_has_failed(client, of_task):
    queue = client.queue("q")
    queue.enqueue("a", timeout=0.2 if of_task else None, backoff=[60])
    before = datetime.now(timezone.utc)
    (claim,) = queue.claim(**({} if of_task else {"timeout": timedelta(milliseconds=200)}))
    assert claim.lost.wait(30) and claim.lost.reason == "timeout" and not claim.valid
    found = wait_until(lambda: queue.get("a"), lambda found: found.state == "scheduled")
    assert found.reason == "timeout" and found.attempts == 1
    (failure,) = found.failures
    assert failure.reason == "timeout" and abs((failure.at - before).total_seconds()) < 60


def wait_until(look, is_it):
    for _ in range(3_000):
        found = look()
        if is_it(found):
            return found
        threading.Event().wait(0.01)
    raise AssertionError(found)


def test_progress_is_shown_while_it_runs(client):
    queue = client.queue("q")
    queue.enqueue("a")
    (claim,) = queue.claim()
    for said, shown in ((b"\0\xff", b"\0\xff"), ("halb fertig: ½", "halb fertig: ½".encode()), (bytearray(b"x"), b"x"),
                        (memoryview(b"axb")[::2], b"ab"), ("", b"")):
        claim.progress(said)
        assert queue.get("a").progress == queue.list("claimed")[0].progress == shown
    claim.progress("gone with the run")
    claim.put_back()
    assert queue.get("a").progress == b""
    with pytest.raises(stanchion.LeaseLost):
        claim.progress("late")


def test_a_cancel_says_what_it_did(client):
    queue = client.queue("q")
    assert queue.cancel("a") == stanchion.TaskCancelled("absent") and not queue.cancel("a")
    queue.enqueue("a", delay=60)
    assert queue.cancel("a").outcome == "removed" and queue.get("a") is None
    queue.enqueue("a")
    (claim,) = queue.claim(lease=3, renew=True)
    assert queue.cancel("a") == stanchion.TaskCancelled("running") and queue.get("a").cancelled
    assert claim.lost.wait(30) and claim.lost.reason == "cancelled"
    claim.ack("all the same")
    assert queue.result("a").result == b"all the same"


@pytest.mark.parametrize("given, kept", [
    (b"\0\xff", b"\0\xff"), ("ü", "ü".encode()), (bytearray(b"x"), b"x"), (memoryview(b"x"), b"x"), (b"", b"")])
def test_a_result_is_kept(client, given, kept):
    queue = client.queue("q")
    done = queue.enqueue("alone")
    queue.enqueue("with others")
    claims = {claim.id: claim for claim in queue.claim(max=2)}
    assert queue.result("alone") == stanchion.TaskResult("pending", None, None, None)
    claims["alone"].ack(given)
    assert queue.settle([claims["with others"].acked(given)]) == [None]
    assert queue.result("alone", done.version) == stanchion.TaskResult("done", kept, done.version, None)
    assert queue.result("with others").result == kept and queue.result("alone")
    assert queue.result("alone", done.version + 1).outcome == "gone"


def test_what_has_no_result_says_why(client):
    queue = client.queue("q")
    queue.enqueue_many(["done", "dead", "pending"])
    claims = {claim.id: claim for claim in queue.claim(max=3)}
    claims["done"].ack()
    claims["dead"].bury("hopeless")
    for id, outcome, reason in (("done", "gone", None), ("never", "gone", None), ("dead", "dead", "hopeless"),
                                ("pending", "pending", None)):
        found = queue.result(id)
        assert found == stanchion.TaskResult(outcome, None, None, reason) and not found
        with pytest.raises(LookupError, match=f"^there is no result, for the task is {outcome}{': hopeless' if reason else ''}$"):
            found.json()
    queue.enqueue("json")
    (claim,) = queue.claim()
    claim.ack('{"a": [1, "ü"]}')
    assert queue.result("json").json() == {"a": [1, "ü"]}


def test_a_result_is_waited_for(client):
    queue = client.queue("q")
    done = queue.enqueue("a")
    (claim,) = queue.claim()
    assert queue.result("a", wait=0.05).outcome == "pending"
    timer = threading.Timer(0.1, claim.ack, ["soon"])
    timer.start()
    assert queue.result("a", version=done.version, wait=60).result == b"soon"
    timer.join()


def test_a_result_is_kept_as_long_as_the_task_says():
    clock = testing.Clock()
    with testing.memory_client(clock) as client:
        queue = client.queue("q")
        queue.enqueue_many([{"id": "an hour"}, {"id": "a minute", "keep_result": 60}])
        for claim in queue.claim(max=2):
            claim.ack(b"x")
        for seconds, left in ((59, ["a minute", "an hour"]), (2, ["an hour"]), (3_600, [])):
            clock.advance(seconds)
            assert [id for id in ("a minute", "an hour") if queue.result(id)] == left


def test_a_worker_times_runs_and_is_told_of_cancels(client):
    queue, seen = client.queue("q"), {}
    queue.enqueue("slow", backoff=[0], max_attempts=1)
    queue.enqueue("own time", timeout=60)
    queue.enqueue("cancelled", timeout=60)

    def handle(claim):
        if claim.id == "own time":
            return
        if claim.id == "cancelled":
            queue.cancel(claim.id)
        assert claim.lost.wait(30)
        seen[claim.id] = claim.lost.reason
        raise RuntimeError(claim.lost.reason)

    worker = queue.worker(handle, concurrency=3, timeout=0.3, lease=3)
    report = worker.run(until_empty=True)
    assert seen == {"slow": "timeout", "cancelled": "cancelled"} and report.completed == 1
    assert queue.get("slow").state == "dead" and queue.get("slow").reason == "timeout"
    assert queue.get("cancelled") is None and queue.result("cancelled").outcome == "gone"


def test_asyncio(url):
    async def main():
        async with aio.connect(url) as client:
            queue, ended = client.queue("q"), []
            done = await queue.enqueue("a", kind="send", timeout=60, backoff=stanchion.Exponential(2), keep_result=60)
            (claim,) = await queue.claim(timeout=1)
            assert claim.kind == "send"
            await claim.progress("half")
            found = await queue.get("a")
            assert (found.progress, found.timeout, found.backoff) == (b"half", 60, stanchion.Exponential(2))
            waiting = asyncio.ensure_future(queue.result("a", done.version, wait=60))
            await asyncio.sleep(0.05)
            await claim.ack('"done"')
            assert (await waiting).json() == "done"
            await queue.enqueue_many(["b", "c"])
            (claim,) = await queue.claim()
            settled, (other,) = await queue.settle_and_claim([claim.acked(b"x")], timeout=60)
            assert settled == [None] and (await queue.result(claim.id)).result == b"x"
            assert (await queue.cancel(other.id)).outcome == "running" and not await queue.cancel("never")
            await queue.purge()
            # A wait that is cancelled leaves nothing behind.
            await queue.enqueue("slow", max_attempts=1)
            waiting = asyncio.ensure_future(queue.result("slow", wait=60))
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

            async def handle(claim):
                if claim.id == "cancelled":
                    await queue.cancel(claim.id)
                try:
                    await asyncio.sleep(60)
                finally:
                    ended.append((claim.id, claim.lost.reason))

            await queue.enqueue("cancelled", timeout=60)
            await queue.worker(handle, timeout=0.3, lease=3, concurrency=2).run(until_empty=True)
            assert sorted(ended) == [("cancelled", "cancelled"), ("slow", "timeout")]
            assert (await queue.result("slow")).reason == "timeout" and (await queue.result("cancelled")).outcome == "gone"

    asyncio.run(asyncio.wait_for(main(), 120))


WRONG = {
    lambda queue, claim: queue.enqueue("a", kind=7): "enqueue(): kind must be a text that UTF-8 can encode, not int 7",
    lambda queue, claim: queue.enqueue("a", kind=""):
        'enqueue "q": task "a": kind "" is not 1 to 128 bytes without control characters',
    lambda queue, claim: queue.enqueue("a", timeout="1"):
        "enqueue(): timeout must be a number of seconds or a timedelta, not str '1'",
    lambda queue, claim: queue.enqueue("a", timeout=0): 'enqueue "q": task "a": timeout 0 s is not between 1 ms and 365 days',
    lambda queue, claim: queue.enqueue("a", keep_result=3e6):
        'enqueue "q": task "a": keep_result (3000000s) is not between 1 ms and 30 days',
    lambda queue, claim: queue.enqueue("a", backoff=5):
        "enqueue(): backoff must be a list of pauses in seconds, or Exponential(base), not int 5",
    lambda queue, claim: queue.enqueue_many([{"id": "a", "backoff": {"base": 5}}]):
        "enqueue_many(): backoff must be a list of pauses in seconds, or Exponential(base), not dict {'base': 5}",
    lambda queue, claim: queue.enqueue("a", backoff=[1, "x"]):
        "enqueue(): backoff must be a number of seconds or a timedelta, not str 'x'",
    lambda queue, claim: queue.enqueue("a", backoff=[]): 'enqueue "q": task "a": backoff has 0 pauses, not 1 to 100',
    lambda queue, claim: queue.enqueue("a", backoff=stanchion.Exponential(1, jitter="x")):
        "enqueue(): backoff must be a number, not str 'x'",
    lambda queue, claim: queue.enqueue("a", backoff=stanchion.Exponential(1, factor=0.5)):
        'enqueue "q": task "a": the factor 0.5 of backoff is not between 1 and 1000',
    lambda queue, claim: queue.enqueue("a", headers={"stanchion-kind": "x"}):
        'enqueue "q": task "a": header "stanchion-kind": names that begin with "stanchion-" are the library\'s own',
    lambda queue, claim: queue.claim(timeout=-1): "claim(): timeout must be a time span from 0 s on, not int -1",
    lambda queue, claim: queue.worker(print, timeout=0): 'work "q": timeout 0 s is not between 1 ms and 365 days',
    lambda queue, claim: queue.cancel(7): "cancel(): id must be a text that UTF-8 can encode, not int 7",
    lambda queue, claim: queue.result("a", "1"): "result(): version must be a whole number from 0 on, not str '1'",
    lambda queue, claim: queue.result("a", wait=None): "result(): wait must be a number of seconds or a timedelta, not None",
    lambda queue, claim: claim.ack({"a": 1}):
        "ack(): result must be bytes, or a text that UTF-8 can encode, not dict {'a': 1}",
    lambda queue, claim: claim.acked("\ud800"): "acked(): result must be bytes, or a text that UTF-8 can encode, not str",
    lambda queue, claim: claim.ack(bytes((1 << 20) + 1)): 'ack "q/mine": the result has more than 1048576 bytes (1048577)',
    lambda queue, claim: claim.acked(bytes((1 << 20) + 1)): 'ack "q/mine": the result has more than 1048576 bytes (1048577)',
    lambda queue, claim: claim.progress(None): "progress(): progress must be bytes, or a text that UTF-8 can encode, not None",
    lambda queue, claim: claim.progress("x" * 4097): 'progress "q/mine": the progress has more than 4096 bytes (4097)',
}


@pytest.mark.parametrize("connect", [stanchion.connect, aio.connect], ids=["blocking", "asyncio"])
@pytest.mark.parametrize("call", WRONG, ids=list(WRONG.values()))
def test_bad_arguments_are_refused(connect, call):
    async def main():
        async def got(value):
            return await value if hasattr(value, "__await__") else value

        client = await got(connect("memory:"))
        queue = client.queue("q")
        await got(queue.enqueue("mine"))
        (claim,) = await got(queue.claim())
        with pytest.raises(stanchion.InvalidArgument) as error:
            await got(call(queue, claim))
        assert str(error.value) == WRONG[call]
        # Nothing was sent: the claim is as it was, and can be settled.
        await got(claim.ack(b"x"))
        await got(client.close())

    asyncio.run(main())
