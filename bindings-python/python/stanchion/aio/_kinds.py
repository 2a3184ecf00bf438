"""Functions with a kind, for asyncio."""

from __future__ import annotations

from typing import Callable, Mapping, NoReturn, Optional

from .._functions import check_awaited
from .._keywords import refuse
from .._kinds import KindFunction, P, R_co, declared
from .._running import Backoff
from .._types import Duration, Enqueued, OnDuplicate, Task, enqueued
from ._loop import call


class TaskFunction(KindFunction[P, R_co]):
    """A function of a kind, as `Queue.task` declares it; a coroutine function, or a plain one. Called, it runs here and now, as
    ever."""

    _shown = "stanchion.aio.TaskFunction"

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """Put a task in that calls the function with these arguments; see `task` and `Queue.enqueue`."""
        return enqueued(await call(self._queue._native.enqueue, self.task(*args, **kwargs)._native()))


class TaskFunctions:
    """What declares functions."""

    def task(
        self,
        kind: str,
        *,
        headers: Optional[Mapping[str, str]] = None,
        delay: Optional[Duration] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        expires: Optional[Duration] = None,
        on_duplicate: Optional[OnDuplicate] = None,
        timeout: Optional[Duration] = None,
        backoff: Optional[Backoff] = None,
        keep_result: Optional[Duration] = None,
        key: Optional[str] = None,
        **others: NoReturn,
    ) -> Callable[[Callable[P, R_co]], TaskFunction[P, R_co]]:
        """Declare a function's kind, and the options of its tasks, as `stanchion.Queue.task`; ``await send.enqueue(user=42)``
        puts one in."""
        if others:
            refuse("task", others)
        template = Task(
            None, b"", headers, delay, None, priority, max_attempts, expires, on_duplicate, kind, timeout, backoff, keep_result,
            key)
        decorator: Callable[[Callable[P, R_co]], TaskFunction[P, R_co]] = declared(self, TaskFunction, template, check_awaited)
        return decorator
