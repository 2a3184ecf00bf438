//! What the library answers, as JSON.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use stanchion::{
    Backoff, Cancelled, ClaimedBy, Consumer, Enqueued, Error, EventPage, FlowInfo, FlowInput, Headers,
    Holder, KeyInfo, KeyLimits, LossReason, Missed, NodeInfo, Overlap, QueueStats, Rate, Removed,
    Rescheduled, ScheduleInfo, Synced, Taken, TaskEvent, TaskFailure, TaskInfo, TaskResult, Waiter,
    WorkerReport,
};
use stanchion_tests::faces::{AnyClaim, AnyLease};

pub(crate) fn error(error: &Error) -> Value {
    json!({
        "kind": error.kind().name(), "code": error.kind().code(), "message": error.to_string(),
        "retryable": error.is_retryable(), "operation": error.operation(), "name": error.name(),
    })
}

pub(crate) fn lease(lease: &AnyLease) -> Value {
    json!({ "name": lease.name(), "fence": lease.fence().get(), "token": lease.token().as_str() })
}

pub(crate) fn look_at_lease(of: &AnyLease) -> Value {
    let mut shown = lease(of);
    shown["remaining_ms"] = json!(millis(of.remaining()));
    shown["valid"] = json!(of.is_valid());
    shown["loss"] = json!(of.loss().map(LossReason::name));
    shown["fences"] = of.fences().into_iter().map(|(name, fence)| (name, json!(fence.get()))).collect();
    shown
}

pub(crate) fn holder(holder: &Holder) -> Value {
    json!({
        "held_as": holder.held_as.name(), "label": holder.label, "host": holder.host, "pid": holder.pid, "fence": holder.fence.get(),
        "since_ms": holder.since.map(wall), "remaining_ms": holder.remaining.map(millis),
        "waiters": holder.waiters, "weight": holder.weight,
    })
}

/// A time is told to the microsecond.
pub(crate) fn taken(taken: Taken) -> Value {
    match taken.retry_after() {
        None => json!({ "outcome": "allowed", "retry_after_ms": null }),
        Some(time) => json!({ "outcome": "refused", "retry_after_ms": time.as_secs_f64() * 1_000.0 }),
    }
}

pub(crate) fn waiter(waiter: &Waiter) -> Value {
    json!({
        "label": waiter.label, "host": waiter.host, "pid": waiter.pid, "since_ms": waiter.since.map(wall),
        "waiting_ms": waiter.waiting.map(millis), "weight": waiter.weight,
    })
}

pub(crate) fn claim(claim: &AnyClaim) -> Value {
    json!({
        "id": claim.id(), "queue": claim.queue(), "payload": hex(claim.payload()),
        "headers": headers(claim.headers()), "kind": claim.kind(), "attempt": claim.attempt(), "max_attempts": claim.max_attempts(),
        "receipt": claim.receipt().get(), "version": claim.version().get(), "priority": claim.priority(), "key": claim.key(),
        "flow": claim.flow(), "due_ms": wall(claim.due()),
    })
}

pub(crate) fn flow(flow: &FlowInfo) -> Value {
    let counts: Map<String, Value> =
        flow.counts.iter().map(|(state, count)| (state.name().to_owned(), json!(count))).collect();
    let node = |node: &NodeInfo| {
        json!({
            "name": node.name, "state": node.state.name(), "queue": node.queue, "after": node.after,
            "after_end": node.after_end, "after_failure": node.after_failure, "after_all": node.after_all,
        })
    };
    json!({
        "id": flow.id, "state": flow.state.name(), "created_ms": wall(flow.created), "ended_ms": flow.ended.map(wall),
        "counts": counts, "nodes": flow.nodes.iter().map(node).collect::<Value>(),
    })
}

pub(crate) fn input(input: &FlowInput) -> Value {
    json!({ "node": input.node, "state": input.state.name(), "result": input.result.as_deref().map(hex) })
}

