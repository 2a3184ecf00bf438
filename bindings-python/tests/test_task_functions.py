"""Functions with a kind: declared, enqueued by their arguments, called by workers."""

import asyncio
import copy
import pickle
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple, TypedDict, Union

import pytest

import stanchion
from stanchion import aio, testing


@dataclass
class Address:
    city: str
    lines: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class User:
    id: int
    address: Optional[Address] = None


class Mail(TypedDict, total=False):
    to: User
    subject: str


def memory():
    return stanchion.connect("memory:").queue("q")


def work(queue, *functions, **options):
    return queue.worker(kinds=functions, **options).run(until_empty=True)


def test_a_function_is_declared_enqueued_called_and_gives_a_result(client):
    queue, seen = client.queue("q"), []

    @queue.task("send-welcome", max_attempts=5, timeout=30, backoff=[1, 2], priority=3, headers={"a": "b"}, keep_result=60)
    def send(user: int, template: str = "plain", *, urgent: bool = False) -> dict:
        """What it does."""
        seen.append((user, template, urgent))
        return {"sent": user}

    assert (send.kind, send.__name__, send.__doc__) == ("send-welcome", "send", "What it does.")
    assert send(1, urgent=True) == {"sent": 1} and seen.pop() == (1, "plain", True) and len(queue) == 0
    done = send.enqueue(42, urgent=True)
    assert isinstance(done, stanchion.Enqueued)
    found = queue.get(done.id)
    assert (found.kind, found.json) == ("send-welcome", {"user": 42, "urgent": True})
    assert (found.max_attempts, found.timeout, found.backoff, found.priority) == (5, 30, [1, 2], 3)
    assert found.headers == {"a": "b", "content-type": "application/json"}
    assert work(queue, send).completed == 1 and seen == [(42, "plain", True)]
    result = queue.result(done.id, done.version)
    assert result.outcome == "done" and result.json() == {"sent": 42}


def test_workers_choose_functions_by_kind(client):
    queue, seen = client.queue("q"), []
    one = queue.task("one")(lambda n: seen.append(("one", n)))
    two = queue.task("two")(lambda n: seen.append(("two", n)))
    assert queue.enqueue_many([one.task(1), two.task(n=2), one.options(id="third").task(3)])[2].id == "third"
    # What any language puts in.
    queue.enqueue("foreign", b'{"n": 4}', kind="two")
    report = work(queue, one, two, concurrency=2)
    assert report == stanchion.WorkerReport(completed=4)
    assert sorted(seen) == [("one", 1), ("one", 3), ("two", 2), ("two", 4)]
    # None is no result.
    assert queue.result("third").outcome == "gone"


def test_options_do_not_collide_with_arguments(client):
    queue, seen = client.queue("q"), []

    @queue.task("k", delay=60)
    def function(id, delay, self=None, **others):
        seen.append((id, delay, self, others))

    later = function.options(id="x", due=0, on_duplicate=stanchion.Replace(), priority=1)
    assert later.enqueue(id=1, delay=2, self=3, priority=4, args=5, kind=6).id == "x"
    assert queue.get("x").priority == 1 and queue.get("x").state == "ready", "a due time takes the place of the delay"
    assert later.options(delay=5).enqueue(1, 2).outcome == "replaced"
    assert queue.get("x").state == "scheduled" and queue.get("x").json == {"id": 1, "delay": 2}
    # They are those of what options() returns only.
    assert function.enqueue(1, 2).id != "x" and later is not function and later.kind == "k"
    later.enqueue(id=1, delay=2, self=3, priority=4, args=5, kind=6)
    assert work(queue, function, later).completed == 1
    assert seen == [(1, 2, 3, {"priority": 4, "args": 5, "kind": 6})]


