"""What goes in and comes out, besides the nouns."""

from __future__ import annotations

import enum
import json
import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from . import _stanchion
from ._arguments import check_id, invalid
from ._errors import InvalidArgument
from ._keywords import instead
from ._running import Backoff, Exponential, TaskFailure, backoff_of, native_backoff
from ._telemetry import inject

Duration = Union[float, timedelta]
"""Seconds, or a timedelta."""
Time = Union[float, datetime]
"""Seconds since 1970, or a datetime (a naive one is local time)."""
Data = Union[bytes, bytearray, memoryview, str]
"""Bytes, or a text as UTF-8."""
Path = Union[str, "os.PathLike[str]"]
"""Where a file is."""

JSON = "application/json"


@dataclass(frozen=True)
class Keep:
    """The task that is there stays as it is."""


@dataclass(frozen=True)
class Skip:
    """As Keep, but if the id is running nothing comes after it."""


@dataclass(frozen=True)
class Replace:
    """The new task takes its place, attempts start again."""


@dataclass(frozen=True)
class Debounce:
    """As Replace; the due time moves on with every enqueue, until ``max_wait`` after the first."""

    max_wait: Duration


@dataclass(frozen=True)
class Throttle:
    """At most one enqueue of the id is accepted per window, whatever became of the task."""

    window: Duration


OnDuplicate = Union[Keep, Skip, Replace, Debounce, Throttle]


class _Word(str, enum.Enum):
    """A word, which prints as itself in every version of Python."""

    def __str__(self) -> str:
        return str(self.value)


class Outcome(_Word):
    """How an enqueue ended."""

    ADDED = "added"
    KEPT = "kept"
    REPLACED = "replaced"
    SUCCESSOR = "successor"
    THROTTLED = "throttled"
    SKIPPED = "skipped"
    OTHER = "other"


class TaskState(_Word):
    """Where a task is."""

    SCHEDULED = "scheduled"
    READY = "ready"
    CLAIMED = "claimed"
    HELD = "held"
    DEAD = "dead"


@dataclass(frozen=True)
class Task:
    """A task to put into a queue; without an id it gets a random one.

    ``payload`` is bytes, or any JSON value, which is stored as JSON with a ``content-type`` header.
    It is not delivered before ``delay`` is over, or before ``due`` (at once, if neither is given; a datetime without a zone
    is in local time). It becomes dead if it was not delivered ``expires`` after now (never). Higher ``priority`` (0 to 255) goes first (0).
    After ``max_attempts`` deliveries without success it is dead (20, which takes about two days). ``on_duplicate`` is
    what to do if the id is in the queue (`Keep`).

    ``kind`` says what work it is, by which workers choose their handler. A run that takes longer than ``timeout`` loses its
    claim, and has failed with the reason "timeout" (it may run for as long as its claim is renewed). ``backoff`` is how long
    it waits after a failed attempt: a list of pauses, or `Exponential` (1 s, 16 s, 81 s, 4 min and so on: see `Claim.nack`).
    The result of its run is kept for ``keep_result`` (1 h; 30 days at most).

    Tasks that have a ``key`` in common, 1 to 512 bytes without control characters, share the limits that the queue gives each
    key (`Queue.configure`), and keys share the queue alike: one with a million tasks does not hold up another with ten. Without
    any limit one task of each key stands in line, and the next one when that is delivered.
    """

    id: Optional[str] = None
    payload: Any = b""
    headers: Optional[Mapping[str, str]] = None
    delay: Optional[Duration] = None
    due: Optional[Time] = None
    priority: Optional[int] = None
    max_attempts: Optional[int] = None
    expires: Optional[Duration] = None
    on_duplicate: Optional[OnDuplicate] = None
    kind: Optional[str] = None
    timeout: Optional[Duration] = None
    backoff: Optional[Backoff] = None
    keep_result: Optional[Duration] = None
    key: Optional[str] = None

    def _native(self) -> _stanchion.Task:
        check_id(self.id)
        check_priority(self.priority)
        payload, headers = encode(self.payload, self.headers)
        return _stanchion.Task(
            self.id, payload, headers=inject(headers), delay=self.delay, due=seconds_since_1970(self.due),
            priority=self.priority, max_attempts=self.max_attempts, expires=self.expires,
            on_duplicate=_policy(self.on_duplicate), kind=self.kind, timeout=self.timeout,
            backoff=native_backoff(self.backoff), keep_result=self.keep_result, key=self.key)


