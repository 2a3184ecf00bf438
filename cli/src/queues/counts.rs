//! How many tasks queues have, and their settings, as they are shown.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};
use stanchion::{Consumer, Gate, QueueSettings, QueueStats};

use super::keys::{rate_as_json, rate_text};
use crate::text::{left, plain, table};

const HEADINGS: [&str; 7] = ["NAME", "READY", "CLAIMED", "SCHEDULED", "DEAD", "WAITERS", "STATE"];
/// Schedules that have been due for longer are late.
const LATE: Duration = Duration::from_secs(5);
const CONSUMER_HEADINGS: [&str; 5] = ["LABEL", "HOST", "PID", "WAITERS", "CLAIMS"];

/// All queues: a table, or a line of JSON for each.
pub fn overview(queues: &[(QueueStats, String)], json: bool) -> String {
    if json {
        return queues.iter().map(|(stats, name)| described(name, stats, true)).collect();
    }
    let row = |(stats, name): &(QueueStats, String)| {
        let QueueStats { ready, claimed, scheduled, dead, waiters, .. } = stats;
        let [ready, claimed, scheduled, dead, waiters] =
            [ready, claimed, scheduled, dead, waiters].map(u64::to_string);
        [plain(name), ready, claimed, scheduled, dead, waiters, state(stats).into()]
    };
    table(HEADINGS, queues.iter().map(row))
}

/// One queue, with everything.
pub fn described(name: &str, stats: &QueueStats, json: bool) -> String {
    if json {
        return format!("{}\n", as_json(name, stats));
    }
    let next_due = stats.next_due.map_or("-".into(), left);
    lines(&[
        ("NAME", plain(name)),
        ("STATE", state(stats).into()),
        ("WAITS FOR", waits_for(stats)),
        ("READY", stats.ready.to_string()),
        ("CLAIMED", stats.claimed.to_string()),
        ("HELD", stats.held.to_string()),
        ("SCHEDULED", stats.scheduled.to_string()),
        ("SUCCESSORS", stats.successors.to_string()),
        ("DEAD", stats.dead.to_string()),
        ("NEXT IN", next_due),
        ("WAITERS", stats.waiters.to_string()),
        ("ENQUEUED", stats.enqueued.to_string()),
        ("ACKED", stats.acked.to_string()),
        ("RETRIED", stats.retried.to_string()),
        ("DIED", stats.died.to_string()),
        ("SCHEDULES", schedules(stats)),
        ("FLOWS", stats.flows.to_string()),
    ]) + &settings(&stats.settings, false)
}

/// Who works on a queue: a table, or a line of JSON for each.
pub fn consumers(consumers: &[Consumer], json: bool) -> String {
    if json {
        return consumers.iter().map(|one| format!("{}\n", consumer_as_json(one))).collect();
    }
    let known = |text: &str| if text.is_empty() { "-".into() } else { plain(text) };
    let row = |one: &Consumer| {
        let pid = if one.pid == 0 { "-".into() } else { one.pid.to_string() };
        [known(&one.label), known(&one.host), pid, one.waiters.to_string(), one.claims.to_string()]
    };
    table(CONSUMER_HEADINGS, consumers.iter().map(row))
}

fn consumer_as_json(one: &Consumer) -> Value {
    json!({
        "label": known(&one.label),
        "host": known(&one.host),
        "pid": (one.pid != 0).then_some(one.pid),
        "waiters": one.waiters,
        "claims": one.claims,
    })
}

/// Nothing, if it is not known.
pub fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Settings that are in force.
pub fn settings(settings: &QueueSettings, json: bool) -> String {
    if json {
        return format!("{}\n", settings_as_json(settings));
    }
    lines(&[
        ("MAX LEN", settings.max_len.map_or("none".into(), |limit| limit.to_string())),
        ("DEAD MAX", settings.dead_max.to_string()),
        ("DEAD AGE", left(settings.dead_age)),
        ("DEAD BYTES", settings.dead_bytes.to_string()),
        ("INTAKE", if settings.intake { "on" } else { "off" }.into()),
        ("EVENTS", settings.events.to_string()),
        ("MAX RUNNING", settings.max_running.map_or("none".into(), |limit| limit.to_string())),
        ("RATE", settings.rate.map_or("none".into(), rate_text)),
        ("KEY LIMIT", settings.key_concurrency.map_or("none".into(), |limit| limit.to_string())),
        ("KEY RATE", settings.key_rate.map_or("none".into(), rate_text)),
    ])
}