def test_arguments_come_as_their_annotations_say(client):
    queue, seen = client.queue("q"), []

    @queue.task("k")
    def function(
        user: User, many: List[User], by_name: Dict[str, Address], pair: Tuple[int, User], mail: Mail,
        maybe: Optional[User] = None, either: Union[User, str, None] = "x", *rest: Address, plain=None, **others: User
    ):
        seen.append((user, many, by_name, pair, mail, maybe, either, rest, plain, others))

    user, home = User(1, Address("Graz", ["a"])), Address("Wien")
    given = (user, [user], {"home": home}, (7, user), {"to": user, "subject": "s", "more": 1}, user, "text", home, home)
    function.enqueue(*given, plain={"a": [1]}, other=user)
    # A dict of a dataclass's fields is as good.
    function.enqueue({"id": 1}, (), {}, [7, {"id": 2}], {}, either={"id": 3})
    function.enqueue(user, [], {}, (7, user), {}, None, None)
    assert work(queue, function).completed == 3
    first, second, third = sorted(seen, key=lambda call: (call[5] is None, call[6] is None))
    assert first == (*given[:7], (home, home), {"a": [1]}, {"other": user})
    assert second == (User(1), [], {}, (7, User(2)), {}, None, User(3), (), None, {})
    assert third[5:7] == (None, None)


@dataclass
class Tree:
    value: int
    children: List["Tree"] = field(default_factory=list)
    size: int = field(init=False, default=0)

    def __post_init__(self):
        self.size = 1 + sum(child.size for child in self.children)


def test_a_dataclass_may_hold_itself():
    queue, seen = memory(), []

    @queue.task("k")
    def function(tree: "Tree", nobody: "Nobody" = None):  # noqa: F821
        seen.append(tree)

    function.enqueue(Tree(1, [Tree(2), Tree(3, [Tree(4)])]), nobody={"a": 1})
    assert work(queue, function).completed == 1
    assert seen == [Tree(1, [Tree(2), Tree(3, [Tree(4)])])] and seen[0].size == 4


class Model:
    """What pydantic's models have."""

    def __init__(self, to, note=None):
        self.to, self.note = to, note

    def model_dump(self, *, mode="python", by_alias=False):
        assert mode == "json"
        return {"TO" if by_alias else "to": self.to, "note": self.note}

    @classmethod
    def model_validate(cls, told):
        if set(told) - {"TO", "note"} or not isinstance(told.get("TO"), str):
            raise ValueError("TO must be a text")
        return cls(told["TO"], told.get("note"))


def test_models_are_known_by_their_methods():
    queue, seen = memory(), []

    @queue.task("k")
    def function(model: Model, models: List[Model] = ()) -> Model:
        seen.append((model.to, model.note, [one.to for one in models]))
        return Model(model.to, "came back")

    done = function.enqueue(Model("a"), [Model("b", 1)])
    assert queue.get(done.id).json == {"model": {"TO": "a", "note": None}, "models": [{"TO": "b", "note": 1}]}
    function.enqueue({"TO": "c"})
    assert work(queue, function).completed == 2
    assert sorted(seen) == [("a", None, ["b"]), ("c", None, [])]
    assert queue.result(done.id).json() == {"to": "a", "note": "came back"}
    with pytest.raises(stanchion.InvalidArgument, match=r"^enqueue\(\): model must be Model, not .*: TO must be a text$"):
        function.enqueue(Model(7))
    assert queue.enqueue("bad", {"model": {"TO": 7}}, kind="k") and work(queue, function).dead == 1
    assert queue.get("bad").reason == (
        "the arguments of kind 'k' cannot be decoded: model must be Model, not dict: TO must be a text")