pub(crate) fn look_at_claim(of: &AnyClaim) -> Value {
    let mut shown = claim(of);
    shown["remaining_ms"] = json!(millis(of.remaining()));
    shown["valid"] = json!(of.is_valid());
    shown["loss"] = json!(of.loss().map(LossReason::name));
    shown
}

pub(crate) fn task(task: &TaskInfo) -> Value {
    json!({
        "id": task.id, "state": task.state.name(), "payload": hex(&task.payload), "headers": headers(&task.headers),
        "size": task.size,
        "version": task.version.get(), "due_ms": wall(task.due), "priority": task.priority, "attempts": task.attempts,
        "max_attempts": task.max_attempts, "expires_ms": task.expires.map(wall), "receipt": task.receipt.get(),
        "claimed_by": task.claimed_by.as_ref().map(claimed_by),
        "reason": task.reason, "died_ms": task.died.map(wall), "successor_due_ms": task.successor_due.map(wall),
        "kind": task.kind, "timeout_ms": task.timeout.map(millis), "backoff": task.backoff.as_ref().map(backoff),
        "failures": task.failures.iter().map(failure).collect::<Value>(), "progress": hex(&task.progress),
        "cancelled": task.cancelled, "key": task.key,
    })
}

/// As the option takes it: its text is JSON.
fn backoff(backoff: &Backoff) -> Value {
    serde_json::from_str(&backoff.to_string()).unwrap_or_default()
}

fn failure(failure: &TaskFailure) -> Value {
    json!({ "at_ms": wall(failure.at), "reason": failure.reason })
}

fn claimed_by(by: &ClaimedBy) -> Value {
    json!({ "label": by.label, "host": by.host, "pid": by.pid, "since_ms": by.since.map(wall) })
}

pub(crate) fn consumer(one: &Consumer) -> Value {
    json!({
        "label": one.label, "host": one.host, "pid": one.pid, "waiters": one.waiters, "claims": one.claims,
    })
}

pub(crate) fn tasks(tasks: &[TaskInfo]) -> Value {
    tasks.iter().map(task).collect()
}

pub(crate) fn enqueued(done: &Result<Enqueued, Error>) -> Value {
    match done {
        Ok(done) => json!({
            "id": done.id, "outcome": done.outcome.name(), "version": done.version.get(),
            "due_ms": done.due.map(wall),
        }),
        Err(failed) => json!({ "error": error(failed) }),
    }
}

pub(crate) fn settled(done: &[Result<(), Error>]) -> Value {
    let one = |done: &Result<(), Error>| match done {
        Ok(()) => Value::Null,
        Err(failed) => json!({ "error": error(failed) }),
    };
    done.iter().map(one).collect()
}

pub(crate) fn removed(done: Removed) -> Value {
    match done {
        Removed::Removed => json!({ "removed": true, "other_version": null }),
        Removed::OtherVersion(version) => json!({ "removed": false, "other_version": version.get() }),
        _ => json!({ "removed": false, "other_version": null }),
    }
}

pub(crate) fn rescheduled(done: &Rescheduled) -> Value {
    let outcome = match done {
        Rescheduled::Moved(_) => "moved",
        Rescheduled::Absent => "absent",
        Rescheduled::Claimed => "claimed",
        Rescheduled::Dead => "dead",
        _ => "other",
    };
    json!({ "outcome": outcome })
}

pub(crate) fn cancelled(done: Cancelled) -> Value {
    let outcome = match done {
        Cancelled::Removed => "removed",
        Cancelled::Running => "running",
        Cancelled::Absent => "absent",
        _ => "other",
    };
    json!({ "outcome": outcome })
}

pub(crate) fn result(found: &TaskResult) -> Value {
    let (mut result, mut version, mut reason) = (None, None, None);
    match found {
        TaskResult::Done { result: of, version: its } => (result, version) = (Some(hex(of)), Some(its.get())),
        TaskResult::Dead { reason: why } => reason = Some(why),
        _ => {}
    }
    json!({ "outcome": found.name(), "result": result, "version": version, "reason": reason })
}

