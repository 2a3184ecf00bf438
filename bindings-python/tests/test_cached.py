"""Cached values: what the package adds. What they do is in the scenarios."""

import asyncio
import os
import signal
import threading
import time

import pytest

import stanchion
from stanchion import aio

SOON = 10


def test_a_value_is_computed_once_and_everybody_gets_it_as_json_gives_it_back(client):
    value = {"prices": (1, 2.5, None), "naïve": "☃"}
    plain = {"prices": [1, 2.5, None], "naïve": "☃"}
    assert client.cached("a", ttl=60, compute=lambda: value) == plain
    assert client.cached("a", 60, lambda: pytest.fail("computed again")) == plain
    client.invalidate("a")
    assert client.cached("a", ttl=60, compute=lambda: None) is None
    assert client.cached("a", ttl=60, compute=lambda: 1) is None, "None is a value"


def test_threads_compute_once(client):
    computed, values = [], []

    def compute():
        computed.append(1)
        time.sleep(0.05)
        return "value"

    threads = [threading.Thread(target=lambda: values.append(client.cached("a", 60, compute))) for _ in range(30)]
    [thread.start() for thread in threads]
    [thread.join(SOON) for thread in threads]
    assert values == ["value"] * 30 and len(computed) == 1


@pytest.mark.parametrize("failure", [ValueError("own"), KeyboardInterrupt(), SystemExit(3)])
def test_what_compute_raises_goes_on_and_the_next_computes(client, failure):
    def fails():
        raise failure

    with pytest.raises(type(failure)) as raised:
        client.cached("a", 60, fails)
    assert raised.value is failure
    assert client.cached("a", 60, lambda: 7, wait=SOON) == 7


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, float("nan"), "\ud800", object()])
def test_what_is_no_json_is_refused_and_the_next_computes(client, value):
    with pytest.raises(stanchion.InvalidArgument) as raised:
        client.cached("a", 60, lambda: value)
    assert raised.value.name == "a" and raised.value.operation == "cached"
    assert client.cached("a", 60, lambda: 7, wait=SOON) == 7


@pytest.mark.parametrize("wrong", [
    dict(ttl="60"), dict(ttl=True), dict(ttl=0), dict(ttl=-1), dict(ttl=float("nan")), dict(stale="x"),
    dict(beta="1"), dict(beta=True), dict(beta=-1), dict(beta=float("nan")), dict(wait=-1), dict(lease=0.01),
    dict(lease=10, max_run=5), dict(label=7), dict(compute=None), dict(compute=7)])
def test_bad_arguments_are_refused_before_anything_is_computed(client, wrong):
    with pytest.raises(stanchion.InvalidArgument):
        client.cached("a", **{"ttl": 60, "compute": lambda: pytest.fail("computed"), **wrong})
    with pytest.raises(stanchion.InvalidArgument):
        client.invalidate("")


def test_a_function_whose_body_would_not_run_is_refused(client):
    async def later():
        return 1

    def yields():
        yield 1

    for function in (later, yields):
        with pytest.raises(stanchion.InvalidArgument):
            client.cached("a", 60, function)


def test_ctrl_c_ends_a_computation_and_leaves_it_to_the_next(client):
    def compute():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(SOON)

    with pytest.raises(KeyboardInterrupt):
        client.cached("a", 60, compute)
    assert client.cached("a", 60, lambda: 7, wait=SOON) == 7


def test_a_decorated_function_is_computed_once_for_each_name(client):
    computed = []

    @client.cached("price:{id}:{currency:>4}", ttl=60, ignore=["log"])
    def price(id, currency="EUR", *, log=True):
        """What it costs."""
        computed.append((id, currency, log))
        return {"price": (id, currency)}

    assert (price.__name__, price.__doc__) == ("price", "What it costs.")
    plain = {"price": [7, "EUR"]}
    assert [price(7), price(id=7), price(7, "EUR"), price(7, log=False)] == [plain] * 4
    assert price(7, "USD") == {"price": [7, "USD"]}
    assert computed == [(7, "EUR", True), (7, "USD", True)], "what is ignored makes no difference"
    assert client.cached("price:7: EUR", 60, lambda: pytest.fail("computed again")) == plain
    client.invalidate("price:7: EUR")
    assert price(7, log=False) == plain and computed[2:] == [(7, "EUR", False)]
    with pytest.raises(TypeError):
        price()

    @client.cached("{{prices}}:{id}", ttl=60)
    def tagged(id):
        return id

    assert tagged(1) == 1
    assert client.cached("{prices}:1", 60, lambda: pytest.fail("computed again")) == 1


def test_what_a_decorated_function_raises_goes_on_and_the_next_computes(client):
    @client.cached("a", ttl=60, wait=SOON, ignore=["failure"])
    def value(failure=None):
        if failure is not None:
            raise failure
        return 7

    with pytest.raises(ValueError):
        value(ValueError("own"))
    assert value() == 7


class Shop:
    def price(self, id, *, currency="EUR"):
        return f"{id} {currency}"