def test_models_of_pydantic():
    pydantic = pytest.importorskip("pydantic")
    import datetime

    class Line(pydantic.BaseModel):
        sku: str
        at: datetime.datetime

    class Order(pydantic.BaseModel):
        order_id: int = pydantic.Field(alias="orderId")
        note: Optional[str] = pydantic.Field(default=None, alias="theNote")
        lines: List[Line] = []

    queue, seen = memory(), []

    @queue.task("k")
    def function(order: Order) -> Order:
        seen.append(order)
        return order

    order = Order(orderId=1, theNote="x", lines=[Line(sku="a", at=datetime.datetime(2027, 1, 31, tzinfo=datetime.timezone.utc))])
    done = function.enqueue(order)
    assert work(queue, function).completed == 1 and seen == [order]
    assert queue.result(done.id).json()["order_id"] == 1
    with pytest.raises(stanchion.InvalidArgument, match=r"^enqueue\(\): order must be Order, not dict .*: orderId: Field required"):
        function.enqueue({"lines": []})
    queue.enqueue("bad", {"order": {"orderId": "c4n4ry"}}, kind="k")
    work(queue, function)
    assert "orderId: Input should be a valid integer" in queue.get("bad").reason and "c4n4ry" not in queue.get("bad").reason


def declared(queue, **options):
    @queue.task("k", **options)
    def function(user: User, n: int = 0):
        return n

    return function


@pytest.mark.parametrize("call, message", [
    (lambda f: f(), "missing a required argument: 'user'"), (lambda f: f(User(1), m=2), "got an unexpected keyword argument 'm'"),
    (lambda f: f(User(1), user=2), "multiple values for argument 'user'"),
    (lambda f: f(User(1), 2, 3), "too many positional arguments")])
def test_arguments_are_those_of_the_function(call, message):
    queue = memory()
    function = declared(queue)
    for verb in (function.enqueue, function.task, function.options(id="x").enqueue):
        with pytest.raises(TypeError, match=f"function\\(\\): {message}$"):
            call(verb)
    assert len(queue) == 0


@dataclass(frozen=True)
class Special(User):
    more: int = 0


@pytest.mark.parametrize("call, message", [
    (lambda f: f.enqueue(7), "enqueue(): user must be User or a dict of its fields, not int 7"),
    (lambda f: f.task(Special(1)), "task(): user must be User or a dict of its fields, not Special Special(id=1, address=None, more=0)"),
    (lambda f: f.enqueue({"id": 1, "name": "x"}),
     "enqueue(): user must be User, which has no field 'name', not dict {'id': 1, 'name': 'x'}"),
    (lambda f: f.enqueue(User(1, "Graz")), "enqueue(): user.address must be Address or a dict of its fields, not str 'Graz'"),
    (lambda f: f.enqueue(User(1), User(2)),
     "enqueue(): n must be a JSON value, or a dataclass or a model of pydantic as its annotation says, not User "
     "User(id=2, address=None): Object of type User is not JSON serializable"),
    (lambda f: f.enqueue(User(1), float("nan")),
     "enqueue(): n must be a JSON value, or a dataclass or a model of pydantic as its annotation says, not float nan: "),
    (lambda f: f.options(priority=256).enqueue(User(1)), "enqueue(): priority must be a whole number from 0 to 255, not int 256"),
    (lambda f: f.options(delay=1, due=1).enqueue(User(1)), 'enqueue "q": task '),
    (lambda f: f.enqueue({}), "enqueue(): user must be User, not dict {}: "),
])
def test_values_that_could_not_be_decoded_are_refused(call, message):
    queue = memory()
    with pytest.raises(stanchion.InvalidArgument) as error:
        call(declared(queue))
    assert str(error.value).startswith(message) and len(queue) == 0


