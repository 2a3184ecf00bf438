"""Flows: of threads, of asyncio, and what is taken as a node."""

import asyncio
import dataclasses
import pickle
from datetime import datetime, timezone

import pytest

import stanchion
from stanchion import FlowState, NodeState, Task, aio, chain
from stanchion.testing import memory_client

SUM = [
    {"id": "one", "kind": "count", "payload": {"rows": 5}, "max_attempts": 1},
    {"id": "two", "kind": "count", "payload": {"rows": 3}, "max_attempts": 1},
    {"id": "sum", "after": ["two", "one"]},
    {"id": "mail", "after": "sum", "queue": "mails"},
    {"id": "alarm", "after_failure": ["one", "two"]},
    {"id": "clean up", "after_all": "finally"},
]


def shown(inputs):
    return [(one.node, one.state, one.result) for one in inputs]


ALL = [("one", "done", b"5"), ("two", "done", b"3"), ("sum", "done", b"8"), ("mail", "done", None), ("alarm", "unneeded", None)]


def check_sum(flow, seen):
    assert seen == {
        "one": [], "two": [], "sum": [("two", "done", b"3"), ("one", "done", b"5")], "mail": [("sum", "done", b"8")],
        "clean up": ALL}
    assert (flow.id, flow.state, flow.counts) == ("f", FlowState.DONE, {"done": 5, "unneeded": 1})
    assert flow.created <= flow.ended <= datetime.now(timezone.utc), "both are in UTC"
    assert [(node.name, node.queue, node.after_all) for node in flow.nodes] == [
        ("one", None, None), ("two", None, None), ("sum", None, None), ("mail", "mails", None), ("alarm", None, None),
        ("clean up", None, "finally")]
    assert [flow.nodes[number].after for number in (0, 2, 3)] == [[], ["two", "one"], ["sum"]]
    assert flow.nodes[4].after_failure == ["one", "two"] and flow.nodes[4].state is NodeState.UNNEEDED


def test_a_flow_goes_from_end_to_end(client):
    queue, mails, seen = client.queue("q"), client.queue("mails"), {}
    assert queue.enqueue_flow("f", SUM) and not queue.enqueue_flow("f", ["other"])
    running = queue.get_flow("f")
    assert (running.state, running.ended, running.counts) == ("running", None, {"put": 2, "waiting": 4})

    def handle(claim):
        inputs = claim.inputs()
        seen[claim.id[2:]] = shown(inputs)
        assert claim.flow == "f"
        if claim.kind == "count":
            claim.ack(str(claim.json["rows"]))
        elif claim.id == "f/sum":
            claim.ack(str(sum(one.json() for one in inputs)))

    for one in (queue, mails, queue):
        one.worker(handle).run(until_empty=True, signals=False)
    check_sum(queue.get_flow("f"), seen)
    assert queue.get_flow("g") is None


def test_a_flow_of_asyncio_goes_from_end_to_end(url):
    async def main():
        async with aio.connect(url) as client:
            queue, mails, seen = client.queue("q"), client.queue("mails"), {}
            assert await queue.enqueue_flow("f", SUM) is True
            assert await queue.enqueue_flow("f", ["other"]) is False

            async def handle(claim):
                inputs = await claim.inputs()
                seen[claim.id[2:]] = shown(inputs)
                assert claim.flow == "f"
                if claim.kind == "count":
                    await claim.ack(str(claim.json["rows"]))
                elif claim.id == "f/sum":
                    await claim.ack(str(sum(one.json() for one in inputs)))

            for one in (queue, mails, queue):
                await one.worker(handle).run(until_empty=True)
            check_sum(await queue.get_flow("f"), seen)
            assert await queue.get_flow("g") is None
            assert (await queue.enqueue_flow("g", ["a"]), await queue.add_to_flow("g", ["b"])) == (True, True)
            page = await queue.list_flows(max=1)
            assert ([flow.id for flow in page], [flow.id for flow in await queue.list_flows(page.next)]) == (["g"], ["f"])
            assert [await queue.cancel_flow("g"), await queue.cancel_flow("g"), await queue.retry_flow("g")] == [True, False, True]

    asyncio.run(main())


def test_a_handler_adds_to_its_flow(client):
    queue, seen = client.queue("q"), []

    def handle(claim):
        seen.append(claim.id)
        if claim.id == "f/list":
            assert queue.add_to_flow(claim.flow, [Task(f"page-{number}") for number in range(2)])

    queue.enqueue_flow("f", ["list", {"id": "publish", "after_all": "then"}])
    queue.worker(handle, concurrency=1).run(until_empty=True, signals=False)
    assert seen == ["f/list", "f/page-0", "f/page-1", "f/publish"]
    assert queue.add_to_flow("f", ["late"]) is False


def test_pages_and_what_becomes_of_a_flow(client):
    queue = client.queue("q")
    for id in ("a", "b"):
        queue.enqueue_flow(id, ["x"])
    page = queue.list_flows(max=1)
    assert (len(page), page[0].id, page[0].nodes, page[0].counts) == (1, "b", [], {"put": 1}) and page.next
    assert [flow.id for flow in queue.list_flows(page.next)] == ["a"]
    assert [queue.cancel_flow("a"), queue.cancel_flow("a"), queue.cancel_flow("none")] == [True, False, False]
    assert queue.get_flow("a").state is FlowState.CANCELLED and queue.get_flow("a").ended is not None
    assert [queue.retry_flow("a"), queue.retry_flow("none")] == [True, False]
    assert queue.get_flow("a").state is FlowState.RUNNING


