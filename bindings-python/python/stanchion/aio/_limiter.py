"""Limiters for asyncio."""

from __future__ import annotations

import functools
from types import TracebackType
from typing import TYPE_CHECKING, Any, Awaitable, Callable, NoReturn, Optional, Type, TypeVar

from .. import _stanchion
from .._functions import check_awaited
from .._keywords import refuse
from .._limiter import WAIT, Taken, checked
from .._types import Duration
from ._loop import call

if TYPE_CHECKING:
    from ._client import Client

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class Turn:
    """Waits for its turn at its beginning: an async context manager, and a decorator."""

    def __init__(self, limiter: Limiter, n: int, wait: Duration) -> None:
        self._limiter, self._n, self._wait = limiter, n, wait

    async def __aenter__(self) -> None:
        checked(self._limiter.name, (await self._limiter.take(self._n, wait=self._wait)).retry_after)

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        pass

    def __call__(self, function: F) -> F:
        check_awaited(function, "turn")

        @functools.wraps(function)
        async def limited(*args: Any, **kwargs: Any) -> Any:
            async with self:
                return await function(*args, **kwargs)

        return limited  # type: ignore[return-value]


class Limiter:
    """So many in so long, for all who use a limiter of this name; as `stanchion.Limiter`."""

    def __init__(self, client: Client, native: _stanchion.AioLimiter) -> None:
        self._client, self._native = client, native

    @property
    def name(self) -> str:
        """The name."""
        return self._native.name

    async def try_take(self, n: int = 1) -> Taken:
        """As `stanchion.Limiter.try_take`."""
        return Taken(await call(self._native.try_take, n))

    async def take(self, n: int = 1, *, wait: Duration = WAIT, **others: NoReturn) -> Taken:
        """As `stanchion.Limiter.take`. A task that is cancelled gives its turn back, unless somebody is in line behind it
        already."""
        if others:
            refuse("take", others)
        return Taken(await call(self._native.take, n, wait))

    def turn(self, n: int = 1, *, wait: Duration = WAIT, **others: NoReturn) -> Turn:
        """As `take`, for ``async with``, or as a decorator of a coroutine function; raises `stanchion.Limited` if the turn
        would come too late."""
        if others:
            refuse("turn", others)
        return Turn(self, n, wait)

    def __repr__(self) -> str:
        return f"Limiter({self.name!r})"
