"""Claims for asyncio."""

from __future__ import annotations

from types import TracebackType
from typing import List, NoReturn, Optional, Type

from .. import _claim
from .._claim import ClaimFacts, describe, log_unsettled
from .._errors import StanchionError
from .._flows import FlowInput, flow_inputs
from .._keywords import refuse
from .._types import Data, Duration
from ._lease import Lost
from ._loop import call


class Claim(ClaimFacts):
    """A task that is ours until it is settled, or its lease ends. An async context manager, as
    `stanchion.Claim`."""

    _shown = "stanchion.aio.Claim"

    @property
    def lost(self) -> Lost:
        """Whether the claim was lost; set at its deadline at the latest."""
        return Lost(self._native)

    async def ack(self, result: Optional[Data] = None) -> None:
        """Done: the task leaves the queue. The ``result``, bytes or a text, is what `Queue.result` gives."""
        await call(self._native.ack, result)
        self._settled = True

    async def nack(self, delay: Optional[Duration] = None, reason: str = "", **others: NoReturn) -> None:
        """Not done: try again after ``delay``; by default as the task's ``backoff`` says, and if it has none 1 s, 16 s, 81 s, 4 min and so on after the first, second, ...
        attempt (the fourth power of its number), less up to half of it by chance, 7 h at most."""
        if others:
            refuse("nack", others)
        await call(self._native.nack, delay, reason)
        self._settled = True

    async def bury(self, reason: str = "") -> None:
        """Not done, and not to be tried again: the task is dead."""
        await call(self._native.bury, reason)
        self._settled = True

    async def put_back(self, delay: Optional[Duration] = None) -> None:
        """Not tried: the task goes back without counting an attempt, and waits for ``delay``. Without one it comes
        back to its place in line, so the next claim gets it again."""
        await call(self._native.put_back, delay)
        self._settled = True

    async def throttle(self, time: Duration) -> None:
        """Not tried, because whoever it calls has had enough: the task goes back without counting an attempt, and nothing more of
        its key, or if it has none of the queue, is given out for so long."""
        await call(self._native.throttle, time)
        self._settled = True

    async def extend(self, lease: Duration) -> None:
        """Prolong the lease to at least ``lease`` from now."""
        await call(self._native.extend, lease)

    async def progress(self, progress: Data) -> None:
        """Say how far the work has come, in bytes or a text, 4 KiB at most: `Queue.get` and `Queue.list` show it while the run
        goes on. It renews the lease, too."""
        await call(self._native.progress, progress)

    async def inputs(self) -> List[FlowInput]:
        """What has become of the nodes of its flow that this one comes after, with the results of their acks."""
        return flow_inputs(await call(self._native.inputs))

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
            log_unsettled(self, failure)


def current_claim() -> Claim:
    """The claim on the task that runs here: for functions with a kind, which do not get it as an argument. LookupError outside of
    a worker's handlers."""
    return _claim.current_claim()  # type: ignore[return-value]