def test_a_node_is_what_enqueue_many_takes():
    with memory_client() as client:
        queue = client.queue("q")

        @queue.task("work", priority=3)
        def work(number):
            pass

        queue.enqueue_flow("f", [
            "id", ("pair", b"payload"), Task("task", priority=2), {"id": "mapping", "payload": [1], "headers": {"a": "b"}},
            {**vars(work.options(id="call").task(7)), "after": ()}, {"payload": b"without an id", "queue": None, "after_all": None}])
        found = {claim.id: claim for claim in queue.claim(max=9)}
        assert list(found)[:2] == ["f/call", "f/task"] and len(found) == 6
        assert (found["f/pair"].payload, found["f/mapping"].json, found["f/mapping"].headers["a"]) == (b"payload", [1], "b")
        assert (found["f/call"].kind, found["f/call"].json) == ("work", {"number": 7})


def test_a_task_of_no_flow_has_no_inputs(client):
    client.queue("q").enqueue("a")
    (claim,) = client.queue("q").claim()
    assert (claim.flow, claim.inputs()) == (None, [])


def test_a_chain_goes_one_by_one():
    assert chain(["a", ("b", b"x"), {"id": "c", "queue": "mails", "after_end": "other"}]) == [
        {"id": "a"}, {"id": "b", "payload": b"x", "after": ["a"]},
        {"id": "c", "queue": "mails", "after_end": "other", "after": ["b"]}]
    given = [{"id": "a"}, {"id": "b", "after": "other"}, {"id": "c", "after": ("x", "y")}]
    assert [node.get("after") for node in chain(given)] == [None, ["other", "a"], ["x", "y", "b"]]
    assert given[1] == {"id": "b", "after": "other"}, "what was given stays as it is"
    assert chain([]) == []
    with memory_client() as client:
        queue = client.queue("q")
        queue.enqueue_flow("f", chain(Task(payload=number) for number in range(3)))
        for number in range(3):
            (claim,) = queue.claim(max=3)
            assert claim.json == number
            claim.ack()


def test_values_are_read_only_and_can_be_kept():
    with memory_client() as client:
        queue = client.queue("q")
        queue.enqueue_flow("f", chain(["a", "b"]))
        queue.claim()[0].ack(b"no JSON")
        (claim,) = queue.claim()
        for value in (queue.get_flow("f"), queue.get_flow("f").nodes[0], queue.list_flows(), claim.inputs()[0]):
            assert pickle.loads(pickle.dumps(value)) == value
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, dataclasses.fields(value)[0].name, "other")


def test_states_are_words():
    with memory_client() as client:
        queue = client.queue("q")
        queue.enqueue_flow("f", ["a"])
        flow = queue.get_flow("f")
        assert f"{flow.state} {flow.nodes[0].state}" == "running put"
        assert flow.counts == {NodeState.PUT: 1} == {"put": 1} and flow.counts["put"] == flow.counts[NodeState.PUT]


def test_an_input_without_a_result_says_what_became_of_it():
    with memory_client() as client:
        queue = client.queue("q")
        queue.enqueue_flow("f", ["a", {"id": "b", "after_end": "a"}])
        queue.claim()[0].bury()
        (one,) = queue.claim()[0].inputs()
        assert one.result is None and one.state is NodeState.DEAD
        with pytest.raises(LookupError, match="^there is no result of 'a', which is dead$"):
            one.json()


BAD_NODES = [
    [7], "ab", 7, None, {"id": "a"}, [{"id": "a", "name": 1}], [{"id": "a", "after": 7}], [{"id": "a", "after": [None]}],
    [{"id": "a", "after": b"b"}], [{"id": "a", "after_end": [7]}], [{"id": "a", "after_failure": 7}], [{"id": "a", "queue": 7}],
    [{"id": "a", "after_all": "later"}], [{"id": "a", "after_all": True}], [{"id": "a", "after_all": ["then"]}], [{"id": 7}],
    [{"id": "a", "delay": "5"}], [{"id": "a", "on_duplicate": stanchion.Skip()}], [{"id": "a", "after": "none"}]]


@pytest.mark.parametrize("bad", BAD_NODES, ids=repr)
def test_what_is_no_node_is_refused_before_anything_is_sent(bad):
    with memory_client() as client:
        queue = client.queue("q")
        queue.enqueue_flow("there", ["x"])
        for call in (lambda: queue.enqueue_flow("f", bad), lambda: queue.add_to_flow("there", bad)):
            with pytest.raises(stanchion.InvalidArgument):
                call()
        assert [(flow.id, flow.counts) for flow in queue.list_flows()] == [("there", {"put": 1})]


def test_what_waits_for_all_comes_with_the_flow():
    with memory_client() as client:
        queue = client.queue("q")
        queue.enqueue_flow("f", ["a"])
        with pytest.raises(stanchion.InvalidArgument, match="nodes that wait for all come with the flow"):
            queue.add_to_flow("f", ["b", {"id": "c", "after_all": "then"}])
        assert queue.get_flow("f").counts == {"put": 1}
