"""Queues, blocking."""

import os
import signal
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

import stanchion


def test_a_task_goes_round(client):
    queue = client.queue("q")
    done = queue.enqueue("user:42", b"payload", priority=3, headers={"a": "b"})
    assert (done.id, done.outcome) == ("user:42", stanchion.Outcome.ADDED) and done.version > 0
    assert abs((done.due - datetime.now(timezone.utc)).total_seconds()) < 60
    assert queue.enqueue("user:42").outcome == "kept"
    assert len(queue) == 1 and queue.peek()[0].payload == b"payload"
    (claim,) = queue.claim(max=10, lease=30)
    assert (claim.id, claim.payload, claim.headers) == ("user:42", b"payload", {"a": "b"})
    assert (claim.attempt, claim.priority, claim.max_attempts) == (1, 3, 20) and claim.receipt > 0 and claim.valid
    claim.extend(60)
    assert claim.remaining > 50
    claim.ack()
    claim.ack()
    with pytest.raises(stanchion.StaleReceipt):
        claim.nack()
    assert len(queue) == 0 and queue.claim() == []


def test_who_works_on_a_queue(client):
    queue = client.queue("q")
    assert queue.consumers() == []
    queue.enqueue("a")
    assert queue.get("a").claimed_by is None
    (claim,) = queue.claim()
    by = queue.get("a").claimed_by
    assert isinstance(by, stanchion.ClaimedBy) and by.pid == os.getpid() and by.host
    assert abs((by.since - datetime.now(timezone.utc)).total_seconds()) < 60
    assert queue.consumers() == [stanchion.Consumer(by.label, by.host, by.pid, waiters=0, claims=1)]
    assert queue.stats().waiters == 0
    claim.ack()
    assert queue.consumers() == []


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, "ü"]}, "text", 7, True, [], None])
def test_json(value):
    queue = stanchion.connect("memory:").queue("q")
    queue.enqueue("a", value)
    (claim,) = queue.claim()
    assert claim.json == value and claim.headers["content-type"] == "application/json"


def test_settle_a_claim_in_each_way(client):
    queue = client.queue("q")
    queue.enqueue_many(["back", ("bury", b"x"), stanchion.Task("nack"), {"id": "gone"}])
    claims = {claim.id: claim for claim in queue.claim(max=10)}
    claims["back"].put_back()
    claims["bury"].bury("hopeless")
    claims["nack"].nack(delay=0, reason="later")
    assert queue.remove("gone") and not queue.remove("gone")
    with pytest.raises(stanchion.StaleReceipt):
        claims["gone"].ack()
    dead = queue.list("dead")
    assert [task.id for task in dead] == ["bury"] and dead[0].reason == "hopeless" and dead.next is None
    again = {claim.id: claim.attempt for claim in queue.claim(max=10, wait=2)}
    assert again["back"] == 1
    assert queue.kick(["bury"]) == 1 and queue.get("bury").state == "ready"
    stats = queue.stats()
    assert stats.dead == 0 and stats.max_len is None


def bury(queue, reasons):
    queue.enqueue_many([(id, b"body") for id in reasons])
    for claim in queue.claim(max=100):
        claim.bury(reasons[claim.id])


def test_pages_of_a_listing(client):
    queue = client.queue("q")
    queue.enqueue_many([*((f"user:{number}", b"12345") for number in range(5)), "other"])
    ids, page = [], None
    while True:
        found = queue.list("ready", page, 2, prefix="user:", payloads=False)
        ids += [task.id for task in found]
        assert all(task.payload == b"" and task.headers == {} and task.size >= 5 for task in found)
        page = found.next
        if page is None:
            break
        assert isinstance(page, str)
    assert sorted(ids) == [f"user:{number}" for number in range(5)]
    whole = {task.id: task for task in queue.list(stanchion.TaskState.READY, max=10)}
    assert whole["user:0"].payload == b"12345" and whole["user:0"].size == queue.get("user:0").size
    with pytest.raises(stanchion.InvalidArgument, match="page"):
        queue.list("ready", "user:1")


