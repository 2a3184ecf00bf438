"""Fenced distributed locks and an at-least-once task queue, on Redis or SQLite.

    import stanchion

    client = stanchion.connect("redis://localhost")
    with client.lock("invoice:42") as lease:
        ...  # nobody else is here; pass lease.fence along with every write

``stanchion.aio`` has the same nouns for asyncio, ``stanchion.testing`` a store for tests.
"""

from . import _stanchion
from ._errors import (
    Cancelled, Closed, Corrupt, Denied, Forked, Indeterminate, Internal, InvalidArgument, LeaseExpired, LeaseLost,
    LockTimeout, QueueFull, StaleReceipt, StanchionError, StoreUnavailable, Unsupported, WrongType)
from ._claim import Claim, current_claim
from ._client import Client, connect
from ._events import TaskEvent
from ._flows import FlowInfo, FlowInput, FlowPage, FlowState, NodeInfo, NodeState, chain
from ._kinds import TaskFunction
from ._lease import Lease, Lost
from ._limiter import Limited, Limiter, Taken, Turn
from ._limits import Gate, KeyInfo, KeyLimits, KeyPage, QueueStats, Rate
from ._lock import Hold, Lock, RwLock
from ._queue import Queue, Queues
from ._running import Exponential, TaskCancelled, TaskFailure, TaskResult
from ._schedule import Schedule, ScheduleInfo, ScheduleOutcome, SchedulePage, Synced
from ._types import (
    ClaimedBy, Consumer, Debounce, Enqueued, Holder, Keep, NamePage, Outcome, Removed, Replace, Rescheduled, Skip, Task,
    TaskInfo, TaskPage, TaskState, Throttle, Waiter, WorkerEvent, WorkerReport)
from ._worker import Worker
from ._workers import run_workers

__version__: str = _stanchion.__version__

__all__ = [
    "Cancelled", "Claim", "ClaimedBy", "Client", "Closed", "Consumer", "Corrupt", "Debounce", "Denied", "Enqueued", "Exponential", "FlowInfo", "FlowInput", "FlowPage", "FlowState", "Forked", "Gate", "Hold", "Holder", "Indeterminate", "Internal", "InvalidArgument", "Keep", "KeyInfo", "KeyLimits", "KeyPage", "Lease", "LeaseExpired", "LeaseLost", "Limited", "Limiter", "Lock", "LockTimeout", "Lost", "NamePage", "NodeInfo", "NodeState", "Outcome", "Queue", "QueueFull", "QueueStats", "Queues", "Rate", "Removed", "Replace",
    "Rescheduled", "RwLock", "Schedule", "ScheduleInfo", "ScheduleOutcome", "SchedulePage", "Skip", "StaleReceipt", "StanchionError",
    "StoreUnavailable", "Synced", "Task", "TaskCancelled", "TaskEvent", "TaskFailure", "TaskFunction", "TaskInfo", "TaskPage", "TaskResult",
    "TaskState", "Taken", "Throttle", "Turn", "Unsupported", "Waiter", "Worker", "WorkerEvent", "WorkerReport", "WrongType", "aio", "chain", "connect",
    "current_claim", "run_workers", "testing",
]


def __getattr__(name: str) -> object:
    # asyncio takes longer to import than everything else here together.
    if name in ("aio", "testing"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