def test_a_task_that_no_function_can_take_is_dead(client, caplog):
    queue, events, hooks = client.queue("q"), [], []
    bad = {
        "no json": (b"\xff", "the payload is no JSON: "), "no object": (b"[1]", "the payload is no JSON object"),
        "missing": ({"n": 1}, "missing a required argument: 'user'"), "more": ({"user": {"id": 1}, "m": 2}, "got an unexpected argument 'm'"),
        "wrong": ({"user": {"id": 1, "address": 5}}, "user.address must be Address or a dict of its fields, not int"),
        "secret": ({"user": {"id": 1, "address": "c4n4ry"}}, "user.address must be Address or a dict of its fields, not str"),
        "no field": ({"user": {}}, "user must be User, not dict: ")}
    for id, (payload, _) in bad.items():
        queue.enqueue(id, payload, kind="k")
    report = work(queue, declared(queue), on_event=events.append, before=hooks.append, after=hooks.append)
    assert (report.dead, report.completed) == (len(bad), 0) and hooks == []
    for id, (_, reason) in bad.items():
        found = queue.get(id)
        assert found.state == "dead" and found.reason.startswith(f"the arguments of kind 'k' cannot be decoded: {reason}"), found
    assert {(event.what, event.id) for event in events} == {("dead", id) for id in bad}
    assert "cannot be decoded" in caplog.text and "c4n4ry" not in caplog.text


def test_a_task_of_another_kind_is_put_back_for_others(caplog):
    clock = testing.Clock()
    with testing.memory_client(clock) as client:
        queue, events, hooks = client.queue("q"), [], []
        known = queue.task("known")(lambda: None)
        queue.enqueue("a", {}, kind="new", max_attempts=1)
        worker = queue.worker(kinds=[known], on_event=events.append, before=hooks.append, after=hooks.append, failed=hooks.append)
        pauses = [1, 2, 4, 8, 16, 32, 60, 60]
        for pause in pauses:
            worker.run(until_empty=True)
            clock.advance(pause - 0.01)
            assert queue.get("a").state == "scheduled"
            clock.advance(0.01)
            assert queue.get("a").state == "ready" and queue.get("a").attempts == 0
        assert hooks == [] and [(event.what, event.id, event.attempt) for event in events] == [("unknown_kind", "a", 1)] * len(pauses)
        assert events[1].reason == "this worker has no function of kind 'new'; put back for 2 s"
        # The first, second, fourth and eighth time.
        assert [record.levelname for record in caplog.records if "of kind 'new'" in record.message].count("WARNING") == 4
        queue.enqueue("b", b"plain")
        new = queue.task("new")(lambda: "done")
        report = queue.worker(kinds=[known, new], on_event=events.append).run(until_empty=True)
        assert report.completed == 1 and queue.result("a").json() == "done"
        assert (events[-1].id, events[-1].reason) == ("b", "the task has no kind; put back for 1 s")


def test_a_handler_gets_the_tasks_without_a_kind(client):
    queue, seen = client.queue("q"), []
    known = queue.task("known")(lambda n: seen.append(n))
    queue.scheduled("@yearly", id="nightly")(lambda: seen.append("nightly"))
    queue.sync_scheduled("app", 1)
    task = queue.run_schedule("nightly")
    known.enqueue(1)
    queue.enqueue("other", kind="other")
    report = queue.worker(queue.run_scheduled, kinds=[known]).run(until_empty=True)
    assert report.completed == 2 and sorted(seen, key=str) == [1, "nightly"]
    # What a handler returns is no result.
    assert queue.result(task).outcome == "gone" and queue.get("other").attempts == 0


def test_a_function_that_raises_is_tried_again(client):
    queue, seen, failed, after = client.queue("q"), [], [], []

    @queue.task("k", backoff=[0], max_attempts=2)
    def function(n):
        seen.append((n, stanchion.current_claim().attempt))
        if len(seen) == 1:
            raise ValueError("as planned")

    function.enqueue(7)
    report = work(queue, function, failed=lambda claim, error: failed.append(str(error)), after=lambda claim: after.append(claim.kind))
    assert (report.completed, report.failed) == (1, 1) and seen == [(7, 1), (7, 2)]
    assert failed == ["as planned"] and after == ["k"]


