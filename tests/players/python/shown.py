"""What the package answers, as JSON says it."""

from datetime import datetime

import stanchion


def milliseconds(value):
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    # Without what floats add to it.
    return None if value is None else round(value * 1000, 3)


def failure(error):
    kind = type(error).__name__
    return {"kind": kind, "code": error.code, "message": str(error), "retryable": error.retryable,
            "operation": error.operation, "name": error.name}


def shown_lease(lease):
    return {"name": lease.name, "fence": lease.fence, "token": lease.token}


def shown_holder(found):
    return {
        "held_as": found.held_as, "label": found.label, "host": found.host, "pid": found.pid, "fence": found.fence,
        "since_ms": milliseconds(found.since), "remaining_ms": milliseconds(found.remaining),
        "waiters": found.waiters, "weight": found.weight}


def shown_taken(taken):
    return {"outcome": "allowed" if taken.allowed else "refused", "retry_after_ms": milliseconds(taken.retry_after)}


def shown_waiter(found):
    return {
        "label": found.label, "host": found.host, "pid": found.pid, "since_ms": milliseconds(found.since),
        "waiting_ms": milliseconds(found.waiting), "weight": found.weight}


def shown_task(task):
    return {
        "id": task.id, "state": str(task.state), "payload": task.payload.hex(), "headers": dict(task.headers),
        "size": task.size, "version": task.version, "due_ms": milliseconds(task.due), "priority": task.priority,
        "attempts": task.attempts, "max_attempts": task.max_attempts, "expires_ms": milliseconds(task.expires),
        "receipt": task.receipt, "reason": task.reason, "died_ms": milliseconds(task.died),
        "claimed_by": task.claimed_by and {
            "label": task.claimed_by.label, "host": task.claimed_by.host, "pid": task.claimed_by.pid,
            "since_ms": milliseconds(task.claimed_by.since)},
        "successor_due_ms": milliseconds(task.successor_due),
        # The release before has none of these.
        **(shown_run(task) if hasattr(task, "kind") else {})}


def shown_run(task):
    backoff = task.backoff
    if isinstance(backoff, list):
        backoff = [milliseconds(pause) for pause in backoff]
    elif backoff is not None:
        backoff = {**vars(backoff), "base": milliseconds(backoff.base), "max": milliseconds(backoff.max)}
    return {
        "kind": task.kind, "timeout_ms": milliseconds(task.timeout), "backoff": backoff,
        "failures": [{"at_ms": milliseconds(failure.at), "reason": failure.reason} for failure in task.failures],
        "progress": task.progress.hex(), "cancelled": task.cancelled,
        **({"key": task.key} if hasattr(task, "key") else {})}


def shown_claim(claim):
    return {
        "id": claim.id, "queue": claim.queue, "payload": claim.payload.hex(), "headers": dict(claim.headers),
        "attempt": claim.attempt, "max_attempts": claim.max_attempts, "receipt": claim.receipt,
        "version": claim.version, "priority": claim.priority, "due_ms": milliseconds(claim.due),
        **({"kind": claim.kind} if hasattr(claim, "kind") else {}),
        **({"key": claim.key} if hasattr(claim, "key") else {}),
        **({"flow": claim.flow} if hasattr(claim, "flow") else {})}


def shown_result(found):
    return {**vars(found), "result": None if found.result is None else found.result.hex()}


def shown_event(event):
    return {
        "number": event.number, "at_ms": milliseconds(event.at), "what": event.what, "id": event.id, "version": event.version,
        "attempt": event.attempt, "reason": event.reason, "missed": event.missed}


def shown_enqueued(done):
    if isinstance(done, stanchion.StanchionError):
        return {"error": failure(done)}
    return {"id": done.id, "outcome": str(done.outcome), "version": done.version, "due_ms": milliseconds(done.due)}


def shown_error(error):
    return None if error is None else {"error": failure(error)}


def shown_schedule(found):
    return {
        "id": found.id, "when": found.when, "tz": found.tz, "missed": found.missed, "overlap": found.overlap,
        "jitter_ms": milliseconds(found.jitter), "starts_ms": milliseconds(found.starts), "ends_ms": milliseconds(found.ends),
        "paused": found.paused, "next_ms": milliseconds(found.next), "late_ms": milliseconds(found.late),
        "owner": found.owner, "fired": found.fired, "skipped": found.skipped, "missed_slots": found.missed_slots,
        "last_task": found.last_task, "priority": found.priority, "max_attempts": found.max_attempts,
        "expires_ms": milliseconds(found.expires), "size": found.size,
        **({"key": found.key} if hasattr(found, "key") else {})}


def shown_rate(rate):
    return rate and {"count": rate.count, "per_ms": milliseconds(rate.per), "burst": rate.burst}


def shown_limits(found):
    return {
        "held": found.held, "keys_waiting": found.keys_waiting, "next_key_ms": milliseconds(found.next_key),
        "gate": str(found.gate), "opens_in_ms": milliseconds(found.opens_in), "max_running": found.max_running,
        "rate": shown_rate(found.rate), "key_concurrency": found.key_concurrency, "key_rate": shown_rate(found.key_rate)}


def shown_key(found):
    return {
        "key": found.key, "running": found.running, "in_line": found.in_line, "held": found.held,
        "opens_in_ms": milliseconds(found.opens_in),
        "limits": found.limits and {**vars(found.limits), "rate": shown_rate(found.limits.rate)}}


def shown_flow(found):
    return {
        "id": found.id, "state": str(found.state), "created_ms": milliseconds(found.created), "ended_ms": milliseconds(found.ended),
        "counts": {str(state): count for state, count in found.counts.items()},
        "nodes": [{**vars(node), "state": str(node.state)} for node in found.nodes]}


def shown_input(found):
    return {"node": found.node, "state": str(found.state), "result": None if found.result is None else found.result.hex()}


def shown_page(page, items):
    return {"items": items, "next": page.next}
