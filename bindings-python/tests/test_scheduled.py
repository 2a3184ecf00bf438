"""Functions with schedules."""

import asyncio
import functools
import re

import pytest

import stanchion
from stanchion import aio


def test_functions_are_declared_synced_and_called(client):
    queue, seen = client.queue("q"), []

    @queue.scheduled("0 3 1 2 *", {"to": "x"}, tz="Europe/Berlin", id="report", missed=3, overlap="skip", priority=2)
    def report(claim):
        """What it is."""
        seen.append(("report", claim.json))
        return len(seen)

    @queue.scheduled("every 1h", id="clean up")
    def clean_up():
        seen.append("clean up")

    assert report.__name__ == "report" and report.__doc__ == "What it is."
    assert report.schedule == stanchion.Schedule(
        "report", "0 3 1 2 *", {"to": "x"}, "Europe/Berlin", 3, "skip", priority=2)
    clean_up()
    assert seen.pop() == "clean up" and queue.stats().schedules == 0
    assert queue.sync_scheduled("app", 1) == stanchion.Synced(2, 0, 0, 0, None)
    assert queue.sync_scheduled("app", 1).kept == 2 and queue.sync_scheduled("app", 0).newer == 1
    found = queue.get_schedule("report")
    assert (found.tz, found.missed, found.overlap, found.priority, found.owner) == ("Europe/Berlin", 3, "skip", 2, "app")
    queue.run_schedule("report")
    (claim,) = queue.claim()
    with claim:
        assert queue.run_scheduled(claim) == 1
    queue.run_schedule("clean up")
    assert queue.worker(queue.run_scheduled).run(until_empty=True).completed == 1
    assert seen == [("report", {"to": "x"}), "clean up"]


def module_level():
    pass


def test_the_id_is_the_qualified_name():
    queue = stanchion.connect("memory:").queue("q")

    @queue.scheduled("@yearly")
    def nightly():
        pass

    assert nightly.schedule.id == "test_the_id_is_the_qualified_name.<locals>.nightly"
    assert queue.scheduled("@yearly")(module_level) is module_level and module_level.schedule.id == "module_level"
    queue.sync_scheduled("app", 1)
    assert queue.get_schedule(nightly.schedule.id) is not None


def test_the_id_ends_at_the_last_at_sign(client):
    queue, seen = client.queue("q"), []
    queue.scheduled("@yearly", id="a")(lambda: seen.append("a"))
    queue.scheduled("@yearly", id="a@b")(lambda: seen.append("a@b"))
    queue.scheduled("@yearly", id="a@b@")(lambda: seen.append("a@b@"))
    queue.sync_scheduled("app", 1)
    for id in ("a@b", "a", "a@b@"):
        queue.run_schedule(id)
        (claim,) = queue.claim()
        with claim:
            queue.run_scheduled(claim)
    assert seen == ["a@b", "a", "a@b@"]


def test_one_function_may_have_several_schedules(client):
    queue, seen = client.queue("q"), []

    @queue.scheduled("0 3 1 2 *", id="night")
    @queue.scheduled("0 15 1 2 *", id="day")
    def work(claim):
        seen.append(claim.id.rpartition("@")[0])

    assert work.schedule.id == "night" and queue.sync_scheduled("app", 1).added == 2
    queue.run_schedule("night")
    queue.run_schedule("day")
    assert queue.worker(queue.run_scheduled).run(until_empty=True).completed == 2
    assert sorted(seen) == ["day", "night"]


@pytest.mark.parametrize("function, with_claim", [
    (lambda: None, False), (lambda claim: claim, True), (lambda claim, *, verbose=False: claim, True),
    (lambda customer=None: customer, False), (lambda *args: args or None, False)])
