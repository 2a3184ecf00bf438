"""Who holds what: the leases of a thread or task, and the blocks it is in."""

from __future__ import annotations

import threading
from typing import Any, Dict, Hashable, List

_SWEEP_FIRST = 64


class Leases:
    """The leases of one thread or task, by what was acquired, the innermost last. They live as long as it does, unless they
    are released: a lease whose result nobody kept must not be collected, and so released, in the middle of the
    work. Those that ran out are forgotten in time.
    """

    def __init__(self) -> None:
        self._names: Dict[Hashable, List[Any]] = {}
        self._sweep_at = _SWEEP_FIRST

    def add(self, lease: Any) -> None:
        """Note a lease."""
        if len(self._names) >= self._sweep_at:
            self._sweep()
        self._names[lease._key] = [*filter(_counts, self._names.get(lease._key, ())), lease]

    def forget(self, lease: Any) -> None:
        """Forget a lease that is over. One that another thread or task noted stays there, but does not count."""
        lease._over = True
        left = [one for one in self._names.get(lease._key, ()) if not one._over]
        if left:
            self._names[lease._key] = left
        else:
            self._names.pop(lease._key, None)

    def restore(self, lease: Any) -> None:
        """Note a lease again that is not over after all."""
        lease._over = False
        self.add(lease)

    def innermost(self, key: Hashable) -> Any:
        """The last one that nobody released; None if there is none."""
        return next((one for one in reversed(self._names.get(key, ())) if not one._over), None)

    def all(self) -> List[Any]:
        """All that nobody released."""
        return [one for leases in self._names.values() for one in leases if not one._over]

    def _sweep(self) -> None:
        """Only now and then, so that it costs little for each lease."""
        left = {name: [*filter(_counts, leases)] for name, leases in self._names.items()}
        self._names = {name: leases for name, leases in left.items() if leases}
        self._sweep_at = max(_SWEEP_FIRST, 2 * len(self._names))


def _counts(lease: Any) -> bool:
    return not lease._over and bool(lease.valid)


class Held(threading.local):
    """The calling thread's leases."""

    def __init__(self) -> None:
        self.leases = Leases()


class Entered:
    """What was entered and not left yet, per thread or task. Each touches only its own, so no lock is needed."""

    def __init__(self) -> None:
        self._stacks: Dict[Hashable, List[Any]] = {}

    def push(self, owner: Hashable, entry: Any) -> None:
        """The owner enters."""
        self._stacks.setdefault(owner, []).append(entry)

    def pop(self, owner: Hashable) -> Any:
        """The owner leaves what it entered last. A generator may be left by another than it was entered by: one
        that entered nothing leaves what was entered last of all."""
        if owner not in self._stacks:
            owner = next(reversed(list(self._stacks)))
        stack = self._stacks[owner]
        entry = stack.pop()
        if not stack:
            self._stacks.pop(owner, None)
        return entry
