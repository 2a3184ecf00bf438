"""The blocking client."""

from __future__ import annotations

import functools
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Literal, NoReturn, Optional, Type, TypeVar, overload

from . import _green, _stanchion
from ._cached import check_compute, decoded, encoded, names
from ._exit import note
from ._functions import check_blocking
from ._held import Held
from ._keywords import refuse
from ._lease import Lease
from ._limiter import Limiter
from ._lock import Lock, RwLock
from ._queue import Queue, Queues
from ._types import Duration, NamePage, Path, several

F = TypeVar("F", bound=Callable[..., Any])
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
) -> Client:
    """Open a store: ``redis://``, ``redis+unix://``, ``redis-sentinel://``, ``redis-cluster://``, ``redis-quorum://``,
    with TLS ``rediss://`` and so on, ``sqlite:PATH`` or ``memory:``.

    Without a URL, the environment variable ``STANCHION_URL`` names it. One client per process is enough; it may
    be shared by threads, and works on in a forked child.

    Every call on the main thread notices Ctrl-C, and runs other signal handlers, within 0.2 s, also while the store
    does not answer; what a handler raises ends the call. In a process that gevent or eventlet has patched, a call waits in
    its greenlet. At the end of the program the main thread's leases are
    released, which may take half a second.
    """
    if others:
        refuse("connect", others)
    return Client(dict(
        url=url, lock_prefix=lock_prefix, queue_prefix=queue_prefix, timeout=timeout, foreign_share=foreign_share,
        label=label, tls_ca=tls_ca, tls_cert=tls_cert, tls_key=tls_key, clock=None))


