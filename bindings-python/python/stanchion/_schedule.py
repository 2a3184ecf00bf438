"""Schedules: what goes in and comes out."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from datetime import datetime
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from . import _stanchion
from ._arguments import invalid
from ._errors import InvalidArgument
from ._keywords import instead
from ._types import Duration, Time, _Word, check_priority, encode, maybe_wall, seconds_since_1970, several, wall


class ScheduleOutcome(_Word):
    """What became of a schedule that was put in: "kept" if it was there as it is."""

    ADDED = "added"
    CHANGED = "changed"
    KEPT = "kept"


@dataclass(frozen=True)
class Schedule:
    """Tasks at set times: cron for a queue. Each time is a slot, and each slot makes one task with the id
    ``schedule@2027-01-31T02:00:00Z``, whoever fires it and however many could. Whoever claims from the queue fires what is
    due: no process of its own is needed, and the store's clock counts.

    ``when`` is a text:

    - a cron text of 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds first; ``@hourly``,
      ``@daily``, ``@weekly``, ``@monthly``, ``@yearly``. Where clocks change, a fixed time comes once: one that is skipped
      at the end of the gap, one that would come twice the first time.
    - ``every 90s``, ``every 1h 30m``: elapsed time, 100 ms to 100 years, from when the schedule was made, or from ``starts``.
    - ``at 2027-01-31T08:00:00Z, 2027-02-28T08:00:00+01:00``: these times, RFC 3339.

    ``tz`` is the time zone of a cron text, by its IANA name ("UTC"). ``missed``: what becomes of slots that nobody fired in
    time, because nobody worked on the queue: the "last" of them is fired, late; "skip": none that is more than a minute late;
    a number: all, but for so many at most, the newest. ``overlap``: a slot gets its task also while the one of the slot before
    is pending or running ("queue"), or it gets none ("skip"). ``jitter`` delays all slots by the same time, which is drawn
    from the id and is shorter than this (none). There is no slot before ``starts`` or after ``ends``. ``paused``: whether a
    new one fires nothing until it is resumed; one that is there stays as it is.

    ``payload``, ``headers``, ``priority``, ``max_attempts``, ``expires`` and ``key`` are those of each of its tasks, as of `Task`.

    `Queue.sync_schedules` takes several; one alone is put in with ``queue.schedule(**vars(schedule))``.
    """

    id: str
    when: str
    payload: Any = b""
    tz: str = "UTC"
    missed: Union[str, int] = "last"
    overlap: str = "queue"
    jitter: Optional[Duration] = None
    starts: Optional[Time] = None
    ends: Optional[Time] = None
    paused: bool = False
    headers: Optional[Mapping[str, str]] = None
    priority: Optional[int] = None
    max_attempts: Optional[int] = None
    expires: Optional[Duration] = None
    key: Optional[str] = None

    def preview(self, after: Time, count: int) -> List[datetime]:
        """When the slots after this time are due, so many at most (1 to 1,000): fewer if the schedule ends. Asks no store. One
        with a period begins at this time."""
        return [wall(time) for time in self._native().preview(seconds_since_1970(after, "after"), count)]

    def _native(self) -> _stanchion.Schedule:
        check_priority(self.priority)
        # Without the trace that goes on here: it is none of the tasks', and would make a schedule another at each start.
        payload, headers = encode(self.payload, self.headers)
        return _stanchion.Schedule(
            self.id, self.when, payload, tz=self.tz, missed=self.missed, overlap=self.overlap, paused=self.paused,
            jitter=self.jitter, starts=seconds_since_1970(self.starts, "starts"), ends=seconds_since_1970(self.ends, "ends"),
            headers=headers, priority=self.priority, max_attempts=self.max_attempts, expires=self.expires,
            key=self.key)


_FIELDS = Schedule.__dataclass_fields__
_NEEDED = [name for name, field in _FIELDS.items() if field.default is MISSING]

ScheduleLike = Union[Schedule, Tuple[Any, ...], Mapping[str, Any]]
"""A Schedule, an (id, when) or (id, when, payload) tuple, or a mapping of a Schedule's fields."""


@dataclass(frozen=True)
class ScheduleInfo:
    """A schedule as it is in a queue. Times like ``jitter`` are in seconds.

    ``next`` is when its next slot is due: None if it is paused, or none comes any more. ``late`` is for how long that has been
    due, by the store's clock: more than a moment means that nobody works on the queue. ``owner``: whose list it is in, if it
    is in one. It has ``fired`` so many tasks, ``last_task`` the last of them; ``skipped`` slots got no task, since the one
    before was running or the queue was full, and ``missed_slots`` were past and not fired. ``size`` is the bytes of payload
    and headers, as stored. If a newer version of this package has put it, ``missed`` is None.
    """

    id: str
    when: str
    tz: str
    missed: Union[str, int, None]
    overlap: str
    jitter: float
    starts: Optional[datetime]
    ends: Optional[datetime]
    paused: bool
    next: Optional[datetime]
    late: float
    owner: Optional[str]
    fired: int
    skipped: int
    missed_slots: int
    last_task: Optional[str]
    priority: int
    max_attempts: int
    expires: Optional[float]
    size: int
    key: Optional[str]


@dataclass(frozen=True)
class SchedulePage:
    """Some of a queue's schedules, in the order in which they are due; those that are paused or over come last. ``next`` gets
    the next page; None if this was the last."""

    schedules: List[ScheduleInfo]
    next: Optional[str]

    def __iter__(self) -> Iterator[ScheduleInfo]:
        return iter(self.schedules)

    def __len__(self) -> int:
        return len(self.schedules)

    def __getitem__(self, index: int) -> ScheduleInfo:
        return self.schedules[index]


@dataclass(frozen=True)
class Synced:
    """What became of an owner's list of schedules. If the queue has a list of a later generation, ``newer`` is that one, and
    nothing was changed."""

    added: int
    changed: int
    kept: int
    removed: int
    newer: Optional[int]


def schedule_info(fields: Optional[Dict[str, Any]]) -> Optional[ScheduleInfo]:
    """As schedule_infos, of one that may be absent."""
    return None if fields is None else schedule_infos([fields])[0]


def schedule_infos(all_fields: List[Dict[str, Any]]) -> List[ScheduleInfo]:
    """Schedules, from what the native module gives."""
    for fields in all_fields:
        for name in ("starts", "ends", "next"):
            fields[name] = maybe_wall(fields[name])
    return [ScheduleInfo(**fields) for fields in all_fields]


def schedules(items: Any) -> List[_stanchion.Schedule]:
    """Schedules, each given as a Schedule, an (id, when, ...) tuple, or a mapping of a Schedule's fields."""
    problem = "must be a list of schedules"
    if isinstance(items, Mapping):  # Of which only the keys would come.
        raise invalid("schedules", problem, items)
    return [_schedule(item)._native() for item in several(items, "schedules", problem)]


def _schedule(item: Any) -> Schedule:
    if isinstance(item, Schedule):
        return item
    if isinstance(item, tuple) and len(_NEEDED) <= len(item) <= len(_FIELDS):
        return Schedule(*item)
    if not isinstance(item, Mapping):
        raise invalid("schedules", "must be Schedules, (id, when, payload) tuples or mappings of a Schedule's fields", item)
    for name in item:
        if name not in _FIELDS:
            hint = instead("sync_schedules", name, item[name])
            raise InvalidArgument(f"sync_schedules(): a schedule has no {name!r}{hint}")
    for name in _NEEDED:
        if name not in item:
            raise invalid("schedules", f"must each have {name!r}", item)
    return Schedule(**item)
