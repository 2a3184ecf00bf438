"""From calls of the native module to futures of the running event loop."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Callable, Dict, Optional

from . import _stanchion

_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _stanchion.Bridge] = weakref.WeakKeyDictionary()


def bridge(loop: asyncio.AbstractEventLoop) -> _stanchion.Bridge:
    """The loop's bridge: made on first use, gone with the loop."""
    made = _bridges.get(loop)
    if made is None:
        made = _bridges[loop] = _stanchion.Bridge()
        loop.add_reader(made.fileno(), made.collect)
    return made


async def call(start: Callable[..., int], *args: Any, discard: Optional[Callable[[Any], None]] = None) -> Any:
    """Await a call of the native module. Cancelled, it gives up cleanly: what it had got already is discarded."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    over = bridge(loop)
    number = start(over, future, *args)
    try:
        return await future
    except asyncio.CancelledError:
        over.cancel(number)
        if discard is not None and future.done() and not future.cancelled() and future.exception() is None:
            discard(future.result())
        raise


class PerTask:
    """Stacks of leases, one per name and asyncio task."""

    def __init__(self) -> None:
        self._tasks: weakref.WeakKeyDictionary[Any, Dict[Any, Any]] = weakref.WeakKeyDictionary()

    def mine(self) -> Dict[Any, Any]:
        """The calling task's."""
        task = asyncio.current_task()
        return self._tasks.setdefault(task, {}) if task is not None else {}
