"""What stands around the handlers of a worker."""

import asyncio
import threading

import pytest

import stanchion
from stanchion import aio, testing

FACES = ["threads", "asyncio"]


def run(face, url, prepare, handler=None, *, tasks=("a",), **options):
    """Run a worker until its queue is empty. On asyncio the functions are made coroutine functions, if they are to be. Its report;
    what is left of the tasks, and their results, is looked at by a blocking client."""
    if face == "threads":
        with stanchion.connect(url) as client:
            queue = client.queue("q")
            queue.enqueue_many([stanchion.Task(id, max_attempts=1) for id in tasks])
            return queue.worker(handler, **prepare(queue), **options).run(until_empty=True)

    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            await queue.enqueue_many([stanchion.Task(id, max_attempts=1) for id in tasks])
            return await queue.worker(handler, **prepare(queue), **options).run(until_empty=True)

    return asyncio.run(main())


def noting(face, notes, name, change=lambda returned: returned):
    """One that notes when it begins and ends, and what it has got."""
    if face == "threads":
        def around(claim, next):
            notes.append(f"{name} begins {claim.id}")
            returned = next()
            notes.append(f"{name} got {returned}")
            return change(returned)
    else:
        async def around(claim, next):
            notes.append(f"{name} begins {claim.id}")
            returned = await next()
            notes.append(f"{name} got {returned}")
            return change(returned)
    return around


@pytest.mark.parametrize("face", FACES)
def test_the_first_is_outermost_and_hooks_stand_outside(url, client, face):
    notes = []

    def handler(claim):
        notes.append("handler")
        return 1

    around = (noting(face, notes, name, lambda n: n + 1) for name in ("outer", "middle", "inner"))
    report = run(
        face, url, lambda queue: dict(around=around), handler,
        before=lambda claim: notes.append("before"), after=lambda claim: notes.append("after"))
    assert report.completed == 1
    assert notes == [
        "before", "outer begins a", "middle begins a", "inner begins a", "handler", "inner got 1", "middle got 2", "outer got 3",
        "after"]


@pytest.mark.parametrize("face", FACES)
def test_it_is_one_function_or_a_list_or_nothing(url, client, face):
    notes = []
    for around in (noting(face, notes, "one"), [], None, ()):
        assert run(face, url, lambda queue: dict(around=around), lambda claim: notes.append("handler")).completed == 1
    assert notes == ["one begins a", "handler", "one got None", "handler", "handler", "handler"]


@pytest.mark.parametrize("face", FACES)
def test_it_runs_where_the_handler_runs(url, client, face):
    notes = []

    def note(claim=None):
        # A context variable that is set there is seen by the handler.
        notes.append((threading.current_thread(), stanchion.current_claim().id if face == "threads" else aio.current_claim().id))

    def around(claim, next):
        note()
        return next()

    assert run(face, url, lambda queue: dict(around=around), note).completed == 1
    assert len(notes) == 2 and notes[0] == notes[1] and notes[0][1] == "a"


@pytest.mark.parametrize("face", FACES)
def test_what_it_returns_is_the_result_of_a_function_with_a_kind(url, client, face):
    notes, done = [], {}
    queue = client.queue("q")

    def prepare(queue):
        send = queue.task("send")(lambda n: {"sent": n})
        nothing = queue.task("nothing")(lambda: None)
        return dict(kinds=[send, nothing], around=noting(face, notes, "it", lambda got: got and {**got, "more": [1]}))

    for kind, payload in (("send", b'{"n": 7}'), ("nothing", b"{}")):
        done[kind] = queue.enqueue(kind, payload, kind=kind)
    assert run(face, url, prepare, tasks=()).completed == 2
    assert queue.result("send", done["send"].version).json() == {"sent": 7, "more": [1]}
    assert queue.result("nothing").outcome == "gone"
    assert sorted(notes) == ["it begins nothing", "it begins send", "it got None", "it got {'sent': 7}"]


@pytest.mark.parametrize("face", FACES)
def test_what_can_be_no_result_ends_the_task_as_if_the_function_had_returned_it(url, client, face):
    def prepare(queue):
        return dict(kinds=[queue.task("send")(lambda: 1)], around=noting(face, [], "it", lambda got: object()))

    client.queue("q").enqueue("a", b"{}", kind="send")
    assert run(face, url, prepare, tasks=()).dead == 1
    assert "must be None or a JSON value" in client.queue("q").get("a").reason


