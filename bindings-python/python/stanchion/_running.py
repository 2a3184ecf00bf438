"""What a task says about its runs, and what becomes of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

from ._arguments import invalid


@dataclass(frozen=True)
class Exponential:
    """Pauses of a failed task that grow: ``base`` after the first attempt, then each by ``factor`` (1 to 1,000) longer, up to
    ``max`` (7 h). Each may be drawn shorter by ``jitter`` (0 to 1) of itself, so that tasks that failed together do not come
    back together. Times are seconds or timedeltas."""

    base: Union[float, timedelta]
    factor: float = 2
    max: Union[float, timedelta] = 25_200
    jitter: float = 0.5


Backoff = Union[Iterable[Union[float, timedelta]], Exponential]
"""The pauses after the first, second, ... failed attempt, the last one for all that come later; or Exponential."""


@dataclass(frozen=True)
class TaskFailure:
    """A failed attempt of a task: when, by the store's clock, and why."""

    at: datetime
    reason: str


@dataclass(frozen=True)
class TaskCancelled:
    """How a cancel ended: "removed" (it did not run, and is gone), "running" (it ends with this run) or "absent". True unless
    there was none."""

    outcome: str

    def __bool__(self) -> bool:
        return self.outcome != "absent"


@dataclass(frozen=True)
class TaskResult:
    """What became of a task. True if there is a result.

    ``outcome``: "done" with ``result``, and the ``version`` of the task that had it; "pending" if it is not done yet; "dead"
    for this ``reason``; "gone" if it was done without a result, or removed, or cancelled, or never there, or its result is
    not kept any more.
    """

    outcome: str
    result: Optional[bytes]
    version: Optional[int]
    reason: Optional[str]

    def json(self) -> Any:
        """The result, read as JSON. Raises LookupError if there is none."""
        if self.result is None:
            why = f": {self.reason}" if self.reason else ""
            raise LookupError(f"there is no result, for the task is {self.outcome}{why}")
        return json.loads(self.result)

    def __bool__(self) -> bool:
        return self.outcome == "done"


def native_backoff(backoff: Any) -> Union[List[Any], Tuple[Any, ...], None]:
    """A back-off as the native module takes it."""
    if backoff is None:
        return None
    if isinstance(backoff, Exponential):
        return backoff.base, backoff.factor, backoff.max, backoff.jitter
    if isinstance(backoff, (str, bytes, Mapping)) or not isinstance(backoff, Iterable):
        raise invalid("backoff", "must be a list of pauses in seconds, or Exponential(base)", backoff)
    return list(backoff)


def backoff_of(text: Optional[str]) -> Union[List[float], Exponential, None]:
    """A back-off as the option takes it, from its text, which is in milliseconds."""
    if text is None:
        return None
    told = json.loads(text)
    if isinstance(told, list):
        return [pause / 1000 for pause in told]
    return Exponential(told["base"] / 1000, told["factor"], told["max"] / 1000, told["jitter"])
