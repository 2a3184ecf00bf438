"""Locks, blocking."""

from __future__ import annotations

import functools
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Hashable, List, NoReturn, Optional, Tuple, Type, TypeVar

from . import _stanchion
from ._errors import LeaseLost
from ._functions import check_blocking
from ._held import Entered
from ._keywords import refuse
from ._lease import Lease, end
from ._types import Duration, Holder, Waiter, holder, holders, waiters

F = TypeVar("F", bound=Callable[..., Any])


class LockFacts:
    """What both faces of a lock share: its options, and which leases of it the caller holds."""

    def __init__(
        self, client: Any, made: Tuple[Any, ...], options: Dict[str, Any], owner: Optional[Tuple[str]] = None
    ) -> None:
        """`made` is the native client's function that makes it, and its arguments."""
        kind, what, *_ = made
        self._client = client
        self._defaults = options
        self._options = _stanchion.LockOptions(**options)
        self._made = made
        self._owner = owner
        self._native = getattr(client._native, kind)(*made[1:])
        if owner is not None:
            self._native = self._native.reentrant(*owner)
        self.name: str = self._native.name
        # Kinds of one name are locks of their own.
        one = tuple(sorted(set(what))) if kind == "multi_lock" else what
        self._key: Hashable = self.name if kind == "lock" else (kind, one)

    def owned(self) -> bool:
        """Whether the calling thread (asyncio: task) holds a valid lease of this lock."""
        lease = self._client._held.leases.innermost(self._key)
        return lease is not None and bool(lease.valid)

    def _with(self, **given: Any) -> _stanchion.LockOptions:
        changed = {name: value for name, value in given.items() if value is not None}
        return _stanchion.LockOptions(**{**self._defaults, **changed}) if changed else self._options

    def _mine(self, operation: str) -> Any:
        lease = self._client._held.leases.innermost(self._key)
        if lease is None:
            error = LeaseLost(f'{operation} "{self.name}": the caller holds no lease of the lock')
            error.operation, error.name = operation, self.name
            raise error
        return lease


class Hold:
    """Acquires at its beginning and releases at its end: a context manager and a decorator."""

    def __init__(self, lock: Lock, options: _stanchion.LockOptions) -> None:
        self._lock = lock
        self._options = options
        self._entered = Entered()

    def __enter__(self) -> Lease:
        lease = self._lock._acquire(self._options)
        self._entered.push(threading.get_ident(), lease)
        return lease

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        end(self._entered.pop(threading.get_ident()), error)

    def __call__(self, function: F) -> F:
        check_blocking(function, "hold(): what it decorates")

        @functools.wraps(function)
        def held(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return held  # type: ignore[return-value]


class Lock(LockFacts):
    """A named lock that one holder at a time may hold. A context manager: acquires, and releases at the end.

    Made by `Client.lock`; having it does not mean holding it. So are the sides of a read-write lock, a semaphore and
    several locks at once, each with holders of its own.
    """

    def __init__(
        self, client: Any, made: Tuple[Any, ...], options: Dict[str, Any], owner: Optional[Tuple[str]] = None
    ) -> None:
        super().__init__(client, made, options, owner)
        self._hold = Hold(self, self._options)

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
        weight: Optional[int] = None,
        **others: NoReturn,
    ) -> Lease:
        """Acquire the lock, waiting in line for it. Raises LockTimeout if it stays busy.

        What is not given is as for the lock object, or else the default of `Client.lock`. ``weight``: how many permits of a semaphore (1).
        """
        if others:
            refuse("acquire", others)
        return self._acquire(self._with(
            wait=wait, ttl=ttl, renew=renew, max_hold=max_hold, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label, weight=weight))

    def try_acquire(
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
        native = self._native.try_acquire(options)
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
        **others: NoReturn,
    ) -> Hold:
        """Acquire for a ``with`` block, or, as a decorator, for every call of a function."""
        if others:
            refuse("hold", others)
        return Hold(self, self._with(
            wait=wait, ttl=ttl, renew=renew, max_hold=max_hold, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label, weight=weight))

    def release(self, cooldown: Optional[Duration] = None) -> None:
        """Release the innermost lease of the calling thread."""
        self._mine("release").release(cooldown)

    def extend(self, ttl: Duration) -> None:
        """Prolong the innermost lease of the calling thread."""
        self._mine("extend").extend(ttl)

    def locked(self) -> bool:
        """Whether the lock is held, offered to a waiter, cooling down, or in foreign hands."""
        locked: bool = self._native.is_locked()
        return locked

    def holder(self) -> Optional[Holder]:
        """Who holds the lock now, if anybody does; of several the one whose lease ends first."""
        return holder(self._native.holder())

    def holders(self) -> List[Holder]:
        """Who holds the lock now: one at most if it is exclusive, else up to 100, those whose leases end first."""
        return holders(self._native.holders())

    def waiters(self) -> List[Waiter]:
        """Who waits for the lock now, in the order of the line: up to 100.

        One that has not polled for 2.5 s, or for 22 s far back in a long line, counts as dead and is left out.
        """
        return waiters(self._native.waiters())

    def reentrant(self, owner: str) -> Lock:
        """The same lock for an owner, which may acquire it again while it holds it.

        Such an acquire returns at once, with the same fence, and the lock is released when the
        owner has released as often as it acquired. Owners are known to this client only. An acquire raises
        InvalidArgument if the owner asks for more than it has: a reader does not become a writer.
        """
        return Lock(self._client, self._made, self._defaults, (owner,))

    def break_lease(self) -> bool:
        """Take the lock from whoever has it; False if it was free. The old holder may work on for a while."""
        broken: bool = self._native.break_lease()
        return broken

    def _acquire(self, options: _stanchion.LockOptions) -> Lease:
        return Lease(self._native.acquire(options), self._client._held, self._key)

    def __enter__(self) -> Lease:
        return self._hold.__enter__()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._hold.__exit__(kind, error, trace)

    def __reduce__(self) -> Any:
        return Lock, (self._client, self._made, self._defaults, self._owner)

    def __repr__(self) -> str:
        return f"<stanchion.Lock {self.name!r}>"


class RwLockFacts:
    """What both faces of a read-write lock share."""

    if not TYPE_CHECKING:  # A type checker is to refuse unknown names.

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and hasattr(Lock, name):
                raise AttributeError(f"a read-write lock has no {name}(), its sides have: read().{name}() and write().{name}()")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


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
        return f"<stanchion.RwLock {self.name!r}>"