_FIELDS = Task.__dataclass_fields__

TaskLike = Union[Task, str, Tuple[Any, ...], Mapping[str, Any]]
"""A Task, an id, an (id, payload) pair, or a mapping of a Task's fields."""


@dataclass(frozen=True)
class Enqueued:
    """What an enqueue did. ``due`` is None, and ``version`` 0, if it was throttled."""

    id: str
    outcome: Outcome
    version: int
    due: Optional[datetime]


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, for people and dashboards: out of date as soon as it is read.

    ``held_as`` is "lease", "offer" (to a waiter), "cooldown" or "foreign" (another program's). ``weight`` is how many
    permits it has: 1 if the lock is exclusive, all if it writes.
    """

    held_as: str
    label: str
    host: str
    pid: int
    fence: int
    since: Optional[datetime]
    remaining: Optional[float]
    waiters: int
    weight: int


@dataclass(frozen=True)
class Waiter:
    """One of those who wait for a lock, for people and dashboards: out of date as soon as it is read.

    ``since`` and ``waiting``, in seconds, are by the store's clock; None if unknown. ``weight`` is how many permits it
    waits for: 1 if the lock is exclusive, all if it wants to write.
    """

    label: str
    host: str
    pid: int
    since: Optional[datetime]
    waiting: Optional[float]
    weight: int


@dataclass(frozen=True)
class ClaimedBy:
    """Who claimed a task last. ``since`` is by the store's clock; None if that delivery was settled and the task lives."""

    label: str
    host: str
    pid: int
    since: Optional[datetime]


@dataclass(frozen=True)
class Consumer:
    """A process that works on a queue, for people and dashboards: out of date as soon as it is read.

    ``waiters`` is how many of its calls wait for a task, ``claims`` how many tasks it has.
    """

    label: str
    host: str
    pid: int
    waiters: int
    claims: int


@dataclass(frozen=True)
class TaskInfo:
    """A task as it is in a queue. ``size`` is the bytes of payload and headers, as stored. ``claimed_by`` is who claimed
    it last, None if nobody did.

    ``kind``, ``timeout`` (in seconds) and ``backoff`` are what its `Task` says, else None; without payloads they are not
    listed. ``failures`` are its last five failed attempts, the latest last; ``progress`` is what its run has said with
    `Claim.progress`; ``cancelled``, whether it was cancelled while it runs, so that this run is its last. ``key`` is its key, if it has one.
    """

    id: str
    state: TaskState
    payload: bytes
    headers: Dict[str, str]
    size: int
    version: int
    due: datetime
    priority: int
    attempts: int
    max_attempts: int
    expires: Optional[datetime]
    receipt: int
    lease_left: float
    reason: str
    claimed_by: Optional[ClaimedBy]
    died: Optional[datetime]
    successor_due: Optional[datetime]
    kind: Optional[str]
    timeout: Optional[float]
    backoff: Union[List[float], Exponential, None]
    failures: List[TaskFailure]
    progress: bytes
    cancelled: bool
    key: Optional[str]

    @property
    def json(self) -> Any:
        """The payload, read as JSON."""
        return json.loads(self.payload)


@dataclass(frozen=True)
class TaskPage:
    """Some of the tasks of one state. ``next`` gets the next page; None if this was the last."""

    tasks: List[TaskInfo]
    next: Optional[str]

    def __iter__(self) -> Iterator[TaskInfo]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> TaskInfo:
        return self.tasks[index]


@dataclass(frozen=True)
class NamePage:
    """Some names. ``next`` gets the next page; None if this was the last."""

    names: List[str]
    next: Optional[int]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Removed:
    """Whether a task was removed; if another version was in its place, which. True if it was removed."""

    removed: bool
    other_version: Optional[int]

    def __bool__(self) -> bool:
        return self.removed


@dataclass(frozen=True)
class Rescheduled:
    """How a reschedule ended: "moved", "absent", "claimed" or "dead". True if it was moved."""

    outcome: str
    due: Optional[datetime]

    def __bool__(self) -> bool:
        return self.outcome == "moved"


@dataclass(frozen=True)
class WorkerReport:
    """What a worker has done."""

    completed: int = 0
    failed: int = 0
    dead: int = 0
    lost: int = 0


@dataclass(frozen=True)
class WorkerEvent:
    """What happened beyond what handlers see: ``what`` is "dead" (the task failed for the last time, or was
    buried), "lost" (the claim was), "stuck" (its handler was asked to end, and goes on), "unknown_kind" (a worker with
    ``kinds`` has put it back), "slots_missed" (of the schedule ``id``, while nobody worked on the queue), "store_failed" or
    "store_back" (once each for as long as the store fails; of these only ``reason`` is set)."""

    what: str
    id: str
    attempt: int
    reason: str


class _Unset(enum.Enum):
    UNSET = enum.auto()


UNSET = _Unset.UNSET
"""Stands for "leave it as it is" where None is a value."""


def encode(payload: Any, headers: Optional[Mapping[str, str]]) -> Tuple[bytes, Optional[Dict[str, str]]]:
    """The payload as bytes; if it was made JSON, with the header ``content-type``."""
    try:
        plain = dict(headers) if headers is not None else None
    except (TypeError, ValueError) as error:
        raise invalid("headers", "must be a mapping of texts", headers) from error
    if isinstance(payload, (bytes, bytearray, memoryview)):
        size = memoryview(payload).nbytes
        if size > _stanchion.MAX_PAYLOAD:
            # Before it is copied: it may be most of the memory there is.
            raise invalid("payload", f"must have at most {_stanchion.MAX_PAYLOAD} bytes", payload, f" of {size}")
        return bytes(payload), plain
    try:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode(), {"content-type": JSON, **(plain or {})}
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid("payload", "must be bytes or a JSON value", payload, f": {error}") from error


def check_priority(priority: Any) -> None:
    """Refuse what is over the largest one, which the native module has no place for."""
    if isinstance(priority, int) and priority > 255:
        raise invalid("priority", "must be a whole number from 0 to 255", priority)


def seconds_since_1970(time: Any, name: str = "due") -> Any:
    """A datetime as a number; anything else as it is."""
    try:
        return time.timestamp() if isinstance(time, datetime) else time
    except (OverflowError, ValueError, OSError) as error:
        raise invalid(name, "must be a time that can be expressed in seconds since 1970", time, f": {error}") from error


def wall(seconds: float) -> datetime:
    """A time of the core."""
    return datetime.fromtimestamp(seconds, timezone.utc)


def maybe_wall(seconds: Optional[float]) -> Optional[datetime]:
    """As wall, for a time that may be absent."""
    return None if seconds is None else wall(seconds)


def task_info(fields: Optional[Dict[str, Any]]) -> Optional[TaskInfo]:
    """As task_infos, of one that may be absent."""
    return None if fields is None else task_infos([fields])[0]


def task_infos(all_fields: List[Dict[str, Any]]) -> List[TaskInfo]:
    """Tasks, from the native module's tuples."""
    infos = []
    for fields in all_fields:
        fields["state"] = TaskState(fields["state"])
        fields["due"] = wall(fields["due"])
        for name in ("expires", "died", "successor_due"):
            fields[name] = maybe_wall(fields[name])
        if fields["claimed_by"] is not None:
            label, host, pid, since = fields["claimed_by"]
            fields["claimed_by"] = ClaimedBy(label, host, pid, maybe_wall(since))
        fields["backoff"] = backoff_of(fields["backoff"])
        fields["failures"] = [TaskFailure(wall(at), reason) for at, reason in fields["failures"]]
        infos.append(TaskInfo(**fields))
    return infos


def enqueued(fields: Tuple[str, str, int, Optional[float]]) -> Enqueued:
    """An enqueue's result, from the native module's tuple."""
    id, outcome, version, due = fields
    return Enqueued(id, Outcome(outcome), version, maybe_wall(due))


def all_enqueued(results: List[Any]) -> List[Any]:
    """As enqueued, of many; exceptions stay as they are."""
    return [one if isinstance(one, BaseException) else enqueued(one) for one in results]


def holder(fields: Optional[Tuple[Any, ...]]) -> Optional[Holder]:
    """A holder, from the native module's tuple."""
    if fields is None:
        return None
    held_as, label, host, pid, fence, since, remaining, waiters, weight = fields
    return Holder(held_as, label, host, pid, fence, maybe_wall(since), remaining, waiters, weight)


def holders(found: List[Tuple[Any, ...]]) -> List[Holder]:
    """Several of them."""
    return [one for one in map(holder, found) if one is not None]


def waiters(found: List[Tuple[Any, ...]]) -> List[Waiter]:
    """Waiters, from the native module's tuples."""
    return [
        Waiter(label, host, pid, maybe_wall(since), waiting, weight) for label, host, pid, since, waiting, weight in found]


def dead_tasks(
    verb: str, ids: Any, receipts: Any, count: Any, reason: Any, prefix: Any, older_than: Any) -> _stanchion.DeadTasks:
    """Which dead tasks are meant. A number in the place of the ids is a count."""
    if sum(given is not None for given in (ids, receipts, count)) > 1:
        raise InvalidArgument(f"{verb} takes one of ids, receipts and a count")
    if isinstance(ids, int):
        ids, count = None, ids
    named = any(given is not None for given in (ids, receipts, count, older_than))
    # A text that happens to be empty must not mean all of them.
    if not named and not reason and not prefix:
        raise InvalidArgument(f"{verb} needs ids, receipts, a count, a reason, a prefix or older_than")
    if isinstance(ids, str):
        ids = [ids]
    return _stanchion.DeadTasks(
        ids=None if ids is None else several(ids, "ids"),
        receipts=None if receipts is None else several(receipts, "receipts"),
        count=count, reason=reason, prefix=prefix, older_than=older_than)


def queue_names(names: Any) -> Tuple[str, ...]:
    """Names of queues."""
    return tuple(several(names, "names"))


def state_name(state: Any) -> Any:
    """The name of a state, which may be given as such."""
    return state.value if isinstance(state, TaskState) else state


def several(items: Any, name: str, problem: str = "must be a list", call: Optional[str] = None) -> List[Any]:
    """The items of an iterable. A text is one, but hardly ever meant as one."""
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise invalid(name, problem, items, call=call)
    return list(items)


def tasks(items: Any) -> List[_stanchion.Task]:
    """Tasks, each given as a Task, an id, an (id, payload) pair, or a mapping of a Task's fields."""
    problem = "must be a list of tasks"
    if isinstance(items, Mapping):  # Of which only the keys would come.
        raise invalid("items", problem, items, (
            "; if these are ids and payloads say enqueue_many(items.items()), if it is one task enqueue_many([task])"))
    return [_task(item)._native() for item in several(items, "items", problem)]


def _task(item: Any) -> Task:
    return item if isinstance(item, Task) else Task(**task_fields(item, "enqueue_many", "items", "Task"))


def task_fields(item: Any, call: str, argument: str, noun: str, more: Tuple[str, ...] = ()) -> Dict[str, Any]:
    """The fields of what is taken as a task; a mapping may have ``more``."""
    if isinstance(item, Task):
        return {name: getattr(item, name) for name in _FIELDS}
    if isinstance(item, str):
        return {"id": item}
    if isinstance(item, tuple) and len(item) <= len(_FIELDS):
        return dict(zip(_FIELDS, item))
    if not isinstance(item, Mapping):
        problem = f"must be Tasks, ids, (id, payload) pairs or mappings of a {noun}'s fields"
        raise invalid(argument, problem, item, call=call)
    for name in item:
        if name not in _FIELDS and name not in more:
            raise InvalidArgument(f"{call}(): a {noun.lower()} has no {name!r}{instead(call, name, item[name])}")
    return dict(item)


def _policy(policy: Any) -> Optional[Tuple[str, Any]]:
    if isinstance(policy, type) and policy in (Keep, Skip, Replace):
        policy = policy()
    if policy is None:
        return None
    if isinstance(policy, Keep):
        return "keep", None
    if isinstance(policy, Skip):
        return "skip", None
    if isinstance(policy, Replace):
        return "replace", None
    if isinstance(policy, Debounce):
        return "debounce", policy.max_wait
    if isinstance(policy, Throttle):
        return "throttle", policy.window
    raise invalid("on_duplicate", "must be Keep(), Skip(), Replace(), Debounce(max_wait) or Throttle(window)", policy)
