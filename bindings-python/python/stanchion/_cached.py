"""Cached values: JSON on both sides of the store."""

from __future__ import annotations

import json
from typing import Any

from ._errors import InvalidArgument, WrongType


def encoded(name: str, value: Any) -> bytes:
    """The value as it is stored."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        wrong = InvalidArgument(f'cached "{name}": the computed value is no JSON value: {error}')
        wrong.operation, wrong.name = "cached", name
        raise wrong from error


def decoded(name: str, stored: bytes) -> Any:
    """The value as everybody gets it, the one who computed it included."""
    try:
        return json.loads(stored)
    except (ValueError, RecursionError) as error:
        wrong = WrongType(f'cached "{name}": what is stored is no JSON value; another program stores bytes there')
        wrong.operation, wrong.name = "cached", name
        raise wrong from error
