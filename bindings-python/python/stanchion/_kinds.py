"""Functions with a kind: declared by a decorator, enqueued by their arguments, and called by workers for tasks of that kind."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
import typing
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterable, Mapping, NamedTuple, NoReturn, Optional, TypeVar, Union

from ._arguments import invalid, shown
from ._errors import InvalidArgument
from ._functions import check_blocking
from ._keywords import refuse
from ._parameters import Parameters, Undecodable
from ._running import Backoff
from ._types import JSON, Duration, Enqueued, OnDuplicate, Task, Time, enqueued, several

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Self

    P = ParamSpec("P")
elif sys.version_info >= (3, 10):
    P = typing.ParamSpec("P")
else:
    P = TypeVar("P")
R_co = TypeVar("R_co", covariant=True)

# The longest pause of a task whose kind a worker does not have.
_MOST_S = 60
# Of so many kinds a worker remembers how often it has seen them.
_MOST_KINDS = 1_000
# Longest id, in bytes.
_MAX_ID = 512


class KindFunction(Generic[P, R_co]):
    """What both faces of `TaskFunction` share."""

    __qualname__: str
    _shown = "stanchion.TaskFunction"

    def __init__(self, queue: Any, function: Callable[P, R_co], template: Task, parameters: Parameters) -> None:
        functools.update_wrapper(self, function)
        self.kind: str = template.kind  # type: ignore[assignment]
        self._queue, self._function, self._template, self._parameters = queue, function, template, parameters

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return self._function(*args, **kwargs)

    def task(self, /, *args: P.args, **kwargs: P.kwargs) -> Task:
        """The task of such a call, for `Queue.enqueue_many`. Raises TypeError for arguments that the function does not take, and
        InvalidArgument for a value that JSON cannot represent."""
        headers = {"content-type": JSON, **(self._template.headers or {})}
        return dataclasses.replace(self._template, payload=self._parameters.encode(args, kwargs), headers=headers)

    def options(
        self,
        *,
        id: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        delay: Optional[Duration] = None,
        due: Optional[Time] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        expires: Optional[Duration] = None,
        on_duplicate: Optional[OnDuplicate] = None,
        timeout: Optional[Duration] = None,
        backoff: Optional[Backoff] = None,
        keep_result: Optional[Duration] = None,
        key: Optional[str] = None,
        **others: NoReturn,
    ) -> Self:
        """The same function with other options of its `Task`, those that are given:
        ``send.options(delay=5, id="x").enqueue(user=42)``."""
        if others:
            refuse("options", others)
        given: Dict[str, Any] = dict(
            id=id, headers=headers, delay=delay, due=due, priority=priority, max_attempts=max_attempts, expires=expires,
            on_duplicate=on_duplicate, timeout=timeout, backoff=backoff, keep_result=keep_result, key=key)
        given = {name: value for name, value in given.items() if value is not None}
        if "due" in given:  # It takes the place of a delay, and the other way round.
            given.setdefault("delay", None)
        elif "delay" in given:
            given["due"] = None
        return type(self)(self._queue, self._function, dataclasses.replace(self._template, **given), self._parameters)

    def __reduce__(self) -> Any:
        # As that of a function: by its name.
        return self.__qualname__

    def __repr__(self) -> str:
        name = getattr(self._function, "__qualname__", None) or repr(self._function)
        return f"<{self._shown} {self.kind!r} of {name}>"


class TaskFunction(KindFunction[P, R_co]):
    """A function of a kind, as `Queue.task` declares it. Called, it runs here and now, as ever."""

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """Put a task in that calls the function with these arguments; see `task` and `Queue.enqueue`."""
        return enqueued(self._queue._native.enqueue(self.task(*args, **kwargs)._native()))


class TaskFunctions:
    """What declares functions, blocking."""

    def task(
        self,
        kind: str,
        *,
        headers: Optional[Mapping[str, str]] = None,
        delay: Optional[Duration] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        expires: Optional[Duration] = None,
        on_duplicate: Optional[OnDuplicate] = None,
        timeout: Optional[Duration] = None,
        backoff: Optional[Backoff] = None,
        keep_result: Optional[Duration] = None,
        key: Optional[str] = None,
        **others: NoReturn,
    ) -> Callable[[Callable[P, R_co]], TaskFunction[P, R_co]]:
        """Declare a function's kind, and the options of its tasks: ``@queue.task("send-welcome", max_attempts=5, timeout=30)``.

        ``send.enqueue(user=42)`` puts a task in that calls it with these arguments, in a worker that has it among its
        ``kinds``; ``send.options(delay=5)`` has other options, ``send.task(user=42)`` makes a `Task`, and ``send(user=42)``
        calls the function. Arguments are JSON values, or what their annotations say: dataclasses, TypedDicts, models of
        pydantic, and lists, tuples and dicts of them. What the function returns, if not None, is the task's result, as JSON.
        """
        if others:
            refuse("task", others)
        template = Task(
            None, b"", headers, delay, None, priority, max_attempts, expires, on_duplicate, kind, timeout, backoff, keep_result,
            key)
        decorator: Callable[[Callable[P, R_co]], TaskFunction[P, R_co]] = declared(self, TaskFunction, template, check_blocking)
        return decorator


def declared(queue: Any, make: Any, template: Task, check: Callable[[Any, str], None]) -> Any:
    """The decorator."""
    if not isinstance(template.kind, str):  # As of @queue.task without parentheses, which would declare nothing.
        raise invalid("kind", "must be a text such as 'send-welcome'", template.kind, call="task")

    def task(function: Any) -> Any:
        check(function, "task(): what it decorates")
        # A task that could not be put in is refused where it is written. Its id is what the message names.
        name = getattr(function, "__qualname__", "") or "task"
        dataclasses.replace(template, id=name if len(name) <= _MAX_ID // 4 else "task")._native().check()
        return make(queue, function, template, Parameters(function))

    return task


class Work(NamedTuple):
    """What a worker is to call for a task, and whether what it returns is the task's result."""

    call: Callable[[], Any]
    gives: bool


