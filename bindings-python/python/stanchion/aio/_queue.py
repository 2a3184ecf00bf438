"""Queues for asyncio."""

from __future__ import annotations

import inspect
from typing import Any, AsyncIterator, Awaitable, Callable, Iterable, List, Mapping, NoReturn, Optional, Tuple, Union

from .. import _stanchion
from .._errors import StanchionError
from .._events import TaskEvent, task_events
from .._flows import FlowInfo, FlowPage, NodeLike, flow_info, flow_page, nodes as native_nodes
from .._functions import check_ran
from .._keywords import refuse
from .._limits import KeyInfo, KeyPage, QueueStats, Rate, key_info, native_rate, queue_config, queue_stats
from .._running import Backoff, TaskCancelled, TaskResult
from .._schedule import (
    Schedule, ScheduleInfo, ScheduleLike, ScheduleOutcome, SchedulePage, Synced, schedule_info, schedule_infos,
    schedules as native_schedules)
from .._scheduled import ScheduledFunctions
from .._types import (
    UNSET, Consumer, Duration, Enqueued, OnDuplicate, Removed, Rescheduled, Task, TaskInfo, TaskLike, TaskPage, TaskState,
    Time, WorkerEvent, _Unset, all_enqueued, dead_tasks, enqueued, maybe_wall, queue_names, seconds_since_1970,
    several, state_name, task_info, task_infos, tasks)
from ._around import Around
from ._claim import Claim
from ._kinds import TaskFunction, TaskFunctions
from ._loop import call
from ._worker import Worker


def _forget(natives: List[_stanchion.AioClaim]) -> None:
    for native in natives:
        native.forget()


