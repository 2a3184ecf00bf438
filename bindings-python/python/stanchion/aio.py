"""The same nouns for asyncio: ``client = await stanchion.aio.connect(url)``.

Cancelling a task that waits in one of these calls leaves nothing behind: no lock, no place in a line, no task
that nobody works on. Any event loop with ``add_reader`` will do, uvloop among them; one client may be used under
several loops in turn.
"""

from __future__ import annotations

import asyncio
import functools
import signal
from types import TracebackType
from typing import (
    Any, Awaitable, Callable, Dict, Generator, Iterable, List, Mapping, Optional, Tuple, Type, TypeVar, Union)

from . import _stanchion
from ._errors import Forked, LeaseLost, StaleReceipt, StanchionError, chain_loss
from ._lock import announced, forget, keep, last
from ._log import log
from ._loop import PerTask, call
from ._queue import Facts, describe
from ._telemetry import around
from ._types import (
    UNSET, Duration, Enqueued, Holder, NamePage, OnDuplicate, QueueStats, Removed, Rescheduled, Task, TaskInfo,
    TaskPage, TaskState, Time, WorkerReport, _Unset, all_enqueued, enqueued, holder, kick_arguments, maybe_wall,
    seconds_since_1970, task_info, task_infos, tasks)
from ._worker import tell

__all__ = ["Claim", "Client", "Hold", "Lease", "Lock", "Lost", "Queue", "Queues", "Worker", "connect"]

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


def connect(
    url: Optional[str] = None,
    *,
    lock_prefix: Optional[str] = None,
    queue_prefix: Optional[str] = None,
    timeout: Optional[Duration] = None,
    foreign_share: Optional[bool] = None,
    label: Optional[str] = None,
    tls_ca: Optional[str] = None,
    tls_cert: Optional[str] = None,
    tls_key: Optional[str] = None,
) -> Connecting:
    """Open a store, as `stanchion.connect`: to be awaited, or for ``async with``."""
    return Connecting(dict(
        url=url, lock_prefix=lock_prefix, queue_prefix=queue_prefix, timeout=timeout, foreign_share=foreign_share,
        label=label, tls_ca=tls_ca, tls_cert=tls_cert, tls_key=tls_key, clock=None))


class Connecting:
    """A client that is being opened."""

    def __init__(self, settings: Dict[str, Any]) -> None:
        self._settings = settings
        self._client: Optional[Client] = None

    async def _open(self) -> Client:
        native = await call(_stanchion.connect_aio, _stanchion.Settings(**self._settings))
        return Client(native)

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._open()
        return self._client

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._client is not None:
            await self._client.close()


class Client:
    """A connection to a store. Made by `connect`; an async context manager."""

    def __init__(self, native: _stanchion.AioClient) -> None:
        self._native = native
        self._held = PerTask()

    def lock(
        self,
        name: str,
        *,
        ttl: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_hold: Optional[Duration] = None,
        wait: Optional[Duration] = None,
        fail_fast: Optional[bool] = None,
        adopt_unexpiring: Optional[Duration] = None,
        label: Optional[str] = None,
    ) -> Lock:
        """The lock with this name, and how it is acquired unless a call says otherwise. No I/O."""
        return Lock(self, name, dict(
            ttl=ttl, renew=renew, max_hold=max_hold, wait=wait, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label))

    def queue(self, name: str) -> Queue:
        """The queue with this name. No I/O."""
        return Queue(self, name)

    def queues(self, names: Iterable[str]) -> Queues:
        """Several queues, to claim from in this order."""
        return Queues(self, names)

    async def resume_lease(self, handle: str) -> Lease:
        """Continue a lease that `Lease.into_handle` detached. A handle works once."""
        return Lease(await call(self._native.resume_lease, handle), self._held)

    async def release_all(self) -> int:
        """Release every lease of this client that is still held, and say how many were."""
        count: int = await call(self._native.release_all)
        return count

    async def locks(self, page: Optional[int] = None) -> NamePage:
        """Names of locks that are held now, a page at a time."""
        return NamePage(*await call(self._native.locks, page))

    async def queue_names(self, page: Optional[int] = None) -> NamePage:
        """Names of queues, a page at a time."""
        return NamePage(*await call(self._native.queue_names, page))

    async def close(self) -> None:
        """Release all leases. In a forked child nothing is released: leases stay the parent's."""
        try:
            await self.release_all()
        except Forked:
            pass

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return "<stanchion.aio.Client>"