pub(crate) fn events(page: &EventPage) -> Vec<Value> {
    let event = |(place, event): (usize, &TaskEvent)| {
        json!({
            "number": event.number, "at_ms": wall(event.at), "what": event.what.name(), "id": event.id,
            "version": event.version.get(), "attempt": event.attempt, "reason": event.reason,
            "missed": page.missed && place == 0,
        })
    };
    page.events.iter().enumerate().map(event).collect()
}

pub(crate) fn stats(stats: &QueueStats) -> Value {
    let settings = &stats.settings;
    json!({
        "scheduled": stats.scheduled, "ready": stats.ready, "claimed": stats.claimed, "dead": stats.dead,
        "successors": stats.successors, "paused": stats.paused, "waiters": stats.waiters,
        "next_due_ms": stats.next_due.map(millis),
        "enqueued": stats.enqueued, "acked": stats.acked, "retried": stats.retried, "died": stats.died,
        "max_len": settings.max_len, "dead_max": settings.dead_max, "dead_age_ms": millis(settings.dead_age),
        "dead_bytes": settings.dead_bytes, "intake": settings.intake,
        "events": settings.events,
        "max_running": settings.max_running, "rate": settings.rate.map(rate),
        "key_concurrency": settings.key_concurrency, "key_rate": settings.key_rate.map(rate),
        "held": stats.held, "keys_waiting": stats.keys_waiting, "next_key_ms": stats.next_key.map(millis),
        "gate": stats.gate.name(), "opens_in_ms": stats.gate.opens().map(millis),
        "schedules": stats.schedules, "schedules_late_ms": millis(stats.schedules_late), "flows": stats.flows,
    })
}

fn rate(rate: Rate) -> Value {
    json!({ "count": rate.count, "per_ms": millis(rate.per), "burst": rate.burst })
}

pub(crate) fn key(info: &KeyInfo) -> Value {
    let own = |own: KeyLimits| json!({ "concurrency": own.concurrency, "rate": own.rate.map(rate), "weight": own.weight });
    json!({
        "key": info.key, "running": info.running, "in_line": info.in_line, "held": info.held,
        "opens_in_ms": info.opens_in.map(millis), "limits": info.limits.map(own),
    })
}

pub(crate) fn schedule(schedule: &ScheduleInfo) -> Value {
    let missed = match schedule.missed {
        Some(Missed::Last) => json!("last"),
        Some(Missed::Skip) => json!("skip"),
        Some(Missed::All(max)) => json!(max),
        _ => Value::Null,
    };
    json!({
        "id": schedule.id, "when": schedule.when, "tz": schedule.tz, "missed": missed,
        "overlap": if schedule.overlap == Overlap::Skip { "skip" } else { "queue" },
        "jitter_ms": millis(schedule.jitter), "starts_ms": schedule.starts.map(wall),
        "ends_ms": schedule.ends.map(wall), "paused": schedule.paused, "next_ms": schedule.next.map(wall),
        "late_ms": millis(schedule.late), "owner": schedule.owner, "fired": schedule.fired,
        "skipped": schedule.skipped, "missed_slots": schedule.missed_slots, "last_task": schedule.last_task,
        "priority": schedule.priority, "max_attempts": schedule.max_attempts,
        "expires_ms": schedule.expires.map(millis), "size": schedule.size, "key": schedule.key,
    })
}

pub(crate) fn synced(synced: Synced) -> Value {
    json!({
        "added": synced.added, "changed": synced.changed, "kept": synced.kept, "removed": synced.removed,
        "newer": synced.newer,
    })
}

pub(crate) fn moment(time: SystemTime) -> Value {
    json!(wall(time))
}

pub(crate) fn report(report: &WorkerReport) -> Value {
    json!({
        "completed": report.completed, "failed": report.failed, "dead": report.dead, "lost": report.lost,
    })
}

fn headers(headers: &Headers) -> Value {
    headers.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

fn wall(time: SystemTime) -> u128 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis()
}
