"""From calls of the native module to futures of the running event loop."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Callable, Optional

from .. import _stanchion
from .._bridge import give_out
from .._held import Leases

_Work = tuple[list[tuple[str, int, int]], list[tuple[Any, bool, Any]]]

_drivers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Driver] = weakref.WeakKeyDictionary()


def _driver(loop: asyncio.AbstractEventLoop) -> _Driver:
    """The loop's driver: made on first use, gone with the loop."""
    made = _drivers.get(loop)
    if made is None:
        _close_old()
        made = _drivers[loop] = _Driver(loop)
    return made


class _Driver:
    """What gives a bridge the turns of its event loop. It does what they ask the loop for, and gives out their results:
    no code of Python's runs inside a turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.bridge = _stanchion.Bridge(True)
        self._loop: Callable[[], Any] = weakref.ref(loop)
        self._files: dict[int, int] = {}
        self._turn_comes = False
        loop.add_reader(self.bridge.fileno(), self._collect)

    def turn_soon(self) -> None:
        """All calls of this turn of the loop begin together: that saves most of what each would cost."""
        if not self._turn_comes:
            self._turn_comes = True
            self._loop().call_soon(self._turn)

    def cancel(self, number: int) -> None:
        self._fulfil(self.bridge.cancel(number))

    def close(self) -> None:
        self._fulfil(self.bridge.close())

    def _turn(self) -> None:
        self._turn_comes = False
        self._do(self.bridge.turn())

    def _collect(self) -> None:
        self._do(self.bridge.collect())

    def _ready(self, number: int, writes: bool) -> None:
        self._do(self.bridge.ready(number, writes))

    def _do(self, work: _Work) -> None:
        wishes, results = work
        give_out(results)
        self._fulfil(wishes)

    def _fulfil(self, wishes: list[tuple[str, int, int]]) -> None:
        # A socket that was closed in the same turn cannot be watched any more, and its file may be another one's by now.
        closed = {number: place for place, (what, number, _) in enumerate(wishes) if what == "unwatch"}
        for place, (what, number, value) in enumerate(wishes):
            if place >= closed.get(number, 0):
                getattr(self, "_" + what)(number, value)

    def _watch(self, number: int, file: int) -> None:
        self._files[number] = file
        self._loop().add_reader(file, self._ready, number, False)

    def _watch_writes(self, number: int, yes: int) -> None:
        if yes:
            self._loop().add_writer(self._files[number], self._ready, number, True)
        else:
            self._loop().remove_writer(self._files[number])

    def _unwatch(self, number: int, _: int) -> None:
        file, loop = self._files.pop(number, None), self._loop()
        if file is not None and loop is not None and not loop.is_closed():
            loop.remove_reader(file)
            loop.remove_writer(file)


def _close_old() -> None:
    """Let go of loops that were closed while calls waited. A loop does not announce that it closes, so the next one does it."""
    for loop, driver in list(_drivers.items()):
        if loop.is_closed():
            _drivers.pop(loop, None)
            driver.close()


class Pending:
    """A call that has begun."""

    def __init__(self, start: Callable[..., int], *args: Any) -> None:
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = loop.create_future()
        self.given_up = False
        self._driver = _driver(loop)
        self._number = start(self._driver.bridge, self.future, *args)
        self._driver.turn_soon()

    def give_up(self) -> None:
        """Nobody waits for the answer any more. What the call leaves behind is cleaned up."""
        self.given_up = True
        self._driver.cancel(self._number)


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