class Lost:
    """Whether a lease or a claim was lost, like an `asyncio.Event` that this library sets."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def is_set(self) -> bool:
        """Whether it is lost. Computed from the clock at the time of the call."""
        return self._native.loss is not None

    async def wait(self) -> bool:
        """Wait for the loss, or the regular end; whether it is lost."""
        await call(self._native.wait_lost)
        return self.is_set()

    @property
    def reason(self) -> Optional[str]:
        """Why, such as "Expired" or "Taken"; None if it is not lost."""
        reason: Optional[str] = self._native.loss
        return reason


class Lease:
    """A lock that is ours until it is released, expires, or is lost. An async context manager that releases it."""

    def __init__(self, native: _stanchion.AioLease, held: PerTask) -> None:
        self._native = native
        self._held = held
        self.name: str = native.name
        self.fence: int = native.fence
        self._over = False
        keep(held.mine(), self)

    @property
    def token(self) -> str:
        """The secret that proves the lease is ours."""
        return self._native.token

    @property
    def remaining(self) -> float:
        """How many seconds the lease is surely ours from now on, without further renewal."""
        return self._native.remaining

    @property
    def valid(self) -> bool:
        """Whether the lease is ours now."""
        return self._native.valid

    @property
    def lost(self) -> Lost:
        """Whether it was lost; set at its deadline at the latest."""
        return Lost(self._native)

    async def extend(self, ttl: Duration) -> None:
        """Prolong the lease to at least ``ttl`` from now."""
        await call(self._native.extend, ttl)

    async def release(self, cooldown: Optional[Duration] = None) -> None:
        """Give the lock back. Raises LeaseExpired or LeaseLost if it was not ours to the end."""
        forget(self._held.mine(), self)
        await call(self._native.release, cooldown)

    async def into_handle(self, ttl: Duration = 30.0) -> str:
        """Detach the lease: a text with which another process can resume it, once. A secret."""
        handle: str = await call(self._native.into_handle, ttl)
        forget(self._held.mine(), self)
        return handle

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await _end(self, error)

    def __repr__(self) -> str:
        return f"<stanchion.aio.Lease {self.name!r} fence={self.fence} remaining={self.remaining:.3f}>"


async def _end(lease: Lease, error: Optional[BaseException], because: Optional[BaseException] = None) -> None:
    """Release a lease at the end of a block that ended with `error`, or was cancelled `because` of the loss."""
    if lease._over:
        return  # The block did it.
    try:
        loss = announced(lease)
        await lease.release()
        if loss is not None:
            raise loss
    except LeaseLost as lost:
        log.warning("lock %r: the lease was lost: %s", lease.name, lost)
        if error is None:
            raise lost from because
        chain_loss(error, lost)
    except Exception:
        if error is None:
            raise
        log.warning("lock %r: could not be released", lease.name, exc_info=True)


class _Guard:
    """Cancels the task that holds a lease when the lease is lost."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.cancelled = False
        self._body = asyncio.current_task()
        self._watch = asyncio.ensure_future(self._cancel_when_lost())

    async def _cancel_when_lost(self) -> None:
        if await self.lease.lost.wait() and self._body is not None:
            self.cancelled = True
            self._body.cancel()

    def end(self) -> None:
        """The body is over. If it was this guard that cancelled it, that is undone."""
        self._watch.cancel()
        if self.cancelled and self._body is not None and hasattr(self._body, "uncancel"):  # Python 3.11
            self._body.uncancel()


class Hold:
    """Acquires at its beginning and releases at its end: an async context manager, and a decorator."""

    def __init__(self, lock: Lock, options: Optional[_stanchion.LockOptions], cancel_on_loss: bool) -> None:
        self._lock = lock
        self._options = options
        self._cancel_on_loss = cancel_on_loss
        self._entered = PerTask()

    async def __aenter__(self) -> Lease:
        lease = await self._lock._acquire(self._options)
        guard = _Guard(lease) if self._cancel_on_loss else None
        self._entered.mine().setdefault("stack", []).append((lease, guard))
        return lease

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        lease, guard = self._entered.mine()["stack"].pop()
        if guard is not None:
            guard.end()
        if guard is not None and guard.cancelled and isinstance(error, asyncio.CancelledError):
            # The body was cancelled because of the loss: that is what to tell.
            await _end(lease, None, because=error)
        else:
            await _end(lease, error)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        async def held(*args: Any, **kwargs: Any) -> Any:
            async with self:
                return await function(*args, **kwargs)

        return held  # type: ignore[return-value]


