"""Bad input is refused with a typed exception, before anything is sent."""

import asyncio
import logging
import subprocess
import sys
import traceback
from datetime import timedelta
from decimal import Decimal

import pytest

import stanchion
from stanchion import aio

NO_TIMES = [-1, -0.001, float("nan"), float("inf"), -float("inf"), 2.0**64, 2**64, 10**400, "10", b"1", True, False,
            Decimal("5"), timedelta(seconds=-1), timedelta.max, [], object()]
NO_COUNTS = [-1, 1.0, float("nan"), 2**64, "10", True, Decimal("5"), timedelta(seconds=1), [], object()]
NO_FLAGS = [0, 1, "yes", []]


def calls(client, wait):
    """Every option that takes a time, a count or a flag, by name: a call with it."""
    lock, queue, lease = client.lock("a"), client.queue("q"), wait(client.lock("mine").acquire(ttl=60))
    (claim,) = wait(queue.claim())
    policies = {"max_wait": stanchion.Debounce, "window": stanchion.Throttle}
    times = {
        "ttl": lambda bad: lock.acquire(ttl=bad), "wait": lambda bad: lock.acquire(bad),
        "max_hold": lambda bad: lock.acquire(max_hold=bad), "hold": lambda bad: lock.try_acquire(ttl=bad),
        "adopt": lambda bad: lock.acquire(adopt_unexpiring=bad), "lock": lambda bad: client.lock("b", ttl=bad).acquire(),
        "extend": lease.extend, "cooldown": lambda bad: lease.release(cooldown=bad), "handle": lease.detach,
        "delay": lambda bad: queue.enqueue("x", delay=bad), "expires": lambda bad: queue.enqueue("x", expires=bad),
        **{name: lambda bad, policy=policy: queue.enqueue("x", on_duplicate=policy(bad))
           for name, policy in policies.items()},
        "lease": lambda bad: queue.claim(lease=bad), "claim wait": lambda bad: queue.claim(wait=bad),
        "max_run": lambda bad: queue.claim(max_run=bad), "claim extend": claim.extend,
        "nack": lambda bad: claim.nack(bad), "throttle": claim.throttle, "throttled": claim.throttled,
        "per": lambda bad: queue.configure(rate=stanchion.Rate(1, bad)),
        "per of a key": lambda bad: queue.limit_key("k", rate=stanchion.Rate(1, bad)), "dead_age": lambda bad: queue.configure(dead_age=bad),
        "older_than": lambda bad: queue.remove_dead(older_than=bad),
        "jitter": lambda bad: queue.schedule("x", "@daily", jitter=bad),
        "schedule expires": lambda bad: queue.schedule("x", "@daily", expires=bad),
        "worker lease": lambda bad: queue.worker(print, lease=bad),
        "worker run": lambda bad: queue.worker(print, max_run=bad),
        "timeout": lambda bad: queue.enqueue("x", timeout=bad), "keep_result": lambda bad: queue.enqueue("x", keep_result=bad),
        "backoff": lambda bad: queue.enqueue("x", backoff=[bad]),
        "base": lambda bad: queue.enqueue("x", backoff=stanchion.Exponential(bad)),
        "max of backoff": lambda bad: queue.enqueue("x", backoff=stanchion.Exponential(1, max=bad)),
        "claim timeout": lambda bad: queue.claim(timeout=bad), "worker timeout": lambda bad: queue.worker(print, timeout=bad),
        "result wait": lambda bad: queue.result("x", wait=bad), "events wait": lambda bad: first(queue.events(wait=bad)),
    }
    counts = {
        "priority": lambda bad: queue.enqueue("x", priority=bad), "max": lambda bad: queue.claim(max=bad),
        "max_attempts": lambda bad: queue.enqueue("x", max_attempts=bad), "pop": queue.pop, "peek": queue.peek,
        "list": lambda bad: queue.list("ready", max=bad), "page": lambda bad: queue.list("ready", page=bad),
        "version": lambda bad: queue.remove("x", version=bad), "result version": lambda bad: queue.result("x", bad), "kick": queue.kick,
        "kick count": lambda bad: queue.kick(count=bad), "remove_dead": lambda bad: queue.remove_dead(count=bad),
        "receipts": lambda bad: queue.kick(receipts=[bad]),
        "missed": lambda bad: queue.schedule("x", "@daily", missed=bad),
        "schedule priority": lambda bad: queue.schedule("x", "@daily", priority=bad),
        "schedule max_attempts": lambda bad: queue.schedule("x", "@daily", max_attempts=bad),
        "generation": lambda bad: queue.sync_schedules("app", bad, []),
        "list_schedules": lambda bad: queue.list_schedules(max=bad),
        "page of schedules": lambda bad: queue.list_schedules(bad),
        "max_len": lambda bad: queue.configure(max_len=bad), "dead_max": lambda bad: queue.configure(dead_max=bad),
        "dead_bytes": lambda bad: queue.configure(dead_bytes=bad), "events": lambda bad: queue.configure(events=bad),
        "max_running": lambda bad: queue.configure(max_running=bad),
        "key_concurrency": lambda bad: queue.configure(key_concurrency=bad),
        "key_rate": lambda bad: queue.configure(key_rate=stanchion.Rate(bad, 1)),
        "burst": lambda bad: queue.configure(rate=stanchion.Rate(1, 1, bad)),
        "own concurrency": lambda bad: queue.limit_key("k", concurrency=bad),
        "weight": lambda bad: queue.limit_key("k", weight=bad), "list_keys": lambda bad: queue.list_keys(max=bad),
        "page of keys": lambda bad: queue.list_keys(bad), "list_flows": lambda bad: queue.list_flows(max=bad),
        "page of flows": lambda bad: queue.list_flows(bad),
        "after": lambda bad: first(queue.events(after=bad)), "locks": client.locks,
        "queue_names": client.queue_names, "concurrency": lambda bad: queue.worker(print, concurrency=bad),
    }
    flags = {
        "renew": lambda bad: lock.acquire(renew=bad), "fail_fast": lambda bad: lock.acquire(fail_fast=bad),
        "claim renew": lambda bad: queue.claim(renew=bad), "intake": lambda bad: queue.configure(intake=bad),
        "payloads": lambda bad: queue.list("ready", payloads=bad),
        "paused": lambda bad: queue.schedule("x", "@daily", paused=bad),
    }
    return lease, claim, [(NO_TIMES, times), (NO_COUNTS, counts), (NO_FLAGS, flags)]