@pytest.mark.parametrize("face", FACES)
def test_what_it_raises_fails_the_task(url, client, face):
    failed, seen = [], []
    queue = client.queue("q")

    def early(claim, next):
        raise LookupError("no tenant")

    report = run(face, url, lambda queue: dict(around=early), seen.append, failed=lambda claim, error: failed.append(repr(error)))
    assert report.dead == 1 and seen == [] and queue.get("a").reason == "LookupError: no tenant"
    assert failed == ["LookupError('no tenant')"]

    def late(got):
        raise RuntimeError(f"no commit of {got}")

    around = noting(face, [], "it", late)
    assert run(face, url, lambda queue: dict(around=around), lambda claim: 5, tasks=["b"]).dead == 1
    assert queue.get("b").reason == "RuntimeError: no commit of 5"


@pytest.mark.parametrize("face", FACES)
def test_what_the_handler_raises_goes_through_it(url, client, face):
    notes = []

    def handler(claim):
        raise ValueError(claim.id)

    if face == "threads":
        def rolled_back(claim, next):
            try:
                return next()
            except ValueError as error:
                notes.append(f"rolled back: {error}")
                raise

        def quietly(claim, next):
            try:
                return next()
            except ValueError:
                return None
    else:
        async def rolled_back(claim, next):
            try:
                return await next()
            except ValueError as error:
                notes.append(f"rolled back: {error}")
                raise

        async def quietly(claim, next):
            try:
                return await next()
            except ValueError:
                return None

    assert run(face, url, lambda queue: dict(around=rolled_back), handler).dead == 1
    assert notes == ["rolled back: a"] and client.queue("q").get("a").reason == "ValueError: a"
    assert run(face, url, lambda queue: dict(around=[quietly, rolled_back]), handler, tasks=["b"]).completed == 1
    assert notes == ["rolled back: a", "rolled back: b"] and client.queue("q").get("b") is None


@pytest.mark.parametrize("face", FACES)
def test_a_task_is_done_without_its_handler_if_next_is_not_called(url, client, face):
    seen = []
    report = run(face, url, lambda queue: dict(around=lambda claim, next: None), seen.append)
    assert report.completed == 1 and seen == [] and client.queue("q").get("a") is None


@pytest.mark.parametrize("face", FACES)
def test_it_may_settle_the_claim_itself(url, client, face):
    if face == "threads":
        def around(claim, next):
            claim.bury("not wanted")
    else:
        async def around(claim, next):
            await claim.bury("not wanted")

    assert run(face, url, lambda queue: dict(around=around), lambda claim: None).dead == 1
    assert client.queue("q").get("a").reason == "not wanted"


@pytest.mark.parametrize("face", FACES)
def test_it_stands_around_what_a_worker_of_kinds_calls_and_nothing_else(face):
    """Not around what is put back, or cannot be decoded: no function is called for those."""
    notes, clock = [], testing.Clock()

    def options(queue):
        send = queue.task("send")(lambda n: notes.append(n))
        return dict(kinds=[send], around=noting(face, notes, "it"))

    tasks = [
        stanchion.Task("plain"), stanchion.Task("misfit", b"[]", kind="send"), stanchion.Task("newer", kind="newer"),
        stanchion.Task("good", b'{"n": 1}', kind="send")]
    if face == "threads":
        queue = testing.memory_client(clock).queue("q")
        queue.enqueue_many(tasks)
        report = queue.worker(lambda claim: notes.append("plain"), **options(queue)).run(until_empty=True)
    else:
        async def main():
            queue = (await testing.aio_memory_client(clock)).queue("q")
            await queue.enqueue_many(tasks)
            return await queue.worker(lambda claim: notes.append("plain"), **options(queue)).run(until_empty=True)

        report = asyncio.run(main())
    assert (report.completed, report.dead) == (2, 1)
    assert sorted(notes, key=str) == [1, "it begins good", "it begins plain", "it got None", "it got None", "plain"]


@pytest.mark.parametrize("wrong, problem", [
    (5, "must be a function or a list of them, not int 5"), ("text", "must be a function or a list of them, not str"),
    ([print, None], "must be a function, not None"), ([5], "must be a function, not int 5"),
])
@pytest.mark.parametrize("face", FACES)
def test_what_is_no_function_is_refused_before_anything_is_claimed(client, url, face, wrong, problem):
    with pytest.raises(stanchion.InvalidArgument) as error:
        run(face, url, lambda queue: dict(around=wrong), lambda claim: None)
    assert str(error.value).startswith(f"worker(): around {problem}")
    assert client.queue("q").get("a").attempts == 0


