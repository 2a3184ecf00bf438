"""What the bridge's turns leave to do."""

from __future__ import annotations

from typing import Any


def give_out(results: list[tuple[Any, bool, Any]]) -> None:
    """Give results to those who wait. Not done in the native code: where the interpreter goes down, a daemon thread ends as soon
    as it asks for the GIL, and with frames of the native code below it the process would abort."""
    for future, succeeded, value in results:
        if succeeded:
            future.set_result(value)
        else:
            future.set_exception(value)
