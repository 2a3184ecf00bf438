"""What stands around the handler of a worker: functions, the first outermost, that get the claim and what to call next."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Iterable, Tuple, Union

from ._functions import check_ran
from ._types import several

if TYPE_CHECKING:
    from ._claim import Claim

Around = Callable[["Claim", Callable[[], Any]], Any]


def functions_around(given: Union[Callable[..., Any], Iterable[Any], None], check: Callable[[Any, str], None]) -> Tuple[Any, ...]:
    """One function or some, as a worker is given them."""
    if given is None:
        return ()
    functions = [given] if callable(given) else several(given, "around", "must be a function or a list of them", "worker")
    for one in functions:
        check(one, "worker(): around")
    return tuple(functions)


def run_within(functions: Tuple[Around, ...], claim: Claim, call: Callable[[], Any]) -> Any:
    """Call a handler inside of them."""
    for one in reversed(functions):
        call = functools.partial(one, claim, functools.partial(_ran, call))
    return _ran(call)


def _ran(call: Callable[[], Any]) -> Any:
    # Each: what one further out returns need not be what it has got.
    returned = call()
    check_ran(returned)
    return returned