def test_who_must_get_the_claim_gets_it(function, with_claim):
    queue = stanchion.connect("memory:").queue("q")
    queue.scheduled("@yearly", id="a")(function)
    queue.sync_scheduled("app", 1)
    queue.run_schedule("a")
    (claim,) = queue.claim()
    assert queue.run_scheduled(claim) is (claim if with_claim else None)


def test_a_task_without_a_function_says_what_to_do(client):
    queue = client.queue("q")
    queue.scheduled("@yearly", id="known")(lambda: None)
    queue.schedule("gone", "@yearly")
    task = queue.run_schedule("gone")
    queue.enqueue("known")
    claims = {claim.id: claim for claim in queue.claim(max=10)}
    with pytest.raises(LookupError) as error:
        queue.run_scheduled(claims[task])
    assert str(error.value) == (
        f"task {task!r}: no function of this queue object has the schedule 'gone'; declare one before the worker runs, with "
        "@queue.scheduled(..., id='gone') on the object whose run_scheduled is called, or, if nobody needs the schedule any "
        "more, say queue.remove_schedule('gone')")
    with pytest.raises(LookupError, match="^task 'known': no schedule has made it, .* for tasks of schedules only$"):
        queue.run_scheduled(claims["known"])
    # Another object of the queue has none of its functions.
    claims[task].ack()
    queue.sync_scheduled("app", 1)
    queue.run_schedule("known")
    (claim,) = queue.claim()
    with pytest.raises(LookupError, match="'known'"):
        client.queue("q").run_scheduled(claim)
    # To a worker, it is a failure like others: another program may have the function, and tries it again.
    claim.put_back()
    other, failed = client.queue("q"), []
    worker = other.worker(other.run_scheduled, failed=lambda claim, error: (failed.append(type(error)), worker.stop()))
    assert worker.run().failed == 1 and failed == [LookupError] and queue.get(claim.id).state == "scheduled"


def test_what_a_function_raises_goes_on(client):
    queue = client.queue("q")

    @queue.scheduled("@yearly", id="a", max_attempts=1)
    def fail(claim):
        raise LookupError("its own")

    queue.sync_scheduled("app", 1)
    task = queue.run_schedule("a")
    assert queue.worker(queue.run_scheduled).run(until_empty=True).dead == 1
    assert queue.get(task).reason == "LookupError: its own"


def test_where_nothing_was_declared_nothing_is_synced(client):
    queue = client.queue("q")
    queue.scheduled("@yearly", id="a")(lambda: None)
    queue.sync_scheduled("app", 1)
    with pytest.raises(stanchion.InvalidArgument, match=r"^sync_scheduled\(\): no function was declared"):
        client.queue("q").sync_scheduled("app", 2)
    assert queue.get_schedule("a") is not None


async def later(claim):
    pass


def two(claim, other):
    pass


def generator(claim):
    yield


def declared(queue, function=module_level, when="@yearly", **options):
    return queue.scheduled(when, **options)(function)


WRONG = {
    lambda queue: queue.scheduled(module_level):
        f"scheduled(): when must be a text such as '0 3 * * *' or 'every 90s', not function {module_level!r}",
    lambda queue: declared(queue, 7): "scheduled(): what it decorates must be a function, not int 7",
    lambda queue: declared(queue, generator):
        f"scheduled(): what it decorates must be a function whose body runs when it is called, not the generator {generator!r}",
    lambda queue: declared(queue, two):
        "scheduled(): what it decorates must be a function that is called with the claim, or with nothing, not function "
        f"{two!r}",
    lambda queue: declared(queue, functools.partial(module_level)):
        f"scheduled(): partial {functools.partial(module_level)!r} has no qualified name, so the schedule needs an id: say id=...",
    lambda queue: declared(queue, [].clear):
        "scheduled(): what it decorates must be a function that can have attributes, not builtin_function_or_method "
        "<built-in method clear of list object at ",
    lambda queue: declared(queue, id=7): "scheduled(): id must be a text that UTF-8 can encode, not int 7",
    lambda queue: declared(queue, missed="all"):
        "scheduled(): missed must be last, skip or a whole number from 1 on, not str 'all'",
    lambda queue: declared(queue, when="61 * * * *"): "schedule \"module_level\": when: ",
    lambda queue: declared(queue, tz="Berlin"): "schedule \"module_level\": tz: ",
    lambda queue: [declared(queue) for _ in range(2)]:
        f"scheduled(): this queue object has a schedule 'module_level' already, of {module_level!r}; give another id",
}


