"""Limiters: what is particular to Python. What they do is in the scenarios and in the core's own tests."""

import asyncio
import signal
import threading
import time

import pytest
import stanchion
import stanchion.aio

HOUR = 3600


def test_it_is_true_if_it_was_allowed(client):
    api = client.limiter("api", 1, per=HOUR)
    assert api.name == "api"
    taken = api.try_take()
    assert taken and taken.allowed and taken.retry_after is None
    refused = api.take(wait=60)
    assert not refused and 0 < refused.retry_after <= HOUR


def test_a_decorator_and_a_context_wait_for_their_turn_or_raise(client):
    api = client.limiter("api", 2, per=HOUR, kind="sliding-window")

    @api.turn(wait=1)
    def called(value):
        return value

    assert called(7) == 7
    with api.turn():
        pass
    with pytest.raises(stanchion.Limited) as limited:
        called(8)
    assert 0 < limited.value.retry_after <= HOUR and limited.value.name == "api"
    assert isinstance(limited.value, TimeoutError)
    with pytest.raises(stanchion.Limited), api.turn(wait=0):
        raise AssertionError("it was allowed")


def test_what_is_no_limit_is_refused(client):
    for wrong in [
        dict(n=0, per=1), dict(n=1, per=0), dict(n=1, per=1, burst=0), dict(n=1, per=1, kind="fixed-window", burst=1),
        dict(n=1, per=1, kind="leaky"), dict(n=-1, per=1), dict(n="1", per=1),
    ]:
        with pytest.raises(stanchion.InvalidArgument):
            client.limiter("api", **wrong)
    api = client.limiter("api", 1, per=1)
    for call in [lambda: api.try_take(2), lambda: api.take(0), lambda: api.take(wait=HOUR + 1)]:
        with pytest.raises(stanchion.InvalidArgument):
            call()


def test_ctrl_c_ends_a_wait_and_gives_its_turn_back(client):
    api = client.limiter("api", 1, per=HOUR)
    assert api.try_take()
    before = api.try_take().retry_after
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        api.take(wait=HOUR)
    deadline = time.monotonic() + 10
    while api.try_take().retry_after > before:
        assert time.monotonic() < deadline


def test_asyncio(url):
    async def main():
        async with stanchion.aio.connect(url) as client:
            api = client.limiter("api", 1, per=HOUR)

            @api.turn()
            async def called(value):
                return value

            assert await called(7) == 7
            before = (await api.try_take()).retry_after
            waiting = asyncio.ensure_future(api.take(wait=HOUR))
            deadline = time.monotonic() + 10
            while (await api.try_take()).retry_after <= HOUR:
                assert time.monotonic() < deadline
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            while (await api.try_take()).retry_after > before:
                assert time.monotonic() < deadline
            with pytest.raises(stanchion.Limited):
                async with api.turn(wait=1):
                    raise AssertionError("it was allowed")

    asyncio.run(main())
