"""Locks and leases, blocking."""

from __future__ import annotations

import functools
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Type, TypeVar

from . import _stanchion
from ._errors import LeaseLost, StanchionError, chain_loss
from ._log import log
from ._types import Duration, Holder, holder

if TYPE_CHECKING:
    from ._client import Client

F = TypeVar("F", bound=Callable[..., Any])


class Held:
    """Which leases each thread holds, innermost last. They live as long as the thread, unless they are released:
    a lease whose result nobody kept must not be collected, and so released, in the middle of the work.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    def mine(self) -> Dict[str, List[Lease]]:
        """The calling thread's, by name."""
        names: Dict[str, List[Lease]] = self._local.__dict__
        return names

    def add(self, lease: Lease) -> None:
        """The calling thread holds it."""
        keep(self.mine(), lease)

    def innermost(self, name: str) -> Optional[Lease]:
        """The last one that the calling thread acquired and nobody released."""
        lease: Optional[Lease] = last(self.mine(), name)
        return lease


def keep(names: Dict[str, List[Any]], lease: Any) -> None:
    """Note a lease, and forget those of the same name that are over."""
    names[lease.name] = [one for one in names.get(lease.name, ()) if not one._over and one.valid] + [lease]


def forget(names: Dict[str, List[Any]], lease: Any) -> None:
    """Forget a lease that is over. One that another thread or task noted stays there, but does not count."""
    lease._over = True
    left = [one for one in names.get(lease.name, ()) if not one._over]
    if left:
        names[lease.name] = left
    else:
        names.pop(lease.name, None)


def last(names: Dict[str, List[Any]], name: str) -> Any:
    """The last one that counts."""
    return next((one for one in reversed(names.get(name, ())) if not one._over), None)


class Lost:
    """Whether a lease or a claim was lost, like a `threading.Event` that this library sets."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def is_set(self) -> bool:
        """Whether it is lost. Computed from the clock at the time of the call."""
        return self._native.loss is not None

    def wait(self, timeout: Optional[Duration] = None) -> bool:
        """Wait for the loss (or the regular end), up to ``timeout``; whether it is lost."""
        slices = 3600.0 if timeout is None else timeout
        while not self._native.wait_lost(slices) and timeout is None:
            pass
        return self.is_set()

    @property
    def reason(self) -> Optional[str]:
        """Why, such as "Expired" or "Taken"; None if it is not lost."""
        reason: Optional[str] = self._native.loss
        return reason


class Lease:
    """A lock that is ours until it is released, expires, or is lost. A context manager that releases it.

    One that is never released ends with the thread that acquired it, or with the last reference to it.
    """

    def __init__(self, native: _stanchion.Lease, held: Held) -> None:
        self._native = native
        self._held = held
        self._over = False
        self.name: str = native.name
        self.fence: int = native.fence
        held.add(self)

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

    def extend(self, ttl: Duration) -> None:
        """Prolong the lease to at least ``ttl`` from now."""
        self._native.extend(ttl)

    def release(self, cooldown: Optional[Duration] = None) -> None:
        """Give the lock back; with a cooldown, keep it closed for so long before anybody can get it.

        Raises LeaseExpired or LeaseLost if it was not ours to the end. The lease is over in any case.
        """
        forget(self._held.mine(), self)
        self._native.release(cooldown)

    def into_handle(self, ttl: Duration = 30.0) -> str:
        """Detach the lease: a text with which another process can resume it, once, within ``ttl``. A secret."""
        handle = self._native.into_handle(ttl)
        forget(self._held.mine(), self)
        return handle

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        end(self, error)

    def __repr__(self) -> str:
        return f"<stanchion.Lease {self.name!r} fence={self.fence} remaining={self.remaining:.3f}>"


def end(lease: Lease, error: Optional[BaseException]) -> None:
    """Release a lease at the end of a block. A loss is raised; an exception of the block's own goes first."""
    if lease._over:
        return  # The block did it.
    try:
        loss = announced(lease)
        lease.release()
        if loss is not None:
            # Nobody took the lock meanwhile, but the block was told that it might.
            raise loss
    except LeaseLost as lost:
        log.warning("lock %r: the lease was lost: %s", lease.name, lost)
        if error is None:
            raise
        chain_loss(error, lost)
    except Exception:
        if error is None:
            raise
        log.warning("lock %r: could not be released", lease.name, exc_info=True)


