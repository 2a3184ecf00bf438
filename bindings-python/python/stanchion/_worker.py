"""The blocking worker: the core claims, renews and settles; threads of Python run the handler."""

from __future__ import annotations

import contextlib
import functools
import logging
import signal
import threading
import time
from types import FrameType
from typing import Any, Callable, Iterable, Iterator, NoReturn, Optional, Sequence, Set, Union

from . import _stanchion
from ._around import functions_around, run_within
from ._claim import Claim, attending, describe
from ._errors import Indeterminate, InvalidArgument, StoreUnavailable
from ._functions import check_awaited, check_blocking
from ._green import refuse_workers
from ._keywords import refuse
from ._kinds import Misfit, Work, encoded_result, functions_of
from ._log import log
from ._telemetry import traced
from ._types import Duration, WorkerEvent, WorkerReport

# Between attempts to settle a task while the store does not answer.
SETTLE_AGAIN_S = 1.0


class WorkerFacts:
    """What both faces of a worker share: handler, options and hooks."""

    def __init__(
        self,
        queue: Any,
        handler: Optional[Callable[[Any], Any]] = None,
        *,
        kinds: Optional[Iterable[Any]] = None,
        concurrency: Optional[int] = None,
        lease: Optional[Duration] = None,
        max_run: Optional[Duration] = None,
        timeout: Optional[Duration] = None,
        grace: Optional[Duration] = None,
        around: Union[Callable[..., Any], Iterable[Any], None] = None,
        before: Optional[Callable[[Any], Any]] = None,
        after: Optional[Callable[[Any], Any]] = None,
        failed: Optional[Callable[[Any, BaseException], Any]] = None,
        on_event: Optional[Callable[[WorkerEvent], Any]] = None,
        **others: NoReturn,
    ) -> None:
        if not hasattr(queue, "_native"):
            raise TypeError("a worker is made by client.queue(name).worker(handler)")
        if others:
            refuse("worker", others)
        self._kinds = functions_of(kinds, self._check, handler)
        self._around = functions_around(around, self._check)
        self._queue, self._handler = queue, handler
        self._terms = (concurrency, lease, max_run, timeout, grace)
        self._before, self._after, self._failed, self._on_event = before, after, failed, on_event
        self._native: Any = None
        self._stopped = False
        self._at_work: Set[threading.Thread] = set()
        self._runs = threading.Lock()
        self._make(False)  # Bad options are refused here, not when it runs.

    def _make(self, until_empty: bool) -> Any:
        raise NotImplementedError

    _check = staticmethod(check_awaited)

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """`stop` is for one run: another at the same time is refused."""
        if not self._runs.acquire(blocking=False):
            raise InvalidArgument("the worker is already running; for more tasks at once set concurrency")
        try:
            yield
        finally:
            self._native = None
            self._stopped = False
            self._runs.release()

    def stop(self) -> None:
        """Take no more tasks. Handlers have their ``grace``; `run` returns when they have ended. May be called from any
        thread and from a signal handler.

        It is for one run: the one that goes on, or, if there is none, the next one, which then ends at once. So a stop is
        not lost if it comes before another thread has got to its `run`."""
        self._stopped = True
        native = self._native
        if native is not None:
            native.stop()

    def hurry(self) -> None:
        """Stop at once: handlers have no grace."""
        self.stop()
        native = self._native
        if native is not None:
            native.hurry()

    def _work_of(self, claim: Any) -> Union[Work, Misfit]:
        if self._kinds is not None:
            return self._kinds.find(claim)
        assert self._handler is not None  # Or the worker would not have been made.
        return Work(functools.partial(self._handler, claim), False)

    def _tell_misfit(self, claim: Any, misfit: Misfit) -> None:
        """That a task was put back. Of one that was buried, the core tells."""
        if misfit.delay is None:
            return
        level = logging.WARNING if misfit.is_news else logging.DEBUG
        log.log(level, "task %r of queue %r: %s", claim.id, claim.queue, misfit.reason)
        if self._on_event is not None:
            _guarded(self._on_event, WorkerEvent("unknown_kind", claim.id, claim.attempt, misfit.reason))

    def _succeeded(self, claim: Any) -> None:
        if self._after is not None:
            _guarded(self._after, claim)

    def _failed_with(self, claim: Any, error: BaseException) -> str:
        # Who has a hook for it need not see it twice.
        level = logging.WARNING if self._failed is None else logging.INFO
        log.log(
            level, "task %r of queue %r failed at attempt %d of %d: %s", claim.id, claim.queue, claim.attempt,
            claim.max_attempts, _next(claim), exc_info=error)
        if self._failed is not None:
            _guarded(self._failed, claim, error)
        return describe(error)

    def _tell(self, native: Any) -> None:
        """Log what happened to tasks beyond what their handlers raised, and call the hook."""
        for fields in native.events():
            event = WorkerEvent(*fields)
            if event.what == "dead":
                log.error(
                    "task %r of queue %r is dead after attempt %d: %s",
                    event.id, self._queue.name, event.attempt, event.reason)
            elif event.what == "lost":
                log.warning("the claim on task %r of queue %r was lost", event.id, self._queue.name)
            elif event.what == "stuck":
                log.error(
                    "the handler of task %r of queue %r was asked to end, and is still running: %s",
                    event.id, self._queue.name, event.reason)
            elif event.what == "slots_missed":
                log.warning("schedule %r of queue %r: %s", event.id, self._queue.name, event.reason)
            else:
                log.warning("queue %r: %s", self._queue.name, event.reason)
            if self._on_event is not None:
                _guarded(self._on_event, event)