def test_the_claim_is_at_hand(client):
    queue, seen = client.queue("q"), []

    @queue.task("k")
    def function():
        claim = stanchion.current_claim()
        claim.progress("half")
        seen.append((claim.kind, claim.receipt > 0, queue.get(claim.id).progress))
        claim.ack("settled by itself")
        return "not the result"

    done = function.enqueue()
    assert work(queue, function).completed == 1 and seen == [("k", True, b"half")]
    assert queue.result(done.id).result == b"settled by itself"
    queue.enqueue("a")
    queue.worker(lambda claim: seen.append(stanchion.current_claim() is claim)).run(until_empty=True)
    assert seen[-1] is True
    with pytest.raises(LookupError, match="no task runs here"):
        stanchion.current_claim()


@pytest.mark.parametrize("returned, kept", [
    (0, b"0"), (False, b"false"), ("", b'""'), ("ü", '"ü"'.encode()), ([User(1)], b'[{"id":1,"address":null}]'),
    ({"m": Model("x")}, b'{"m":{"to":"x","note":null}}')])
def test_what_is_returned_is_the_result(returned, kept):
    queue = memory()
    done = queue.task("k")(lambda: returned)
    id = done.enqueue().id
    assert work(queue, done).completed == 1 and queue.result(id).result == kept


@pytest.mark.parametrize("returned, reason", [
    (object, "returns must be None or a JSON value, not type"), (float("inf"), "Out of range float"),
    ("\ud800", "surrogates not allowed"), ("x" * (1 << 20), "the result has more than 1048576 bytes")],
    ids=["object", "inf", "surrogate", "long"])
def test_what_cannot_be_a_result_does_not_run_again(client, returned, reason):
    queue, runs, failed = client.queue("q"), [], []
    function = queue.task("k")(lambda: runs.append(1) or returned)
    id = function.enqueue().id
    report = work(queue, function, failed=lambda claim, error: failed.append(error))
    assert (report.dead, len(runs)) == (1, 1) and reason in queue.result(id).reason and reason in str(failed[0])


def test_a_task_is_not_burned_while_the_store_does_not_answer(client, monkeypatch):
    queue, tries = client.queue("q"), []
    original = stanchion.Claim.put_back
    monkeypatch.setattr("stanchion._worker.SETTLE_AGAIN_S", 0.01)

    def put_back(claim, delay=None):
        tries.append(delay)
        if len(tries) < 3:
            raise (stanchion.StoreUnavailable, stanchion.Indeterminate)[len(tries) - 1]("for a while")
        original(claim, delay)

    monkeypatch.setattr(stanchion.Claim, "put_back", put_back)
    queue.enqueue("a", kind="other", max_attempts=1)
    work(queue, declared(queue))
    assert tries == [1, 1, 1] and queue.get("a").state == "scheduled" and queue.get("a").attempts == 0


QUEUE = memory()


@QUEUE.task("module")
def of_module(n: int) -> int:
    return n + 1


def test_it_is_picked_by_its_name():
    assert pickle.loads(pickle.dumps(of_module)) is of_module and copy.copy(of_module) is of_module
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(of_module.options(delay=5))
    assert repr(of_module) == "<stanchion.TaskFunction 'module' of of_module>"


def test_one_function_may_have_several_kinds_and_queues(client):
    seen = []
    high, low = client.queue("high"), client.queue("low")
    one = high.task("a")(seen.append)
    two = low.task("b")(one._function)
    one.enqueue(1)
    two.enqueue(2)
    assert (len(high), len(low)) == (1, 1)
    # Of whatever queue the function was declared.
    assert work(high, one, two).completed == work(low, one, two).completed == 1 and seen == [1, 2]


def generator():
    yield


async def later():
    pass


class Class:
    def method(self, n):
        pass