def announced(lease: Any) -> Optional[LeaseLost]:
    """The loss that a lease's `lost` tells, if it does. None for one that was released in the block."""
    if not lease.lost.is_set():
        return None
    try:
        lease._native.check()
    except LeaseLost as loss:
        return loss
    except StanchionError:
        return None
    return None


class Hold:
    """Acquires at its beginning and releases at its end: a context manager and a decorator."""

    def __init__(self, lock: Lock, options: Optional[_stanchion.LockOptions]) -> None:
        self._lock = lock
        self._options = options
        self._local = threading.local()

    def __enter__(self) -> Lease:
        lease = self._lock._acquire(self._options)
        stack: List[Lease] = self._local.__dict__.setdefault("leases", [])
        stack.append(lease)
        return lease

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        end(self._local.leases.pop(), error)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def held(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return held  # type: ignore[return-value]


class Lock:
    """A named lock that one holder at a time may hold. A context manager: acquires, and releases at the end.

    Made by `Client.lock`; having it does not mean holding it.
    """

    def __init__(self, client: Client, name: str, options: Dict[str, Any]) -> None:
        self._client = client
        self._defaults = options
        self._options = _stanchion.LockOptions(**options)
        self._native = client._native.lock(name)
        self._hold = Hold(self, None)
        self.name = name

    def acquire(
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
        return self._acquire(self._with(
            wait=wait, ttl=ttl, renew=renew, max_hold=max_hold, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label))

    def try_acquire(
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
        native = self._native.try_acquire(options or self._options)
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
    ) -> Hold:
        """Acquire for a ``with`` block, or, as a decorator, for every call of a function."""
        return Hold(self, self._with(
            wait=wait, ttl=ttl, renew=renew, max_hold=max_hold, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label))

    def release(self, cooldown: Optional[Duration] = None) -> None:
        """Release the innermost lease of the calling thread."""
        self._mine("release").release(cooldown)

    def extend(self, ttl: Duration) -> None:
        """Prolong the innermost lease of the calling thread."""
        self._mine("extend").extend(ttl)

    def owned(self) -> bool:
        """Whether the calling thread holds a valid lease of this lock."""
        lease = self._client._held.innermost(self.name)
        return lease is not None and lease.valid

    def locked(self) -> bool:
        """Whether the lock is held, offered to a waiter, cooling down, or in foreign hands."""
        return self._native.is_locked()

    def holder(self) -> Optional[Holder]:
        """Who holds the lock now, if anybody does."""
        return holder(self._native.holder())

    def break_lease(self) -> bool:
        """Take the lock from whoever has it; False if it was free. The old holder may work on for a while."""
        return self._native.break_lease()

    def _acquire(self, options: Optional[_stanchion.LockOptions]) -> Lease:
        return Lease(self._native.acquire(options or self._options), self._client._held)

    def _with(self, **given: Any) -> Optional[_stanchion.LockOptions]:
        if all(value is None for value in given.values()):
            return None
        changed = {name: value for name, value in given.items() if value is not None}
        return _stanchion.LockOptions(**{**self._defaults, **changed})

    def _mine(self, operation: str) -> Lease:
        lease = self._client._held.innermost(self.name)
        if lease is None:
            error = LeaseLost(f"{operation} {self.name!r}: this thread holds no lease of the lock")
            error.operation, error.name = operation, self.name
            raise error
        return lease

    def __enter__(self) -> Lease:
        return self._hold.__enter__()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._hold.__exit__(kind, error, trace)

    def __reduce__(self) -> Any:
        return Lock, (self._client, self.name, self._defaults)

    def __repr__(self) -> str:
        return f"<stanchion.Lock {self.name!r}>"
