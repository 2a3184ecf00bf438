"""Functions that a caller hands over: one of the wrong kind would seem to work, and never run."""

from __future__ import annotations

import inspect
from typing import Any

from ._arguments import shown
from ._errors import InvalidArgument


def check_blocking(function: Any, use: str) -> None:
    """Refuse what cannot be called, and what has not run yet when its call returns. `use` is the call and its argument."""
    check_awaited(function, use)
    if inspect.iscoroutinefunction(function):
        raise _never_runs(function, use, "async", "; stanchion.aio is for those")


def check_ran(returned: Any) -> None:
    """Refuse what a handler has returned instead of running: its task would be acked, and lost."""
    if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        raise TypeError("the handler returned a generator, which nobody runs")
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        raise TypeError("the handler returned an awaitable, which nobody awaits; stanchion.aio has a worker for those")


def check_awaited(function: Any, use: str) -> None:
    """Refuse what cannot be called, and generators, which have not run yet when their call returns."""
    if not callable(function):
        raise InvalidArgument(f"{use} must be a function, not {shown(function)}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _never_runs(function, use, "generator", "")


def _never_runs(function: Any, use: str, kind: str, more: str) -> InvalidArgument:
    return InvalidArgument(f"{use} must be a function whose body runs when it is called, not the {kind} {function!r}{more}")
