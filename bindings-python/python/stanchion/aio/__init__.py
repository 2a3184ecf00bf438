"""The same nouns for asyncio: ``client = await stanchion.aio.connect(url)``.

Cancelling a task that waits in one of these calls leaves nothing behind: no lock, no place in a line, no task
that nobody works on. Any event loop with ``add_reader`` will do, uvloop among them; one client may be used under
several loops in turn.
"""

from ._claim import Claim, current_claim
from ._client import Client, Connecting, connect
from ._kinds import TaskFunction
from ._lease import Lease, Lost
from ._limiter import Limiter, Turn
from ._lock import Hold, Lock, RwLock
from ._queue import Queue, Queues
from ._worker import Worker
from ._workers import run_workers

__all__ = [
    "Claim", "Client", "Connecting", "Hold", "Lease", "Limiter", "Lock", "Lost", "Queue", "Queues", "RwLock", "TaskFunction",
    "Turn", "Worker",
    "connect", "current_claim", "run_workers",
]
