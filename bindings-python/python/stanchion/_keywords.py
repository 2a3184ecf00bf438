"""Keywords that there are not: what to write instead of those of other packages. ``{}`` is where the value goes."""

from __future__ import annotations

from typing import Dict, Mapping, NoReturn

from ._arguments import brief

_TRY = "so as not to wait say try_acquire(), which returns None if the lock is busy; acquire() waits"
_ACQUIRE = {"timeout": "say wait={}", "blocking_timeout": "say wait={}", "blocking": _TRY}
_LOCK = {
    "timeout": "how long the lease lasts is ttl={}, how long acquire waits is wait={}", "expire": "say ttl={}",
    "blocking_timeout": "say wait={}", "blocking": _TRY, "sleep": "leave it out; acquire waits in line and does not poll",
    "thread_local": "leave it out; acquire() returns a lease, which any thread may release",
}
_ATTEMPTS = "say max_attempts=..., which counts the first attempt, too"
_ENQUEUE = {
    "countdown": "say delay={}", "eta": "say due={}", "job_id": "say id={}", "task_id": "say id={}", "data": "say payload={}",
    "attempts": "say max_attempts={}", "max_retries": _ATTEMPTS, "retry": _ATTEMPTS,
    **dict.fromkeys(("time_limit", "soft_time_limit", "job_timeout"), "say timeout={}"),
    **dict.fromkeys(("retry_delay", "retry_backoff"), "say backoff=[...] or Exponential(...)"),
    **dict.fromkeys(("result_ttl", "result_expires"), "say keep_result={}"),
    **dict.fromkeys(("concurrency_key", "fairness_key", "group_id", "group_key", "partition_key"), "say key={}"),
}
_NODE = {
    **_ENQUEUE, **dict.fromkeys(("depends_on", "dependencies", "parents"), "say after={}"),
    "children": "say after=..., their ids", "queue_name": "say queue={}",
}
_TASK = {
    **_ENQUEUE, "name": "say the kind first, task({})", "bind": "leave it out; current_claim() is the claim",
    **dict.fromkeys(("id", "job_id", "task_id", "due", "eta"), "it is of one task: say send.options(...).enqueue(...)"),
    **dict.fromkeys(("payload", "data", "args", "kwargs"), "the arguments of enqueue() are those of the function"),
}
_OPTIONS = {
    **_ENQUEUE, "kind": "it is that of the declaration, task(kind)",
    **dict.fromkeys(("payload", "data", "args", "kwargs"), "the arguments of enqueue() are those of the function"),
}
_SCHEDULE = {
    **dict.fromkeys(("cron", "cron_string", "crontab"), "say when={}"),
    **dict.fromkeys(("interval", "seconds", "minutes", "hours", "days"), "say when='every 90s', or 'every 1h 30m'"),
    "timezone": "say tz={}", "start_date": "say starts={}", "end_date": "say ends={}",
    **dict.fromkeys(("coalesce", "misfire_grace_time"), "say missed='last', 'skip' or a number"),
    "max_instances": "say overlap='skip' for one at a time", "name": "say id={}", "job_id": "say id={}", "task_id": "say id={}",
    **dict.fromkeys(("args", "kwargs"), "say payload=..."), "data": "say payload={}", "max_retries": _ATTEMPTS,
    "retry": _ATTEMPTS,
}
_CLAIM = {
    "count": "say max={}",
    "visibility_timeout": "say lease={}",
}
_LIMITER = {
    **dict.fromkeys(("window", "period", "time_period", "interval"), "say per={}"),
    **dict.fromkeys(("rate", "limit", "max_rate", "max_calls"), "say n={}"), "capacity": "say burst={}",
}
_NACK = {"countdown": "say delay={}"}
# Without the value: it may be a password.
_URL = "say it in the URL, connect('redis://USER:PASSWORD@HOST:PORT/DB'), with TLS rediss://"
_HINTS: Dict[str, Dict[str, str]] = {
    "acquire": _ACQUIRE, "hold": _ACQUIRE,
    "try_acquire": {**dict.fromkeys(("timeout", "blocking_timeout", "wait"), "to wait say acquire(wait={})"), "blocking": _TRY},
    "lock": _LOCK, "rw_lock": _LOCK, "semaphore": _LOCK, "multi_lock": _LOCK,
    "enqueue": _ENQUEUE, "enqueue_many": _ENQUEUE, "task": _TASK, "options": _OPTIONS, "claim": _CLAIM, "settle_and_claim": _CLAIM, "nack": _NACK, "nacked": _NACK,
    **dict.fromkeys(("enqueue_flow", "add_to_flow", "chain"), _NODE),
    "limiter": _LIMITER, "take": {"timeout": "say wait={}"}, "turn": {"timeout": "say wait={}"},
    "schedule": _SCHEDULE, "sync_schedules": _SCHEDULE, "scheduled": _SCHEDULE,
    "worker": {
        "workers": "say concurrency={}", "threads": "say concurrency={}", "burst": "say worker(...).run(until_empty={})",
        "until_empty": "say worker(...).run(until_empty={})", "middleware": "say around={}", "middlewares": "say around={}"},
    "connect": {
        **dict.fromkeys(("host", "port", "db", "username", "password", "ssl"), _URL),
        "decode_responses": "leave it out; names are texts, payloads are bytes"},
}


def refuse(call: str, others: Mapping[str, object]) -> NoReturn:
    """Refuse unknown keywords; for those of other packages the message names ours."""
    name, value = next(iter(others.items()))
    raise TypeError(f"{call}() got an unexpected keyword argument {name!r}{instead(call, name, value)}")


def instead(call: str, name: object, value: object) -> str:
    """What to write instead of such a keyword, if it is known."""
    hint = _HINTS.get(call, {}).get(name) if isinstance(name, str) else None
    return f": {hint.replace('{}', brief(value) or '...')}" if hint else ""