def first(iterator):
    """The first one, now or to be awaited."""
    async def awaited():
        return await iterator.__anext__()

    return next(iterator) if hasattr(iterator, "__next__") else awaited()


async def later(claim=None):
    """A function whose body has not run yet when its call returns."""


def bit_by_bit(claim=None):
    yield


@pytest.mark.parametrize("bad", [5, None, later, bit_by_bit])
def test_a_function_that_would_never_run_is_refused(bad):
    client = stanchion.connect("memory:")
    with pytest.raises(stanchion.InvalidArgument):
        client.queue("q").worker(bad)
    with pytest.raises(stanchion.InvalidArgument):
        client.lock("a").hold()(bad)


def test_a_function_that_cannot_be_awaited_is_refused():
    async def main():
        async with aio.connect("memory:") as client:
            client.queue("q").worker(later)
            for bad in [5, None, bit_by_bit]:
                with pytest.raises(stanchion.InvalidArgument):
                    client.queue("q").worker(bad)
                with pytest.raises(stanchion.InvalidArgument):
                    client.lock("a").hold()(bad)

    asyncio.run(main())


def test_a_client_that_is_not_open_yet_says_so():
    with pytest.raises(AttributeError, match="await stanchion.aio.connect"):
        aio.connect("memory:").lock("a")


@pytest.fixture(params=["blocking", "asyncio"])
def face(request):
    """A client with one task in the queue, and what waits for its calls."""
    if request.param == "blocking":
        with stanchion.connect("memory:") as client:
            client.queue("q").enqueue("task")
            yield client, lambda result: result
        return
    loop = asyncio.new_event_loop()

    def wait(result):
        async def awaited():
            return await result if asyncio.iscoroutine(result) else result

        return loop.run_until_complete(awaited())

    client = loop.run_until_complete(aio.connect("memory:")._open())
    wait(client.queue("q").enqueue("task"))
    yield client, wait
    wait(client.close())
    loop.close()


def test_times_counts_and_flags(face):
    client, wait = face
    lease, claim, groups = calls(client, wait)
    tasks = wait(client.queue("q").stats()).enqueued
    accepted = []
    for bads, options in groups:
        for name, call in options.items():
            for bad in bads:
                try:
                    wait(call(bad))
                    accepted.append((name, bad))
                except stanchion.InvalidArgument as error:
                    assert isinstance(error, ValueError)
    # An age that no task has, an id, and no ids.
    assert accepted == [("older_than", timedelta.max), ("kick", "10"), ("kick", [])]
    assert lease.valid and claim.valid and wait(client.queue("q").stats()).enqueued == tasks
    assert wait(client.queue("q").stats()).schedules == 0
    assert not wait(client.lock("a").locked())


