"""What is wrong with an argument: whose it is, its name, what it must be, and what was given."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any, Dict, Mapping, NoReturn, Optional

from ._errors import InvalidArgument

_PACKAGE = __name__.partition(".")[0]


def wrong(problem: str, value: object) -> InvalidArgument:
    """The exception for an argument that the native module cannot convert. It does not know its name there: that comes with a
    note of pyo3, see `InvalidArgument.add_note`."""
    problem = f"{problem}, not {_shown(value)}"
    error = InvalidArgument(problem)
    error._named = functools.partial(_named, _caller(), problem)
    return error


def _named(caller: Optional[str], problem: str, name: str) -> str:
    if name == "wait" and problem.endswith((" True", " False")):
        problem += "; so as not to wait say try_acquire()"
    return f"{caller}(): {name} {problem}" if caller else f"{name} {problem}"


def _shown(value: object) -> str:
    kind, text = type(value).__name__, _repr(value)
    return "None" if value is None else f"{kind} {text}" if 0 < len(text) <= 80 else kind


def _repr(value: object) -> str:
    # Such may be a URL with a password.
    if isinstance(value, (bytes, bytearray)) or isinstance(value, str) and "\\ud" in ascii(value):
        return ""
    try:
        return repr(value)
    except Exception:  # Its own fault, and not the one to tell of.
        return ""


def _caller() -> Optional[str]:
    """The function of this package that the program has called."""
    frame: Optional[FrameType] = sys._getframe(1)
    name = None
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        name, frame = frame.f_code.co_name, frame.f_back
    return None if name is None or name.startswith("_") else name


_TRY = "so as not to wait say try_acquire(), which returns None if the lock is busy; acquire() waits"
_ACQUIRE = {"timeout": "say wait={}", "blocking_timeout": "say wait={}", "blocking": _TRY}
_HINTS: Dict[str, Dict[str, str]] = {
    "acquire": _ACQUIRE,
    "hold": _ACQUIRE,
    "try_acquire": {**dict.fromkeys(("timeout", "blocking_timeout", "wait"), "to wait say acquire(wait={})"), "blocking": _TRY},
    "lock": {
        "timeout": "how long the lease lasts is ttl={}, how long acquire waits is wait={}",
        "blocking_timeout": "say wait={}", "blocking": _TRY},
}


def refuse(call: str, others: Mapping[str, object]) -> NoReturn:
    """Refuse keywords that there are not, and say what to write instead of those of other packages."""
    name, value = next(iter(others.items()))
    hint = _HINTS[call].get(name)
    problem = f"{call}() got an unexpected keyword argument {name!r}"
    raise TypeError(f"{problem}: {hint.replace('{}', _repr(value))}" if hint else problem)


def check_id(id: Any) -> None:
    """Refuse a payload in the place of the id, where it comes first elsewhere."""
    if id is None or isinstance(id, str):
        return
    raise InvalidArgument(
        f"enqueue(): id must be a text or None, not {_shown(id)}; say enqueue(payload=...), or enqueue('an id', ...), or "
        "for a Task enqueue_many([task])")