class Queue(ScheduledFunctions, TaskFunctions):
    """A named queue of tasks. Made by `Client.queue`; the methods are those of `stanchion.Queue`."""

    def __init__(self, client: Any, name: str) -> None:
        super().__init__()
        self._client = client
        self._native: _stanchion.AioQueue = client._native.queue(name)
        self.name = name

    async def enqueue(
        self,
        id: Optional[str] = None,
        payload: Any = b"",
        *,
        headers: Optional[Mapping[str, str]] = None,
        delay: Optional[Duration] = None,
        due: Optional[Time] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        expires: Optional[Duration] = None,
        on_duplicate: Optional[OnDuplicate] = None,
        kind: Optional[str] = None,
        timeout: Optional[Duration] = None,
        backoff: Optional[Backoff] = None,
        keep_result: Optional[Duration] = None,
        key: Optional[str] = None,
        **others: NoReturn,
    ) -> Enqueued:
        """Put a task in. Raises QueueFull at the limit."""
        if others:
            refuse("enqueue", others)
        task = Task(
            id, payload, headers, delay, due, priority, max_attempts, expires, on_duplicate, kind, timeout, backoff, keep_result,
            key)
        return enqueued(await call(self._native.enqueue, task._native()))

    async def enqueue_many(self, items: Iterable[TaskLike]) -> List[Union[Enqueued, StanchionError]]:
        """Put many tasks in. One result per task: what the enqueue did, or the exception (QueueFull)."""
        return all_enqueued(await call(self._native.enqueue_many, tasks(items)))

    async def claim(
        self,
        max: Optional[int] = None,
        *,
        lease: Optional[Duration] = None,
        wait: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_run: Optional[Duration] = None,
        timeout: Optional[Duration] = None,
        **others: NoReturn,
    ) -> List[Claim]:
        """Take up to ``max`` (1) tasks under a lease, waiting for some for up to ``wait``."""
        if others:
            refuse("claim", others)
        options = _stanchion.ClaimOptions(max=max, lease=lease, wait=wait, renew=renew, max_run=max_run, timeout=timeout)
        return [Claim(native) for native in await call(self._native.claim, options, discard=_forget)]

    async def settle(self, verdicts: Iterable[_stanchion.Verdict]) -> List[Optional[StanchionError]]:
        """Settle claims together. None, or the exception, for each."""
        results: List[Optional[StanchionError]] = await call(self._native.settle, several(verdicts, "verdicts"))
        return results

    async def settle_and_claim(
        self,
        verdicts: Iterable[_stanchion.Verdict],
        max: Optional[int] = None,
        *,
        lease: Optional[Duration] = None,
        wait: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_run: Optional[Duration] = None,
        timeout: Optional[Duration] = None,
        **others: NoReturn,
    ) -> Tuple[List[Optional[StanchionError]], List[Claim]]:
        """Settle claims and take new tasks, in one round trip if there are any."""
        if others:
            refuse("settle_and_claim", others)
        options = _stanchion.ClaimOptions(max=max, lease=lease, wait=wait, renew=renew, max_run=max_run, timeout=timeout)
        results, claims = await call(
            self._native.settle_and_claim, several(verdicts, "verdicts"), options, discard=lambda found: _forget(found[1]))
        return results, [Claim(native) for native in claims]

    async def pop(self, n: int = 1) -> List[TaskInfo]:
        """Take up to ``n`` tasks for good, without a lease: if this process dies, they are lost."""
        return task_infos(await call(self._native.pop, n))

    async def peek(self, n: int = 1) -> List[TaskInfo]:
        """The tasks that would be claimed next."""
        return task_infos(await call(self._native.peek, n))

    async def get(self, id: str) -> Optional[TaskInfo]:
        """One task: the live one with this id, else the newest dead one."""
        return task_info(await call(self._native.get, id))

    async def list(
        self,
        state: Union[str, TaskState],
        page: Optional[str] = None,
        max: int = 100,
        *,
        prefix: str = "",
        payloads: bool = True,
    ) -> TaskPage:
        """The tasks of one state, a page at a time."""
        found, following = await call(self._native.list, state_name(state), page, max, prefix, payloads)
        return TaskPage(task_infos(found), following)

    async def remove(self, id: str, version: Optional[int] = None) -> Removed:
        """Drop a task, also while it is claimed. With a version, only if it is still the task's."""
        return Removed(*await call(self._native.remove, id, version))

    async def cancel(self, id: str) -> TaskCancelled:
        """End a task. One that waits is dropped; one that runs loses its claim, and is not tried again."""
        return TaskCancelled(await call(self._native.cancel, id))

    async def result(self, id: str, version: Optional[int] = None, wait: Duration = 0) -> TaskResult:
        """What became of a task: its result, or why it is dead. Waits up to ``wait`` while it is not done."""
        return TaskResult(*await call(self._native.result, id, version, wait))

    async def events(self, *, after: Optional[int] = None, wait: Optional[Duration] = None) -> AsyncIterator[TaskEvent]:
        """What happens to the tasks of the queue, for `async for`: ``after`` an event, until nothing happens for ``wait``."""
        while True:
            found, missed, after = await call(self._native.events, after, wait)
            for event in task_events(found, missed):
                yield event
            if not found and wait is not None:
                return

    async def reschedule(self, id: str, due: Time) -> Rescheduled:
        """Give a waiting task another due time."""
        outcome, moved = await call(self._native.reschedule, id, seconds_since_1970(due))
        return Rescheduled(outcome, maybe_wall(moved))

    async def stats(self) -> QueueStats:
        """How many tasks there are, and the settings."""
        return queue_stats(await call(self._native.stats))

    async def consumers(self) -> List[Consumer]:
        """Who works on the queue: the processes of the first thousand calls that wait for a task, and of the first
        thousand claims."""
        return [Consumer(*fields) for fields in await call(self._native.consumers)]

    async def pause(self) -> None:
        """Stop giving out tasks. Claims that are out go on."""
        await call(self._native.pause)

    async def resume(self) -> None:
        """Go on giving out tasks."""
        await call(self._native.resume)

    async def kick(
        self,
        ids: Union[int, str, Iterable[str], None] = None,
        *,
        receipts: Optional[Iterable[int]] = None,
        count: Optional[int] = None,
        reason: str = "",
        prefix: str = "",
        older_than: Optional[Duration] = None,
    ) -> int:
        """Move dead tasks back to ready; how many were moved."""
        dead = dead_tasks("kick", ids, receipts, count, reason, prefix, older_than)
        moved: int = await call(self._native.kick, dead)
        return moved

    async def remove_dead(
        self,
        ids: Union[int, str, Iterable[str], None] = None,
        *,
        receipts: Optional[Iterable[int]] = None,
        count: Optional[int] = None,
        reason: str = "",
        prefix: str = "",
        older_than: Optional[Duration] = None,
    ) -> int:
        """Drop dead tasks; how many are gone."""
        dead = dead_tasks("remove_dead", ids, receipts, count, reason, prefix, older_than)
        gone: int = await call(self._native.remove_dead, dead)
        return gone

    async def purge(self) -> int:
        """Drop every task, live and dead; claims that are out are lost. Settings stay."""
        count: int = await call(self._native.purge)
        return count

    async def configure(
        self,
        *,
        max_len: Union[int, None, _Unset] = UNSET,
        dead_max: Optional[int] = None,
        dead_age: Optional[Duration] = None,
        dead_bytes: Optional[int] = None,
        intake: Optional[bool] = None,
        events: Optional[int] = None,
        max_running: Union[int, None, _Unset] = UNSET,
        rate: Union[Rate, None, _Unset] = UNSET,
        key_concurrency: Union[int, None, _Unset] = UNSET,
        key_rate: Union[Rate, None, _Unset] = UNSET,
    ) -> None:
        """Change settings; what is not given stays, and None takes a limit away."""
        await call(self._native.configure, queue_config(
            max_len, max_running, rate, key_concurrency, key_rate, dead_max=dead_max, dead_age=dead_age,
            dead_bytes=dead_bytes, intake=intake, events=events))

    async def schedule(
        self,
        id: str,
        when: str,
        payload: Any = b"",
        *,
        tz: str = "UTC",
        missed: Union[str, int] = "last",
        overlap: str = "queue",
        jitter: Optional[Duration] = None,
        starts: Optional[Time] = None,
        ends: Optional[Time] = None,
        paused: bool = False,
        headers: Optional[Mapping[str, str]] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        expires: Optional[Duration] = None,
        key: Optional[str] = None,
        **others: NoReturn,
    ) -> ScheduleOutcome:
        """Add a schedule, or change the one with this id."""
        if others:
            refuse("schedule", others)
        schedule = Schedule(
            id, when, payload, tz, missed, overlap, jitter, starts, ends, paused, headers, priority, max_attempts, expires,
            key)
        return ScheduleOutcome(await call(self._native.schedule, schedule._native()))

    async def sync_schedules(self, owner: str, generation: int, schedules: Iterable[ScheduleLike]) -> Synced:
        """Make these all the schedules of this owner: add, change and remove. A list of an older generation changes
        nothing."""
        return Synced(*await call(self._native.sync_schedules, owner, generation, native_schedules(schedules)))

    async def get_schedule(self, id: str) -> Optional[ScheduleInfo]:
        """One schedule."""
        return schedule_info(await call(self._native.get_schedule, id))

    async def list_schedules(self, page: Optional[str] = None, max: int = 100) -> SchedulePage:
        """The schedules, a page at a time: ``max`` at most, and never more than 100; ``page`` is the ``next`` of the page
        before."""
        found, following = await call(self._native.list_schedules, page, max)
        return SchedulePage(schedule_infos(found), following)

    async def pause_schedule(self, id: str) -> bool:
        """Let a schedule fire nothing until it is resumed; False if there is none."""
        found: bool = await call(self._native.pause_schedule, id)
        return found

    async def resume_schedule(self, id: str) -> bool:
        """Let a schedule go on; False if there is none. The slots of the pause are not fired."""
        found: bool = await call(self._native.resume_schedule, id)
        return found

    async def run_schedule(self, id: str) -> Optional[str]:
        """Make a task of a schedule now, also if it is paused; its slots stay as they are. The task's id, or None if there is
        no such schedule. Raises QueueFull at the limit."""
        found: Optional[str] = await call(self._native.run_schedule, id)
        return found

    async def remove_schedule(self, id: str) -> bool:
        """Drop a schedule; False if there was none. The tasks that it has made stay."""
        found: bool = await call(self._native.remove_schedule, id)
        return found

    async def limit_key(
        self,
        key: str,
        *,
        concurrency: Optional[int] = None,
        rate: Optional[Rate] = None,
        weight: Optional[int] = None,
    ) -> None:
        """Give a key limits of its own instead of those that the queue gives each key; with none given, take them away."""
        await call(self._native.limit_key, key, concurrency, native_rate(rate, "rate"), weight)

    async def get_key(self, key: str) -> KeyInfo:
        """What is known of a key: how many of its tasks run, stand in line and are held, and what limits it has of its own."""
        return key_info(await call(self._native.get_key, key))

    async def list_keys(self, page: Optional[str] = None, max: int = 100) -> KeyPage:
        """The keys that hold tasks, then those that have limits of their own and hold none, a page at a time."""
        found, following = await call(self._native.list_keys, page, max)
        return KeyPage([key_info(fields) for fields in found], following)

    async def enqueue_flow(self, id: str, nodes: Iterable[NodeLike]) -> bool:
        """Put in tasks of which some wait for others, whole; False if there is a flow of this id. Raises QueueFull at the limit."""
        put: bool = await call(self._native.enqueue_flow, id, native_nodes(nodes, "enqueue_flow"))
        return put

    async def add_to_flow(self, id: str, nodes: Iterable[NodeLike]) -> bool:
        """Add nodes to a flow that runs, 1,000 at most; False if there is none, or it has ended."""
        put: bool = await call(self._native.add_to_flow, id, native_nodes(nodes, "add_to_flow"))
        return put

    async def get_flow(self, id: str) -> Optional[FlowInfo]:
        """One flow, with all its nodes."""
        return flow_info(await call(self._native.get_flow, id))

    async def list_flows(self, page: Optional[str] = None, max: int = 100) -> FlowPage:
        """The flows without their nodes, those that run first, a page at a time."""
        return flow_page(await call(self._native.list_flows, page, max))

    async def cancel_flow(self, id: str) -> bool:
        """End a flow; False if none runs. Nodes that wait for nothing but the end of others still run."""
        found: bool = await call(self._native.cancel_flow, id)
        return found

    async def retry_flow(self, id: str) -> bool:
        """Try again what did not succeed in a flow; False if there is no such flow."""
        found: bool = await call(self._native.retry_flow, id)
        return found

    async def sync_scheduled(self, owner: str, generation: int) -> Synced:
        """As `sync_schedules`, of all functions that were declared with `scheduled` on this queue object."""
        return await self.sync_schedules(owner, generation, self._schedules())

    async def run_scheduled(self, claim: Claim) -> Any:
        """Call the function whose schedule has made the task of this claim, and return what it returns; a coroutine
        function is awaited. Raises LookupError if no function of this queue object has that schedule."""
        returned = self._call_scheduled(claim)
        returned = await returned if inspect.isawaitable(returned) else returned
        check_ran(returned)
        return returned

    def worker(
        self,
        handler: Optional[Callable[[Claim], Awaitable[Any]]] = None,
        *,
        kinds: Optional[Iterable[TaskFunction[..., Any]]] = None,
        concurrency: Optional[int] = None,
        lease: Optional[Duration] = None,
        max_run: Optional[Duration] = None,
        timeout: Optional[Duration] = None,
        grace: Optional[Duration] = None,
        around: Union[Around, Iterable[Around], None] = None,
        before: Optional[Callable[[Claim], Any]] = None,
        after: Optional[Callable[[Claim], Any]] = None,
        failed: Optional[Callable[[Claim, BaseException], Any]] = None,
        on_event: Optional[Callable[[WorkerEvent], Any]] = None,
        **others: NoReturn,
    ) -> Worker:
        """A worker that awaits ``handler(claim)`` for each task, or the functions of these ``kinds``. See `Worker`."""
        return Worker(
            self, handler, kinds=kinds, concurrency=concurrency, lease=lease, max_run=max_run, timeout=timeout, grace=grace,
            around=around, before=before, after=after, failed=failed, on_event=on_event, **others)

    def __repr__(self) -> str:
        return f"<stanchion.aio.Queue {self.name!r}>"


class Queues:
    """Several queues that are claimed from in the order given. Made by `Client.queues`."""

    def __init__(self, client: Any, names: Iterable[str]) -> None:
        self.names = queue_names(names)
        self._native: _stanchion.AioQueues = client._native.queues(list(self.names))

    async def claim(
        self,
        max: Optional[int] = None,
        *,
        lease: Optional[Duration] = None,
        wait: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_run: Optional[Duration] = None,
        timeout: Optional[Duration] = None,
        **others: NoReturn,
    ) -> List[Claim]:
        """Take tasks of the first queue that has some, as `Queue.claim`."""
        if others:
            refuse("claim", others)
        options = _stanchion.ClaimOptions(max=max, lease=lease, wait=wait, renew=renew, max_run=max_run, timeout=timeout)
        return [Claim(native) for native in await call(self._native.claim, options, discard=_forget)]
