"""The worker for asyncio: the core claims, renews and settles; tasks of the loop run the handler."""

from __future__ import annotations

import asyncio
import signal
from typing import Dict, List, Optional

from .. import _stanchion
from .._claim import describe
from .._telemetry import around
from .._types import WorkerReport
from .._worker import WorkerFacts
from ._claim import Claim
from ._loop import call


class Worker(WorkerFacts):
    """Takes tasks of a queue and awaits a handler for each, several at once.

    As `stanchion.Worker`; a handler whose claim is lost is cancelled. Hooks are plain functions.
    """

    async def run(self, *, burst: bool = False, signals: bool = True) -> WorkerReport:
        """Work until `stop`; with ``burst``, until no task is ready or claimed any more. SIGTERM and SIGINT drain
        if the loop runs on the main thread. Cancelled, it cancels the handlers and waits for their end."""
        with self._running():
            return await self._run(burst, signals)

    async def _run(self, burst: bool, signals: bool) -> WorkerReport:
        native = self._native = self._make(burst)
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
            await asyncio.gather(fetching, *running.values(), return_exceptions=True)
            self._tell(native)

    def _make(self, burst: bool) -> _stanchion.AioWorker:
        return _stanchion.AioWorker(self._queue._native, *self._terms, burst)

    def _catch_signals(self) -> List[int]:
        caught: List[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                asyncio.get_running_loop().add_signal_handler(number, self._drain, number)
            except (NotImplementedError, RuntimeError, ValueError):
                continue  # Not the main thread.
            caught.append(number)
        return caught

    async def _fetch(self, native: _stanchion.AioWorker, running: Dict[int, asyncio.Task[None]]) -> None:
        while True:
            number, found = await call(native.fetch)
            if found is not None:
                running[number] = asyncio.ensure_future(self._attend(native, number, Claim(found), running))
            elif number in running:
                running[number].cancel()  # Its claim was lost.
            else:
                self._tell(native)

    async def _attend(
        self, native: _stanchion.AioWorker, number: int, claim: Claim, running: Dict[int, asyncio.Task[None]]
    ) -> None:
        failure: Optional[str] = "the handler was cancelled"
        try:
            if self._before is not None:
                self._before(claim)
            with around(claim.headers):
                await self._handler(claim)
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

    def __repr__(self) -> str:
        return f"<stanchion.aio.Worker {self._queue.name!r}>"
