"""An error about an argument says whose it is, its name, what it must be and what was given; and what to write instead of what
other packages call it."""

import asyncio
import pickle
from datetime import timedelta

import pytest

import stanchion
from stanchion import aio


async def async_handler(claim):
    pass


def generator(claim):
    yield


WRONG = {
    lambda client: client.lock("a").acquire(wait="5"):
        "acquire(): wait must be a number of seconds or a timedelta, not str '5'",
    lambda client: client.lock("a").acquire(False):
        "acquire(): wait must be a number of seconds or a timedelta, not bool False; so as not to wait say try_acquire()",
    lambda client: client.lock("a").hold(True):
        "hold(): wait must be a number of seconds or a timedelta, not bool True; so as not to wait say try_acquire()",
    lambda client: client.lock("a").acquire(ttl=timedelta(seconds=-1)):
        "acquire(): ttl must be a time span from 0 s on, not timedelta datetime.timedelta(days=-1, seconds=86399)",
    lambda client: client.lock("a").try_acquire(renew=1): "try_acquire(): renew must be True or False, not int 1",
    lambda client: client.lock(42): "lock(): name must be a text that UTF-8 can encode, not int 42",
    lambda client: client.lock("a", ttl=[]): "lock(): ttl must be a number of seconds or a timedelta, not list []",
    lambda client: client.semaphore("a", "5"): "semaphore(): permits must be a whole number from 0 on, not str '5'",
    lambda client: client.multi_lock(["a", None]): "multi_lock(): names must be a text that UTF-8 can encode, not None",
    lambda client: client.queue(b"c4n4ry"): "queue(): name must be a text that UTF-8 can encode, not bytes",
    lambda client: client.queue("q").get("x" * 99 + "\ud800"): "get(): id must be a text that UTF-8 can encode, not str",
    lambda client: client.queue("q").pop(1.5): "pop(): n must be a whole number from 0 on, not float 1.5",
    lambda client: client.queue("q").list("nowhere"):
        "list(): state must be scheduled, ready, claimed, held or dead, not str 'nowhere'",
    lambda client: client.queue("q").settle([7]):
        "settle(): verdicts must be what acked(), nacked(), buried(), returned() or throttled() of a claim have made, not int 7",
    lambda client: client.queue("q").enqueue("a", due="now"):
        "enqueue(): due must be a datetime or a number of seconds since 1970, not str 'now'",
    lambda client: client.queue("q").enqueue("a", priority=-1):
        "enqueue(): priority must be a whole number from 0 on, not int -1",
    lambda client: client.queue("q").worker(print, lease="1"):
        "worker(): lease must be a number of seconds or a timedelta, not str '1'",
    lambda client: client.cached("a", "1", lambda: 1): "cached(): ttl must be a number of seconds or a timedelta, not str '1'",
    lambda client: client.queue("q").enqueue({"to": "x"}):
        "enqueue(): id must be a text or None, not dict {'to': 'x'}; say enqueue(payload=...), or enqueue('an id', ...), or "
        "for a Task enqueue_many([task])",
    lambda client: client.queue("q").enqueue("a", priority=256):
        "enqueue(): priority must be a whole number from 0 to 255, not int 256",
    lambda client: client.queue("q").enqueue("a", on_duplicate="keep"):
        "enqueue(): on_duplicate must be Keep(), Skip(), Replace(), Debounce(max_wait) or Throttle(window), not str 'keep'",
    lambda client: client.queue("q").enqueue("a", {1}):
        "enqueue(): payload must be bytes or a JSON value, not set {1}: Object of type set is not JSON serializable",
    lambda client: client.queue("q").enqueue("a", bytes((16 << 20) + 1)):
        "enqueue(): payload must have at most 16777216 bytes, not bytes of 16777217",
    lambda client: client.queue("q").enqueue("a", headers=7): "enqueue(): headers must be a mapping of texts, not int 7",
    lambda client: client.queue("q").schedule("a", "@daily", missed="all"):
        "schedule(): missed must be last, skip or a whole number from 1 on, not str 'all'",
    lambda client: client.queue("q").schedule("a", "@daily", missed=1.5):
        "schedule(): missed must be last, skip or a whole number from 1 on, not float 1.5",
    lambda client: client.queue("q").schedule("a", "@daily", overlap="drop"):
        "schedule(): overlap must be queue or skip, not str 'drop'",
    lambda client: client.queue("q").schedule("a", "@daily", starts="now"):
        "schedule(): starts must be a datetime or a number of seconds since 1970, not str 'now'",
    lambda client: client.queue("q").schedule("a", 3): "schedule(): when must be a text that UTF-8 can encode, not int 3",
    lambda client: client.queue("q").schedule("a", "@daily", priority=256):
        "schedule(): priority must be a whole number from 0 to 255, not int 256",
    lambda client: client.queue("q").schedule("a", "61 * * * *", {1}):
        "schedule(): payload must be bytes or a JSON value, not set {1}: Object of type set is not JSON serializable",
    lambda client: client.queue("q").get_schedule(7): "get_schedule(): id must be a text that UTF-8 can encode, not int 7",
    lambda client: client.queue("q").sync_schedules("app", "1", []):
        "sync_schedules(): generation must be a whole number from 0 on, not str '1'",
    lambda client: client.queue("q").sync_schedules("app", 1, "ab"):
        "sync_schedules(): schedules must be a list of schedules, not str 'ab'",
    lambda client: client.queue("q").sync_schedules("app", 1, {"id": "a"}):
        "sync_schedules(): schedules must be a list of schedules, not dict {'id': 'a'}",
    lambda client: client.queue("q").sync_schedules("app", 1, [("a",)]):
        "sync_schedules(): schedules must be Schedules, (id, when, payload) tuples or mappings of a Schedule's fields, not tuple "
        "('a',)",
    lambda client: client.queue("q").sync_schedules("app", 1, [{"id": "a"}]):
        "sync_schedules(): schedules must each have 'when', not dict {'id': 'a'}",
    lambda client: client.queue("q").sync_schedules("app", 1, [("a", "@daily", b"", "UTC", "all")]):
        "sync_schedules(): missed must be last, skip or a whole number from 1 on, not str 'all'",
    lambda client: client.multi_lock("ab"): "multi_lock(): names must be a list, not str 'ab'",
    lambda client: client.queues("ab"): "queues(): names must be a list, not str 'ab'",
    lambda client: client.queue("q").settle(7): "settle(): verdicts must be a list, not int 7",
    lambda client: client.queue("q").kick(receipts=7): "kick(): receipts must be a list, not int 7",
    lambda client: client.cached("a", 1, ignore="self")(print): "cached(): ignore must be a list, not str 'self'",
    lambda client: client.queue("q").worker(7): "worker(): handler must be a function, not int 7",
    lambda client: client.lock("a").hold()(7): "hold(): what it decorates must be a function, not int 7",
    lambda client: client.cached("a", 1)(7): "cached(): what it decorates must be a function, not int 7",
    lambda client: client.cached("a", 1, 7): "cached(): compute must be a function, not int 7",
}

