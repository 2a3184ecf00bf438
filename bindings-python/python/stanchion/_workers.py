"""Several workers in one process."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, List, Sequence, Type

from ._arguments import shown
from ._errors import InvalidArgument
from ._green import refuse_workers
from ._types import WorkerReport
from ._worker import Worker, WorkerFacts, catching_signals


def run_workers(*workers: Worker, until_empty: bool = False, signals: bool = True) -> List[WorkerReport]:
    """Run all of these workers at the same time, as `Worker.run` does one, and answer their reports in the same order.

    Each has its own ``concurrency``, which is its share of this process. They may be of different queues and clients, or of
    the same. With ``until_empty``, each ends when no task of its queue is ready or claimed any more, and all of it when each
    has ended. `Worker.stop` ends one of them.

    On the main thread, SIGTERM and SIGINT stop all: a second SIGTERM ends the grace, a second SIGINT raises
    KeyboardInterrupt. If one ends with an error, the others are stopped, and have their grace; then it is raised. Further errors
    are chained to it. InvalidArgument if there is none, one twice, or one that runs already; then none has started.
    """
    check_workers(workers, Worker, "stanchion.Worker")
    refuse_workers()
    reports: Dict[int, WorkerReport] = {}
    errors: List[BaseException] = []
    # Waited for before the joins: in some versions of Python one that was interrupted takes the thread for ended.
    ended = [threading.Event() for _ in workers]

    def run(place: int) -> None:
        try:
            reports[place] = workers[place]._run(until_empty)
        except BaseException as error:
            errors.append(error)
            for worker in workers:
                worker.stop()
        finally:
            ended[place].set()

    threads = [
        threading.Thread(target=run, args=(place,), name=f"stanchion-run-{place}", daemon=True)
        for place in range(len(workers))]
    with running(workers), catching_signals(workers if signals else ()):
        try:
            for thread in threads:
                thread.start()
            for one in ended:
                one.wait()
        except BaseException:
            # What a signal handler raised, or there can be no more threads.
            for worker in workers:
                worker._interrupt()
            for thread, one in zip(threads, ended):
                if thread.ident is not None:
                    one.wait()
            raise
        for thread in threads:
            thread.join()
    raise_first(errors)
    return [reports[place] for place in range(len(workers))]


def check_workers(workers: Sequence[Any], kind: Type[WorkerFacts], name: str) -> None:
    """Refuse none at all, what is no worker of this face, and one that comes twice."""
    if not workers:
        raise InvalidArgument("run_workers(): no worker was given")
    first: Dict[int, int] = {}
    for place, worker in enumerate(workers, 1):
        if not isinstance(worker, kind):
            more = "; say run_workers(*workers)" if isinstance(worker, (list, tuple)) else ""
            raise InvalidArgument(f"run_workers(): worker {place} must be a {name}, not {shown(worker)}{more}")
        if first.setdefault(id(worker), place) != place:
            raise InvalidArgument(
                f"run_workers(): worker {place} is worker {first[id(worker)]} once more; for more tasks at once set concurrency")


@contextlib.contextmanager
def running(workers: Sequence[WorkerFacts]) -> Iterator[None]:
    """All of them run until the last has ended, so that a stop that comes late is not taken for one of the next run."""
    with contextlib.ExitStack() as stack:
        for worker in workers:
            stack.enter_context(worker._running())
        yield


def raise_first(errors: Sequence[BaseException]) -> None:
    """Raise the first one, if there is any; the others stand at the end of what it is chained to."""
    if not errors:
        return
    for error in errors[1:]:
        chain = [errors[0]]
        while (before := chain[-1].__cause__ or chain[-1].__context__) is not None and before not in chain:
            chain.append(before)
        if error not in chain:
            chain[-1].__context__ = error
    raise errors[0]