def drain(workers: Sequence[WorkerFacts], number: int) -> None:
    """What a signal does: it stops those that go on. If all were stopped, it takes their grace."""
    going = [worker for worker in workers if not worker._stopped]
    # First: a second signal may come while this is logged.
    for worker in going or workers:
        worker.stop() if going else worker.hurry()
    for worker in going:
        log.info("queue %r: draining after signal %d", worker._queue.name, number)


def _next(claim: Any) -> str:
    """What becomes of a task whose handler has raised."""
    if claim._settled:
        return "the handler had settled it"
    if claim.lost.reason == "cancelled":
        return "it was cancelled, and is not tried again"
    if claim.lost.is_set() and claim.lost.reason != "timeout":
        return "the claim was lost, or the worker stops; it goes to another worker"
    if claim.attempt < claim.max_attempts:
        return "it is tried again"
    return "that was the last one"


def _guarded(hook: Callable[..., Any], *args: Any) -> None:
    """Call a hook that must not change what becomes of a task."""
    try:
        hook(*args)
    except BaseException as error:
        # On the main thread, Ctrl-C and an exit are meant for the program.
        if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
            raise
        log.exception("a hook of the worker failed")


def _report(error: BaseException) -> None:
    """Print an exception that no caller can get."""
    threading.excepthook(threading.ExceptHookArgs(
        (type(error), error, error.__traceback__, threading.current_thread())))


