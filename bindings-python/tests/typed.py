"""Uses the package as a typed program does; checked by mypy --strict, not run."""

import asyncio
from datetime import datetime, timedelta
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Iterator, List, Optional

import stanchion
import stanchion.aio


def blocking(client: stanchion.Client) -> int:
    lock: stanchion.Lock = client.lock("a", ttl=30)
    with lock as lease:
        fence: int = lease.fence
    maybe: Optional[stanchion.Lease] = lock.try_acquire(ttl=timedelta(seconds=5))
    if maybe is not None:
        maybe.release(cooldown=2)

    # Refused: what other packages call it.
    lock.acquire(timeout=5)  # type: ignore[arg-type]
    client.lock("a", blocking_timeout=5)  # type: ignore[arg-type]

    @lock.hold(wait=5)
    def held(number: int) -> str:
        return str(number)

    @client.cached("price:{number}", ttl=60, stale=3600, ignore=["verbose"])
    def price(number: int, verbose: bool = False) -> float:
        return number / 2

    half: float = price(1)
    print(half, client.cached("prices", 60, lambda: [half]))
    index: stanchion.RwLock = client.rw_lock("a", wait=5)
    with index.write() as lease:
        lease.downgrade()
        is_writer: bool = lease.upgrade()
        lease.extend_exact(20 if is_writer else 0.5)
        fences: Dict[str, int] = lease.fences
    holders: List[stanchion.Holder] = client.semaphore("a", 5).reentrant("me").holders()
    waiters: List[stanchion.Waiter] = client.rw_lock("a").read().waiters()
    print([waiter.waiting for waiter in waiters])
    with client.semaphore("a", 5).hold(weight=2), client.multi_lock(["a", "b"]):
        print(fences, [holder.weight for holder in holders])
    text: str = held(1)
    queue = client.queue("q")
    done: stanchion.Enqueued = queue.enqueue(text, {"a": 1}, on_duplicate=stanchion.Throttle(window=60))
    claims: List[stanchion.Claim] = queue.claim(max=10, wait=5)
    for claim in claims:
        claim.due.nowhere  # type: ignore[attr-defined] # It is a datetime.
        with claim:
            print(claim.json, done.outcome)
    queue.enqueue_many(["a", ("b", {"to": "x"}), stanchion.Task("c"), {"id": "d", "delay": 5}])
    queue.enqueue_many([7])  # type: ignore[list-item]
    page: stanchion.TaskPage = queue.list("dead", prefix="a", payloads=False)
    following: Optional[str] = page.next
    gone: int = queue.remove_dead(receipts=[task.receipt for task in page], older_than=timedelta(days=1))
    print(following, gone, queue.kick(10), queue.kick("a"), queue.kick(["a"]), queue.kick(reason="x"))
    schedules(queue)
    runs(queue)
    functions(queue)
    report: stanchion.WorkerReport = queue.worker(lambda claim: print(claim.id), concurrency=8).run(until_empty=True)
    reports: List[stanchion.WorkerReport] = stanchion.run_workers(queue.worker(print), queue.worker(print), until_empty=True)
    stanchion.run_workers([queue.worker(print)])  # type: ignore[arg-type]
    return fence + report.completed + len(reports)


def runs(queue: stanchion.Queue) -> None:
    done = queue.enqueue("a", kind="send", timeout=timedelta(minutes=1), backoff=[1, timedelta(hours=1)], keep_result=60)
    queue.enqueue("b", backoff=stanchion.Exponential(1, jitter=0))
    queue.enqueue("b", backoff=5)  # type: ignore[arg-type]
    (claim,) = queue.claim(timeout=5)
    kind: Optional[str] = claim.kind
    claim.progress(b"half")
    claim.ack(kind or b"result")
    claim.ack({"a": 1})  # type: ignore[arg-type]
    result: stanchion.TaskResult = queue.result("a", done.version, wait=5)
    data: Optional[bytes] = result.result
    cancelled: stanchion.TaskCancelled = queue.cancel("a")
    info = queue.get("a")
    if info is not None:
        failures: List[stanchion.TaskFailure] = info.failures
        print(failures, info.backoff, queue.settle([claim.acked("text")]))
    print(data, result.json(), cancelled.outcome)