fn lines(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(heading, value)| format!("{:<13}{value}\n", format!("{heading}:"))).collect()
}

/// How many, and whether nobody works on the queue.
fn schedules(stats: &QueueStats) -> String {
    let late = stats.schedules_late;
    let late =
        if late > LATE { format!(", late by {}: nobody works on it", left(late)) } else { String::new() };
    format!("{}{late}", stats.schedules)
}

/// Why what is due is not given out, in a sentence or two.
fn waits_for(stats: &QueueStats) -> String {
    let due = gate(stats).or_else(|| nobody(stats).filter(|_| stats.ready > 0));
    let all: Vec<String> = due.into_iter().chain(keys(stats)).collect();
    if all.is_empty() { "nothing".into() } else { all.join("; ") }
}

/// What keeps the queue from giving out tasks that are ready, if anything does.
pub fn gate(stats: &QueueStats) -> Option<String> {
    match stats.gate {
        Gate::Open => None,
        Gate::Paused => Some("paused".to_owned()),
        Gate::MaxRunning => Some(format!("{} run, no more may at once", stats.claimed)),
        Gate::Rate(opens) => Some(format!("its rate, until {}", until(opens))),
        Gate::Throttled(opens) => Some(format!("throttled until {}", until(opens))),
        _ => Some(stats.gate.name().to_owned()),
    }
}

/// Why nobody takes what may be taken, if so: nobody works on the queue, or all who do are busy.
pub fn nobody(stats: &QueueStats) -> Option<String> {
    match (stats.waiters, stats.claimed) {
        (0, 0) => Some("no consumer".to_owned()),
        (0, 1) => Some("1 task runs, and no consumer is free".to_owned()),
        (0, running) => Some(format!("{running} tasks run, and no consumer is free")),
        _ => None,
    }
}

/// What keys hold, and which wait for a time.
pub fn keys(stats: &QueueStats) -> impl Iterator<Item = String> {
    let held = match stats.held {
        0 => None,
        1 => Some("1 task held by its key".to_owned()),
        held => Some(format!("{held} tasks held by their keys")),
    };
    let waiting = stats.next_key.map(|next| {
        let waiting = stats.keys_waiting;
        format!(
            "{waiting} key{} until {}",
            if waiting == 1 { " waits" } else { "s wait, the first" },
            until(next)
        )
    });
    held.into_iter().chain(waiting)
}

/// A time by this machine's clock, and in how long that is.
fn until(time: Duration) -> String {
    let at = SystemTime::now().checked_add(time).and_then(|at| Timestamp::try_from(at).ok());
    let at = at.and_then(|at| at.round(jiff::Unit::Second).ok());
    at.map_or_else(|| left(time), |at| format!("{at} (in {})", left(time)))
}

fn state(stats: &QueueStats) -> &'static str {
    if stats.paused { "paused" } else { "active" }
}

fn as_json(name: &str, stats: &QueueStats) -> Value {
    json!({
        "queue": name,
        "paused": stats.paused,
        "waiters": stats.waiters,
        "ready": stats.ready,
        "claimed": stats.claimed,
        "held": stats.held,
        "keys_waiting": stats.keys_waiting,
        "next_key_ms": stats.next_key.map(millis),
        "gate": stats.gate.name(),
        "opens_in_ms": stats.gate.opens().map(millis),
        "scheduled": stats.scheduled,
        "successors": stats.successors,
        "dead": stats.dead,
        "next_due_ms": stats.next_due.map(millis),
        "enqueued": stats.enqueued,
        "acked": stats.acked,
        "retried": stats.retried,
        "died": stats.died,
        "schedules": stats.schedules,
        "schedules_late_ms": millis(stats.schedules_late),
        "flows": stats.flows,
        "settings": settings_as_json(&stats.settings),
    })
}

fn settings_as_json(settings: &QueueSettings) -> Value {
    json!({
        "max_len": settings.max_len,
        "dead_max": settings.dead_max,
        "dead_age_ms": millis(settings.dead_age),
        "dead_bytes": settings.dead_bytes,
        "intake": settings.intake,
        "events": settings.events,
        "max_running": settings.max_running,
        "rate": settings.rate.map(rate_as_json),
        "key_concurrency": settings.key_concurrency,
        "key_rate": settings.key_rate.map(rate_as_json),
    })
}

/// Whole milliseconds.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