WRONG = {
    lambda queue: queue.task(later): f"task(): kind must be a text such as 'send-welcome', not function {later!r}",
    lambda queue: queue.task("k")(7): "task(): what it decorates must be a function, not int 7",
    lambda queue: queue.task("k")(generator):
        f"task(): what it decorates must be a function whose body runs when it is called, not the generator {generator!r}",
    lambda queue: queue.task("k")(Class.method):
        f"task(): what it decorates must be a function, not the method {Class.method!r}: no task carries its object",
    lambda queue: queue.task("")(print): 'task "print": kind "" is not 1 to 128 bytes without control characters',
    lambda queue: queue.task("k", max_attempts=0)(print): 'task "print": max_attempts 0 is not between 1 and 1000000',
    lambda queue: queue.task("k", timeout="5")(print): "task(): timeout must be a number of seconds or a timedelta, not str '5'",
    lambda queue: queue.task("k", backoff=5)(print):
        "task(): backoff must be a list of pauses in seconds, or Exponential(base), not int 5",
    lambda queue: queue.worker(kinds=[]):
        "worker(): kinds must be a list of functions that were declared with @queue.task(kind), not list []",
    lambda queue: queue.worker(kinds=[print]):
        "worker(): kinds must be a list of functions that were declared with @queue.task(kind), not builtin_function_or_method "
        "<built-in function print>",
    lambda queue: queue.worker(kinds=declared(queue)):
        "worker(): kinds must be a list of functions that were declared with @queue.task(kind), not TaskFunction <stanchion.",
    lambda queue: queue.worker(kinds=[declared(queue), declared(queue)]): "worker(): the kind 'k' is that of ",
    lambda queue: queue.worker(7, kinds=[declared(queue)]): "worker(): handler must be a function, not int 7",
    lambda queue: queue.worker(): "worker(): handler must be a function, not None",
    lambda queue: queue.worker(kinds=[queue.task("k")(union)]): "which type of ",
    lambda queue: queue.worker(kinds=[queue.task("k")(numbers)]): "the keys of a JSON object are texts, so none can be a ",
}


def union(one: Union[User, Address]):
    pass


def numbers(one: Dict[int, User]):
    pass