class Lock:
    """A named lock that one holder at a time may hold. An async context manager. Made by `Client.lock`."""

    def __init__(self, client: Client, name: str, options: Dict[str, Any]) -> None:
        self._client = client
        self._defaults = options
        self._options = _stanchion.LockOptions(**options)
        self._native = client._native.lock(name)
        self._hold = Hold(self, None, True)
        self.name = name

    async def acquire(
        self,
        wait: Optional[Duration] = None,
        *,
        ttl: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_hold: Optional[Duration] = None,
        fail_fast: Optional[bool] = None,
        adopt_unexpiring: Optional[Duration] = None,
        label: Optional[str] = None,
    ) -> Lease:
        """Acquire the lock, waiting in line for it. Raises LockTimeout if it stays busy."""
        return await self._acquire(self._with(
            wait=wait, ttl=ttl, renew=renew, max_hold=max_hold, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label))

    async def try_acquire(
        self,
        *,
        ttl: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_hold: Optional[Duration] = None,
        adopt_unexpiring: Optional[Duration] = None,
        label: Optional[str] = None,
    ) -> Optional[Lease]:
        """Acquire the lock if it is free; None if it is busy."""
        options = self._with(
            ttl=ttl, renew=renew, max_hold=max_hold, adopt_unexpiring=adopt_unexpiring, label=label)
        native = await call(self._native.try_acquire, options or self._options)
        return None if native is None else Lease(native, self._client._held)

    def hold(
        self,
        wait: Optional[Duration] = None,
        *,
        ttl: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_hold: Optional[Duration] = None,
        fail_fast: Optional[bool] = None,
        adopt_unexpiring: Optional[Duration] = None,
        label: Optional[str] = None,
        cancel_on_loss: bool = True,
    ) -> Hold:
        """Acquire for an ``async with`` block, or, as a decorator, for every call of a coroutine function.

        If the lease is lost, the body is cancelled and LeaseLost raised, unless ``cancel_on_loss=False``.
        """
        options = self._with(
            wait=wait, ttl=ttl, renew=renew, max_hold=max_hold, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label)
        return Hold(self, options, cancel_on_loss)

    async def release(self, cooldown: Optional[Duration] = None) -> None:
        """Release the innermost lease of the calling task."""
        await self._mine("release").release(cooldown)

    async def extend(self, ttl: Duration) -> None:
        """Prolong the innermost lease of the calling task."""
        await self._mine("extend").extend(ttl)

    def owned(self) -> bool:
        """Whether the calling task holds a valid lease of this lock."""
        lease = self._innermost()
        return lease is not None and lease.valid

    async def locked(self) -> bool:
        """Whether the lock is held, offered to a waiter, cooling down, or in foreign hands."""
        locked: bool = await call(self._native.is_locked)
        return locked

    async def holder(self) -> Optional[Holder]:
        """Who holds the lock now, if anybody does."""
        return holder(await call(self._native.holder))

    async def break_lease(self) -> bool:
        """Take the lock from whoever has it; False if it was free."""
        broken: bool = await call(self._native.break_lease)
        return broken

    async def _acquire(self, options: Optional[_stanchion.LockOptions]) -> Lease:
        return Lease(await call(self._native.acquire, options or self._options), self._client._held)

    def _with(self, **given: Any) -> Optional[_stanchion.LockOptions]:
        if all(value is None for value in given.values()):
            return None
        changed = {name: value for name, value in given.items() if value is not None}
        return _stanchion.LockOptions(**{**self._defaults, **changed})

    def _innermost(self) -> Optional[Lease]:
        lease: Optional[Lease] = last(self._client._held.mine(), self.name)
        return lease

    def _mine(self, operation: str) -> Lease:
        lease = self._innermost()
        if lease is None:
            error = LeaseLost(f"{operation} {self.name!r}: this task holds no lease of the lock")
            error.operation, error.name = operation, self.name
            raise error
        return lease

    async def __aenter__(self) -> Lease:
        return await self._hold.__aenter__()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self._hold.__aexit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<stanchion.aio.Lock {self.name!r}>"


