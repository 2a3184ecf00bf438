"""Limits, of a queue and of the tasks that have a key in common, and what is known of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from . import _stanchion
from ._arguments import invalid
from ._types import Duration, _Unset, _Word


@dataclass(frozen=True)
class Rate:
    """``count`` per ``per`` (seconds, or a timedelta), of which ``burst`` may come at once after a pause (1): over any time
    ``per`` at most ``count + burst``. 20 per second is ``Rate(20, 1)``."""

    count: int
    per: Duration
    burst: int = 1


@dataclass(frozen=True)
class KeyLimits:
    """What a key has of its own: see `Queue.limit_key`. None is as the queue has it."""

    concurrency: Optional[int]
    rate: Optional[Rate]
    weight: int


@dataclass(frozen=True)
class KeyInfo:
    """What is known of a key: how many of its tasks are ``running``, stand ``in_line``, and are due but ``held`` by its limits.
    ``opens_in`` is in how many seconds its rate, or a throttle, lets more of it go; None if neither is in the way. ``limits``
    are those that it has of its own, if it has."""

    key: str
    running: int
    in_line: int
    held: int
    opens_in: Optional[float]
    limits: Optional[KeyLimits]


@dataclass(frozen=True)
class KeyPage:
    """Some of a queue's keys. ``next`` gets the next page; None if this was the last."""

    keys: List[KeyInfo]
    next: Optional[str]

    def __iter__(self) -> Iterator[KeyInfo]:
        return iter(self.keys)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> KeyInfo:
        return self.keys[index]


class Gate(_Word):
    """What keeps a queue from giving out tasks that are ready."""

    OPEN = "open"
    PAUSED = "paused"
    MAX_RUNNING = "max_running"
    RATE = "rate"
    THROTTLED = "throttled"


@dataclass(frozen=True)
class QueueStats:
    """How many tasks there are, what happened so far, and the settings. ``waiters`` is how many calls wait for a task.
    ``schedules_late``: for how many seconds the first of its ``schedules`` has been due, and nobody has fired it; 0 if none is
    due. More than a moment means that nobody works on the queue. ``flows``: how many have begun and not ended.

    ``gate`` is what keeps the queue from giving out tasks that are ready: "open" if nothing does, "paused", "max_running" (as
    many run as may at once), "rate" or "throttled"; of these two ``opens_in`` is for how many seconds. ``held`` is how many
    tasks are due, and held by the limits of their keys; ``keys_waiting`` how many keys wait for a time, by their rate or a
    throttle, and ``next_key`` in how many seconds the first of them may go on.
    """

    scheduled: int
    ready: int
    claimed: int
    held: int
    keys_waiting: int
    next_key: Optional[float]
    gate: Gate
    opens_in: Optional[float]
    dead: int
    successors: int
    paused: bool
    waiters: int
    next_due: Optional[float]
    enqueued: int
    acked: int
    retried: int
    died: int
    max_len: Optional[int]
    dead_max: int
    dead_age: float
    dead_bytes: int
    intake: bool
    events: int
    max_running: Optional[int]
    rate: Optional[Rate]
    key_concurrency: Optional[int]
    key_rate: Optional[Rate]
    schedules: int
    schedules_late: float
    flows: int

    @property
    def live(self) -> int:
        """All tasks that are not dead."""
        return self.scheduled + self.ready + self.claimed + self.held + self.successors


def rate_of(fields: Optional[Tuple[int, float, int]]) -> Optional[Rate]:
    """A rate, from the native module's tuple."""
    return None if fields is None else Rate(*fields)


def queue_stats(fields: Dict[str, Any]) -> QueueStats:
    """Those of a queue, from what the native module gives."""
    fields["gate"] = Gate(fields["gate"])
    for name in ("rate", "key_rate"):
        fields[name] = rate_of(fields[name])
    return QueueStats(**fields)


def key_info(fields: Tuple[Any, ...]) -> KeyInfo:
    """What is known of a key, from the native module's tuple."""
    key, running, in_line, held, opens_in, own = fields
    limits = None if own is None else KeyLimits(own[0], rate_of(own[1]), own[2])
    return KeyInfo(key, running, in_line, held, opens_in, limits)


def native_rate(rate: Any, name: str) -> Optional[Tuple[Any, Any, Any]]:
    """A rate as the native module takes it."""
    if rate is None:
        return None
    if not isinstance(rate, Rate):
        raise invalid(name, "must be a Rate(count, per)", rate)
    return rate.count, rate.per, rate.burst


def queue_config(
    max_len: Union[int, None, _Unset],
    max_running: Union[int, None, _Unset],
    rate: Union[Rate, None, _Unset],
    key_concurrency: Union[int, None, _Unset],
    key_rate: Union[Rate, None, _Unset],
    **settings: Any,
) -> _stanchion.QueueConfig:
    """Settings to change. What is UNSET stays, None takes a limit away."""
    limits = {"max_len": max_len, "max_running": max_running, "key_concurrency": key_concurrency}
    for name, limit in limits.items():
        settings[name] = None if isinstance(limit, _Unset) else (limit,)
    for name, told in {"rate": rate, "key_rate": key_rate}.items():
        settings[name] = None if isinstance(told, _Unset) else (native_rate(told, name),)
    return _stanchion.QueueConfig(**settings)