def events(queue: stanchion.Queue) -> None:
    queue.configure(events=10_000)
    kept: int = queue.stats().events
    watched: Iterator[stanchion.TaskEvent] = queue.events()
    for event in queue.events(after=0, wait=timedelta(seconds=1)):
        at: datetime = event.at
        reason: Optional[str] = event.reason
        print(event.number + event.version + event.attempt + kept, at, event.what, event.id, reason, event.missed)
        event.what = "done"  # type: ignore[misc]
    queue.events(after="1")  # type: ignore[arg-type]
    print(next(watched))


def keys(queue: stanchion.Queue) -> None:
    queue.enqueue("a", key="tenant:7")
    queue.configure(max_running=None, rate=stanchion.Rate(20, timedelta(seconds=1), burst=5), key_concurrency=1, key_rate=None)
    queue.limit_key("tenant:7", concurrency=2, rate=stanchion.Rate(1, 60), weight=3)
    queue.limit_key("tenant:7", rate="20/s")  # type: ignore[arg-type]
    for info in queue.list_keys():
        limits: Optional[stanchion.KeyLimits] = info.limits
        opens: Optional[float] = info.opens_in
        print(info.key, info.running + info.in_line + info.held, opens, limits and limits.weight)
    gate: stanchion.Gate = queue.stats().gate
    for claim in queue.claim():
        key: Optional[str] = claim.key
        claim.throttle(timedelta(seconds=30))
        print(gate, key, queue.settle([claim.throttled(1)]))


def flows(queue: stanchion.Queue) -> None:
    nodes: List[stanchion.Task] = [stanchion.Task("a")]
    put: bool = queue.enqueue_flow("f", nodes)
    queue.enqueue_flow("g", ["a", ("b", {"to": "x"}), {"id": "c", "after": ["a", "b"]}, {"id": "d", "after_all": "then"}])
    queue.enqueue_flow("h", stanchion.chain(["a", stanchion.Task("b")]))
    queue.enqueue_flow("i", [7])  # type: ignore[list-item]
    stanchion.chain([7])  # type: ignore[list-item]
    added: bool = queue.add_to_flow("g", [{"id": "e", "queue": "mails"}])
    page: stanchion.FlowPage = queue.list_flows(max=10)
    following: Optional[str] = page.next
    for info in page:
        state: stanchion.FlowState = info.state
        ended: Optional[datetime] = info.ended
        print(state, ended, info.counts["done"], info.counts.get(stanchion.NodeState.DEAD, 0))
    flow: Optional[stanchion.FlowInfo] = queue.get_flow("f")
    if flow is not None:
        node: stanchion.NodeInfo = flow.nodes[0]
        flow.id = "g"  # type: ignore[misc] # It is read-only.
        print(node.state is stanchion.NodeState.DONE, node.queue, node.after + node.after_end + node.after_failure, node.after_all)
    for claim in queue.claim():
        of: Optional[str] = claim.flow
        inputs: List[stanchion.FlowInput] = claim.inputs()
        results: List[Optional[bytes]] = [one.result for one in inputs]
        print(of, results, inputs[0].json(), queue.cancel_flow("f"), queue.retry_flow("f"))
    print(put, added, following)


async def flows_of_asyncio(queue: stanchion.aio.Queue) -> None:
    put: bool = await queue.enqueue_flow("f", stanchion.chain(["a", "b"]))
    page: stanchion.FlowPage = await queue.list_flows()
    flow: Optional[stanchion.FlowInfo] = await queue.get_flow("f")
    for claim in await queue.claim():
        inputs: List[stanchion.FlowInput] = await claim.inputs()
        print(claim.flow, inputs, put, page, flow)
    print(await queue.add_to_flow("f", ["c"]), await queue.cancel_flow("f"), await queue.retry_flow("f"))


def functions(queue: stanchion.Queue) -> None:
    @queue.task("send", timeout=timedelta(minutes=1), backoff=stanchion.Exponential(1))
    def send(user: int, template: str = "plain") -> Dict[str, int]:
        print(stanchion.current_claim().kind)
        return {"sent": user}

    sent: Dict[str, int] = send(1)
    done: stanchion.Enqueued = send.enqueue(42, template="x")
    send.enqueue("42")  # type: ignore[arg-type]
    send.enqueue(42, theme="x")  # type: ignore[call-arg]
    later: stanchion.TaskFunction[..., Dict[str, int]] = send.options(delay=5, id="x")
    queue.enqueue_many([send.task(1), later.task(user=2)])
    send.options(id="y").enqueue(user="x")  # type: ignore[arg-type]
    print(sent, done.id, send.kind, queue.worker(kinds=[send, later]).run(until_empty=True))
    queue.worker(print, kinds=[send])
    queue.worker(kinds=[print])  # type: ignore[list-item]

    def around(claim: stanchion.Claim, next: Callable[[], Any]) -> Any:
        return next()

    queue.worker(print, around=around)
    queue.worker(kinds=[send], around=[around, lambda claim, next: print(claim.id, next())])
    queue.worker(print, around=5)  # type: ignore[arg-type]
    queue.worker(print, around=[print, 5])  # type: ignore[list-item]


