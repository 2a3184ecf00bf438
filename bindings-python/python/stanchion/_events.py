"""What happens to the tasks of a queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, List, Optional, Tuple

from ._types import wall


@dataclass(frozen=True)
class TaskEvent:
    """Something that happened to a task, by `Queue.events`.

    ``number`` is one more than that of the event before, ``at`` the time by the store's clock. ``what``: "added" (also by a
    schedule, or kicked), "started", "progress", "done", "failed" (it will be tried again), "dead", "cancelled", "removed" or
    "put_back". ``id`` and ``version`` are the task's, ``attempt`` is which one it was (0 before the first), ``reason`` is why it
    failed or is dead, else None. ``missed``: there were others before this one that are not kept any more.
    """

    number: int
    at: datetime
    what: str
    id: str
    version: int
    attempt: int
    reason: Optional[str]
    missed: bool


def task_events(found: List[Tuple[Any, ...]], missed: bool) -> List[TaskEvent]:
    """Those of a page, from the native module's tuples. If some are missed, it is before the first one."""
    return [
        TaskEvent(number, wall(at), what, id, version, attempt, reason, missed and place == 0)
        for place, (number, at, what, id, version, attempt, reason) in enumerate(found)]