@pytest.mark.parametrize("connect", [stanchion.connect, aio.connect], ids=["blocking", "asyncio"])
@pytest.mark.parametrize("call", WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_could_not_run_is_refused_where_it_is_written(connect, call):
    async def opened():
        client = connect("memory:")
        return client if connect is stanchion.connect else await client

    with pytest.raises(stanchion.InvalidArgument) as error:
        call(asyncio.run(opened()).queue("q"))
    assert str(error.value).startswith(WRONG[call])


def test_coroutine_functions_need_asyncio():
    queue = memory()
    with pytest.raises(stanchion.InvalidArgument, match="not the async .*; stanchion.aio is for those$"):
        queue.task("k")(later)

    async def declared_there():
        return (await aio.connect("memory:")).queue("q").task("k")(later)

    with pytest.raises(stanchion.InvalidArgument, match=r"^worker\(\): what has the kind 'k' must be .*stanchion.aio is for those$"):
        queue.worker(kinds=[asyncio.run(declared_there())])


@pytest.mark.parametrize("call, message", [
    (lambda queue: queue.task(name="x", kind="k"), "task() got an unexpected keyword argument 'name': say the kind first, task('x')"),
    (lambda queue: queue.task("k", bind=True), "task() got an unexpected keyword argument 'bind': leave it out; current_claim() is the claim"),
    (lambda queue: queue.task("k", time_limit=5), "task() got an unexpected keyword argument 'time_limit': say timeout=5"),
    (lambda queue: queue.task("k", id="x"),
     "task() got an unexpected keyword argument 'id': it is of one task: say send.options(...).enqueue(...)"),
    (lambda queue: of_module.options(countdown=5), "options() got an unexpected keyword argument 'countdown': say delay=5"),
    (lambda queue: of_module.options(kind="x"),
     "options() got an unexpected keyword argument 'kind': it is that of the declaration, task(kind)"),
])
def test_keywords_of_other_packages_are_answered(call, message):
    with pytest.raises(TypeError) as error:
        call(memory())
    assert str(error.value) == message


def test_asyncio(url):
    async def main():
        async with aio.connect(url) as client:
            queue, seen, events = client.queue("q"), [], []

            @queue.task("awaited", timeout=60)
            async def awaited(user: User, n: int = 0) -> dict:
                claim = aio.current_claim()
                await asyncio.sleep(0)
                assert aio.current_claim() is claim
                await claim.progress("half")
                seen.append((user, n, claim.kind, (await queue.get(claim.id)).progress))
                return {"n": n}

            @queue.task("plain")
            def plain(n):
                seen.append(n)

            @queue.task("bad result")
            async def bad_result():
                return object()

            assert plain(5) is None and seen.pop() == 5
            done = await awaited.enqueue(User(1), n=2)
            await queue.enqueue_many([plain.task(3), bad_result.options(id="bad result").task()])
            await queue.enqueue("unknown", kind="unknown", max_attempts=1)
            await queue.enqueue("bad", b"[]", kind="plain")
            await queue.enqueue("without")
            with pytest.raises(TypeError, match="missing a required argument: 'user'"):
                await awaited.enqueue()

            async def handler(claim):
                seen.append(claim.id)
                return "no result"

            worker = queue.worker(
                handler, kinds=[awaited, plain, bad_result], concurrency=3, on_event=events.append)
            report = await worker.run(until_empty=True)
            assert (report.completed, report.dead) == (3, 2)
            assert sorted(seen, key=str) == [(User(1), 2, "awaited", b"half"), 3, "without"]
            assert (await queue.result(done.id, done.version, wait=5)).json() == {"n": 2}
            assert (await queue.result("without")).outcome == "gone"
            assert "must be None or a JSON value, not object" in (await queue.result("bad result")).reason
            assert (await queue.get("bad")).reason == "the arguments of kind 'plain' cannot be decoded: the payload is no JSON object"
            found = await queue.get("unknown")
            assert (found.state, found.attempts) == ("scheduled", 0)
            assert sorted((event.what, event.id) for event in events) == [
                ("dead", "bad"), ("dead", "bad result"), ("unknown_kind", "unknown")]
            with pytest.raises(LookupError):
                aio.current_claim()

    asyncio.run(asyncio.wait_for(main(), 120))


def test_claims_of_tasks_that_run_beside_each_other_are_apart(url):
    async def main():
        async with aio.connect(url) as client:
            queue, seen = client.queue("q"), []
            both = asyncio.Event()

            @queue.task("k")
            async def function(n):
                seen.append(n)
                if len(seen) == 2:
                    both.set()
                await both.wait()
                return [n, aio.current_claim().json["n"], await asyncio.to_thread(lambda: aio.current_claim().json["n"])]

            ids = [(await function.enqueue(n)).id for n in range(2)]
            await queue.worker(kinds=[function], concurrency=2).run(until_empty=True)
            assert [(await queue.result(id)).json() for id in ids] == [[0, 0, 0], [1, 1, 1]]

    asyncio.run(asyncio.wait_for(main(), 120))


def test_asyncio_burns_no_task_while_the_store_does_not_answer(monkeypatch):
    tries = []
    original = aio.Claim.put_back
    monkeypatch.setattr("stanchion.aio._worker.SETTLE_AGAIN_S", 0.01)

    async def put_back(claim, delay=None):
        tries.append(delay)
        if len(tries) < 3:
            raise (stanchion.StoreUnavailable, stanchion.Indeterminate)[len(tries) - 1]("for a while")
        await original(claim, delay)

    monkeypatch.setattr(aio.Claim, "put_back", put_back)

    async def main():
        async with aio.connect("memory:") as client:
            queue = client.queue("q")
            await queue.enqueue("a", kind="other", max_attempts=1)
            await queue.worker(kinds=[queue.task("k")(later)]).run(until_empty=True)
            found = await queue.get("a")
            assert tries == [1, 1, 1] and (found.state, found.attempts) == ("scheduled", 0)

    asyncio.run(asyncio.wait_for(main(), 60))
