"""An error about an argument says whose it is, its name, what it must be and what was given; and what to write instead of what
other packages call it."""

import asyncio
import pickle
from datetime import timedelta

import pytest

import stanchion
from stanchion import aio

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
        "list(): state must be scheduled, ready, claimed or dead, not str 'nowhere'",
    lambda client: client.queue("q").settle([7]):
        "settle(): verdicts must be what acked(), nacked(), buried() or returned() of a claim have made, not int 7",
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
}

KEYWORDS = {
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
    lambda client: client.lock("a", sleep=1): "lock() got an unexpected keyword argument 'sleep'",
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


def test_connect_names_its_arguments_and_tells_no_password():
    for url in (b"redis://:c4n4ry-pa55w0rd@localhost", "redis://:c4n4ry-pa55w0rd@\ud800"):
        with pytest.raises(stanchion.InvalidArgument) as error:
            stanchion.connect(url)
        assert str(error.value) == f"connect(): url must be a text that UTF-8 can encode, not {type(url).__name__}"

    async def main():
        await aio.connect(7)

    with pytest.raises(stanchion.InvalidArgument, match="^url must be a text that UTF-8 can encode, not int 7$"):
        asyncio.run(main())
