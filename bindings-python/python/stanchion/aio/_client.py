"""The client for asyncio."""

from __future__ import annotations

import functools
import inspect
from types import TracebackType
from typing import (
    TYPE_CHECKING, Any, Awaitable, Callable, Coroutine, Dict, Generator, Iterable, Literal, NoReturn, Optional, Type, TypeVar, Union,
    overload)

from .. import _stanchion
from .._cached import check_compute, decoded, encoded, names
from .._exit import note
from .._functions import check_awaited
from .._keywords import refuse
from .._types import Duration, NamePage, Path, several
from ._lease import Lease
from ._limiter import Limiter
from ._lock import Lock, RwLock
from ._loop import HeldByTask, call
from ._queue import Queue, Queues

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
_LATER: Any = object()


def connect(
    url: Optional[str] = None,
    *,
    lock_prefix: Optional[str] = None,
    queue_prefix: Optional[str] = None,
    timeout: Optional[Duration] = None,
    foreign_share: Optional[bool] = None,
    label: Optional[str] = None,
    tls_ca: Optional[Path] = None,
    tls_cert: Optional[Path] = None,
    tls_key: Optional[Path] = None,
    **others: NoReturn,
) -> Connecting:
    """Open a store, as `stanchion.connect`: to be awaited, or for ``async with``."""
    if others:
        refuse("connect", others)
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

    if not TYPE_CHECKING:  # A type checker is to refuse unknown names.

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"{name!r}: the client is not open yet; use `client = await stanchion.aio.connect(...)` or `async with`")