def test_which_dead_tasks(client):
    queue = client.queue("q")
    bury(queue, {"a": "refused: 1", "b": "refused: 2", "c": "other", "user:1": "x", "user:2": "x"})
    receipts = {task.id: task.receipt for task in queue.list("dead", payloads=False)}
    assert queue.kick(reason="refused", older_than=timedelta(hours=1)) == 0
    assert queue.kick(reason="refused", prefix="a") == 1 and queue.get("a").state == "ready"
    assert queue.remove_dead(receipts=[receipts["c"], 10**9]) == 1 and queue.get("c") is None
    assert queue.remove_dead(reason="refused") == 1 and queue.get("b") is None
    assert queue.remove_dead("user:1") == 1
    assert queue.kick(count=10, older_than=0) == 1 and queue.get("user:2").state == "ready"
    assert queue.remove_dead(older_than=0) == 0


def test_a_claim_is_a_context_manager(client):
    queue = client.queue("q")
    queue.enqueue_many(["a", "b"])
    first, second = queue.claim(max=2)
    with first:
        pass
    with pytest.raises(RuntimeError):
        with second:
            raise RuntimeError("no luck")
    assert [task.id for task in queue.list("scheduled")] == [second.id]
    assert queue.get(second.id).reason == "RuntimeError: no luck"


def test_verdicts_travel_together(client):
    queue = client.queue("q")
    queue.enqueue_many(["a", "b", "c"])
    claims = queue.claim(max=2)
    results, more = queue.settle_and_claim([claim.acked() for claim in claims], max=5)
    assert results == [None, None] and [claim.id for claim in more] == ["c"]
    assert queue.settle([more[0].buried("x")]) == [None]
    assert isinstance(queue.settle([more[0].acked()])[0], stanchion.StaleReceipt)


def test_policies_and_times(client):
    queue = client.queue("q")
    due = datetime.now(timezone.utc) + timedelta(hours=1)
    assert abs((queue.enqueue("a", due=due).due - due).total_seconds()) < 0.01
    assert queue.enqueue("a", on_duplicate=stanchion.Replace()).outcome == "replaced"
    assert queue.enqueue("b", delay=5, on_duplicate=stanchion.Debounce(max_wait=60)).outcome == "added"
    assert queue.enqueue("c", on_duplicate=stanchion.Throttle(window=timedelta(minutes=1))).outcome == "added"
    throttled = queue.enqueue("c", on_duplicate=stanchion.Throttle(window=60))
    assert (throttled.outcome, throttled.due, throttled.version) == ("throttled", None, 0)
    assert queue.reschedule("b", due).outcome == "moved" and not queue.reschedule("nobody", due)
    version = queue.get("a").version
    refused = queue.remove("a", version=version + 1)
    assert not refused and refused.other_version == version
    assert queue.remove("a", version=version)


def test_limits_pause_pop_purge(client):
    queue = client.queue("q")
    queue.configure(max_len=2, dead_age=timedelta(days=1))
    results = queue.enqueue_many(["a", "b", "c"])
    assert isinstance(results[2], stanchion.QueueFull) and results[1].outcome == "added"
    with pytest.raises(stanchion.QueueFull):
        queue.enqueue("d")
    assert (queue.stats().max_len, queue.stats().dead_age) == (2, 86400)
    queue.configure(max_len=None)
    queue.enqueue("d")
    queue.pause()
    assert queue.claim() == [] and queue.stats().paused
    queue.resume()
    assert [task.id for task in queue.pop(2)] == ["a", "b"]
    assert queue.purge() == 1 and bool(queue) and "q" in client.queue_names()


def test_several_queues(client):
    client.queue("low").enqueue("x")
    queues = client.queues(["high", "low"])
    (claim,) = queues.claim()
    assert claim.queue == "low"
    claim.ack()


