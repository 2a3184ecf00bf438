"""Values of annotated types as JSON, and back: dataclasses, TypedDicts, pydantic's models, and lists and the like of them."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import sys
import types
import typing
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from ._errors import InvalidArgument

_LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Collection, collections.abc.Iterable)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNIONS = (Union, getattr(types, "UnionType", Union))


class Unfit(Exception):
    """A value that is not of its type. `path` leads to it from where it is reported."""

    def __init__(self, problem: str, value: object, more: str = "") -> None:
        super().__init__(problem, value, more)
        self.path, self.problem, self.value, self.more = "", problem, value, more


class Converter:
    """How the values of a type become JSON values, and are made of them. `shape` is what they are in JSON."""

    shape: type = dict

    def encode(self, value: Any) -> Any:
        raise NotImplementedError

    def decode(self, value: Any) -> Any:
        raise NotImplementedError


def converter(hint: Any) -> Optional[Converter]:
    """The one for an annotation; None if its values are JSON values as they are, or are to be."""
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in _UNIONS:
        return _union(hint, inner)
    if origin is tuple:
        return _Tuple(inner)
    if origin in _LISTS:
        one = converter(inner[0]) if inner else None
        return one and _List(one)
    if origin in _DICTS:
        if inner and inner[0] in (int, float, bool):
            raise InvalidArgument(f"the keys of a JSON object are texts, so none can be a {hint}")
        one = converter(inner[1]) if inner else None
        return one and _Dict(one)
    return _of_class(origin) if isinstance(origin, type) else None


@functools.lru_cache(maxsize=None)
def _of_class(kind: type) -> Optional[Converter]:
    if callable(getattr(kind, "model_validate", None)) and callable(getattr(kind, "model_dump", None)):
        return _Model(kind)
    if dataclasses.is_dataclass(kind):
        return _Dataclass(kind)
    if issubclass(kind, dict) and hasattr(kind, "__total__"):
        return _TypedDict(kind)
    return None


def resolved(annotations: Mapping[str, Any], names: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """Annotations, without those whose names cannot be looked up there: perhaps they are for type checkers only."""
    found = {}
    for name, annotation in annotations.items():
        try:
            found.update(typing.get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), names))
        except Exception:
            continue
    return found


def converters(hints: Mapping[str, Any]) -> Dict[str, Converter]:
    """Those that are needed, by name."""
    made = ((name, converter(hint)) for name, hint in hints.items())
    return {name: one for name, one in made if one is not None}


def _at(path: str, convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except Unfit as unfit:
        unfit.path = path + unfit.path
        raise


def _needs(value: Any, kind: Union[type, Tuple[type, ...]], problem: str) -> None:
    if not isinstance(value, kind):
        raise Unfit(problem, value)


class _Fields(Converter):
    """Of a class whose fields have annotations. A class may be among its own fields, so they are looked at when needed."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._problem = f"must be {kind.__name__}"

    @functools.cached_property
    def _hints(self) -> Dict[str, Any]:
        try:
            return typing.get_type_hints(self._kind)
        except Exception:
            module = sys.modules.get(self._kind.__module__)
            return resolved(getattr(self._kind, "__annotations__", {}), vars(module) if module else None)

    @functools.cached_property
    def _converters(self) -> Dict[str, Converter]:
        return converters(self._hints)

    def _each(self, verb: str, fields: Iterable[Tuple[str, Any]]) -> Dict[str, Any]:
        made = self._converters
        return {
            name: _at(f".{name}", getattr(made[name], verb), value) if name in made else value for name, value in fields}