class Misfit(NamedTuple):
    """A task that no function can be called for: for how many seconds it is put back, or why it is buried."""

    delay: Optional[float]
    reason: str
    # Whether that is worth a warning: not each time.
    is_news: bool


class Kinds:
    """Which function a worker calls for which task."""

    def __init__(self, kinds: Any, check: Callable[[Any, str], None], handler: Optional[Callable[[Any], Any]]) -> None:
        problem = "must be a list of functions that were declared with @queue.task(kind)"
        functions = several(kinds, "kinds", problem)
        if not functions:
            raise invalid("kinds", problem, kinds)
        self._functions: Dict[str, KindFunction[..., Any]] = {}
        for one in functions:
            if not isinstance(one, KindFunction):
                raise invalid("kinds", problem, one)
            check(one._function, f"worker(): what has the kind {one.kind!r}")
            before = self._functions.setdefault(one.kind, one)
            if before._function is not one._function:
                raise InvalidArgument(f"worker(): the kind {one.kind!r} is that of {before!r} and of {one!r}; it takes one of them")
            one._parameters.converters  # What is wrong with annotations is told here, not by dead tasks.
        self._handler = handler
        self._seen: Dict[Optional[str], int] = {}

    def find(self, claim: Any) -> Union[Work, Misfit]:
        """What to do with a task."""
        one = self._functions.get(claim.kind)
        if one is None:
            if claim.kind is None and self._handler is not None:
                return Work(functools.partial(self._handler, claim), False)
            return self._unknown(claim.kind)
        try:
            bound = one._parameters.decode(claim.payload)
        except Undecodable as error:
            return Misfit(None, f"the arguments of kind {one.kind!r} cannot be decoded: {error}", False)
        return Work(functools.partial(one._function, *bound.args, **bound.kwargs), True)

    def _unknown(self, kind: Optional[str]) -> Misfit:
        # Several threads may do this at once; then one is not counted.
        times = self._seen.get(kind, 0)
        if kind in self._seen or len(self._seen) < _MOST_KINDS:
            self._seen[kind] = times + 1
        delay = min(_MOST_S, 2 ** min(times, 6))
        reason = "the task has no kind" if kind is None else f"this worker has no function of kind {kind!r}"
        # The first, second, fourth, eighth and so on.
        return Misfit(delay, f"{reason}; put back for {delay} s", times & (times + 1) == 0)


def encoded_result(claim: Any, returned: Any) -> bytes:
    """What a function has returned, as the task's result."""
    try:
        return json.dumps(returned, default=_plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"task {claim.id!r}: what the function of kind {claim.kind!r} returns must be None or a JSON value, not "
            f"{shown(returned)}: {error}") from error


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if callable(getattr(value, "model_dump", None)):
        return value.model_dump(mode="json")
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def functions_of(kinds: Optional[Iterable[Any]], check: Callable[[Any, str], None], handler: Any) -> Optional[Kinds]:
    """What a worker is given: a handler, kinds, or both."""
    if kinds is None or handler is not None:
        check(handler, "worker(): handler")
    return None if kinds is None else Kinds(kinds, check, handler)