@contextlib.contextmanager
def catching_signals(workers: Sequence[WorkerFacts]) -> Iterator[None]:
    """On the main thread, SIGTERM and SIGINT stop these workers meanwhile."""
    def caught(number: int, frame: Optional[FrameType]) -> None:
        if number == signal.SIGINT and all(worker._stopped for worker in workers):
            raise KeyboardInterrupt
        drain(workers, number)

    on_main = workers and threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGINT) if on_main else ()
    before = {number: signal.signal(number, caught) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _refuse(claim: Claim, misfit: Misfit) -> None:
    if misfit.delay is None:
        claim.bury(misfit.reason)
    else:
        claim.put_back(misfit.delay)


class Worker(WorkerFacts):
    """Takes tasks of a queue and calls a handler with each claim, on threads.

    A handler that returns is acked; one that raises is nacked with backoff. What it settles itself is left
    alone. ``concurrency`` (1) of them run at a time. While one runs, its claim is renewed, for ``max_run`` (1 h) at
    most; if the process dies, another worker gets the task when its ``lease`` (30 s) ends. After the ``timeout`` of the task,
    or of the worker for tasks that have none (no timeout), its claim is lost, and the attempt has failed. A handler that runs
    long should look at ``claim.lost`` now and then: a thread cannot be stopped from outside. One that goes on after the
    loss of its claim keeps its thread; the worker goes on with the others, reports it (``stuck``), and leaves the task
    to other workers.

    Stopped, it takes no more tasks. Handlers go on for ``grace`` (25 s); then ``claim.lost`` is true, and the tasks of
    those that raise go back without counting an attempt. If one has not ended 2 s later, `run` returns
    without it, and its task comes back when its lease would have ended, uncounted too.

    With ``kinds``, functions that were declared with `Queue.task`, each is called for the tasks of its kind, with the arguments
    of its `enqueue`; what it returns, if not None, is the task's result. A ``handler`` beside them gets the tasks that have no
    kind. A task of another kind is put back, for 1 s, then 2 s and so on up to 1 min, until a worker has it that knows the
    kind: no attempt of it counts, and it is told as ``unknown_kind``. One whose payload does not fit its function is dead; so
    is one whose function returns what is no JSON value, since its work is done.

    ``around(claim, next)``, or a list of such functions, the first outermost, stands around the handler, on its thread: ``next()``
    calls what is further inside, in the end the handler, and returns what that returned. What it returns counts as what the
    handler returned, what it raises as what the handler raised. If it does not call ``next``, the task is done without the handler.

    Hooks, outside of that: ``before(claim)`` runs before the handler, and fails the task if it raises; ``after(claim)`` when the
    handler has returned; ``failed(claim, exception)`` when it raised; ``on_event(event)`` for what handlers do
    not see: a task that died, a claim that was lost, a handler that is stuck, a store that does not answer. What the
    last three raise is logged.

    All of that is logged under ``stanchion``, too, so that a program without hooks or configured logging has it on stderr:
    what a handler raised as a warning with its traceback, or with a ``failed`` hook for information only.
    """

    def run(self, *, until_empty: bool = False, signals: bool = True) -> WorkerReport:
        """Work until `stop`; with ``until_empty``, until no task is ready or claimed any more.
        Once at a time: InvalidArgument if it runs already.

        On the main thread, SIGTERM and SIGINT stop it: see the class. A second SIGTERM ends the grace, a second SIGINT
        raises KeyboardInterrupt.
        """
        with self._running(), catching_signals([self] if signals else []):
            return self._run(until_empty)

    def _run(self, until_empty: bool) -> WorkerReport:
        native = self._native = self._make(until_empty)
        if self._stopped:
            native.stop()
        threads = [
            threading.Thread(target=self._work, args=(native,), name=f"stanchion-{number}", daemon=True)
            for number in range(self._terms[0] or 1)]
        done = False
        try:
            for thread in threads:
                thread.start()
            report = WorkerReport(*native.run(lambda: self._tell_beside(native)))
            done = True
            return report
        finally:
            native.close()
            if done:
                for thread in threads:
                    # All are idle, but those that were left behind.
                    thread.join(0 if thread in self._at_work else None)
            self._tell(native)

    _check = staticmethod(check_blocking)

    def _make(self, until_empty: bool) -> _stanchion.Worker:
        refuse_workers()
        return _stanchion.Worker(self._queue._native, *self._terms, until_empty)

    def _interrupt(self) -> None:
        """End without waiting for the handlers, as `run` does when a signal handler raises."""
        self.stop()
        native = self._native
        if native is not None:
            native.close()

    def _tell_beside(self, native: _stanchion.Worker) -> None:
        """Tell while the threads are busy, or stuck. What a log handler raises ends no worker."""
        try:
            self._tell(native)
        except BaseException as error:
            # On the main thread, Ctrl-C and an exit are meant for the program.
            if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
                raise
            _report(error)

    def _work(self, native: _stanchion.Worker) -> None:
        while (fetched := native.fetch()) is not None:
            try:
                self._serve(native, *fetched)
            except BaseException as error:
                # Of a log handler, say. Without this thread, tasks would lie there and be renewed.
                _report(error)

    def _serve(self, native: _stanchion.Worker, number: int, found: Optional[_stanchion.Claim]) -> None:
        if found is None:
            self._tell(native)
            return
        failure: Optional[str] = "the worker could not say how the handler ended"
        self._at_work.add(threading.current_thread())
        try:
            failure = self._attend(Claim(found))
        finally:
            self._at_work.discard(threading.current_thread())
            native.said(number, failure)

    def _attend(self, claim: Claim) -> Optional[str]:
        try:
            work = self._work_of(claim)
            if isinstance(work, Misfit):
                self._settle(functools.partial(_refuse, claim, work))
                self._tell_misfit(claim, work)
                return None
            if self._before is not None:
                self._before(claim)
            with traced(claim.headers), attending(claim):
                returned = run_within(self._around, claim, work.call)
            if work.gives:
                self._give(claim, returned)
        except BaseException as error:
            return self._failed_with(claim, error)
        self._succeeded(claim)
        return None

    def _give(self, claim: Claim, returned: Any) -> None:
        """Ack with what a function has returned. If that cannot be a result, the task is dead: its work is done, and would be
        done again."""
        if returned is None or claim._settled:
            return
        try:
            result = encoded_result(claim, returned)
            self._settle(lambda: claim.ack(result))
        except InvalidArgument as error:
            reason = describe(error)
            self._settle(lambda: claim.bury(reason))
            raise

    def _settle(self, settle: Callable[[], None]) -> None:
        """Again while the store does not answer, for a failure would count as an attempt."""
        while True:
            try:
                return settle()
            except (StoreUnavailable, Indeterminate):
                if self._stopped:
                    raise
                time.sleep(SETTLE_AGAIN_S)

    def __repr__(self) -> str:
        return f"<stanchion.Worker {self._queue.name!r}>"
