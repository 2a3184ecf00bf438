"""Leases, blocking."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Dict, Hashable, Optional, Type

from . import _stanchion
from ._errors import InvalidArgument, LeaseLost, StanchionError, chain_loss
from ._held import Held
from ._log import log
from ._types import Duration


class Loss:
    """What both faces of `Lost` share."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def is_set(self) -> bool:
        """Whether it is lost. Computed from the clock at the time of the call."""
        return self._native.loss is not None

    def __bool__(self) -> bool:
        """Same as `is_set`, so that ``if lease.lost:`` works."""
        return self.is_set()

    @property
    def reason(self) -> Optional[str]:
        """Why, such as "expired" or "taken"; None if it is not lost."""
        reason: Optional[str] = self._native.loss
        return reason


class Lost(Loss):
    """Whether a lease or a claim was lost, like a `threading.Event` that this library sets."""

    def __repr__(self) -> str:
        return f"<{'lost' if self.is_set() else 'not lost'}>"

    def wait(self, timeout: Optional[Duration] = None) -> bool:
        """Wait for the loss (or the regular end), up to ``timeout``; whether it is lost."""
        slices = 3600.0 if timeout is None else timeout
        while not self._native.wait_lost(slices) and timeout is None:
            pass
        return self.is_set()


class LeaseFacts:
    """What is known of a lease without asking the store."""

    _native: Any

    def __init__(self, native: Any, held: Any, key: Optional[Hashable] = None) -> None:
        self._native = native
        self._held = held
        self._over = False
        self.name: str = native.name
        self.fence: int = native.fence
        # What was acquired: of an exclusive lock, its name.
        self._key: Hashable = native.name if key is None else key
        held.leases.add(self)

    @property
    def fences(self) -> Dict[str, int]:
        """The fence of each lock, by name: of `Client.multi_lock` there are several."""
        return dict(self._native.fences)

    @property
    def token(self) -> str:
        """The secret that proves the lease is ours."""
        token: str = self._native.token
        return token

    @property
    def remaining(self) -> float:
        """How many seconds the lease is surely ours from now on, without further renewal."""
        left: float = self._native.remaining
        return left

    @property
    def valid(self) -> bool:
        """Whether the lease is ours now."""
        valid: bool = self._native.valid
        return valid

    def check(self) -> None:
        """Raise LeaseLost or LeaseExpired if the lease is known to be gone. Does not ask the store."""
        self._native.check()

    def __reduce__(self) -> Any:
        raise TypeError("a lease cannot be copied or pickled; detach() makes a text that another process can resume")


class Lease(LeaseFacts):
    """A lock that is ours until it is released, expires, or is lost. A context manager that releases it.

    One that is never released ends with the thread that acquired it, or with the last reference to it.
    """

    @property
    def lost(self) -> Lost:
        """Whether it was lost; set at its deadline at the latest."""
        return Lost(self._native)

    def extend(self, ttl: Duration) -> None:
        """Prolong the lease to at least ``ttl`` from now."""
        self._native.extend(ttl)

    def extend_exact(self, ttl: Duration) -> None:
        """Have the lease end ``ttl`` from now (1 ms to 365 days), also earlier than it would. It is not renewed any more.

        Raises LeaseExpired also if it was over before the answer came: its validity is up to 2 ms and 1 % shorter. If the
        store did not answer, the lease goes on to the earlier of both ends.
        """
        self._native.extend_exact(ttl)

    def downgrade(self) -> None:
        """Turn the lease of a writer into that of a reader, with the same fence: other readers may come in.

        A reader's lease stays as it is. Raises InvalidArgument for a lease of another kind of lock, LeaseLost or
        LeaseExpired if it has ended.
        """
        self._native.downgrade()

    def upgrade(self) -> bool:
        """Turn the lease of a reader into that of a writer if nobody else holds the lock: whether it is a writer's now.

        Never waits: two readers that both wait to become the writer would wait for each other for ever. The lease gets a
        new fence; its end stays. Raises as `downgrade`.
        """
        upgraded: bool = self._native.upgrade()
        self.fence = self._native.fence
        return upgraded

    def release(self, cooldown: Optional[Duration] = None) -> None:
        """Give the lock back; with a cooldown, keep it closed for so long before anybody can get it.

        Raises LeaseExpired or LeaseLost if it was not ours to the end. The lease is over in any case.
        """
        self._held.leases.forget(self)
        try:
            self._native.release(cooldown)
        except InvalidArgument:
            # Nothing was done: it is to be released at the end of a block.
            self._held.leases.restore(self)
            raise
        except StanchionError:
            raise
        except BaseException:  # Ctrl-C, or what ends a greenlet.
            # It may not have begun, and whoever keeps the exception keeps the lease.
            self._native.let_go()
            raise

    def detach(self, ttl: Duration = 30.0) -> str:
        """Detach the lease: a text with which another process can resume it, once, within ``ttl``. A secret."""
        handle: str = self._native.detach(ttl)
        self._held.leases.forget(self)
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
            # Nobody took the lock meanwhile, but the loss was announced to the block.
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
    """The loss of a lease as an exception, if it is lost."""
    if not lease.lost.is_set():
        return None
    try:
        lease.check()
    except LeaseLost as loss:
        return loss
    except StanchionError:
        pass
    return None