DEAD = [{}, {"ids": None}, {"reason": ""}, {"prefix": ""}, {"reason": "", "prefix": "", "older_than": None}]
TOO_MUCH = [{"ids": ["a"], "count": 1}, {"ids": 1, "count": 1}, {"ids": [], "receipts": []}, {"receipts": [1], "count": 1}]


@pytest.mark.parametrize("verb", ["kick", "remove_dead"])
def test_which_dead_tasks_are_meant_is_said(face, verb):
    client, wait = face
    queue = client.queue("dead")
    wait(queue.enqueue("a"))
    (claim,) = wait(queue.claim())
    wait(claim.bury("x"))
    for options in DEAD:
        needs = f"{verb} needs ids, receipts, a count, a reason, a prefix or older_than"
        with pytest.raises(stanchion.InvalidArgument, match=needs):
            wait(getattr(queue, verb)(**options))
    for options in TOO_MUCH:
        with pytest.raises(stanchion.InvalidArgument, match=f"{verb} takes one of ids, receipts and a count"):
            wait(getattr(queue, verb)(**options))
    for options in [{"count": 0}, {"ids": "a", "reason": 5}, {"prefix": b"a"}, {"receipts": 5}, {"receipts": ["1"]}]:
        with pytest.raises(stanchion.InvalidArgument):
            wait(getattr(queue, verb)(**options))
    assert wait(getattr(queue, verb)([])) == wait(getattr(queue, verb)(receipts=[])) == 0
    assert wait(queue.stats()).dead == 1


def test_values_at_the_limits(face):
    client, wait = face
    lock, queue = client.lock("a"), client.queue("q")
    for call in (
            lambda: lock.acquire(ttl=0), lambda: lock.acquire(ttl=0.049), lambda: lock.acquire(ttl=366 * 86400),
            lambda: lock.acquire(max_hold=1), lambda: lock.acquire(label="x" * 257), lambda: queue.claim(max=0),
            lambda: queue.claim(max=1001), lambda: queue.enqueue("x", priority=256),
            lambda: queue.enqueue("x", max_attempts=0), lambda: queue.configure(max_len=0),
            lambda: queue.worker(print, concurrency=0), lambda: queue.worker(print, concurrency=1001),
            lambda: queue.worker(print, concurrency=10**9)):
        with pytest.raises(stanchion.InvalidArgument):
            wait(call())
    wait(wait(lock.acquire(0, ttl=0.05)).release())
    wait(wait(lock.acquire(timedelta(0), ttl=timedelta(days=365))).release())
    assert wait(queue.enqueue("x", delay=0, priority=255, max_attempts=1)).outcome == "added"


BAD_NAMES = ["", "a\0b", "a\nb", "\ud800", "x" * 65_536, 7, None, b"a", ["a"]]


@pytest.mark.parametrize("bad", BAD_NAMES, ids=lambda bad: repr(bad)[:12])
def test_bad_names(face, bad):
    client, wait = face
    for call in (
            lambda: client.lock(bad).acquire(), lambda: client.queue(bad).enqueue("x"),
            lambda: client.queues([bad]).claim(), lambda: client.queue("q").get(bad),
            lambda: client.queue("q").remove(bad), lambda: client.queue("q").reschedule(bad, 5),
            lambda: client.queue("q").kick([bad]), lambda: client.queue("q").cancel(bad),
            lambda: client.queue("q").result(bad), lambda: client.queue("q").schedule(bad, "@daily"),
            lambda: client.queue("q").sync_schedules(bad, 1, []), lambda: client.queue("q").get_schedule(bad),
            lambda: client.queue("q").pause_schedule(bad), lambda: client.queue("q").resume_schedule(bad),
            lambda: client.queue("q").run_schedule(bad), lambda: client.queue("q").remove_schedule(bad),
            lambda: client.queue("q").enqueue_flow(bad, ["x"]), lambda: client.queue("q").add_to_flow(bad, ["x"]),
            lambda: client.queue("q").get_flow(bad), lambda: client.queue("q").cancel_flow(bad),
            lambda: client.queue("q").retry_flow(bad)):
        with pytest.raises(stanchion.InvalidArgument):
            wait(call())
    if bad is not None:  # No id: a random one.
        with pytest.raises(stanchion.InvalidArgument):
            wait(client.queue("q").enqueue(bad))


@pytest.mark.parametrize("bad", ["{", "}", "{}", "a}{b", "{a}{b}"])
def test_bad_braces(face, bad):
    client, wait = face
    for call in (lambda: client.lock(bad).acquire(), lambda: client.queue(bad).enqueue("x")):
        with pytest.raises(stanchion.InvalidArgument):
            wait(call())
    assert wait(client.queue("q").enqueue(bad)).id == bad


