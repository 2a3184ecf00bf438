"""Cached values: JSON on both sides of the store, and the names of those of a decorated function."""

from __future__ import annotations

import inspect
import json
import string
from typing import Any, Callable, Dict, Tuple

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


def names(template: Any, function: Callable[..., Any]) -> Callable[[Tuple[Any, ...], Dict[str, Any]], str]:
    """What makes the name of a call's value: the template with the function's arguments in the places of their names."""
    if not isinstance(template, str):
        raise _no_template(template, "it is no text")
    try:
        signature = inspect.signature(function)
        fields = [(field, spec) for _, field, spec, _ in string.Formatter().parse(template) if field is not None]
    except ValueError as error:
        raise _no_template(template, str(error)) from error
    for field, spec in fields:
        if spec and "{" in spec:
            raise _no_template(template, f"braces within those of {field!r}")
        if field not in signature.parameters:
            raise _no_template(template, f"{function!r} has no argument {field!r}; a brace of the name itself is doubled")

    def name(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return template.format(**bound.arguments)

    return name


def _no_template(template: Any, problem: str) -> InvalidArgument:
    wrong = InvalidArgument(f"cached {template!r}: no name for a function's values: {problem}")
    wrong.operation = "cached"
    return wrong