# Many tasks at once.
TASKS = {
    lambda queue: queue.enqueue_many({"welcome:1": {"to": 1}}):
        "enqueue_many(): items must be a list of tasks, not dict {'welcome:1': {'to': 1}}; if these are ids and payloads say "
        "enqueue_many(items.items()), if it is one task enqueue_many([task])",
    lambda queue: queue.enqueue_many({"id": "a"}):
        "enqueue_many(): items must be a list of tasks, not dict {'id': 'a'}; if these are ids and payloads say "
        "enqueue_many(items.items()), if it is one task enqueue_many([task])",
    lambda queue: queue.enqueue_many("ab"): "enqueue_many(): items must be a list of tasks, not str 'ab'",
    lambda queue: queue.enqueue_many([7]):
        "enqueue_many(): items must be Tasks, ids, (id, payload) pairs or mappings of a Task's fields, not int 7",
    lambda queue: queue.enqueue_many([tuple(range(15))]):
        "enqueue_many(): items must be Tasks, ids, (id, payload) pairs or mappings of a Task's fields, not tuple "
        "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)",
    lambda queue: queue.enqueue_many([{"id": "a", "name": 1}]): "enqueue_many(): a task has no 'name'",
    lambda queue: queue.enqueue_many([{"id": "a", "countdown": 5}]): "enqueue_many(): a task has no 'countdown': say delay=5",
    lambda queue: queue.enqueue_many([{"id": "a", "payload": {1}}]):
        "enqueue_many(): payload must be bytes or a JSON value, not set {1}: Object of type set is not JSON serializable",
    lambda queue: queue.enqueue_flow("f", {"id": "a"}): "enqueue_flow(): nodes must be a list of nodes, not dict {'id': 'a'}",
    lambda queue: queue.enqueue_flow("f", "ab"): "enqueue_flow(): nodes must be a list of nodes, not str 'ab'",
    lambda queue: queue.add_to_flow("f", [7]):
        "add_to_flow(): nodes must be Tasks, ids, (id, payload) pairs or mappings of a node's fields, not int 7",
    lambda queue: queue.enqueue_flow("f", [{"id": "a", "name": 1}]): "enqueue_flow(): a node has no 'name'",
    lambda queue: queue.enqueue_flow("f", [{"id": "a", "depends_on": ["b"]}]):
        "enqueue_flow(): a node has no 'depends_on': say after=['b']",
    lambda queue: queue.add_to_flow("f", [{"id": "a", "countdown": 5}]): "add_to_flow(): a node has no 'countdown': say delay=5",
    lambda queue: queue.enqueue_flow("f", [{"id": "a", "after": 7}]):
        "enqueue_flow(): after must be the id of a node, or a list of these, not int 7",
    lambda queue: queue.enqueue_flow("f", [{"id": "a", "after_end": [7]}]):
        "enqueue_flow(): after_end must be a text that UTF-8 can encode, not int 7",
    lambda queue: queue.enqueue_flow("f", [{"id": "a", "queue": 7}]):
        "enqueue_flow(): queue must be a text that UTF-8 can encode, not int 7",
    lambda queue: queue.enqueue_flow("f", [{"id": "a", "after_all": "later"}]):
        "enqueue_flow(): after_all is then, failed or finally, not str 'later'",
    lambda queue: queue.enqueue_flow("f", [{"id": "a", "after_all": 7}]):
        "enqueue_flow(): after_all is then, failed or finally, not int 7",
    lambda queue: queue.add_to_flow("f", [{"id": "a", "after_all": "then"}]):
        "add_to_flow(): a node must have no after_all: nodes that wait for all come with the flow",
    lambda queue: queue.enqueue_flow("f", [{"id": "a", "delay": "5"}]):
        "enqueue_flow(): delay must be a number of seconds or a timedelta, not str '5'",
    lambda queue: stanchion.chain("ab"): "chain(): tasks must be a list of tasks, not str 'ab'",
    lambda queue: stanchion.chain([7]):
        "chain(): tasks must be Tasks, ids, (id, payload) pairs or mappings of a node's fields, not int 7",
    lambda queue: stanchion.chain([{"id": "a", "parents": "b"}]): "chain(): a node has no 'parents': say after='b'",
    lambda queue: stanchion.chain(["a", {"id": "b", "after": 7}]):
        "chain(): after must be the id of a node, or a list of these, not int 7",
}

