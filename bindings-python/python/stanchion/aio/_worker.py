"""The worker for asyncio: the core claims, renews and settles; tasks of the loop run the handler."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import Any, Awaitable, Callable, Dict, Iterator, Optional, Sequence

from .. import _stanchion
from .._claim import attending, describe
from .._errors import Indeterminate, InvalidArgument, StoreUnavailable
from .._kinds import Misfit, encoded_result
from .._telemetry import traced
from .._types import WorkerReport
from .._worker import SETTLE_AGAIN_S, WorkerFacts, drain
from ._around import run_within
from ._claim import Claim
from ._loop import call
from ._signals import catch


@contextlib.contextmanager
def catching_signals(workers: Sequence[WorkerFacts]) -> Iterator[None]:
    """If the loop runs on the main thread, SIGTERM and SIGINT stop these workers meanwhile."""
    if not workers:
        yield
        return
    end = catch(functools.partial(drain, workers))
    try:
        yield
    finally:
        end()


async def _refuse(claim: Claim, misfit: Misfit) -> None:
    if misfit.delay is None:
        await claim.bury(misfit.reason)
    else:
        await claim.put_back(misfit.delay)


class Worker(WorkerFacts):
    """Takes tasks of a queue and awaits a handler for each, several at once. A plain function runs, too, but nothing else
    does meanwhile.

    As `stanchion.Worker`; a handler whose claim is lost, or whose grace is over, is cancelled. Hooks are plain
    functions; ``async def around(claim, next)`` awaits ``next()``.
    """

    async def run(self, *, until_empty: bool = False, signals: bool = True) -> WorkerReport:
        """Work until `stop`; with ``until_empty``, until no task is ready or claimed any more. SIGTERM and SIGINT stop it
        if the loop runs on the main thread; a second one ends the grace. They stop all workers of the process, and
        are passed to the handlers that were there before. Cancelled, it cancels the handlers and waits for their end; their tasks go back without
        counting an attempt."""
        with self._running(), catching_signals([self] if signals else []):
            return await self._run(until_empty)

    async def _run(self, until_empty: bool) -> WorkerReport:
        native = self._native = self._make(until_empty)
        if self._stopped:
            native.stop()
        running: Dict[int, asyncio.Task[None]] = {}
        fetching = asyncio.ensure_future(self._fetch(native, running))
        ending = asyncio.ensure_future(call(native.run))
        try:
            return WorkerReport(*await asyncio.shield(ending))
        except asyncio.CancelledError:
            native.hurry()
            await asyncio.wait([ending])
            raise
        finally:
            fetching.cancel()
            ending.cancel()
            for task in running.values():
                task.cancel()  # It was cancelled before, and goes on: the worker does not wait for it.
            await asyncio.gather(fetching, ending, return_exceptions=True)
            self._tell(native)

    def _make(self, until_empty: bool) -> _stanchion.AioWorker:
        return _stanchion.AioWorker(self._queue._native, *self._terms, until_empty)

    async def _fetch(self, native: _stanchion.AioWorker, running: Dict[int, asyncio.Task[None]]) -> None:
        while True:
            number, found = await call(native.fetch)
            if found is not None:
                running[number] = asyncio.ensure_future(self._attend(native, number, Claim(found), running))
            elif number in running:
                running[number].cancel()  # Its claim was lost, or its grace is over.
            else:
                self._tell(native)

    async def _attend(
        self, native: _stanchion.AioWorker, number: int, claim: Claim, running: Dict[int, asyncio.Task[None]]
    ) -> None:
        failure: Optional[str] = "the handler was cancelled"
        try:
            work = self._work_of(claim)
            if isinstance(work, Misfit):
                await self._settle(functools.partial(_refuse, claim, work))
                failure = None
                self._tell_misfit(claim, work)
                return
            if self._before is not None:
                self._before(claim)
            with traced(claim.headers), attending(claim):
                returned = await run_within(self._around, claim, work.call)
            if work.gives:
                await self._give(claim, returned)
            failure = None
            self._succeeded(claim)
        except asyncio.CancelledError:
            pass
        except Exception as error:
            failure = self._failed_with(claim, error)
        except BaseException as error:
            failure = describe(error)
            raise
        finally:
            running.pop(number, None)
            native.said(number, failure)

    async def _give(self, claim: Claim, returned: Any) -> None:
        """Ack with what a function has returned. If that cannot be a result, the task is dead: its work is done, and would be
        done again."""
        if returned is None or claim._settled:
            return
        try:
            result = encoded_result(claim, returned)
            await self._settle(functools.partial(claim.ack, result))
        except InvalidArgument as error:
            await self._settle(functools.partial(claim.bury, describe(error)))
            raise

    async def _settle(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Again while the store does not answer, for a failure would count as an attempt."""
        while True:
            try:
                return await settle()
            except (StoreUnavailable, Indeterminate):
                if self._stopped:
                    raise
                await asyncio.sleep(SETTLE_AGAIN_S)

    def __repr__(self) -> str:
        return f"<stanchion.aio.Worker {self._queue.name!r}>"
