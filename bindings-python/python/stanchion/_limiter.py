"""Limiters: so many in so long, for all who use a name."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional, Type, TypeVar

from . import _stanchion
from ._functions import check_blocking
from ._keywords import refuse
from ._types import Duration

if TYPE_CHECKING:
    from ._client import Client

F = TypeVar("F", bound=Callable[..., Any])

WAIT: Duration = 10


class Limited(TimeoutError):
    """A limit does not allow it in time. ``retry_after``: the seconds after which a try would succeed, if nobody else comes."""

    def __init__(self, name: str, retry_after: float) -> None:
        super().__init__(f'limiter "{name}": used up for {retry_after:.6g} s more')
        self.name, self.retry_after = name, retry_after


@dataclass(frozen=True)
class Taken:
    """How a take ended: true if it was allowed. ``retry_after``: otherwise, the seconds after which a try would succeed, if
    nobody else takes any meanwhile."""

    retry_after: Optional[float]

    @property
    def allowed(self) -> bool:
        """Whether it was taken."""
        return self.retry_after is None

    def __bool__(self) -> bool:
        return self.allowed


def checked(name: str, retry_after: Optional[float]) -> None:
    """Raises if it was refused."""
    if retry_after is not None:
        raise Limited(name, retry_after)


class Turn:
    """Waits for its turn at its beginning: a context manager, and a decorator."""

    def __init__(self, limiter: Limiter, n: int, wait: Duration) -> None:
        self._limiter, self._n, self._wait = limiter, n, wait

    def __enter__(self) -> None:
        checked(self._limiter.name, self._limiter.take(self._n, wait=self._wait).retry_after)

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        pass

    def __call__(self, function: F) -> F:
        check_blocking(function, "turn")

        @functools.wraps(function)
        def limited(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return limited  # type: ignore[return-value]


class Limiter:
    """So many in so long, for all who use a limiter of this name. Made by `Client.limiter`.

    The store's clock decides. A request whose answer is lost is sent again, and may then have taken twice: there is never
    more than the limit, but there may be less.
    """

    def __init__(self, client: Client, native: _stanchion.Limiter) -> None:
        self._client, self._native = client, native

    @property
    def name(self) -> str:
        """The name."""
        return self._native.name

    def try_take(self, n: int = 1) -> Taken:
        """Takes ``n`` if they are allowed now; otherwise nothing, and says when they would be, to the microsecond.

        Raises InvalidArgument if ``n`` can never be allowed at once; Unsupported on a quorum.
        """
        return Taken(self._native.try_take(n))

    def take(self, n: int = 1, *, wait: Duration = WAIT, **others: NoReturn) -> Taken:
        """Takes ``n``, waiting for its turn: up to ``wait`` (10 s; 1 h at most).

        Who waits is in line in the order of arrival, and begins when its turn has come by the store's clock, without asking
        again. If the turn would come later than ``wait``, it is refused at once: waiting would be of no use. A wait that an
        exception ends (Ctrl-C) gives its turn back, unless somebody is in line behind it already.
        """
        if others:
            refuse("take", others)
        return Taken(self._native.take(n, wait))

    def turn(self, n: int = 1, *, wait: Duration = WAIT, **others: NoReturn) -> Turn:
        """As `take`, as a context manager or a decorator; raises `Limited` if the turn would come too late.

            with api.turn():
                ...

            @api.turn(wait=60)
            def call_the_api(): ...
        """
        if others:
            refuse("turn", others)
        return Turn(self, n, wait)

    def __repr__(self) -> str:
        return f"Limiter({self.name!r})"
