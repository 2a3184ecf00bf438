"""What is done when the interpreter ends: leases are released, as far as that is a matter of a moment."""

from __future__ import annotations

import atexit
import time
import weakref
from typing import Any, List

_FAREWELL = 0.5
"""How long the end of the program may be delayed, in seconds."""

_clients: weakref.WeakSet[Any] = weakref.WeakSet()


def note(client: Any) -> None:
    """Release what a client still holds at the end of the program."""
    _clients.add(client)


def _all_clients() -> List[Any]:
    while True:
        try:
            return list(_clients)
        except RuntimeError:
            # A daemon thread has opened one meanwhile.
            pass


def _farewell() -> None:
    until = time.monotonic() + _FAREWELL
    clients = _all_clients()
    for client in clients:
        # Those of the main thread only: daemon threads still run, and may rely on theirs.
        for lease in client._held.leases.all():
            lease._native.let_go()
    for client in clients:
        client._native.linger(max(0.0, until - time.monotonic()))


# Registered before the program can register anything: so it runs after all of that.
atexit.register(_farewell)
