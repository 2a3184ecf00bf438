"""SIGTERM and SIGINT for the workers of event loops: each stops all workers, and is passed to the handler that was there before."""

from __future__ import annotations

import asyncio
import functools
import signal
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

Listener = Tuple[asyncio.AbstractEventLoop, Callable[[int], Any]]


class _Caught:
    """One of them, while some worker wants it. `loop.add_signal_handler` knows one handler, and forgets the one before."""

    def __init__(self, number: int) -> None:
        self.listeners: List[Listener] = []
        self._number = number
        self._before: Any = signal.signal(number, self)

    def __call__(self, number: int, frame: Optional[FrameType]) -> None:
        for loop, callback in self.listeners:
            if not loop.is_closed():
                loop.call_soon_threadsafe(callback, number)
        if callable(self._before) and not _interrupts(self._before):
            self._before(number, frame)

    def is_installed(self) -> bool:
        return signal.getsignal(self._number) is self

    def give_back(self) -> None:
        """Who came after us keeps it."""
        if self.is_installed():
            signal.signal(self._number, signal.SIG_DFL if self._before is None else self._before)


_caught: Dict[int, _Caught] = {}


def catch(callback: Callable[[int], Any]) -> Callable[[], None]:
    """Have the running loop call this with the number of each signal that comes; not, if it is not the main thread's.
    Answers what ends that."""
    listener = (asyncio.get_running_loop(), callback)
    heard: List[_Caught] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        one = _caught.get(number)
        if one is None or not one.is_installed():
            try:
                one = _caught[number] = _Caught(number)
            except ValueError:
                break  # Not the main thread.
        one.listeners.append(listener)
        heard.append(one)

    def end() -> None:
        for one in heard:
            one.listeners.remove(listener)
            if not one.listeners:
                one.give_back()

    return end


def _interrupts(handler: Any) -> bool:
    """Whether it is what Ctrl-C does by itself: it ends what a worker wants to drain."""
    method = handler.func if isinstance(handler, functools.partial) else handler
    runner = getattr(asyncio, "Runner", ())
    return handler is signal.default_int_handler or isinstance(getattr(method, "__self__", None), runner)