def test_what_would_not_run_is_refused():
    async def waits(claim, next):
        return await next()

    def yields(claim, next):
        yield next()

    async def yields_too(claim, next):
        yield await next()

    queue = stanchion.connect("memory:").queue("q")
    for function in (waits, yields, yields_too):
        with pytest.raises(stanchion.InvalidArgument, match="around must be a function whose body runs when it is called"):
            queue.worker(print, around=[function])

    async def main():
        queue = (await testing.aio_memory_client()).queue("q")
        for function in (yields, yields_too):
            with pytest.raises(stanchion.InvalidArgument, match="around must be a function whose body runs when it is called"):
                queue.worker(print, around=function)
        queue.worker(print, around=waits)

    asyncio.run(main())


@pytest.mark.parametrize("face", FACES)
def test_a_handler_that_did_not_run_fails_also_if_nobody_looks_at_what_it_returned(url, client, face):
    def handler():
        yield

    if face == "threads":
        def around(claim, next):
            next()
    else:
        async def around(claim, next):
            await next()

    assert run(face, url, lambda queue: dict(around=around), lambda claim: handler()).dead == 1
    assert "generator, which nobody runs" in client.queue("q").get("a").reason


@pytest.mark.parametrize("returns", [True, False], ids=["returned", "dropped"])
def test_what_was_not_awaited_has_failed(url, client, returns):
    seen = []

    async def around(claim, next):
        coroutine = next()
        return coroutine if returns else None

    assert run("asyncio", url, lambda queue: dict(around=around), seen.append).dead == 1
    assert seen == [] and client.queue("q").get("a").reason == "TypeError: around has called next() and not awaited it"


def test_on_threads_it_sees_the_loss_of_a_claim(client):
    queue, seen = client.queue("q"), []
    queue.enqueue("a", timeout=0.2, max_attempts=1)

    def handler(claim):
        assert claim.lost.wait(30)
        raise RuntimeError("given up")

    def around(claim, next):
        try:
            next()
        finally:
            seen.append((claim.lost.is_set(), claim.lost.reason))

    queue.worker(handler, around=around).run(until_empty=True)
    assert seen == [(True, "timeout")] and queue.get("a").reason == "timeout"


def test_on_threads_its_own_time_counts(client):
    queue, seen = client.queue("q"), []
    queue.enqueue("a", max_attempts=1)

    def around(claim, next):
        assert claim.lost.wait(30)
        return next()

    queue.worker(lambda claim: seen.append(claim.lost.reason), around=around, timeout=0.2).run(until_empty=True)
    assert seen == ["timeout"] and queue.get("a").reason == "timeout"


@pytest.mark.parametrize("where", ["handler", "around"])
@pytest.mark.parametrize("why", ["timeout", "cancelled"])
def test_on_asyncio_a_cancel_goes_through_it(url, client, where, why):
    ended = []

    async def main():
        async with aio.connect(url) as other:
            queue = other.queue("q")
            await queue.enqueue("a", timeout=0.2 if why == "timeout" else 60, max_attempts=1)

            async def wait(claim):
                if why == "cancelled":
                    await queue.cancel("a")
                await asyncio.Event().wait()

            async def around(claim, next):
                try:
                    return await (next() if where == "handler" else wait(claim))
                except asyncio.CancelledError:
                    ended.append((claim.id, claim.lost.reason))
                    raise

            await queue.worker(wait, around=[around, around], lease=0.5).run(until_empty=True)

    asyncio.run(main())
    assert ended == [("a", why)] * (2 if where == "handler" else 1)
    found = client.queue("q").get("a")
    assert found.reason == "timeout" if why == "timeout" else found is None


def test_on_asyncio_the_end_of_a_worker_goes_through_it(url, client):
    notes = []

    async def main():
        begun = asyncio.Event()
        async with aio.connect(url) as other:
            queue = other.queue("q")
            await queue.enqueue("a")

            async def handler(claim):
                begun.set()
                await asyncio.Event().wait()

            async def around(claim, next):
                try:
                    await next()
                finally:
                    notes.append("end")

            run = asyncio.ensure_future(queue.worker(handler, around=around).run())
            await begun.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    asyncio.run(main())
    assert notes == ["end"]
    found = client.queue("q").get("a")
    assert (found.state, found.attempts) == ("ready", 0)


def test_middleware_is_called_so():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'middleware': say around="):
        stanchion.connect("memory:").queue("q").worker(print, middleware=[])