class Client:
    """A connection to a store. Made by `connect`; a context manager that releases all leases at its end."""

    def __init__(self, settings: Dict[str, Any]) -> None:
        if not isinstance(settings, dict):
            raise TypeError("a client is made by stanchion.connect(url)")
        self._settings = settings
        how: Any = _stanchion.connect if _green.patched() is None else _green.connect
        self._native = how(_stanchion.Settings(**settings))
        self._held = Held()
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
        """The lock with this name, and the default options of its acquires. No I/O.

        Without a ``ttl``, a lease is of 30 s and renewed until its release, for ``max_hold`` (1 h) at most; with
        one (50 ms to 365 days) it is not renewed, unless ``renew`` is True. ``wait``: how long to wait for the lock (10 s);
        then LockTimeout. ``fail_fast``: raise LockTimeout at once if the holder's lease lasts longer than the wait. ``adopt_unexpiring``: take over
        another program's value that never expires, once it has not changed for this long (never). ``label`` is shown to others
        as the holder (the client's). Times are seconds or timedeltas.
        """
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
        """The read-write lock with this name: many readers, or one writer. No I/O.

        Those who wait are served in the order in which they came, so that neither readers nor writers starve. Options as of
        `lock`: by default a lease of 30 s that is renewed, a wait of 10 s. Its leases have no cooldown.
        """
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
        """The semaphore with this name and so many permits (1 to 1,000,000). No I/O.

        An acquire takes one, or ``weight``. While anybody holds or waits for permits, all must agree on their number;
        another one raises InvalidArgument. Options as of `lock`: by default a lease of 30 s that is renewed, a wait of 10 s.
        """
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
        """Several locks that are acquired together, all or none. No I/O.

        One after another in the order of their names, so that two callers never wait for each other. Names that come
        twice count once; without any name an acquire raises InvalidArgument. Options as of `lock`: by default a lease of 30 s
        that is renewed, a wait of 10 s.
        """
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
    ) -> Any: ...

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
        """The cached value with this name; if there is none, ``compute()`` makes it, for one caller at a time.

        The others wait, and get what it made: any JSON value, as JSON gives it back, of at most 16 MiB. If ``compute``
        raises, its exception goes on, and the next caller computes.

        ``ttl``: how long the value is fresh. ``stale``: for how long after that the old one is still answered while
        somebody computes (not at all). ``beta``: before the ``ttl`` is over one caller, drawn by lot, computes anew, the
        earlier the longer that takes and the larger beta is (1; 0 turns it off). ``wait``: how long to wait for another's
        computation (10 s), then LockTimeout. ``lease``: how long the others wait for a computing caller that died (30 s;
        renewed while it lives). ``max_run``: how long a computation may take (1 h). ``label`` is shown as who computes.

        ``without_store``: whether every caller computes by itself, and stores nothing, when the store has not answered for
        a second (True); for five seconds then the client asks no more. False: wait, and fail with StoreUnavailable.

        A value that could not be stored, because the lease was lost or the store did not answer, is still returned.

        Without ``compute`` it is a decorator: ``@client.cached("price:{id}", ttl=60)``. The function's arguments take the
        places of their names in braces, as in `str.format`, and its values are cached under the name that results. A brace
        of the name itself is doubled. An argument without a place there is refused: calls that differ in it would get each
        other's values. If they may, ``ignore`` names it: ``ignore=["self", "session"]``.
        """
        if compute is not _LATER:
            check_compute(compute, ignore, check_blocking)
        options = _stanchion.CachedOptions(
            ttl, stale=stale, beta=beta, wait=wait, lease=lease, max_run=max_run, without_store=without_store, label=label)
        if compute is not _LATER:
            return self._cached(name, options, compute)

        def decorate(function: F) -> F:
            check_blocking(function, "cached(): what it decorates")
            named = names(name, function, ignore)

            @functools.wraps(function)
            def cached(*args: Any, **kwargs: Any) -> Any:
                return self._cached(named(args, kwargs), options, functools.partial(function, *args, **kwargs))

            return cached  # type: ignore[return-value]

        return decorate

    def _cached(self, name: str, options: _stanchion.CachedOptions, compute: Callable[[], Any]) -> Any:
        found = self._native.begin_cached(name, options)
        if isinstance(found, bytes):
            return decoded(name, found)
        try:
            value = encoded(name, compute())
            found.store(value)
        except BaseException:
            found.let_go()
            raise
        return decoded(name, value)

    def invalidate(self, name: str) -> None:
        """Forget the cached value with this name. A computation that has begun does not count either: its caller gets its
        value, but the next one computes anew."""
        self._native.invalidate(name)

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
        """The limiter with this name: ``n`` in ``per`` seconds, for all who use it. No I/O.

        ``kind``: ``"gcra"``, evenly spaced, and ``burst`` at once after a calm time (1); ``"fixed-window"``, ``n`` in each
        window of the store's clock; ``"sliding-window"``, ``n`` in any window (10,000 at most). Each kind has names of its
        own. The limit is code of its callers and travels with each call: all should give the same. For "so many at the same
        time" there is `semaphore`.
        """
        if others:
            refuse("limiter", others)
        return Limiter(self, self._native.limiter(name, kind, n, per, burst))

    def queue(self, name: str) -> Queue:
        """The queue with this name. No I/O."""
        return Queue(self, name)

    def queues(self, names: Iterable[str]) -> Queues:
        """Several queues, to claim from in this order."""
        return Queues(self, names)

    def resume_lease(self, handle: str) -> Lease:
        """Continue a lease that `Lease.detach` ended, here or in another process. A handle works once."""
        return Lease(self._native.resume_lease(handle), self._held)

    def release_all(self) -> int:
        """Release every lease of this client that is still held; returns how many. For shutdown."""
        count: int = self._native.release_all()
        return count

    def locks(self, page: Optional[int] = None) -> NamePage:
        """Names of locks that are held now, a page at a time."""
        return NamePage(*self._native.locks(page))

    def queue_names(self, page: Optional[int] = None) -> NamePage:
        """Names of queues that have tasks or settings, or had some lately, a page at a time."""
        return NamePage(*self._native.queue_names(page))

    def metrics(self) -> Dict[str, float]:
        """What this client has counted since it was opened in this process, by the names of the Prometheus samples.

        Such as ``stanchion_lock_acquires_total{outcome="granted"}``. No I/O. docs/METRICS.md has the names.
        """
        return dict(self._native.metrics())

    def metrics_text(self) -> str:
        """The same in Prometheus' text format, to be served as ``text/plain; version=0.0.4``. No I/O."""
        text: str = self._native.metrics_text()
        return text

    def close(self) -> None:
        """Release all leases, put back all claims, and close the connections.

        Calls that wait end with Closed, and so does every later one. Stop workers before. In a forked child this closes what
        the child has opened; leases stay the parent's.
        """
        self._native.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        # In another process it connects on its own.
        return Client, (self._settings,)

    def __copy__(self) -> Client:
        return self

    def __deepcopy__(self, memo: Any) -> Client:
        # Settings with a client in them are copied now and then; that is no reason to connect again.
        return self

    def __repr__(self) -> str:
        return "<stanchion.Client>"