@pytest.mark.parametrize("connect", [stanchion.connect, aio.connect], ids=["blocking", "asyncio"])
# Without the addresses, which differ among the processes of a run.
@pytest.mark.parametrize("call", WRONG, ids=[re.sub(" at 0x.*", "", text) for text in WRONG.values()])
def test_what_could_not_run_is_refused_where_it_is_written(connect, call):
    async def opened():
        client = connect("memory:")
        return client if connect is stanchion.connect else await client

    queue = asyncio.run(opened()).queue("q")
    with pytest.raises(stanchion.InvalidArgument) as error:
        call(queue)
    assert str(error.value).startswith(WRONG[call])
    # What was refused is not declared.
    declared(queue, id="other")
    assert {one.id for one in queue._schedules()} <= {"module_level", "other"}


def test_coroutine_functions_need_asyncio():
    queue = stanchion.connect("memory:").queue("q")
    with pytest.raises(stanchion.InvalidArgument, match="not the async .*; stanchion.aio is for those$"):
        queue.scheduled("@yearly")(later)
    queue.scheduled("@yearly", id="a")(lambda claim: later(claim))
    queue.sync_scheduled("app", 1)
    queue.run_schedule("a")
    with pytest.raises(TypeError, match="nobody awaits"):
        queue.run_scheduled(queue.claim()[0])


def test_keywords_of_other_packages_are_answered():
    queue = stanchion.connect("memory:").queue("q")
    for call in (lambda **options: queue.scheduled("@yearly", **options), lambda **options: queue.schedule("a", "@yearly", **options)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'timezone': say tz='UTC'$"):
            call(timezone="UTC")
    with pytest.raises(stanchion.InvalidArgument, match=r"^sync_schedules\(\): a schedule has no 'cron': say when='@yearly'$"):
        queue.sync_schedules("app", 1, [{"id": "a", "cron": "@yearly"}])


def test_asyncio(url):
    async def main():
        async with aio.connect(url) as client:
            queue, seen = client.queue("q"), []

            @queue.scheduled("@yearly", id="awaited")
            async def awaited(claim):
                await asyncio.sleep(0)
                seen.append(claim.id.rpartition("@")[0])
                return "done"

            @queue.scheduled("@yearly", id="plain")
            def plain():
                seen.append("plain")

            assert asyncio.iscoroutinefunction(awaited) and awaited.schedule.id == "awaited"
            assert await queue.sync_scheduled("app", 1) == stanchion.Synced(2, 0, 0, 0, None)
            await queue.run_schedule("awaited")
            (claim,) = await queue.claim()
            async with claim:
                assert await queue.run_scheduled(claim) == "done"
            for id in ("awaited", "plain"):
                await queue.run_schedule(id)
            assert (await queue.worker(queue.run_scheduled, concurrency=2).run(until_empty=True)).completed == 2
            assert seen[0] == "awaited" and sorted(seen[1:]) == ["awaited", "plain"]
            await queue.schedule("gone", "@yearly")
            await queue.run_schedule("gone")
            (claim,) = await queue.claim()
            with pytest.raises(LookupError, match=r"@queue.scheduled\(..., id='gone'\)"):
                await queue.run_scheduled(claim)
            with pytest.raises(stanchion.InvalidArgument, match="no function was declared"):
                await client.queue("q").sync_scheduled("app", 2)

    asyncio.run(asyncio.wait_for(main(), 60))