class Client:
    """A connection to a store. Made by `connect`; an async context manager."""

    def __init__(self, native: _stanchion.AioClient) -> None:
        self._native = native
        self._held = HeldByTask()
        note(self)

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
        **others: NoReturn,
    ) -> Lock:
        """The lock with this name, and the default options of its acquires. No I/O."""
        if others:
            refuse("lock", others)
        return Lock(self, ("lock", name), dict(
            ttl=ttl, renew=renew, max_hold=max_hold, wait=wait, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label))

    def rw_lock(
        self,
        name: str,
        *,
        ttl: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_hold: Optional[Duration] = None,
        wait: Optional[Duration] = None,
        fail_fast: Optional[bool] = None,
        label: Optional[str] = None,
        **others: NoReturn,
    ) -> RwLock:
        """The read-write lock with this name, as `stanchion.Client.rw_lock`. No I/O."""
        if others:
            refuse("rw_lock", others)
        return RwLock(self, name, dict(
            ttl=ttl, renew=renew, max_hold=max_hold, wait=wait, fail_fast=fail_fast, label=label))

    def semaphore(
        self,
        name: str,
        permits: int,
        *,
        ttl: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_hold: Optional[Duration] = None,
        wait: Optional[Duration] = None,
        fail_fast: Optional[bool] = None,
        label: Optional[str] = None,
        **others: NoReturn,
    ) -> Lock:
        """The semaphore with this name and so many permits, as `stanchion.Client.semaphore`. No I/O."""
        if others:
            refuse("semaphore", others)
        return Lock(self, ("semaphore", name, permits), dict(
            ttl=ttl, renew=renew, max_hold=max_hold, wait=wait, fail_fast=fail_fast, label=label))

    def multi_lock(
        self,
        names: Iterable[str],
        *,
        ttl: Optional[Duration] = None,
        renew: Optional[bool] = None,
        max_hold: Optional[Duration] = None,
        wait: Optional[Duration] = None,
        fail_fast: Optional[bool] = None,
        adopt_unexpiring: Optional[Duration] = None,
        label: Optional[str] = None,
        **others: NoReturn,
    ) -> Lock:
        """Several locks that are acquired together, as `stanchion.Client.multi_lock`. No I/O."""
        if others:
            refuse("multi_lock", others)
        return Lock(self, ("multi_lock", several(names, "names")), dict(
            ttl=ttl, renew=renew, max_hold=max_hold, wait=wait, fail_fast=fail_fast,
            adopt_unexpiring=adopt_unexpiring, label=label))

    @overload
    def cached(
        self,
        name: str,
        ttl: Duration,
        compute: Callable[[], Any],
        *,
        stale: Optional[Duration] = None,
        beta: Optional[float] = None,
        wait: Optional[Duration] = None,
        lease: Optional[Duration] = None,
        max_run: Optional[Duration] = None,
        without_store: Optional[bool] = None,
        label: Optional[str] = None,
    ) -> Coroutine[Any, Any, Any]: ...

    @overload
    def cached(
        self,
        name: str,
        ttl: Duration,
        *,
        stale: Optional[Duration] = None,
        beta: Optional[float] = None,
        wait: Optional[Duration] = None,
        lease: Optional[Duration] = None,
        max_run: Optional[Duration] = None,
        without_store: Optional[bool] = None,
        label: Optional[str] = None,
        ignore: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    def cached(
        self,
        name: str,
        ttl: Duration,
        compute: Callable[[], Any] = _LATER,
        *,
        stale: Optional[Duration] = None,
        beta: Optional[float] = None,
        wait: Optional[Duration] = None,
        lease: Optional[Duration] = None,
        max_run: Optional[Duration] = None,
        without_store: Optional[bool] = None,
        label: Optional[str] = None,
        ignore: Iterable[str] = (),
    ) -> Any:
        """The cached value with this name, as `stanchion.Client.cached`; ``compute`` may be async or not.

        Cancelled while it computes, it leaves the computation to the next caller. Without ``compute`` it is a decorator
        for async functions.
        """
        given: Dict[str, Any] = dict(
            stale=stale, beta=beta, wait=wait, lease=lease, max_run=max_run, without_store=without_store, label=label)
        if compute is not _LATER:
            async def cached() -> Any:  # Errors are raised when it is awaited.
                check_compute(compute, ignore, check_awaited)
                return await self._cached(name, _stanchion.CachedOptions(ttl, **given), compute)

            return cached()
        options = _stanchion.CachedOptions(ttl, **given)

        def decorate(function: F) -> F:
            check_awaited(function, "cached(): what it decorates")
            named = names(name, function, ignore)

            @functools.wraps(function)
            async def cached(*args: Any, **kwargs: Any) -> Any:
                return await self._cached(named(args, kwargs), options, functools.partial(function, *args, **kwargs))

            return cached  # type: ignore[return-value]

        return decorate

    async def _cached(self, name: str, options: _stanchion.CachedOptions, compute: Callable[[], Any]) -> Any:
        found = await call(self._native.begin_cached, name, options, discard=_let_go)
        if isinstance(found, bytes):
            return decoded(name, found)
        try:
            computed = compute()
            value = encoded(name, await computed if inspect.isawaitable(computed) else computed)
            await call(found.store, value)
        except BaseException:
            found.let_go()
            raise
        return decoded(name, value)

    async def invalidate(self, name: str) -> None:
        """Forget the cached value with this name, as `stanchion.Client.invalidate`."""
        await call(self._native.invalidate, name)

    def limiter(
        self,
        name: str,
        n: int,
        *,
        per: Duration,
        burst: Optional[int] = None,
        kind: Literal["gcra", "fixed-window", "sliding-window"] = "gcra",
        **others: NoReturn,
    ) -> Limiter:
        """The limiter with this name, as `stanchion.Client.limiter`. No I/O."""
        if others:
            refuse("limiter", others)
        return Limiter(self, self._native.limiter(name, kind, n, per, burst))

    def queue(self, name: str) -> Queue:
        """The queue with this name. No I/O."""
        return Queue(self, name)

    def queues(self, names: Iterable[str]) -> Queues:
        """Several queues, to claim from in this order."""
        return Queues(self, names)

    async def resume_lease(self, handle: str) -> Lease:
        """Continue a lease that `Lease.detach` ended. A handle works once."""
        return Lease(await call(self._native.resume_lease, handle), self._held)

    async def release_all(self) -> int:
        """Release every lease of this client that is still held; returns how many."""
        count: int = await call(self._native.release_all)
        return count

    async def locks(self, page: Optional[int] = None) -> NamePage:
        """Names of locks that are held now, a page at a time."""
        return NamePage(*await call(self._native.locks, page))

    async def queue_names(self, page: Optional[int] = None) -> NamePage:
        """Names of queues, a page at a time."""
        return NamePage(*await call(self._native.queue_names, page))

    def metrics(self) -> Dict[str, float]:
        """What this client has counted since it was opened in this process, by the names of the Prometheus samples.

        Such as ``stanchion_lock_acquires_total{outcome="granted"}``. No I/O. docs/METRICS.md has the names.
        """
        return dict(self._native.metrics())

    def metrics_text(self) -> str:
        """The same in Prometheus' text format, to be served as ``text/plain; version=0.0.4``. No I/O."""
        return self._native.metrics_text()

    async def close(self) -> None:
        """Release all leases, put back all claims, and close the connections.

        Calls that wait end with Closed, and so does every later one. Stop workers before. In a forked child this closes what
        the child has opened; leases stay the parent's.
        """
        await call(self._native.close)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return "<stanchion.aio.Client>"


def _let_go(found: Union[bytes, _stanchion.AioTicket]) -> None:
    """Nobody waits for it any more."""
    if not isinstance(found, bytes):
        found.let_go()
