"""A function's arguments as the payload of a task: an object in JSON, an argument under its name."""

from __future__ import annotations

import functools
import inspect
import json
from typing import Any, Callable, Dict, Mapping, Tuple

from ._arguments import invalid, shown
from ._convert import Converter, Unfit, converters, resolved
from ._errors import InvalidArgument

_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Undecodable(Exception):
    """A payload that holds no arguments of the function."""


class Parameters:
    """Of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError) as error:  # As of some that are written in C.
            raise InvalidArgument(f"task(): what it decorates must be a function with a signature, not {shown(function)}") from error
        if next(iter(self._signature.parameters), None) in ("self", "cls") and not inspect.ismethod(function):
            raise InvalidArgument(
                f"task(): what it decorates must be a function, not the method {function!r}: no task carries its object")
        self._function = function
        self._name = getattr(function, "__qualname__", None) or shown(function)
        parameters = self._signature.parameters.values()
        self._named = {one.name for one in parameters if one.kind in _NAMED}
        self._rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), None)
        self._others = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), None)

    @functools.cached_property
    def converters(self) -> Mapping[str, Converter]:
        """Of the parameters that need one. Looked at when they are needed: classes may be defined below the function."""
        annotated = {
            one.name: one.annotation for one in self._signature.parameters.values() if one.annotation is not one.empty}
        inner: Any = self._function
        while isinstance(inner, functools.partial):
            inner = inner.func
        return converters(resolved(annotated, getattr(inspect.unwrap(inner), "__globals__", None)))

    def encode(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bytes:
        """The payload of such a call. TypeError, as from the call itself, if it would fail."""
        try:
            bound = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self._name}(): {error}") from None
        values: Dict[str, Any] = {}
        for name, value in bound.items():
            if name == self._others:
                for other, one in value.items():
                    # Of a parameter that is positional only, Python allows it.
                    if other in self._named or other == self._rest:
                        raise TypeError(f"{self._name}(): got multiple values for argument {other!r}")
                    values[other] = self._encoded(name, one, other)
            elif name == self._rest:
                values[name] = [self._encoded(name, one, f"{name}[{number}]") for number, one in enumerate(value)]
            else:
                values[name] = self._encoded(name, value, name)
        try:
            return _dumped(values)
        except (TypeError, ValueError, RecursionError):
            for name, value in values.items():
                _check_json(name, bound[name] if name in self._named else value, value)
            raise

    def _encoded(self, parameter: str, value: Any, shown_as: str) -> Any:
        convert = self.converters.get(parameter)
        try:
            return value if convert is None else convert.encode(value)
        except Unfit as unfit:
            raise invalid(shown_as + unfit.path, unfit.problem, unfit.value, unfit.more) from unfit

    def decode(self, payload: bytes) -> inspect.BoundArguments:
        """The arguments that a payload holds; Undecodable if the function cannot be called with it."""
        try:
            values = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise Undecodable(f"the payload is no JSON: {error}") from error
        if not isinstance(values, dict):
            raise Undecodable("the payload is no JSON object")
        try:
            return self._bound(values)
        except Unfit as unfit:
            # Without what it is: the reason is logged, and arguments may be secret.
            raise Undecodable(f"{unfit.path} {unfit.problem}, not {type(unfit.value).__name__}{unfit.more}") from unfit
        except (TypeError, InvalidArgument) as error:
            raise Undecodable(str(error)) from error

    def _bound(self, values: Dict[str, Any]) -> inspect.BoundArguments:
        bound = self._signature.bind_partial()
        found = bound.arguments
        for name, parameter in self._signature.parameters.items():
            if name in values and name != self._others:
                value = values.pop(name)
                if name == self._rest:
                    _needs_list(name, value)
                    found[name] = tuple(self._decoded(name, one, f"{name}[{number}]") for number, one in enumerate(value))
                else:
                    found[name] = self._decoded(name, value, name)
            elif name == self._others:
                continue
            elif parameter.kind in _NAMED and parameter.default is parameter.empty:
                raise TypeError(f"missing a required argument: {name!r}")
        if values and self._others is None:
            raise TypeError(f"got an unexpected argument {next(iter(values))!r}")
        if self._others is not None:
            found[self._others] = {name: self._decoded(self._others, one, name) for name, one in values.items()}
        # So that all that come before one that is there are there, too.
        bound.apply_defaults()
        return bound

    def _decoded(self, parameter: str, value: Any, shown_as: str) -> Any:
        convert = self.converters.get(parameter)
        try:
            return value if convert is None else convert.decode(value)
        except Unfit as unfit:
            unfit.path = shown_as + unfit.path
            raise


def _needs_list(name: str, value: Any) -> None:
    if not isinstance(value, list):
        unfit = Unfit("must be a list", value)
        unfit.path = name
        raise unfit


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _check_json(name: str, given: Any, value: Any) -> None:
    try:
        _dumped(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid(
            name, "must be a JSON value, or a dataclass or a model of pydantic as its annotation says", given,
            f": {error}") from error