def schedules(queue: stanchion.Queue) -> None:
    @queue.scheduled("0 3 * * *", {"a": 1}, tz="Europe/Berlin", missed=3, jitter=timedelta(minutes=5))
    def nightly(claim: stanchion.Claim, verbose: bool = False) -> int:
        return claim.attempt

    number: int = nightly(queue.claim()[0], verbose=True)
    nightly("a")  # type: ignore[arg-type]
    times: List[datetime] = nightly.schedule.preview(0, number)
    outcome: stanchion.ScheduleOutcome = queue.schedule("a", "@daily", overlap="skip", starts=times[0])
    synced: stanchion.Synced = queue.sync_schedules("app", 1, [nightly.schedule, ("b", "@daily"), {"id": "c", "when": "@daily"}])
    queue.sync_schedules("app", 1, [7])  # type: ignore[list-item]
    page: stanchion.SchedulePage = queue.list_schedules()
    info: Optional[stanchion.ScheduleInfo] = queue.get_schedule("a")
    task: Optional[str] = queue.run_schedule("a")
    print(outcome, synced.newer, [one.next for one in page], info and info.missed, task, queue.sync_scheduled("app", 2))
    queue.worker(queue.run_scheduled).run(until_empty=True)


async def asynchronous() -> None:
    async with stanchion.aio.connect("memory:") as client:
        async with client.lock("a").hold(wait=5) as lease:
            print(lease.fence, await client.lock("a").locked())

        async with client.rw_lock("a").write() as writer:
            await writer.downgrade()
            print(await writer.upgrade())
            await writer.extend_exact(20)
            print(writer.fences, await client.semaphore("a", 5).holders())

        @client.lock("b").hold()
        async def held(number: int) -> str:
            return str(number)

        @client.cached("price:{number}", ttl=60)
        async def price(number: int) -> float:
            return number / 2

        half: float = await price(1)
        print(half, await client.cached("prices", 60, lambda: [half]))
        text: str = await held(1)
        claims: List[stanchion.aio.Claim] = await client.queue("q").claim(max=2)
        for claim in claims:
            await claim.progress("half")
            await claim.ack(b"x")
            result: stanchion.TaskResult = await client.queue("q").result(claim.id, wait=5)
            print(result.outcome, (await client.queue("q").cancel(claim.id)).outcome)
        watched: AsyncIterator[stanchion.TaskEvent] = client.queue("q").events(after=0, wait=1)
        async for event in watched:
            print(event.what)
        print(text)
        await asynchronous_schedules(client.queue("q"))
        await asynchronous_functions(client.queue("q"))


async def asynchronous_functions(queue: stanchion.aio.Queue) -> None:
    @queue.task("send")
    async def send(user: int) -> str:
        return (stanchion.aio.current_claim().kind or "") * user

    text: str = await send(1)
    done: stanchion.Enqueued = await send.options(priority=1).enqueue(user=2)
    await send.enqueue("x")  # type: ignore[arg-type]
    await queue.enqueue_many([send.task(3)])
    async def around(claim: stanchion.aio.Claim, next: Callable[[], Awaitable[Any]]) -> Any:
        return await next()

    print(text, done.outcome, await queue.worker(kinds=[send]).run(until_empty=True))
    reports: List[stanchion.WorkerReport] = await stanchion.aio.run_workers(queue.worker(kinds=[send]), until_empty=True)
    print(reports)
    queue.worker(kinds=[send], around=[around])


async def asynchronous_schedules(queue: stanchion.aio.Queue) -> None:
    @queue.scheduled("@daily")
    async def nightly(claim: stanchion.aio.Claim) -> int:
        return claim.attempt

    number: int = await nightly((await queue.claim())[0])
    synced: stanchion.Synced = await queue.sync_scheduled("app", number)
    print(nightly.schedule.id, synced.added, await queue.schedule("a", "@daily"), await queue.get_schedule("a"))
    await queue.worker(queue.run_scheduled).run(until_empty=True)


if __name__ == "__main__":
    blocking(stanchion.connect("memory:"))
    asyncio.run(asynchronous())
