"""Functions with schedules: declared by a decorator, synced together, and called for what their schedules make."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Union

from ._arguments import invalid, shown
from ._errors import InvalidArgument
from ._functions import check_awaited
from ._keywords import refuse
from ._schedule import Schedule
from ._types import Duration, Time

if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)

    class Scheduled(Protocol[P, R_co]):
        """The function as it was, with its schedule."""

        schedule: Schedule

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _Declared(NamedTuple):
    schedule: Schedule
    function: Callable[..., Any]
    # Whether it is called with the claim, or with nothing.
    needs_claim: bool


class ScheduledFunctions:
    """The functions that were declared on a queue object; what both faces share."""

    def __init__(self) -> None:
        self._declared: Dict[str, _Declared] = {}

    _check = staticmethod(check_awaited)

    def scheduled(
        self,
        when: str,
        payload: Any = b"",
        *,
        id: Optional[str] = None,
        tz: str = "UTC",
        missed: Union[str, int] = "last",
        overlap: str = "queue",
        jitter: Optional[Duration] = None,
        starts: Optional[Time] = None,
        ends: Optional[Time] = None,
        paused: bool = False,
        headers: Optional[Mapping[str, str]] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        expires: Optional[Duration] = None,
        key: Optional[str] = None,
        **others: NoReturn,
    ) -> Callable[[Callable[P, R_co]], Scheduled[P, R_co]]:
        """Declare a function's schedule: ``@queue.scheduled("0 3 * * *", tz="Europe/Berlin")``.

        The function stays as it is, and has its `Schedule` as ``schedule``. The schedule's id is the function's qualified name,
        unless an ``id`` is given. Nothing is sent: `sync_scheduled` puts all that were declared on this queue object into the
        queue, and a worker with `run_scheduled` as its handler calls the functions.
        """
        if others:
            refuse("scheduled", others)
        if not isinstance(when, str):  # As of @queue.scheduled without parentheses, which would declare nothing.
            raise invalid("when", "must be a text such as '0 3 * * *' or 'every 90s'", when)
        options = Schedule(
            "", when, payload, tz, missed, overlap, jitter, starts, ends, paused, headers, priority, max_attempts, expires,
            key)

        def scheduled(function: Callable[P, R_co]) -> Scheduled[P, R_co]:
            self._check(function, "scheduled(): what it decorates")
            schedule = replace(options, id=_qualified_name(function) if id is None else id)
            # A schedule that could not be put in is refused where it is written.
            schedule._native().preview(0, 1)
            self._declare(schedule, function)
            return function  # type: ignore[return-value]

        return scheduled

    def _declare(self, schedule: Schedule, function: Any) -> None:
        before = self._declared.get(schedule.id)
        if before is not None:
            raise InvalidArgument(
                f"scheduled(): this queue object has a schedule {schedule.id!r} already, of {before.function!r}; give another id")
        needs_claim = _needs_claim(function)
        try:
            function.schedule = schedule
        except (AttributeError, TypeError) as error:
            raise InvalidArgument(
                f"scheduled(): what it decorates must be a function that can have attributes, not {shown(function)}") from error
        self._declared[schedule.id] = _Declared(schedule, function, needs_claim)

    def _schedules(self) -> List[Schedule]:
        """All that were declared."""
        if not self._declared:  # Of another object of this queue, they would all be removed.
            raise InvalidArgument(
                "sync_scheduled(): no function was declared with @scheduled on this queue object (each client.queue(...) makes "
                "another); to remove all schedules of the owner say sync_schedules(owner, generation, [])")
        return [one.schedule for one in self._declared.values()]

    def _call_scheduled(self, claim: Any) -> Any:
        """Call the function whose schedule has made the task of this claim."""
        id, at, _ = claim.id.rpartition("@")
        declared = self._declared.get(id)
        if declared is None:
            raise LookupError(_unknown(claim.id, id) if at else _no_slot(claim.id))
        return declared.function(claim) if declared.needs_claim else declared.function()


def _unknown(task: str, id: str) -> str:
    return (
        f"task {task!r}: no function of this queue object has the schedule {id!r}; declare one before the worker runs, with "
        f"@queue.scheduled(..., id={id!r}) on the object whose run_scheduled is called, or, if nobody needs the schedule any "
        f"more, say queue.remove_schedule({id!r})")


def _no_slot(task: str) -> str:
    return (
        f"task {task!r}: no schedule has made it, for its id does not end with '@' and a time; let the worker's handler call "
        "run_scheduled for tasks of schedules only")


def _qualified_name(function: Any) -> str:
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str):
        raise InvalidArgument(f"scheduled(): {shown(function)} has no qualified name, so the schedule needs an id: say id=...")
    return name


def _needs_claim(function: Any) -> bool:
    """Whether it must be called with something. One that can do neither with nothing nor with the claim would always fail."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # As of some that are written in C.
        return True
    for args in ((), (None,)):
        try:
            signature.bind(*args)
            return bool(args)
        except TypeError:
            continue
    raise InvalidArgument(
        f"scheduled(): what it decorates must be a function that is called with the claim, or with nothing, not {shown(function)}")