KEYWORDS = {
    lambda client: client.limiter("a", 1, per=1, window=2): "limiter() got an unexpected keyword argument 'window': say per=2",
    lambda client: client.limiter("a", 1, per=1, other=2): "limiter() got an unexpected keyword argument 'other'",
    lambda client: client.limiter("a", 1, per=1).take(timeout=5): "take() got an unexpected keyword argument 'timeout': say wait=5",
    lambda client: client.limiter("a", 1, per=1).turn(other=5): "turn() got an unexpected keyword argument 'other'",
    lambda client: client.lock("a").acquire(timeout=5): "acquire() got an unexpected keyword argument 'timeout': say wait=5",
    lambda client: client.lock("a").acquire(blocking_timeout=5):
        "acquire() got an unexpected keyword argument 'blocking_timeout': say wait=5",
    lambda client: client.lock("a").acquire(blocking=False):
        "acquire() got an unexpected keyword argument 'blocking': so as not to wait say try_acquire(), which returns None if "
        "the lock is busy; acquire() waits",
    lambda client: client.lock("a").hold(timeout="{}"): "hold() got an unexpected keyword argument 'timeout': say wait='{}'",
    lambda client: client.lock("a").try_acquire(timeout=5):
        "try_acquire() got an unexpected keyword argument 'timeout': to wait say acquire(wait=5)",
    lambda client: client.lock("a", timeout=5):
        "lock() got an unexpected keyword argument 'timeout': how long the lease lasts is ttl=5, how long acquire waits is "
        "wait=5",
    lambda client: client.lock("a", blocking_timeout=5):
        "lock() got an unexpected keyword argument 'blocking_timeout': say wait=5",
    lambda client: client.lock("a", expire=5): "lock() got an unexpected keyword argument 'expire': say ttl=5",
    lambda client: client.semaphore("a", 2, timeout=5):
        "semaphore() got an unexpected keyword argument 'timeout': how long the lease lasts is ttl=5, how long acquire waits "
        "is wait=5",
    lambda client: client.rw_lock("a", expire=5): "rw_lock() got an unexpected keyword argument 'expire': say ttl=5",
    lambda client: client.multi_lock(["a"], expire=5): "multi_lock() got an unexpected keyword argument 'expire': say ttl=5",
    lambda client: client.lock("a", sleep=1):
        "lock() got an unexpected keyword argument 'sleep': leave it out; acquire waits in line and does not poll",
    lambda client: client.lock("a", thread_local=False):
        "lock() got an unexpected keyword argument 'thread_local': leave it out; acquire() returns a lease, which any thread "
        "may release",
    lambda client: client.lock("a", color=1): "lock() got an unexpected keyword argument 'color'",
    lambda client: client.queue("q").enqueue("a", countdown=5):
        "enqueue() got an unexpected keyword argument 'countdown': say delay=5",
    lambda client: client.queue("q").enqueue("a", eta=1.5): "enqueue() got an unexpected keyword argument 'eta': say due=1.5",
    lambda client: client.queue("q").enqueue(job_id="a"): "enqueue() got an unexpected keyword argument 'job_id': say id='a'",
    lambda client: client.queue("q").enqueue(task_id="a"): "enqueue() got an unexpected keyword argument 'task_id': say id='a'",
    lambda client: client.queue("q").enqueue("a", data={}): "enqueue() got an unexpected keyword argument 'data': say payload={}",
    lambda client: client.queue("q").enqueue("a", data="x" * 99):
        "enqueue() got an unexpected keyword argument 'data': say payload=...",
    lambda client: client.queue("q").enqueue("a", attempts=3):
        "enqueue() got an unexpected keyword argument 'attempts': say max_attempts=3",
    **{lambda client, name=name: client.queue("q").enqueue("a", **{name: 3}):
        f"enqueue() got an unexpected keyword argument {name!r}: say max_attempts=..., which counts the first attempt, too"
       for name in ("max_retries", "retry")},
    lambda client: client.queue("q").enqueue("a", time_limit=5):
        "enqueue() got an unexpected keyword argument 'time_limit': say timeout=5",
    lambda client: client.queue("q").enqueue("a", result_ttl=5):
        "enqueue() got an unexpected keyword argument 'result_ttl': say keep_result=5",
    lambda client: client.queue("q").enqueue("a", retry_backoff=True):
        "enqueue() got an unexpected keyword argument 'retry_backoff': say backoff=[...] or Exponential(...)",
    **{lambda client, make=make: make(client).claim(visibility_timeout=5):
        "claim() got an unexpected keyword argument 'visibility_timeout': say lease=5"
       for make in (lambda client: client.queue("q"), lambda client: client.queues(["q"]))},
    lambda client: client.queue("q").schedule("a", "@daily", max_instances=1):
        "schedule() got an unexpected keyword argument 'max_instances': say overlap='skip' for one at a time",
    lambda client: client.queue("q").scheduled("@daily", name="a"):
        "scheduled() got an unexpected keyword argument 'name': say id='a'",
    lambda client: client.queue("q").claim(count=5): "claim() got an unexpected keyword argument 'count': say max=5",
    lambda client: client.queue("q").settle_and_claim([], count=5):
        "settle_and_claim() got an unexpected keyword argument 'count': say max=5",
    lambda client: client.queue("q").worker(print, workers=5):
        "worker() got an unexpected keyword argument 'workers': say concurrency=5",
    lambda client: client.queue("q").worker(print, threads=5):
        "worker() got an unexpected keyword argument 'threads': say concurrency=5",
    lambda client: client.queue("q").worker(print, until_empty=True):
        "worker() got an unexpected keyword argument 'until_empty': say worker(...).run(until_empty=True)",
}


