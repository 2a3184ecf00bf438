"""Several workers on one loop."""

from __future__ import annotations

import asyncio
from typing import Any, List, Optional, Sequence

from .._types import WorkerReport
from .._workers import check_workers, raise_first, running
from ._worker import Worker, catching_signals


async def run_workers(*workers: Worker, until_empty: bool = False, signals: bool = True) -> List[WorkerReport]:
    """Run all of these workers at the same time, as `Worker.run` does one, and answer their reports in the same order.

    As `stanchion.run_workers`; a second SIGTERM or SIGINT ends the grace of all. Cancelled, it cancels the handlers of all and
    waits for their end.
    """
    check_workers(workers, Worker, "stanchion.aio.Worker")
    errors: List[BaseException] = []

    async def run(worker: Worker) -> Optional[WorkerReport]:
        try:
            return await worker._run(until_empty)
        except BaseException as error:
            for other in workers:
                other.stop()
            if not isinstance(error, Exception):
                raise  # Cancelled, or what ends the loop.
            errors.append(error)
            return None

    with running(workers), catching_signals(workers if signals else ()):
        tasks = [asyncio.ensure_future(run(worker)) for worker in workers]
        await _end(tasks)
    raise_first(errors)
    return [report for report in (task.result() for task in tasks) if report is not None]


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Until all have ended. Each cancellation is passed on to all."""
    cancelled: Optional[asyncio.CancelledError] = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
            for task in tasks:
                task.cancel()
    if cancelled is not None:
        raise cancelled
