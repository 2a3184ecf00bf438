"""What stands around the handler of a worker, for asyncio."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, Coroutine, List, Tuple

from .._functions import check_ran

if TYPE_CHECKING:
    from ._claim import Claim

Around = Callable[["Claim", Callable[[], Coroutine[Any, Any, Any]]], Any]


async def run_within(functions: Tuple[Around, ...], claim: Claim, call: Callable[[], Any]) -> Any:
    """Call a handler inside of them."""
    begun: List[Coroutine[Any, Any, Any]] = []

    def next() -> Coroutine[Any, Any, Any]:
        begun.append(run_within(functions[1:], claim, call))
        return begun[-1]

    returned = functions[0](claim, next) if functions else call()
    returned = await returned if inspect.isawaitable(returned) else returned
    for one in begun:
        # Its task would be acked, and lost.
        if inspect.getcoroutinestate(one) == inspect.CORO_CREATED:
            one.close()
            raise TypeError("around has called next() and not awaited it")
    check_ran(returned)
    return returned
