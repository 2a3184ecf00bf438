"""Cached values: JSON on both sides of the store, and the names of those of a decorated function."""

from __future__ import annotations

import inspect
import json
import string
from typing import Any, Callable, Dict, List, Set, Tuple

from ._errors import InvalidArgument, WrongType
from ._types import several


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


def check_compute(compute: Any, ignore: Any, check: Callable[[Any, str], None]) -> None:
    """Refuse what makes no value, and options that are those of a decorator."""
    check(compute, "cached(): compute")
    if ignore:
        raise InvalidArgument("cached(): ignore is for the arguments of a decorated function, and compute has none")


def names(
    template: Any, function: Callable[..., Any], ignore: Any
) -> Callable[[Tuple[Any, ...], Dict[str, Any]], str]:
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
    _check_used(template, function, {field for field, _ in fields}, several(ignore, "ignore", call="cached"))

    def name(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return template.format(**bound.arguments)

    return name


def _check_used(template: str, function: Callable[..., Any], used: Set[str], ignored: List[Any]) -> None:
    """Calls that differ in an argument must not share a value, unless that is meant."""
    for argument in inspect.signature(function).parameters:
        if argument not in used and argument not in ignored:
            # An object's address would be in the name, and nobody else would get its value.
            put = "" if argument in ("self", "cls") else f"put {{{argument}}} into the name, or "
            raise _no_template(
                template, f"the argument {argument!r} of {function!r} is not in it, so calls that differ in it would share a "
                f"value; {put}say ignore=[{argument!r}] if they may")
    for argument in ignored:
        if argument in used or argument not in inspect.signature(function).parameters:
            raise _no_template(template, f"{function!r} has no argument {argument!r} to ignore that is not in the name")


def _no_template(template: Any, problem: str) -> InvalidArgument:
    wrong = InvalidArgument(f"cached {template!r}: no name for a function's values: {problem}")
    wrong.operation = "cached"
    return wrong
