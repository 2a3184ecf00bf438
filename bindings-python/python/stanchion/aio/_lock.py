"""Locks for asyncio."""

from __future__ import annotations

import asyncio
import functools
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, List, NoReturn, Optional, Tuple, Type, TypeVar

from .. import _stanchion
from .._functions import check_awaited
from .._held import Entered
from .._keywords import refuse
from .._lock import LockFacts, RwLockFacts
from .._types import Duration, Holder, Waiter, holder, holders, waiters
from ._lease import Lease, end
from ._loop import Pending, call

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class _Guard:
    """Cancels the task that holds a lease when the lease is lost."""

    def __init__(self, lease: Lease, body: asyncio.Task[Any]) -> None:
        self._lease, self._body = lease, body
        self._cancelled = False
        self._cancelled_before = _cancellations(body)
        self._watch = Pending(lease._native.wait_lost)
        self._watch.future.add_done_callback(self._ended)

    def _ended(self, watch: asyncio.Future[Any]) -> None:
        if not self._watch.given_up and self._lease.lost.is_set():
            self._cancelled = True
            self._body.cancel()

    def end(self, error: Optional[BaseException]) -> bool:
        """The body is over; whether it was cancelled by this guard and by nobody else. That is undone."""
        self._watch.give_up()
        if self._cancelled and hasattr(self._body, "uncancel"):  # Python 3.11
            self._body.uncancel()
        by_others = _cancellations(self._body) > self._cancelled_before
        return self._cancelled and isinstance(error, asyncio.CancelledError) and not by_others


def _cancellations(task: asyncio.Task[Any]) -> int:
    """How often somebody asked for the task to be cancelled, as far as Python counts that (from 3.11 on)."""
    return task.cancelling() if hasattr(task, "cancelling") else 0


class Hold:
    """Acquires at its beginning and releases at its end: an async context manager, and a decorator."""

    def __init__(self, lock: Lock, options: _stanchion.LockOptions, cancel_on_loss: bool) -> None:
        self._lock = lock
        self._options = options
        self._cancel_on_loss = cancel_on_loss
        self._entered = Entered()

    async def __aenter__(self) -> Lease:
        lease = await self._lock._acquire(self._options)
        body = asyncio.current_task()
        guard = _Guard(lease, body) if self._cancel_on_loss and body is not None else None
        self._entered.push(body, (lease, guard))
        return lease

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        lease, guard = self._entered.pop(asyncio.current_task())
        if guard is not None and guard.end(error):
            # The body was cancelled because of the loss: that is what to raise.
            await end(lease, None, because=error)
        else:
            await end(lease, error)

    def __call__(self, function: F) -> F:
        check_awaited(function, "hold(): what it decorates")

        @functools.wraps(function)
        async def held(*args: Any, **kwargs: Any) -> Any:
            async with self:
                return await function(*args, **kwargs)

        return held  # type: ignore[return-value]


class Lock(LockFacts):
    """A named lock that one holder at a time may hold. An async context manager. Made by `Client.lock`."""

    def __init__(
        self, client: Any, made: Tuple[Any, ...], options: Dict[str, Any], owner: Optional[Tuple[str]] = None
    ) -> None:
        super().__init__(client, made, options, owner)
        self._hold = Hold(self, self._options, True)

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
        weight: Optional[int] = None,
        **others: NoReturn,
    ) -> Lease:
        """Acquire the lock, waiting in line for it. Raises LockTimeout if it stays busy."""
        if others:
            refuse("acquire", others)
        return await self._acquire(self._with(
            wait=wait, ttl=ttl, renew=renew, max_hold=max_hold, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label, weight=weight))

    async def try_acquire(
        self,
        *,
        ttl: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_hold: Optional[Duration] = None,
        adopt_unexpiring: Optional[Duration] = None,
        label: Optional[str] = None,
        weight: Optional[int] = None,
        **others: NoReturn,
    ) -> Optional[Lease]:
        """Acquire the lock if it is free; None if it is busy."""
        if others:
            refuse("try_acquire", others)
        options = self._with(
            ttl=ttl, renew=renew, max_hold=max_hold, adopt_unexpiring=adopt_unexpiring, label=label,
            weight=weight)
        native = await call(self._native.try_acquire, options)
        return None if native is None else Lease(native, self._client._held, self._key)

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
        weight: Optional[int] = None,
        cancel_on_loss: bool = True,
        **others: NoReturn,
    ) -> Hold:
        """Acquire for an ``async with`` block, or, as a decorator, for every call of a coroutine function.

        If the lease is lost, the body is cancelled and LeaseLost raised, unless ``cancel_on_loss=False``.
        """
        if others:
            refuse("hold", others)
        options = self._with(
            wait=wait, ttl=ttl, renew=renew, max_hold=max_hold, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label, weight=weight)
        return Hold(self, options, cancel_on_loss)

    async def release(self, cooldown: Optional[Duration] = None) -> None:
        """Release the innermost lease of the calling task."""
        await self._mine("release").release(cooldown)

    async def extend(self, ttl: Duration) -> None:
        """Prolong the innermost lease of the calling task."""
        await self._mine("extend").extend(ttl)

    async def locked(self) -> bool:
        """Whether the lock is held, offered to a waiter, cooling down, or in foreign hands."""
        locked: bool = await call(self._native.is_locked)
        return locked

    async def holder(self) -> Optional[Holder]:
        """Who holds the lock now, if anybody does."""
        return holder(await call(self._native.holder))

    async def holders(self) -> List[Holder]:
        """Who holds the lock now: one at most if it is exclusive, else up to 100, those whose leases end first."""
        return holders(await call(self._native.holders))

    async def waiters(self) -> List[Waiter]:
        """Who waits for the lock now, in the order of the line: up to 100.

        One that has not polled for 2.5 s, or for 22 s far back in a long line, counts as dead and is left out.
        """
        return waiters(await call(self._native.waiters))

    def reentrant(self, owner: str) -> Lock:
        """The same lock for an owner that may come in again, as `stanchion.Lock.reentrant`. No I/O."""
        return Lock(self._client, self._made, self._defaults, (owner,))

    async def break_lease(self) -> bool:
        """Take the lock from whoever has it; False if it was free."""
        broken: bool = await call(self._native.break_lease)
        return broken

    async def _acquire(self, options: _stanchion.LockOptions) -> Lease:
        return Lease(await call(self._native.acquire, options), self._client._held, self._key)

    async def __aenter__(self) -> Lease:
        return await self._hold.__aenter__()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self._hold.__aexit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<stanchion.aio.Lock {self.name!r}>"


class RwLock(RwLockFacts):
    """The two sides of a read-write lock. Made by `Client.rw_lock`."""

    def __init__(self, client: Any, name: str, options: Dict[str, Any]) -> None:
        self._read = Lock(client, ("reader", name), options)
        self._write = Lock(client, ("writer", name), options)
        self.name = self._read.name

    def read(self) -> Lock:
        """What readers acquire: any number of them may hold it, unless a writer does."""
        return self._read

    def write(self) -> Lock:
        """What a writer acquires: nobody else holds anything then. `Lease.downgrade` makes the writer a reader."""
        return self._write

    def __repr__(self) -> str:
        return f"<stanchion.aio.RwLock {self.name!r}>"
