"""The exceptions. Every one is a StanchionError, and where Python has a fitting class, one of that, too."""

from __future__ import annotations

import re
from typing import Callable, Dict, Optional, Type


class StanchionError(Exception):
    """Something went wrong in the store or in this library.

    ``code`` is a stable number, the same in every language; ``operation`` and ``name`` are what was attempted
    on which lock or queue; ``retryable`` is whether the same call may succeed later without any change.
    """

    code: int = -16
    operation: Optional[str] = None
    name: Optional[str] = None
    retryable: bool = False


class LockTimeout(StanchionError, TimeoutError):
    """The lock stayed busy for the whole wait."""

    code = -1


class LeaseLost(StanchionError):
    """The lease is no longer ours: taken, broken, overwritten, or forgotten by the store."""

    code = -2


class LeaseExpired(LeaseLost):
    """The lease ran out; nobody is known to have taken the lock since."""

    code = -3


class StaleReceipt(StanchionError):
    """A newer delivery of the task exists, or it was settled otherwise."""

    code = -4


class QueueFull(StanchionError):
    """The queue is at its limit."""

    code = -5


class InvalidArgument(StanchionError, ValueError):
    """An argument is outside what is allowed; nothing was sent."""

    code = -6
    _named: Optional[Callable[[str], str]] = None

    def add_note(self, note: str) -> None:
        # The native module notes the name of an argument that it could not convert: it belongs into the message.
        named = re.fullmatch(r"while processing '(\w+)'", note)
        if named is None or self._named is None:
            super().add_note(note)
        else:
            self.args = (self._named(named[1]),)
            del self._named


class Unsupported(StanchionError):
    """The store or its version cannot do this."""

    code = -7


class StoreUnavailable(StanchionError, ConnectionError):
    """The store could not be reached, or refused to work, within the time given."""

    code = -8


class Indeterminate(StanchionError):
    """The request may or may not have been carried out."""

    code = -9


class WrongType(StanchionError):
    """The key holds a value of another kind."""

    code = -10


class Denied(StanchionError):
    """The store's user lacks a right."""

    code = -11


class Corrupt(StanchionError):
    """The store answered something that makes no sense, or its file is damaged."""

    code = -12


class Cancelled(StanchionError):
    """The caller gave up."""

    code = -13


class Closed(StanchionError):
    """The client was closed."""

    code = -14


class Forked(StanchionError):
    """The object was made before a fork and belongs to the parent process."""

    code = -15


class Internal(StanchionError):
    """A defect in this library."""

    code = -16


_KINDS: Dict[str, Type[StanchionError]] = {
    kind.__name__: kind
    for kind in (
        LockTimeout, LeaseLost, LeaseExpired, StaleReceipt, QueueFull, InvalidArgument, Unsupported,
        StoreUnavailable, Indeterminate, WrongType, Denied, Corrupt, Cancelled, Closed, Forked, Internal)
}
for _kind in (StanchionError, *_KINDS.values()):
    _kind.__module__ = "stanchion"  # Tracebacks name what a program imports and catches.


def make(
    kind: str, code: int, message: str, operation: Optional[str], name: Optional[str], retryable: bool
) -> StanchionError:
    """The exception for an error of the core; a kind that this package does not know is the base class."""
    error = _KINDS.get(kind, StanchionError)(message)
    error.code, error.operation, error.name, error.retryable = code, operation, name, retryable
    return error


def chain_loss(body: BaseException, loss: LeaseLost) -> None:
    """Hangs the loss of a lease onto the exception that a ``with`` block ended with, which goes on."""
    last = body
    seen = {id(last)}
    while (before := last.__cause__ or last.__context__) is not None and id(before) not in seen:
        last = before
        seen.add(id(last))
    if last is not loss:
        last.__context__ = loss
    add_note = getattr(body, "add_note", None)  # Python 3.11
    if add_note is not None:
        add_note(f"The lease was lost before this block ended: {loss}")