class _Dataclass(_Fields):
    @functools.cached_property
    def _names(self) -> List[str]:
        """Those that its constructor takes. What it takes besides cannot be told by looking at an object."""
        names = [field.name for field in dataclasses.fields(self._kind) if field.init]
        for name, parameter in inspect.signature(self._kind).parameters.items():
            if name not in names and parameter.default is parameter.empty and parameter.kind not in (
                    parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise InvalidArgument(f"{self._kind.__name__} cannot be made of its fields alone: it takes {name!r}, too")
        return names

    def encode(self, value: Any) -> Any:
        # One of a subclass would come back as another.
        if type(value) is not self._kind:
            _needs(value, collections.abc.Mapping, f"{self._problem} or a dict of its fields")
            value = self.decode(value)
        return self._each("encode", ((name, getattr(value, name)) for name in self._names))

    def decode(self, value: Any) -> Any:
        _needs(value, collections.abc.Mapping, f"{self._problem} or a dict of its fields")
        unknown = next((name for name in value if name not in self._names), None)
        if unknown is not None:
            raise Unfit(f"{self._problem}, which has no field {unknown!r}", value)
        fields = self._each("decode", value.items())
        try:
            return self._kind(**fields)
        except Exception as error:
            raise Unfit(self._problem, value, f": {error}") from error


class _TypedDict(_Fields):
    def encode(self, value: Any) -> Any:
        _needs(value, collections.abc.Mapping, f"{self._problem}, a dict")
        return self._each("encode", value.items())

    def decode(self, value: Any) -> Any:
        _needs(value, dict, f"{self._problem}, a dict")
        return self._each("decode", value.items())


class _Model(Converter):
    """Of pydantic, or what has the same two methods."""

    def __init__(self, kind: Any) -> None:
        self._kind, self._problem = kind, f"must be {kind.__name__}"

    def encode(self, value: Any) -> Any:
        if type(value) is not self._kind:
            _needs(value, collections.abc.Mapping, f"{self._problem} or a dict of its fields")
            value = self.decode(value)
        problem = "it does not come back as it was from its own model_dump"
        # Where fields have aliases, one of them is what it is read by again.
        for options in ({}, {"by_alias": True}):
            try:
                dumped = value.model_dump(mode="json", **options)
                if self._kind.model_validate(dumped).model_dump(mode="json", **options) == dumped:
                    return dumped
            except Exception as error:
                problem = _line(error)
        raise Unfit(self._problem, value, f": {problem}")

    def decode(self, value: Any) -> Any:
        try:
            return self._kind.model_validate(value)
        except Exception as error:
            raise Unfit(self._problem, value, f": {_line(error)}") from error


def _line(error: Any) -> str:
    """What is wrong, without the values that pydantic shows with it: they may be secret."""
    try:
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    except Exception:  # It is of something else.
        return str(error)


class _List(Converter):
    shape = list

    def __init__(self, one: Converter) -> None:
        self._one = one

    def encode(self, value: Any) -> Any:
        _needs(value, (list, tuple), "must be a list")
        return [_at(f"[{number}]", self._one.encode, one) for number, one in enumerate(value)]

    def decode(self, value: Any) -> Any:
        _needs(value, list, "must be a list")
        return [_at(f"[{number}]", self._one.decode, one) for number, one in enumerate(value)]


class _Dict(Converter):
    def __init__(self, one: Converter) -> None:
        self._one = one

    def encode(self, value: Any) -> Any:
        _needs(value, collections.abc.Mapping, "must be a dict")
        return {name: _at(f"[{name!r}]", self._one.encode, one) for name, one in value.items()}

    def decode(self, value: Any) -> Any:
        _needs(value, dict, "must be a dict")
        return {name: _at(f"[{name!r}]", self._one.decode, one) for name, one in value.items()}


class _Tuple(Converter):
    """JSON has lists only."""

    shape = list

    def __init__(self, inner: Tuple[Any, ...]) -> None:
        self._same = not inner or len(inner) == 2 and inner[1] is ...
        self._places = [converter(one) for one in inner[:1] if self._same] or [converter(one) for one in inner]
        # What typing says of Tuple[()] differs among versions.
        self._length = None if self._same else len([one for one in inner if one != ()])

    def _each(self, verb: str, value: Any) -> List[Any]:
        if self._length is not None and len(value) != self._length:
            raise Unfit(f"must be a tuple of {self._length}", value)
        places = self._places * len(value) if self._same else self._places
        return [
            _at(f"[{number}]", getattr(place, verb), one) if place else one
            for number, (place, one) in enumerate(zip(places or [None] * len(value), value))]

    def encode(self, value: Any) -> Any:
        _needs(value, (list, tuple), "must be a tuple")
        return self._each("encode", value)

    def decode(self, value: Any) -> Any:
        _needs(value, list, "must be a tuple, in JSON a list")
        return tuple(self._each("decode", value))


def _union(hint: Any, members: Tuple[Any, ...]) -> Optional[Converter]:
    made = [(member, converter(member)) for member in members]
    by_shape: Dict[type, Converter] = {}
    for _, one in made:
        if one is not None and by_shape.setdefault(one.shape, one) is not one:
            raise InvalidArgument(f"which type of {hint} is meant cannot be told from JSON; take one that says so itself")
    plain = [typing.get_origin(member) or member for member, one in made if one is None]
    for shape, others in ((dict, _DICTS), (list, _LISTS)):
        if shape in by_shape and any(member in (Any, object, *others) for member in plain):
            raise InvalidArgument(f"which type of {hint} is meant cannot be told from JSON; take one that says so itself")
    return _Union(by_shape, plain) if by_shape else None


class _Union(Converter):
    def __init__(self, by_shape: Dict[type, Converter], plain: List[Any]) -> None:
        self._by_shape = by_shape
        # In JSON these are neither objects nor lists.
        self._has_plain = any(member is not type(None) for member in plain)
        self._has_none = type(None) in plain

    def _passes(self, value: Any) -> bool:
        return value is None and self._has_none or self._has_plain and isinstance(value, (str, int, float))

    def encode(self, value: Any) -> Any:
        if self._passes(value):
            return value
        shape = list if isinstance(value, (list, tuple)) and list in self._by_shape else dict
        return self._by_shape.get(shape, self._by_shape.get(list)).encode(value)  # type: ignore[union-attr]

    def decode(self, value: Any) -> Any:
        if self._passes(value):
            return value
        return self._by_shape.get(type(value), next(iter(self._by_shape.values()))).decode(value)