def raised(face, call, kind):
    if face == "blocking":
        with stanchion.connect("memory:") as client, pytest.raises(kind) as error:
            call(client)
        return error.value

    async def main():
        async with aio.connect("memory:") as client:
            with pytest.raises(kind) as error:
                made = call(client)
                await made
        return error.value

    return asyncio.run(main())


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
@pytest.mark.parametrize("call", WRONG, ids=list(WRONG.values()))
def test_a_wrong_argument_is_named(face, call):
    error = raised(face, call, stanchion.InvalidArgument)
    assert str(error) == WRONG[call] and type(error) is stanchion.InvalidArgument
    assert not getattr(error, "__notes__", None)
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == WRONG[call] and copied.code == stanchion.InvalidArgument.code


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
@pytest.mark.parametrize("call", KEYWORDS, ids=list(KEYWORDS.values()))
def test_keywords_of_other_packages_are_answered(face, call):
    assert str(raised(face, call, TypeError)) == KEYWORDS[call]


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
@pytest.mark.parametrize("call", TASKS, ids=list(TASKS.values()))
def test_what_are_no_tasks_is_refused(face, call):
    error = raised(face, lambda client: call(client.queue("q")), stanchion.InvalidArgument)
    assert str(error) == TASKS[call]


def test_a_function_that_would_never_run_is_named():
    with stanchion.connect("memory:") as client:
        for owner, take in {"worker(): handler": client.queue("q").worker, "hold(): what it decorates": client.lock("a").hold(),
                            "cached(): what it decorates": client.cached("a", 1)}.items():
            for function, kind in (async_handler, "async"), (generator, "generator"):
                with pytest.raises(stanchion.InvalidArgument) as error:
                    take(function)
                problem = f"{owner} must be a function whose body runs when it is called, not the {kind} {function!r}"
                assert str(error.value) == problem + "; stanchion.aio is for those" * (kind == "async")


