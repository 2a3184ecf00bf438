"""From calls of the native module to futures of the running event loop."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Callable, Optional

from .. import _stanchion
from .._held import Leases

_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _stanchion.Bridge] = weakref.WeakKeyDictionary()


def _bridge(loop: asyncio.AbstractEventLoop) -> _stanchion.Bridge:
    """The loop's bridge: made on first use, gone with the loop."""
    made = _bridges.get(loop)
    if made is None:
        _close_old()
        sockets = _Sockets(loop)
        made = _bridges[loop] = _stanchion.Bridge(sockets)
        sockets.belong_to(made)
        loop.add_reader(made.fileno(), made.collect)
    return made


class _Sockets:
    """What the loop does for its bridge: it watches sockets, and gives it turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Callable[[], Any] = weakref.ref(loop)
        self._files: dict[int, int] = {}
        self._turn_comes = False

    def belong_to(self, bridge: _stanchion.Bridge) -> None:
        self._bridge: Callable[[], Any] = weakref.ref(bridge)

    def watch(self, file: int, number: int) -> None:
        self._files[number] = file
        self._loop().add_reader(file, self._bridge().ready, number, False)

    def watch_writes(self, number: int, yes: bool) -> None:
        if yes:
            self._loop().add_writer(self._files[number], self._bridge().ready, number, True)
        else:
            self._loop().remove_writer(self._files[number])

    def unwatch(self, number: int) -> None:
        file, loop = self._files.pop(number), self._loop()
        if loop is not None and not loop.is_closed():
            loop.remove_reader(file)
            loop.remove_writer(file)

    def turn_soon(self) -> None:
        """All calls of this turn of the loop begin together: that saves most of what each would cost."""
        if not self._turn_comes:
            self._turn_comes = True
            self._loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_comes = False
        self._bridge().turn()


def _close_old() -> None:
    """Let go of loops that were closed while calls waited. A loop does not announce that it closes, so the next one does it."""
    for loop, bridge in list(_bridges.items()):
        if loop.is_closed():
            _bridges.pop(loop, None)
            bridge.close()


class Pending:
    """A call that has begun."""

    def __init__(self, start: Callable[..., int], *args: Any) -> None:
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = loop.create_future()
        self.given_up = False
        self._bridge = _bridge(loop)
        self._number = start(self._bridge, self.future, *args)

    def give_up(self) -> None:
        """Nobody waits for the answer any more. What the call leaves behind is cleaned up."""
        self.given_up = True
        self._bridge.cancel(self._number)


async def call(start: Callable[..., int], *args: Any, discard: Optional[Callable[[Any], None]] = None) -> Any:
    """Await a call of the native module. Cancelled, it gives up cleanly: what it had got already is discarded."""
    pending = Pending(start, *args)
    try:
        return await pending.future
    except asyncio.CancelledError:
        pending.give_up()
        future = pending.future
        if discard is not None and future.done() and not future.cancelled() and future.exception() is None:
            discard(future.result())
        # The exception's traceback keeps this frame, and what is in it must not live on: it may be a lease.
        del future, pending
        raise


class HeldByTask:
    """The calling task's leases."""

    def __init__(self) -> None:
        self._tasks: weakref.WeakKeyDictionary[asyncio.Task[Any], Leases] = weakref.WeakKeyDictionary()

    @property
    def leases(self) -> Leases:
        """Those of the running task. Without one, none are noted."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # No loop runs.
            task = None
        return Leases() if task is None else self._tasks.setdefault(task, Leases())
