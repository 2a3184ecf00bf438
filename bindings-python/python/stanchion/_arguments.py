"""What is wrong with an argument: whose it is, its name, what it must be, and what was given."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any, Optional

from ._errors import InvalidArgument

_PACKAGE = __name__.partition(".")[0]


def wrong(problem: str, value: object) -> InvalidArgument:
    """The exception for an argument that the native module cannot convert. It does not know its name there: that comes with a
    note of pyo3, see `InvalidArgument.add_note`."""
    problem = f"{problem}, not {shown(value)}"
    error = InvalidArgument(problem)
    error._named = functools.partial(_named, _caller(), problem)
    return error


def invalid(name: str, problem: str, value: object, more: str = "", call: Optional[str] = None) -> InvalidArgument:
    """The same for an argument that this package refuses itself."""
    return InvalidArgument(_named(call or _caller(), f"{problem}, not {shown(value)}{more}", name))


def _named(caller: Optional[str], problem: str, name: str) -> str:
    if name == "wait" and problem.endswith((" True", " False")):
        problem += "; so as not to wait say try_acquire()"
    return f"{caller}(): {name} {problem}" if caller else f"{name} {problem}"


def shown(value: object) -> str:
    """What was given, if it is short, and its type."""
    kind, text = type(value).__name__, brief(value)
    return "None" if value is None else f"{kind} {text}" if text else kind


def brief(value: object) -> str:
    """What it looks like; nothing if that is long, or may be a secret."""
    # Such may be a URL with a password.
    if isinstance(value, (bytes, bytearray)) or isinstance(value, str) and "\\ud" in ascii(value):
        return ""
    try:
        text = repr(value)
    except Exception:  # A fault of its ``__repr__``, not the one to report.
        return ""
    return text if len(text) <= 80 else ""


def _caller() -> Optional[str]:
    """The function of this package that the program has called."""
    frame: Optional[FrameType] = sys._getframe(1)
    name = None
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        name, frame = frame.f_code.co_name, frame.f_back
    return None if name is None or name.startswith("_") else name


def check_id(id: Any) -> None:
    """Refuse a payload in the place of the id, where it comes first elsewhere."""
    if id is None or isinstance(id, str):
        return
    raise InvalidArgument(
        f"enqueue(): id must be a text or None, not {shown(id)}; say enqueue(payload=...), or enqueue('an id', ...), or "
        "for a Task enqueue_many([task])")