def test_strange_names_are_names_of_their_own(client):
    names = ["{a}b", "a{b}", "x", "x:meta", "{x}:meta", "x:", ":x", "ü", "u\u0308", " ", "*", "[x]"]
    leases = [client.lock(name).acquire(ttl=60) for name in names]
    assert [lease.fence for lease in leases] and sorted(client.locks()) == sorted(names)
    for name in names:
        client.queue(name).enqueue(name, name.encode())
    assert sorted(client.queue_names()) == sorted(names)
    for name, lease in zip(names, leases):
        assert [task.payload for task in client.queue(name).pop(10)] == [name.encode()]
        lease.release()
        assert not client.lock(name).locked()


@pytest.mark.parametrize("wrong", [
    lambda q: q.enqueue_many("abc"), lambda q: q.enqueue_many(7), lambda q: q.enqueue_many([7]),
    lambda q: q.enqueue_many([("a", b"", *[None] * 12, "one too many")]),
    lambda q: q.enqueue_many([{"name": "a"}]), lambda q: q.enqueue("a", headers=7), lambda q: q.enqueue("a", headers=["x"]),
    lambda q: q.enqueue("a", headers={"a": "\ud800"}), lambda q: q.enqueue("a", payload={1, 2}), lambda q: q.kick(1.5),
    lambda q: q.list("nowhere"), lambda q: q.settle("abc"), lambda q: q.settle([object()]),
    lambda q: q.enqueue("a", due="tomorrow"), lambda q: q.enqueue("a", due=None, delay="1"), lambda q: q.reschedule("a", None),
    lambda q: q.enqueue("a", on_duplicate=stanchion.Debounce(None))])
def test_wrong_shapes(wrong):
    with stanchion.connect("memory:") as client:
        with pytest.raises(stanchion.InvalidArgument):
            wrong(client.queue("q"))
        with pytest.raises(stanchion.InvalidArgument):
            client.queues("ab")


@pytest.mark.parametrize("options", [
    {"timeout": 0}, {"timeout": -1}, {"timeout": "5"}, {"timeout": float("nan")}, {"foreign_share": 1}, {"label": 7},
    {"label": "a\nb"}, {"lock_prefix": ""}, {"lock_prefix": "\0"}, {"tls_cert": "cert.pem"}, {"tls_ca": 7},
    {"tls_ca": "ca.pem"}])
def test_bad_options_of_a_client(options):
    if options != {"lock_prefix": ""}:  # Without a prefix, names are keys.
        with pytest.raises(stanchion.InvalidArgument):
            stanchion.connect("memory:", **options)


def test_passwords_are_not_told(caplog):
    caplog.set_level(logging.DEBUG)
    url = "redis://user:c4n4ry-pa55w0rd@127.0.0.1:1/"
    for options in ({"timeout": 0.2}, {"timeout": -1}, {"tls_ca": "/nowhere"}):
        with pytest.raises(stanchion.StanchionError) as raised:
            stanchion.connect(url, **options)
        told = "".join(traceback.format_exception(type(raised.value), raised.value, None))
        assert "c4n4ry-pa55w0rd" not in f"{told} {raised.value!r} {raised.value.__dict__} {caplog.text}"


def test_payloads_of_every_size(client):
    queue = client.queue("q")
    queue.enqueue("empty", b"")
    queue.enqueue("most", bytes((16 << 20) - 64))
    for kind in (bytes, bytearray, lambda size: memoryview(bytearray(size))):
        with pytest.raises(stanchion.InvalidArgument):
            queue.enqueue("over", kind((16 << 20) + 1))
    results = {claim.id: claim for _ in range(2) for claim in queue.claim(max=1)}
    assert (results["empty"].payload, len(results["most"].payload)) == (b"", (16 << 20) - 64)
    assert queue.settle([claim.acked() for claim in results.values()]) == [None, None]
    assert len(queue) == 0


def test_a_payload_of_most_of_the_memory_is_not_copied(shared_url):
    program = (
        "import resource, stanchion, sys\n"
        "client = stanchion.connect(sys.argv[1]); queue = client.queue('q'); queue.enqueue('before')\n"
        "payload = bytearray(1 << 30)\n"  # Not touched, so it takes no memory yet; a copy would take address space.
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))\n"
        "try:\n    queue.enqueue('big', payload)\n"
        "except stanchion.InvalidArgument:\n    print('refused')\n"
        "print(queue.enqueue('after').outcome.value, len(queue))\n")
    done = subprocess.run([sys.executable, "-c", program, shared_url], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["refused", "added", "2"], done.stderr