@pytest.mark.parametrize("connect", [stanchion.connect, aio.connect])
def test_connect_says_what_becomes_a_url(connect):
    for name in ("host", "port", "db", "username", "password", "ssl"):
        with pytest.raises(TypeError) as error:
            connect(**{name: "c4n4ry-pa55w0rd"})
        assert str(error.value) == (
            f"connect() got an unexpected keyword argument {name!r}: say it in the URL, "
            "connect('redis://USER:PASSWORD@HOST:PORT/DB'), with TLS rediss://")
    with pytest.raises(TypeError, match="'decode_responses': leave it out; names are texts, payloads are bytes$"):
        connect(decode_responses=True)


@pytest.mark.parametrize("package", [stanchion, aio])
def test_a_worker_says_who_makes_it(package):
    for make in (lambda: package.Worker(["q"], connection=1), lambda: package.Worker(["q"], print), lambda: package.Worker("q")):
        with pytest.raises(TypeError) as error:
            make()
        assert str(error.value) == "a worker is made by client.queue(name).worker(handler)"


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
def test_a_read_write_lock_points_to_its_sides(face):
    for name in ("acquire", "try_acquire", "hold", "release", "locked", "holders"):
        error = raised(face, lambda client: getattr(client.rw_lock("a"), name), AttributeError)
        assert str(error) == f"a read-write lock has no {name}(), its sides have: read().{name}() and write().{name}()"
    error = raised(face, lambda client: client.rw_lock("a").color, AttributeError)
    assert str(error) == "'RwLock' object has no attribute 'color'"


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
def test_a_nack_says_what_a_countdown_is(face):
    async def main():
        async with aio.connect("memory:") as client:
            await client.queue("q").enqueue("a")
            (claim,) = await client.queue("q").claim()
            with pytest.raises(TypeError) as error:
                await claim.nack(countdown=5)
            return error.value

    def blocking():
        with stanchion.connect("memory:") as client:
            client.queue("q").enqueue("a")
            (claim,) = client.queue("q").claim()
            with pytest.raises(TypeError, match="^nacked.. got an unexpected keyword argument 'countdown': say delay=5$"):
                claim.nacked(countdown=5)
            with pytest.raises(TypeError) as error:
                claim.nack(countdown=5)
            return error.value

    error = blocking() if face == "blocking" else asyncio.run(main())
    assert str(error) == "nack() got an unexpected keyword argument 'countdown': say delay=5"


def test_connect_names_its_arguments_and_tells_no_password():
    for url in (b"redis://:c4n4ry-pa55w0rd@localhost", "redis://:c4n4ry-pa55w0rd@\ud800"):
        with pytest.raises(stanchion.InvalidArgument) as error:
            stanchion.connect(url)
        assert str(error.value) == f"connect(): url must be a text that UTF-8 can encode, not {type(url).__name__}"

    async def main():
        await aio.connect(7)

    with pytest.raises(stanchion.InvalidArgument, match="^url must be a text that UTF-8 can encode, not int 7$"):
        asyncio.run(main())