def test_an_argument_that_the_name_has_not_is_refused_when_it_is_decorated(client):
    cached = client.cached
    for template, ignore, missing in [
            ("price:{id}", [], "self"), ("price:{id}", ["self"], "currency"), ("price:{currency}", ("self",), "id"),
            ("price", ["self", "id"], "currency")]:
        with pytest.raises(stanchion.InvalidArgument, match=rf"argument '{missing}'.*ignore=\['{missing}'\]") as error:
            cached(template, ttl=60, ignore=ignore)(Shop.price)
        # In a name an object would be one with its address, and its values nobody else's.
        assert (f"put {{{missing}}} into the name" in str(error.value)) == (missing != "self")
    price = cached("price:{id}:{currency}", ttl=60, ignore={"self"})(Shop.price)
    assert price(Shop(), 7) == price(Shop(), 7, currency="EUR") == "7 EUR" and price(Shop(), 7, currency="USD") == "7 USD"
    with pytest.raises(stanchion.InvalidArgument, match="'args'"):
        cached("all:{id}", ttl=60)(lambda id, *args: id)
    for wrong in ("self", 7, ["self", "session"], ["self", "id"]):  # No list; no such argument; one that is in the name.
        with pytest.raises(stanchion.InvalidArgument):
            cached("price:{id}:{currency}", ttl=60, ignore=wrong)(Shop.price)
    with pytest.raises(stanchion.InvalidArgument, match="ignore"):
        cached("price", 60, lambda: pytest.fail("computed"), ignore=["self"])


@pytest.mark.parametrize("name", ["price:{}", "price:{0}", "price:{other}", "price:{id", "price:{id:{id}}", "price:{id:{other}}", "price:}", 7, None])
def test_a_name_that_does_not_fit_the_function_is_refused_when_it_is_decorated(client, name):
    with pytest.raises(stanchion.InvalidArgument):
        client.cached(name, ttl=60)(lambda id: pytest.fail("computed"))


def test_what_cannot_be_decorated_is_refused(client):
    async def later():
        return 1

    def yields():
        yield 1

    for function in (later, yields, None):
        with pytest.raises(stanchion.InvalidArgument):
            client.cached("a", ttl=60)(function)
    with pytest.raises(stanchion.InvalidArgument):
        client.cached("a", ttl="60")
    with pytest.raises(stanchion.InvalidArgument):
        client.cached("a", ttl=0)(lambda: pytest.fail("computed"))()
    with pytest.raises(stanchion.InvalidArgument):
        client.cached("a{id}", ttl=60)(lambda id: pytest.fail("computed"))("{")


def test_asyncio_has_the_decorator_too(url):
    async def run():
        async with aio.connect(url) as client:
            computed = []

            @client.cached("price:{id}", ttl=60)
            async def price(id):
                computed.append(id)
                await asyncio.sleep(0.02)
                return [id]

            assert asyncio.iscoroutinefunction(price)
            assert await asyncio.gather(*(price(id % 2) for id in range(20))) == [[0], [1]] * 10
            assert sorted(computed) == [0, 1]
            assert await client.cached("price:1", 60, lambda: pytest.fail("computed again")) == [1]
            with pytest.raises(stanchion.InvalidArgument):
                client.cached("price:{other}", ttl=60)(price)
            with pytest.raises(stanchion.InvalidArgument, match="'id'"):
                client.cached("prices", ttl=60)(price)
            with pytest.raises(stanchion.InvalidArgument, match="ignore"):
                await client.cached("price", 60, lambda: pytest.fail("computed"), ignore=["self"])

    asyncio.run(run())


def test_asyncio_computes_with_both_kinds_of_functions(url):
    async def run():
        async with aio.connect(url) as client:
            computed = []

            async def compute():
                computed.append(1)
                await asyncio.sleep(0.02)
                return ["value"]

            values = await asyncio.gather(*(client.cached("a", 60, compute) for _ in range(50)))
            assert values == [["value"]] * 50 and len(computed) == 1
            assert await client.cached("b", ttl=60, compute=lambda: 7) == 7
            await client.invalidate("b")
            assert await client.cached("b", ttl=60, compute=lambda: 8) == 8

            def fails():
                raise ValueError("own")

            with pytest.raises(ValueError):
                await client.cached("c", 60, fails)
            with pytest.raises(stanchion.InvalidArgument):
                await client.cached("c", 60, lambda: b"bytes", wait=SOON)
            assert await client.cached("c", 60, lambda: 9, wait=SOON) == 9

    asyncio.run(run())


def test_a_cancelled_computation_is_left_to_the_next(url):
    async def run():
        async with aio.connect(url) as client:
            began = asyncio.Event()

            async def never():
                began.set()
                await asyncio.Event().wait()

            computing = asyncio.ensure_future(client.cached("a", 60, never))
            await asyncio.wait_for(began.wait(), SOON)
            waiting = asyncio.ensure_future(client.cached("a", 60, lambda: "next", wait=SOON))
            given_up = asyncio.ensure_future(client.cached("a", 60, lambda: "never", wait=SOON))
            await asyncio.sleep(0)
            given_up.cancel()
            computing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await computing
            assert await asyncio.wait_for(waiting, SOON) == "next"

    asyncio.run(run())


def test_a_forked_child_cannot_store_for_its_parent(shared_url):
    client = stanchion.connect(shared_url)

    def compute():
        child = os.fork()
        if child == 0:
            os._exit(0 if client.cached("other", 60, lambda: "child") == "child" else 1)
        assert os.waitpid(child, 0)[1] == 0
        return "parent"

    assert client.cached("a", 60, compute) == "parent"
    assert client.cached("other", 60, lambda: "parent") == "child"
    assert client.cached("a", 60, lambda: "again") == "parent"
