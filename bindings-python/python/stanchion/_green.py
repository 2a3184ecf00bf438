"""Processes that gevent or eventlet has patched: calls begin as those of asyncio do, and the greenlet waits for the answer, so
that the hub and the other greenlets go on. One that is killed, or times out, gives up cleanly."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, Callable, Optional

from . import _stanchion
from ._bridge import give_out
from ._errors import Unsupported

_NATIVE = (
    _stanchion.AioClient, _stanchion.AioLock, _stanchion.AioLease, _stanchion.AioQueue, _stanchion.AioQueues,
    _stanchion.AioClaim, _stanchion.AioTicket, _stanchion.AioLimiter)


def patched() -> Optional[str]:
    """Who has made the sockets or threads of this process cooperate, if somebody has."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent is not None and (gevent.is_module_patched("socket") or gevent.is_module_patched("threading")):
        return "gevent"
    if eventlet is not None and (eventlet.is_monkey_patched("socket") or eventlet.is_monkey_patched("thread")):
        return "eventlet"
    return None


def refuse_workers() -> None:
    """A worker is threads, and where threads are greenlets one that waits for tasks would stop all others."""
    by = patched()
    if by is not None:
        raise Unsupported(
            f"worker: {by} has patched this process, where a worker of threads cannot run; run it in a process of its own "
            f"that is not patched, or as a worker of stanchion.aio there")


def connect(settings: _stanchion.Settings) -> Any:
    """A client of the native module whose calls are waited for by greenlets."""
    return _wait(_stanchion.connect_aio, (settings,))


class Green:
    """An object of the native module for asyncio, with the calls of the blocking one."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._native, name)
        if not callable(found):
            return found
        # Whether it waits: then it takes the bridge and a future first.
        if "bridge" in (found.__text_signature__ or ""):
            return lambda *args: _wait(found, args)
        return lambda *args: _green(found(*args))

    def wait_lost(self, timeout: Any) -> bool:
        """Whether it was lost or released within that time."""
        seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
        try:
            _wait(self._native.wait_lost, (), seconds)
        except TimeoutError:
            return False
        return True


def _green(found: Any) -> Any:
    if isinstance(found, _NATIVE):
        return Green(found)
    if isinstance(found, list):
        return [_green(one) for one in found]
    return tuple(_green(one) for one in found) if isinstance(found, tuple) else found


def _wait(start: Callable[..., int], args: Any, timeout: Optional[float] = None) -> Any:
    hub = _hub()
    answer = _Answer(hub.event())
    number = start(hub.bridge, answer, *args)
    hub.count(1)
    try:
        answer.event.wait(timeout)
    except BaseException:  # Of whoever ends the greenlet.
        hub.bridge.cancel(number)
        getattr(answer.value, "let_go", _nothing)()
        raise
    finally:
        hub.count(-1)
    if not answer.done():
        hub.bridge.cancel(number)
        raise TimeoutError
    if answer.error is not None:
        raise answer.error
    return _green(answer.value)


def _nothing() -> None:
    pass


class _Answer:
    """What the bridge takes for a future."""

    def __init__(self, event: Any) -> None:
        self.event = event
        self.value: Any = None
        self.error: Optional[BaseException] = None
        self._wake: Callable[[], Any] = event.set if hasattr(event, "set") else event.send
        self._done = False

    def done(self) -> bool:
        return self._done

    def set_result(self, value: Any) -> None:
        self.value, self._done = value, True
        self._wake()

    def set_exception(self, error: BaseException) -> None:
        self.error, self._done = error, True
        self._wake()


class _Hub:
    """A hub's bridge. Kept with the hub, so that it goes when that does; one that was forked belongs to the parent."""

    def __init__(self, event: Callable[[], Any]) -> None:
        self.event = event
        self.bridge = _stanchion.Bridge(False)
        self.process = os.getpid()
        self._calls = 0

    def collect(self) -> None:
        """The bell was rung."""
        _, results = self.bridge.collect()
        give_out(results)

    def count(self, change: int) -> None:
        """Note how many calls are waited for."""
        self._calls += change
        self._keep_alive(self._calls > 0)

    def _keep_alive(self, yes: bool) -> None:
        raise NotImplementedError


class _GeventHub(_Hub):
    def __init__(self, hub: Any) -> None:
        super().__init__(import_module("gevent.event").Event)
        self._watcher = hub.loop.io(self.bridge.fileno(), 1)
        self._watcher.start(self.collect)

    def _keep_alive(self, yes: bool) -> None:
        # Idle, it is no reason for the program to go on; and if nothing else is left, gevent must see what is waited for.
        if self._watcher.ref != yes:
            self._watcher.ref = yes


class _EventletHub(_Hub):
    def __init__(self, hub: Any) -> None:
        super().__init__(import_module("eventlet.event").Event)
        hub.add(hub.READ, self.bridge.fileno(), lambda _: self.collect(), None, None)

    def _keep_alive(self, yes: bool) -> None:
        pass


def _hub() -> _Hub:
    by = patched()
    hub: Any = import_module("eventlet.hubs" if by == "eventlet" else "gevent").get_hub()
    found: Optional[_Hub] = getattr(hub, "_stanchion", None)
    if found is None or found.process != os.getpid():
        found = hub._stanchion = _EventletHub(hub) if by == "eventlet" else _GeventHub(hub)
    return found
