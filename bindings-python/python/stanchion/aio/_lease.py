"""Leases for asyncio."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Optional, Type

from .._errors import InvalidArgument, LeaseLost, chain_loss
from .._lease import LeaseFacts, Loss, announced
from .._log import log
from .._types import Duration
from ._loop import call


class Lost(Loss):
    """Whether a lease or a claim was lost, like an `asyncio.Event` that this library sets."""

    async def wait(self) -> bool:
        """Wait for the loss, or the regular end; whether it is lost."""
        await call(self._native.wait_lost)
        return self.is_set()


class Lease(LeaseFacts):
    """A lock that is ours until it is released, expires, or is lost. An async context manager that releases it."""

    @property
    def lost(self) -> Lost:
        """Whether it was lost; set at its deadline at the latest."""
        return Lost(self._native)

    async def extend(self, ttl: Duration) -> None:
        """Prolong the lease to at least ``ttl`` from now."""
        await call(self._native.extend, ttl)

    async def extend_exact(self, ttl: Duration) -> None:
        """Have the lease end ``ttl`` from now (1 ms to 365 days), also earlier than it would. It is not renewed any more."""
        await call(self._native.extend_exact, ttl)

    async def downgrade(self) -> None:
        """Turn the lease of a writer into that of a reader, with the same fence: other readers may come in."""
        await call(self._native.downgrade)

    async def upgrade(self) -> bool:
        """Turn the lease of a reader into that of a writer if nobody else holds the lock, without waiting: whether it is a writer's now."""
        upgraded: bool = await call(self._native.upgrade)
        self.fence = self._native.fence
        return upgraded

    async def release(self, cooldown: Optional[Duration] = None) -> None:
        """Give the lock back; with a cooldown, keep it closed for so long. Raises LeaseExpired or LeaseLost if it was not ours to the end."""
        self._held.leases.forget(self)
        try:
            await call(self._native.release, cooldown)
        except InvalidArgument:
            # Nothing was done: it is to be released at the end of a block.
            self._held.leases.restore(self)
            raise
        except asyncio.CancelledError:
            # It may not have begun, and whoever keeps the exception keeps the lease.
            self._native.let_go()
            raise

    async def detach(self, ttl: Duration = 30.0) -> str:
        """Detach the lease: a text with which another process can resume it, once. A secret."""
        handle: str = await call(self._native.detach, ttl)
        self._held.leases.forget(self)
        return handle

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await end(self, error)

    def __repr__(self) -> str:
        return f"<stanchion.aio.Lease {self.name!r} fence={self.fence} remaining={self.remaining:.3f}>"


async def end(lease: Lease, error: Optional[BaseException], because: Optional[BaseException] = None) -> None:
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
