"""Queues, blocking."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, List, Mapping, NoReturn, Optional, Tuple, Union

from . import _stanchion
from ._around import Around
from ._claim import Claim
from ._errors import StanchionError
from ._events import TaskEvent, task_events
from ._flows import FlowInfo, FlowPage, NodeLike, flow_info, flow_page, nodes as native_nodes
from ._functions import check_blocking, check_ran
from ._keywords import refuse
from ._kinds import TaskFunction, TaskFunctions
from ._limits import KeyInfo, KeyPage, QueueStats, Rate, key_info, native_rate, queue_config, queue_stats
from ._running import Backoff, TaskCancelled, TaskResult
from ._schedule import (
    Schedule, ScheduleInfo, ScheduleLike, ScheduleOutcome, SchedulePage, Synced, schedule_info, schedule_infos,
    schedules as native_schedules)
from ._scheduled import ScheduledFunctions
from ._types import (
    UNSET, Consumer, Duration, Enqueued, OnDuplicate, Removed, Rescheduled, Task, TaskInfo, TaskLike, TaskPage, TaskState,
    Time, WorkerEvent, _Unset, all_enqueued, dead_tasks, enqueued, maybe_wall, queue_names, seconds_since_1970,
    several, state_name, task_info, task_infos, tasks)
from ._worker import Worker


class Queue(ScheduledFunctions, TaskFunctions):
    """A named queue of tasks. Made by `Client.queue`."""

    def __init__(self, client: Any, name: str) -> None:
        super().__init__()
        self._client = client
        self._native: _stanchion.Queue = client._native.queue(name)
        self.name = name

    _check = staticmethod(check_blocking)

    def enqueue(
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
        """Put a task in. Sent again if no answer comes, it is still put in once. Raises QueueFull at the limit.

        ``payload`` is bytes, or any JSON value. Without an id the task gets a random one. `Task` has the other options
        and their defaults.
        """
        if others:
            refuse("enqueue", others)
        task = Task(
            id, payload, headers, delay, due, priority, max_attempts, expires, on_duplicate, kind, timeout, backoff, keep_result,
            key)
        return enqueued(self._native.enqueue(task._native()))

    def enqueue_many(self, items: Iterable[TaskLike]) -> List[Union[Enqueued, StanchionError]]:
        """Put many tasks in: each a Task, an id, an (id, payload) pair, or a mapping of a Task's fields. One result per
        task: what the enqueue did, or the exception (QueueFull) that it would have raised."""
        return all_enqueued(self._native.enqueue_many(tasks(items)))

    def claim(
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
        """Take up to ``max`` (1) tasks under a lease, waiting for some for up to ``wait``.

        Without a ``lease``, it is of 30 s and renewed until the claim is settled; with one it is fixed, unless
        ``renew`` is asked for. A run of a task that does not say how long it may take is over after ``timeout``, and has
        failed then (no timeout).
        """
        if others:
            refuse("claim", others)
        options = _stanchion.ClaimOptions(max=max, lease=lease, wait=wait, renew=renew, max_run=max_run, timeout=timeout)
        return [Claim(native) for native in self._native.claim(options)]

    def settle(self, verdicts: Iterable[_stanchion.Verdict]) -> List[Optional[StanchionError]]:
        """Settle claims together: `Claim.acked` and the like. None, or the exception, for each."""
        return self._native.settle(several(verdicts, "verdicts"))

    def settle_and_claim(
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
        results, claims = self._native.settle_and_claim(several(verdicts, "verdicts"), options)
        return results, [Claim(native) for native in claims]

    def pop(self, n: int = 1) -> List[TaskInfo]:
        """Take up to ``n`` tasks for good, without a lease: if this process dies, they are lost."""
        return task_infos(self._native.pop(n))

    def peek(self, n: int = 1) -> List[TaskInfo]:
        """The tasks that would be claimed next."""
        return task_infos(self._native.peek(n))

    def get(self, id: str) -> Optional[TaskInfo]:
        """One task: the live one with this id, else the newest dead one."""
        return task_info(self._native.get(id))

    def list(
        self,
        state: Union[str, TaskState],
        page: Optional[str] = None,
        max: int = 100,
        *,
        prefix: str = "",
        payloads: bool = True,
    ) -> TaskPage:
        """The tasks of one state, a page at a time: ``max`` at most, ``page`` is the ``next`` of the page before.

        With a ``prefix``, only those whose id begins so: a page may then have few or none, and a next one all the same.
        Without ``payloads``, payload and headers are empty.
        """
        found, following = self._native.list(state_name(state), page, max, prefix, payloads)
        return TaskPage(task_infos(found), following)

    def remove(self, id: str, version: Optional[int] = None) -> Removed:
        """Drop a task, also while it is claimed. With a version, only if it is still the task's."""
        return Removed(*self._native.remove(id, version))

    def cancel(self, id: str) -> TaskCancelled:
        """End a task. One that waits is dropped. One that runs loses its claim at the next renewal, within a third of its lease,
        with the reason "cancelled", and is not tried again, however that run ends; an ack of it is still accepted. What is
        enqueued later is a new task."""
        return TaskCancelled(self._native.cancel(id))

    def result(self, id: str, version: Optional[int] = None, wait: Duration = 0) -> TaskResult:
        """What became of a task: its result, or why it is dead. ``version`` is that of `Enqueued`, and asks about that task or a
        later one of the id; without it, about any. Waits up to ``wait`` while it is not done."""
        return TaskResult(*self._native.result(id, version, wait))

    def events(self, *, after: Optional[int] = None, wait: Optional[Duration] = None) -> Iterator[TaskEvent]:
        """What happens to the tasks of the queue, if it keeps events: `configure`. Begins ``after`` the event of this number, with
        0 at the oldest one that is kept, without it at the next one that happens once the loop has begun. Ends when nothing has
        happened for ``wait``: 0 only returns what there is, None waits for ever.

        Events report that something happened, and not what is: a program that acts on tasks claims them. `purge` has none.
        """
        while True:
            found, missed, after = self._native.events(after, wait)
            yield from task_events(found, missed)
            if not found and wait is not None:
                return

    def reschedule(self, id: str, due: Time) -> Rescheduled:
        """Give a waiting task another due time."""
        outcome, moved = self._native.reschedule(id, seconds_since_1970(due))
        return Rescheduled(outcome, maybe_wall(moved))

    def stats(self) -> QueueStats:
        """How many tasks there are, and the settings."""
        return queue_stats(self._native.stats())

    def consumers(self) -> List[Consumer]:
        """Who works on the queue: the processes of the first thousand calls that wait for a task, and of the first
        thousand claims."""
        return [Consumer(*fields) for fields in self._native.consumers()]

    def pause(self) -> None:
        """Stop giving out tasks. Claims that are out go on."""
        self._native.pause()

    def resume(self) -> None:
        """Go on giving out tasks."""
        self._native.resume()

    def kick(
        self,
        ids: Union[int, str, Iterable[str], None] = None,
        *,
        receipts: Optional[Iterable[int]] = None,
        count: Optional[int] = None,
        reason: str = "",
        prefix: str = "",
        older_than: Optional[Duration] = None,
    ) -> int:
        """Move dead tasks back to ready, unless their ids live; how many were moved.

        Which: these ids (an int is a count), these ``receipts``, or the ``count`` oldest; of them, or else of all,
        those whose reason begins with ``reason``, whose id with ``prefix``, and that died ``older_than`` ago or earlier.
        """
        return self._native.kick(dead_tasks("kick", ids, receipts, count, reason, prefix, older_than))

    def remove_dead(
        self,
        ids: Union[int, str, Iterable[str], None] = None,
        *,
        receipts: Optional[Iterable[int]] = None,
        count: Optional[int] = None,
        reason: str = "",
        prefix: str = "",
        older_than: Optional[Duration] = None,
    ) -> int:
        """Drop dead tasks; returns how many. They are selected as for `kick`: ids, receipts or a count, and filters."""
        return self._native.remove_dead(dead_tasks("remove_dead", ids, receipts, count, reason, prefix, older_than))

    def purge(self) -> int:
        """Drop every task, live and dead; claims that are out are lost. Settings stay."""
        return self._native.purge()

    def configure(
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
        """Change settings; what is not given stays, and None takes a limit away. ``events`` is how many of the last events are
        kept, for `events` (0, none; 100,000 at most).

        ``max_running`` is how many tasks run at once at most, whoever runs them, and ``rate`` how many are delivered per time:
        every delivery counts, also a retry and one that is put back. Of each key (`Task`), ``key_concurrency`` is how many of
        its tasks are in line and running at most, and ``key_rate`` how many are delivered per time, unless the key has limits
        of its own: `limit_key`.
        """
        self._native.configure(queue_config(
            max_len, max_running, rate, key_concurrency, key_rate, dead_max=dead_max, dead_age=dead_age,
            dead_bytes=dead_bytes, intake=intake, events=events))

    def schedule(
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
        """Add a schedule, or change the one with this id.

        ``when`` is a cron text, ``every 90s``, or ``at`` and times; ``payload`` is bytes, or any JSON value. `Schedule` has
        the other options and their defaults. The slots of one that is there go on as they are, unless what says when they are
        is another. Raises InvalidArgument if no slot comes any more.
        """
        if others:
            refuse("schedule", others)
        schedule = Schedule(
            id, when, payload, tz, missed, overlap, jitter, starts, ends, paused, headers, priority, max_attempts, expires,
            key)
        return ScheduleOutcome(self._native.schedule(schedule._native()))

    def sync_schedules(self, owner: str, generation: int, schedules: Iterable[ScheduleLike]) -> Synced:
        """Make these all the schedules of this owner, an application for example, 1,000 at most: add what is new, change what
        is other, remove what the owner has no more. What others have put stays. Each is a Schedule, an (id, when, payload)
        tuple, or a mapping of a Schedule's fields.

        To be called at each start, with a number that grows with each deploy: a list of an older generation changes
        nothing, so that programs of the old deploy that still run, or start once more, do no harm.
        """
        return Synced(*self._native.sync_schedules(owner, generation, native_schedules(schedules)))

    def get_schedule(self, id: str) -> Optional[ScheduleInfo]:
        """One schedule."""
        return schedule_info(self._native.get_schedule(id))

    def list_schedules(self, page: Optional[str] = None, max: int = 100) -> SchedulePage:
        """The schedules, a page at a time: ``max`` at most, and never more than 100; ``page`` is the ``next`` of the page
        before."""
        found, following = self._native.list_schedules(page, max)
        return SchedulePage(schedule_infos(found), following)

    def pause_schedule(self, id: str) -> bool:
        """Let a schedule fire nothing until it is resumed; False if there is none."""
        return self._native.pause_schedule(id)

    def resume_schedule(self, id: str) -> bool:
        """Let a schedule go on; False if there is none. The slots of the pause are not fired."""
        return self._native.resume_schedule(id)

    def run_schedule(self, id: str) -> Optional[str]:
        """Make a task of a schedule now, also if it is paused; its slots stay as they are. The task's id, or None if there is
        no such schedule. Raises QueueFull at the limit."""
        return self._native.run_schedule(id)

    def remove_schedule(self, id: str) -> bool:
        """Drop a schedule; False if there was none. The tasks that it has made stay."""
        return self._native.remove_schedule(id)

    def limit_key(
        self,
        key: str,
        *,
        concurrency: Optional[int] = None,
        rate: Optional[Rate] = None,
        weight: Optional[int] = None,
    ) -> None:
        """Give a key limits of its own, at once, also while its tasks run; those that run too many end first. With none given,
        take them away.

        ``concurrency`` is how many of its tasks are in line and running at most, and ``rate`` how many are delivered per time
        (both as the queue has it). ``weight``, 1 to 100, is its share beside other keys (1): a key of weight 3 gets three tasks
        done while one of weight 1 gets one. Raises QueueFull if 100,000 keys have limits of their own.
        """
        self._native.limit_key(key, concurrency, native_rate(rate, "rate"), weight)

    def get_key(self, key: str) -> KeyInfo:
        """What is known of a key: how many of its tasks run, stand in line and are held, and what limits it has of its own."""
        return key_info(self._native.get_key(key))

    def list_keys(self, page: Optional[str] = None, max: int = 100) -> KeyPage:
        """The keys that hold tasks, then those that have limits of their own and hold none, a page at a time: ``max`` at most,
        and never more than 100; ``page`` is the ``next`` of the page before."""
        found, following = self._native.list_keys(page, max)
        return KeyPage([key_info(fields) for fields in found], following)

    def enqueue_flow(self, id: str, nodes: Iterable[NodeLike]) -> bool:
        """Put in tasks of which some wait for others, whole; False if there is a flow of this id, which stays as it is. It goes by
        itself: whoever claims from its queue lets it go on.

        A node is what `enqueue_many` takes as a task; its id is its name, and in its queue the task has the id ``flow/name``. A
        mapping may also have:

        - ``after``: the node, or the nodes, that must have succeeded. If one ends otherwise, this one is skipped.
        - ``after_end``: those that must have ended, whatever came of them.
        - ``after_failure``: those of which one must have ended without success: dead, cancelled, removed or skipped.
        - ``after_all``, of all others but those that have it, too: "then" (when all have succeeded), "failed" (as soon as one has
          not, once) or "finally" (when all have ended, also if the flow is cancelled).
        - ``queue``: the name of its queue, of the same store and prefix (that of the flow).

        Delays count from when a node is put into its queue, and ``on_duplicate`` is not for nodes. A flow has 10,000 nodes at most,
        with 64 MiB of payloads in all; its id (without a slash), a slash and the longest name 512 bytes, without control characters. It is
        kept for 7 days after its end, and of a queue the last 1,000 that have ended are. `chain` makes nodes of which each comes after the
        one before.

        Raises QueueFull at the limit, but nodes of a flow that was accepted are put in all the same. Raises InvalidArgument,
        before anything is sent, for a bad task or node, and for nodes that wait for each other.
        """
        return self._native.enqueue_flow(id, native_nodes(nodes, "enqueue_flow"))

    def add_to_flow(self, id: str, nodes: Iterable[NodeLike]) -> bool:
        """Add nodes to a flow that runs, as `enqueue_flow` takes them: 1,000 at most, with 4 MiB of payloads; False if there is
        none, or it has ended. As long as the task of a node runs its flow does, so a handler may add to its own. The new ones may
        come after nodes that are there, and what waits for all waits for them, too: ``after_all`` itself comes with the flow.

        A node that is there, in the same queue and after the same ones, stays as it is: a task that adds nodes may run again. Raises
        InvalidArgument if the flow has another node of such a name.
        """
        return self._native.add_to_flow(id, native_nodes(nodes, "add_to_flow"))

    def get_flow(self, id: str) -> Optional[FlowInfo]:
        """One flow, with all its nodes."""
        return flow_info(self._native.get_flow(id))

    def list_flows(self, page: Optional[str] = None, max: int = 100) -> FlowPage:
        """The flows without their nodes, those that run first, a page at a time: ``max`` at most, and never more than 100;
        ``page`` is the ``next`` of the page before."""
        return flow_page(self._native.list_flows(page, max))

    def cancel_flow(self, id: str) -> bool:
        """End a flow; False if none runs. Tasks that wait are dropped, those that run are told (as by `cancel`), and of the nodes
        that are not in their queues only those still run that wait for nothing but the end of others. Sent once."""
        return self._native.cancel_flow(id)

    def retry_flow(self, id: str) -> bool:
        """Try again what did not succeed in a flow: nodes that are dead, cancelled or skipped, with attempts starting again; False
        if there is no such flow. Those that succeeded do not run again. Sent once."""
        return self._native.retry_flow(id)

    def sync_scheduled(self, owner: str, generation: int) -> Synced:
        """As `sync_schedules`, of all functions that were declared with `scheduled` on this queue object."""
        return self.sync_schedules(owner, generation, self._schedules())

    def run_scheduled(self, claim: Claim) -> Any:
        """Call the function whose schedule has made the task of this claim, and return what it returns: a handler for
        `worker`. The function gets the claim if it must be called with something, else nothing.

        Raises LookupError if no function of this queue object has that schedule. A worker then tries the task again later,
        which is what is needed while programs of an older deploy work, too.
        """
        returned = self._call_scheduled(claim)
        check_ran(returned)
        return returned

    def worker(
        self,
        handler: Optional[Callable[[Claim], Any]] = None,
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
        """A worker that calls ``handler`` for each task, or the functions of these ``kinds``, on threads. See `Worker`."""
        return Worker(
            self, handler, kinds=kinds, concurrency=concurrency, lease=lease, max_run=max_run, timeout=timeout, grace=grace,
            around=around, before=before, after=after, failed=failed, on_event=on_event, **others)

    def __len__(self) -> int:
        return self.stats().live

    def __bool__(self) -> bool:
        # An empty queue is still a queue.
        return True

    def __reduce__(self) -> Any:
        return Queue, (self._client, self.name)

    def __repr__(self) -> str:
        return f"<stanchion.Queue {self.name!r}>"


class Queues:
    """Several queues that are claimed from in the order given. Made by `Client.queues`."""

    def __init__(self, client: Any, names: Iterable[str]) -> None:
        self._client = client
        self.names = queue_names(names)
        self._native: _stanchion.Queues = client._native.queues(list(self.names))

    def claim(
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
        return [Claim(native) for native in self._native.claim(options)]

    def __reduce__(self) -> Any:
        return Queues, (self._client, self.names)
