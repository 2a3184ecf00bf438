"""Claims, blocking."""

from __future__ import annotations

import contextlib
import json as _json
from contextvars import ContextVar
from datetime import datetime
from types import TracebackType
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Type

from . import _stanchion
from ._errors import StaleReceipt, StanchionError
from ._flows import FlowInput, flow_inputs
from ._keywords import refuse
from ._lease import Lost
from ._log import log
from ._types import Data, Duration, wall


class ClaimFacts:
    """What is known of a claim without asking the store."""

    _native: Any
    _shown = "stanchion.Claim"

    def __init__(self, native: Any) -> None:
        self._native = native
        self._settled = False
        self.id: str = native.id
        self.queue: str = native.queue
        self.payload: bytes = native.payload
        self.headers: Dict[str, str] = native.headers
        self.kind: Optional[str] = native.kind
        self.attempt: int = native.attempt
        self.max_attempts: int = native.max_attempts
        self.receipt: int = native.receipt
        self.version: int = native.version
        self.priority: int = native.priority
        self.key: Optional[str] = native.key
        self.flow: Optional[str] = native.flow

    @property
    def json(self) -> Any:
        """The payload, read as JSON."""
        return _json.loads(self.payload)

    @property
    def due(self) -> datetime:
        """When the task was due."""
        return wall(self._native.due)

    @property
    def remaining(self) -> float:
        """How many seconds the claim is surely ours from now on, without further renewal."""
        left: float = self._native.remaining
        return left

    @property
    def valid(self) -> bool:
        """Whether the claim is ours now."""
        valid: bool = self._native.valid
        return valid

    def acked(self, result: Optional[Data] = None) -> _stanchion.Verdict:
        """The verdict "done", perhaps with a result, for `settle`."""
        verdict: _stanchion.Verdict = self._native.acked(result)
        return verdict

    def nacked(self, delay: Optional[Duration] = None, reason: str = "", **others: NoReturn) -> _stanchion.Verdict:
        """The verdict "try again", for `settle`."""
        if others:
            refuse("nacked", others)
        verdict: _stanchion.Verdict = self._native.nacked(delay, reason)
        return verdict

    def buried(self, reason: str = "") -> _stanchion.Verdict:
        """The verdict "dead", for `settle`."""
        verdict: _stanchion.Verdict = self._native.buried(reason)
        return verdict

    def returned(self, delay: Optional[Duration] = None) -> _stanchion.Verdict:
        """The verdict "not tried", for `settle`; ``delay``: not before so many seconds (at once, at its place in line)."""
        verdict: _stanchion.Verdict = self._native.returned(delay)
        return verdict

    def throttled(self, time: Duration) -> _stanchion.Verdict:
        """The verdict "not tried, and nothing more of its key for so long", for `settle`; see `Claim.throttle`."""
        verdict: _stanchion.Verdict = self._native.throttled(time)
        return verdict

    def __reduce__(self) -> Any:
        raise TypeError("a claim cannot be copied or pickled; it belongs to this process")

    def __repr__(self) -> str:
        return f"<{self._shown} {self.queue!r} {self.id!r} attempt={self.attempt} receipt={self.receipt}>"


class Claim(ClaimFacts):
    """A task that is ours until it is settled, or its lease ends. A context manager: acks at the end of the
    block, nacks with backoff if it raises, unless the block settled it itself.

    A claim that is collected unsettled counts as failed.
    """

    @property
    def lost(self) -> Lost:
        """Whether the claim was lost; set at its deadline at the latest."""
        return Lost(self._native)

    def ack(self, result: Optional[Data] = None) -> None:
        """Done: the task leaves the queue. The ``result``, bytes or a text, 1 MiB at most, is what `Queue.result` gives for as
        long as the task says (``keep_result``). Of a queue 10,000 results and 64 MiB are kept."""
        self._native.ack(result)
        self._settled = True

    def nack(self, delay: Optional[Duration] = None, reason: str = "", **others: NoReturn) -> None:
        """Not done: try again after ``delay``; by default as the task's ``backoff`` says, and if it has none 1 s, 16 s, 81 s, 4 min and so on after the first, second, ...
        attempt (the fourth power of its number), less up to half of it by chance, 7 h at most."""
        if others:
            refuse("nack", others)
        self._native.nack(delay, reason)
        self._settled = True

    def bury(self, reason: str = "") -> None:
        """Not done, and not to be tried again: the task is dead."""
        self._native.bury(reason)
        self._settled = True

    def put_back(self, delay: Optional[Duration] = None) -> None:
        """Not tried: the task goes back without counting an attempt, and waits for ``delay``. Without one it comes
        back to its place in line, so the next claim gets it again."""
        self._native.put_back(delay)
        self._settled = True

    def throttle(self, time: Duration) -> None:
        """Not tried, because whoever it calls has had enough (a 429, ``Retry-After``): the task goes back to its place without
        counting an attempt, and nothing more of its key is given out for so long; if it has no key, nothing of the queue. A later
        throttle makes that longer, never shorter."""
        self._native.throttle(time)
        self._settled = True

    def extend(self, lease: Duration) -> None:
        """Prolong the lease to at least ``lease`` from now."""
        self._native.extend(lease)

    def progress(self, progress: Data) -> None:
        """Say how far the work has come, in bytes or a text, 4 KiB at most: `Queue.get` and `Queue.list` show it while the run
        goes on. It renews the lease, too."""
        self._native.progress(progress)

    def inputs(self) -> List[FlowInput]:
        """What has become of the nodes of its flow that this one comes after, with the results of their acks, in the order in
        which it names them; if it comes after all, of all. Of a flow 64 MiB of results are kept. Empty if ``flow`` is None: the
        task is of no flow."""
        return flow_inputs(self._native.inputs())

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._settled:
            return
        if error is None:
            self.ack()
            return
        try:
            self.nack(reason=describe(error))
        except StanchionError as failure:
            log_unsettled(self, failure)


_CLAIM: ContextVar[Any] = ContextVar("stanchion claim")


@contextlib.contextmanager
def attending(claim: Any) -> Iterator[None]:
    """Where a handler runs."""
    token = _CLAIM.set(claim)
    try:
        yield
    finally:
        _CLAIM.reset(token)


def current_claim() -> Claim:
    """The claim on the task that runs here: for functions with a kind, which do not get it as an argument. LookupError outside of
    a worker's handlers."""
    claim = _CLAIM.get(None)
    if claim is None:
        raise LookupError("no task runs here: current_claim() is for what a worker calls, and for what that calls")
    return claim  # type: ignore[no-any-return]


def describe(error: BaseException) -> str:
    """The reason that is kept with a failed task."""
    try:
        text = str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:  # Its own fault; the task is to be settled all the same.
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def log_unsettled(claim: ClaimFacts, failure: StanchionError) -> None:
    """A block failed, and so did the nack. The task comes back when its lease ends all the same."""
    level = log.debug if isinstance(failure, StaleReceipt) else log.warning
    level("task %r: could not be nacked: %s", claim.id, failure)
