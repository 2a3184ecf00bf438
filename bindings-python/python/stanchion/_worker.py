"""The blocking worker: the core claims, renews and settles; threads of Python run the handler."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from . import _stanchion
from ._log import log
from ._telemetry import around
from ._types import Duration, WorkerReport

if TYPE_CHECKING:
    from ._queue import Claim, Queue


class Worker:
    """Takes tasks of a queue and calls a handler with each claim, on threads.

    A handler that returns is acked; one that raises is nacked with backoff. What it settles itself is left
    alone. While it runs, its claim is renewed, for ``max_run`` at most; one that runs long should look at
    ``claim.lost`` now and then. ``before`` and ``after`` are called with the claim around the handler, ``failed``
    with the claim and the exception.
    """

    def __init__(
        self,
        queue: Queue,
        handler: Callable[[Claim], Any],
        *,
        concurrency: Optional[int],
        lease: Optional[Duration],
        max_run: Optional[Duration],
        before: Optional[Callable[[Claim], Any]],
        after: Optional[Callable[[Claim], Any]],
        failed: Optional[Callable[[Claim, BaseException], Any]],
    ) -> None:
        self._queue, self._handler = queue, handler
        self._terms = (concurrency, lease, max_run)
        self._before, self._after, self._failed = before, after, failed
        self._native: Optional[_stanchion.Worker] = None
        self._stopped = False

    def run(self, *, burst: bool = False, signals: bool = True) -> WorkerReport:
        """Work until `stop`; with ``burst``, until no task is ready or claimed any more.

        On the main thread, SIGTERM and SIGINT drain: no more tasks are taken, those at hand are finished, and
        ``run`` returns. A second SIGINT raises KeyboardInterrupt.
        """
        native = _stanchion.Worker(self._queue._native, *self._terms, burst)
        self._native = native
        if self._stopped:
            native.stop()
        threads = [
            threading.Thread(target=self._work, args=(native,), name=f"stanchion-{number}", daemon=True)
            for number in range(self._terms[0] or 1)]
        on_main = signals and threading.current_thread() is threading.main_thread()
        before = self._catch_signals() if on_main else {}
        done = False
        try:
            for thread in threads:
                thread.start()
            report = WorkerReport(*native.run())
            done = True
            return report
        finally:
            native.close()
            for number, handler in before.items():
                signal.signal(number, handler)
            if done:
                for thread in threads:
                    thread.join()
            self._tell(native)
            self._native = None

    def stop(self) -> None:
        """Take no more tasks; `run` returns when those at hand are done. May be called from any thread or from a
        signal handler."""
        self._stopped = True
        if self._native is not None:
            self._native.stop()

    def _catch_signals(self) -> Dict[int, Any]:
        def drain(number: int, frame: Optional[FrameType]) -> None:
            if self._stopped and number == signal.SIGINT:
                raise KeyboardInterrupt
            log.info("queue %r: draining after signal %d", self._queue.name, number)
            self.stop()

        return {number: signal.signal(number, drain) for number in (signal.SIGTERM, signal.SIGINT)}

    def _work(self, native: _stanchion.Worker) -> None:
        from ._queue import Claim

        while (task := native.fetch()) is not None:
            number, found = task
            failure: Optional[str] = "the handler's thread ended"
            try:
                failure = self._attend(Claim(found))
            finally:
                native.said(number, failure)
            self._tell(native)

    def _attend(self, claim: Claim) -> Optional[str]:
        from ._queue import describe

        try:
            if self._before is not None:
                self._before(claim)
            with around(claim.headers):
                self._handler(claim)
            if self._after is not None:
                self._after(claim)
            return None
        except BaseException as error:
            log.warning("task %r of queue %r failed", claim.id, claim.queue, exc_info=True)
            if self._failed is not None:
                try:
                    self._failed(claim, error)
                except Exception:
                    log.exception("the hook for a failed task failed")
            return describe(error)

    def _tell(self, native: _stanchion.Worker) -> None:
        tell(self._queue.name, native.events())

    def __repr__(self) -> str:
        return f"<stanchion.Worker {self._queue.name!r}>"


def tell(queue: str, events: List[Any]) -> None:
    """Log what happened to tasks, beyond what their handlers raised."""
    for what, id, attempt, reason in events:
        if what == "dead":
            log.error("task %r of queue %r is dead after attempt %d: %s", id, queue, attempt, reason)
        elif what == "lost":
            log.warning("the claim on task %r of queue %r was lost", id, queue)
        elif what == "store_failed":
            log.warning("queue %r: %s", queue, reason)