class Claim(Facts):
    """A task that is ours until it is settled, or its lease ends. An async context manager, as
    `stanchion.Claim`."""

    def __init__(self, native: _stanchion.AioClaim) -> None:
        super().__init__(native)
        self._settled = False

    @property
    def lost(self) -> Lost:
        """Whether the claim was lost; set at its deadline at the latest."""
        return Lost(self._native)

    async def ack(self) -> None:
        """Done: the task leaves the queue."""
        await call(self._native.ack)
        self._settled = True

    async def nack(self, delay: Optional[Duration] = None, reason: str = "") -> None:
        """Not done: try again after ``delay``, or by default after a pause that grows with every attempt."""
        await call(self._native.nack, delay, reason)
        self._settled = True

    async def bury(self, reason: str = "") -> None:
        """Not done, and not to be tried again: the task is dead."""
        await call(self._native.bury, reason)
        self._settled = True

    async def put_back(self) -> None:
        """Not tried: the task goes back without counting an attempt."""
        await call(self._native.put_back)
        self._settled = True

    async def extend(self, lease: Duration) -> None:
        """Prolong the lease to at least ``lease`` from now."""
        await call(self._native.extend, lease)

    async def __aenter__(self) -> Claim:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._settled:
            return
        if error is None:
            await self.ack()
            return
        try:
            await self.nack(reason=describe(error))
        except StanchionError as failure:
            level = log.debug if isinstance(failure, StaleReceipt) else log.warning
            level("task %r: could not be nacked: %s", self.id, failure)


def _forget(natives: List[_stanchion.AioClaim]) -> None:
    for native in natives:
        native.forget()


class Queue:
    """A named queue of tasks. Made by `Client.queue`; the methods are those of `stanchion.Queue`."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._native = client._native.queue(name)
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
    ) -> Enqueued:
        """Put a task in. Raises QueueFull at the limit."""
        task = Task(id, payload, headers, delay, due, priority, max_attempts, expires, on_duplicate)
        return enqueued(await call(self._native.enqueue, task._native()))

    async def enqueue_many(self, items: Iterable[Any]) -> List[Union[Enqueued, StanchionError]]:
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
    ) -> List[Claim]:
        """Take up to ``max`` (1) tasks under a lease, waiting for some for up to ``wait``."""
        options = _stanchion.ClaimOptions(max=max, lease=lease, wait=wait, renew=renew, max_run=max_run)
        return [Claim(native) for native in await call(self._native.claim, options, discard=_forget)]

    async def settle(self, verdicts: Iterable[_stanchion.Verdict]) -> List[Optional[StanchionError]]:
        """Settle claims together. None, or the exception, for each."""
        results: List[Optional[StanchionError]] = await call(self._native.settle, list(verdicts))
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
    ) -> Tuple[List[Optional[StanchionError]], List[Claim]]:
        """Settle claims and take new tasks, in one round trip if there are any."""
        options = _stanchion.ClaimOptions(max=max, lease=lease, wait=wait, renew=renew, max_run=max_run)
        results, claims = await call(
            self._native.settle_and_claim, list(verdicts), options, discard=lambda found: _forget(found[1]))
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

    async def list(self, state: Union[str, TaskState], page: Optional[int] = None, max: int = 100) -> TaskPage:
        """The tasks of one state, a page at a time."""
        found, following = await call(self._native.list, TaskState(state).value, page, max)
        return TaskPage(task_infos(found), following)

    async def remove(self, id: str, version: Optional[int] = None) -> Removed:
        """Drop a task, also while it is claimed. With a version, only if it is still the task's."""
        return Removed(*await call(self._native.remove, id, version))

    async def reschedule(self, id: str, due: Time) -> Rescheduled:
        """Give a waiting task another due time."""
        outcome, moved = await call(self._native.reschedule, id, seconds_since_1970(due))
        return Rescheduled(outcome, maybe_wall(moved))

    async def stats(self) -> QueueStats:
        """How many tasks there are, and the settings."""
        return QueueStats(**await call(self._native.stats))

    async def pause(self) -> None:
        """Stop giving out tasks. Claims that are out go on."""
        await call(self._native.pause)

    async def resume(self) -> None:
        """Go on giving out tasks."""
        await call(self._native.resume)

    async def kick(self, which: Union[int, str, Iterable[str]]) -> int:
        """Move dead tasks back to ready: these ids, or so many of the oldest. How many were moved."""
        count: int = await call(self._native.kick, *kick_arguments(which))
        return count

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
    ) -> None:
        """Change settings; what is not given stays. ``max_len=None`` takes the limit away."""
        limit = None if isinstance(max_len, _Unset) else (max_len,)
        await call(self._native.configure, limit, dead_max, dead_age, dead_bytes, intake)

    def worker(
        self,
        handler: Callable[[Claim], Awaitable[Any]],
        *,
        concurrency: Optional[int] = None,
        lease: Optional[Duration] = None,
        max_run: Optional[Duration] = None,
        before: Optional[Callable[[Claim], Any]] = None,
        after: Optional[Callable[[Claim], Any]] = None,
        failed: Optional[Callable[[Claim, BaseException], Any]] = None,
    ) -> Worker:
        """A worker that awaits ``handler(claim)`` for each task. See `Worker`."""
        return Worker(
            self, handler, concurrency=concurrency, lease=lease, max_run=max_run, before=before, after=after,
            failed=failed)

    def __repr__(self) -> str:
        return f"<stanchion.aio.Queue {self.name!r}>"