def test_a_waiting_claim_is_woken(client):
    queue = client.queue("q")
    timer = threading.Timer(0.2, queue.enqueue, ["late"])
    timer.start()
    begin = time.monotonic()
    (claim,) = queue.claim(wait=10)
    assert time.monotonic() - begin < 5
    claim.ack()


@pytest.mark.parametrize("options", [
    {"payload": object()}, {"payload": float("nan")}, {"payload": b"x" * (17 << 20)}, {"priority": 256},
    {"priority": -1}, {"priority": True}, {"max_attempts": 0}, {"max_attempts": 2**70}, {"delay": -1},
    {"delay": "5"}, {"due": float("nan")}, {"due": 1e15}, {"due": "tomorrow"}, {"on_duplicate": "replace"},
    {"on_duplicate": stanchion.Throttle(window=0)}, {"expires": 0}, {"id": ""}, {"id": "a\nb"}, {"id": "\ud800"},
    {"headers": {"a": 1}}, {"delay": 1, "due": 1e9}])
def test_bad_tasks(options):
    queue = stanchion.connect("memory:").queue("q")
    with pytest.raises(stanchion.InvalidArgument):
        queue.enqueue(**{"id": "a", **options})
    assert len(queue) == 0


@pytest.mark.parametrize("options", [{"max": 0}, {"max": 1001}, {"max": True}, {"max": "1"}, {"lease": 0},
                                     {"wait": float("inf")}])
def test_bad_claims(options):
    with pytest.raises(stanchion.InvalidArgument):
        stanchion.connect("memory:").queue("q").claim(**options)


def test_a_handler_that_returns_a_coroutine_has_failed(client):
    queue = client.queue("q")
    queue.enqueue("a", max_attempts=1)

    async def later():
        pass

    report = queue.worker(lambda claim: later()).run(until_empty=True)
    assert report.dead == 1 and "nobody awaits" in queue.get("a").reason


def test_a_handler_that_returns_a_generator_has_failed(client):
    queue = client.queue("q")
    queue.enqueue("a", max_attempts=1)
    report = queue.worker(lambda claim: (step for step in "abc")).run(until_empty=True)
    assert report.dead == 1 and "nobody runs" in queue.get("a").reason


def test_a_worker_until_empty(client):
    queue, seen, hooks = client.queue("q"), [], []
    queue.enqueue_many([(f"t{number}", number) for number in range(30)])
    queue.enqueue("bad", 99, max_attempts=1)

    def handler(claim):
        if claim.json == 99:
            raise RuntimeError("no luck")
        seen.append(claim.json)

    worker = queue.worker(
        handler, concurrency=4, before=lambda claim: hooks.append("before"), after=lambda claim: hooks.append("after"),
        failed=lambda claim, error: hooks.append(str(error)))
    report = worker.run(until_empty=True)
    assert sorted(seen) == list(range(30)) and (report.completed, report.dead) == (30, 1)
    assert hooks.count("before") == 31 and hooks.count("after") == 30 and "no luck" in hooks
    assert queue.get("bad").reason == "RuntimeError: no luck" and len(queue) == 0


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_a_worker_drains(client, how):
    queue, done = client.queue("q"), []
    queue.enqueue_many(["a", "b"])

    def handler(claim):
        if how == "stop":
            worker.stop()
        else:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)
        done.append(claim.id)

    before = signal.getsignal(signal.SIGTERM)
    worker = queue.worker(handler, concurrency=1)
    assert worker.run().completed == 1
    assert len(done) == 1 and len(queue) == 1 and signal.getsignal(signal.SIGTERM) is before


def test_the_heartbeat_goes_on_while_the_gil_is_held(client):
    queue = client.queue("q")
    queue.enqueue("a")

    def handler(claim):
        # One C call that holds the GIL for longer than the lease.
        begin = time.monotonic()
        while time.monotonic() - begin < 3.5:
            sum(range(3_000_000))
        assert claim.valid

    assert queue.worker(handler, lease=2, max_run=30).run(until_empty=True).completed == 1