class Queues:
    """Several queues that are claimed from in the order given. Made by `Client.queues`."""

    def __init__(self, client: Client, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._native = client._native.queues(list(self.names))

    async def claim(
        self,
        max: Optional[int] = None,
        *,
        lease: Optional[Duration] = None,
        wait: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_run: Optional[Duration] = None,
    ) -> List[Claim]:
        """Take tasks of the first queue that has some, as `Queue.claim`."""
        options = _stanchion.ClaimOptions(max=max, lease=lease, wait=wait, renew=renew, max_run=max_run)
        return [Claim(native) for native in await call(self._native.claim, options, discard=_forget)]


def _remove(running: Dict[int, asyncio.Task[None]], number: int, task: asyncio.Task[None]) -> None:
    running.pop(number, None)


class Worker:
    """Takes tasks of a queue and awaits a handler for each, several at once.

    As `stanchion.Worker`; a handler whose claim is lost is cancelled. Hooks are plain functions.
    """

    def __init__(
        self,
        queue: Queue,
        handler: Callable[[Claim], Awaitable[Any]],
        *,
        concurrency: Optional[int],
        lease: Optional[Duration],
        max_run: Optional[Duration],
        before: Optional[Callable[[Claim], Any]],
        after: Optional[Callable[[Claim], Any]],
        failed: Optional[Callable[[Claim, BaseException], Any]],
    ) -> None:
        self._queue, self._handler = queue, handler
        self._terms = (concurrency, lease, max_run)
        self._before, self._after, self._failed = before, after, failed
        self._native: Optional[_stanchion.AioWorker] = None
        self._stopped = False

    async def run(self, *, burst: bool = False, signals: bool = True) -> WorkerReport:
        """Work until `stop`; with ``burst``, until no task is ready or claimed any more. SIGTERM and SIGINT drain
        if the loop runs on the main thread. Cancelled, it cancels the handlers."""
        native = self._native = _stanchion.AioWorker(self._queue._native, *self._terms, burst)
        if self._stopped:
            native.stop()
        caught = self._catch_signals() if signals else []
        running: Dict[int, asyncio.Task[None]] = {}
        fetching = asyncio.ensure_future(self._fetch(native, running))
        try:
            return WorkerReport(*await call(native.run))
        finally:
            fetching.cancel()
            for task in running.values():
                task.cancel()
            for number in caught:
                asyncio.get_running_loop().remove_signal_handler(number)
            tell(self._queue.name, native.events())
            self._native = None

    def stop(self) -> None:
        """Take no more tasks; `run` returns when those at hand are done."""
        self._stopped = True
        if self._native is not None:
            self._native.stop()

    def _catch_signals(self) -> List[int]:
        caught: List[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
            except (NotImplementedError, RuntimeError, ValueError):
                continue  # Not the main thread.
            caught.append(number)
        return caught

    async def _fetch(self, native: _stanchion.AioWorker, running: Dict[int, asyncio.Task[None]]) -> None:
        while True:
            number, found = await call(native.fetch)
            if found is None:
                lost = running.get(number)
                if lost is not None:
                    lost.cancel()
                continue
            task = asyncio.ensure_future(self._attend(native, number, Claim(found)))
            running[number] = task
            task.add_done_callback(functools.partial(_remove, running, number))
            tell(self._queue.name, native.events())

    async def _attend(self, native: _stanchion.AioWorker, number: int, claim: Claim) -> None:
        failure: Optional[str] = "the handler was cancelled"
        try:
            if self._before is not None:
                self._before(claim)
            with around(claim.headers):
                await self._handler(claim)
            if self._after is not None:
                self._after(claim)
            failure = None
        except asyncio.CancelledError:
            pass
        except Exception as error:
            failure = describe(error)
            log.warning("task %r of queue %r failed", claim.id, claim.queue, exc_info=True)
            if self._failed is not None:
                try:
                    self._failed(claim, error)
                except Exception:
                    log.exception("the hook for a failed task failed")
        finally:
            native.said(number, failure)

    def __repr__(self) -> str:
        return f"<stanchion.aio.Worker {self._queue.name!r}>"
