//! How many tasks queues have, and their settings, as they are shown.

use std::time::Duration;

use serde_json::{Value, json};
use stanchion::{QueueStats, Settings};

use crate::text::{left, plain, table};

const HEADINGS: [&str; 6] = ["NAME", "READY", "CLAIMED", "SCHEDULED", "DEAD", "STATE"];

/// All queues: a table, or a line of JSON for each.
pub fn overview(queues: &[(QueueStats, String)], json: bool) -> String {
    if json {
        return queues.iter().map(|(stats, name)| described(name, stats, true)).collect();
    }
    let row = |(stats, name): &(QueueStats, String)| {
        let QueueStats { ready, claimed, scheduled, dead, .. } = stats;
        let [ready, claimed, scheduled, dead] = [ready, claimed, scheduled, dead].map(u64::to_string);
        [plain(name), ready, claimed, scheduled, dead, state(stats).into()]
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
        ("READY", stats.ready.to_string()),
        ("CLAIMED", stats.claimed.to_string()),
        ("SCHEDULED", stats.scheduled.to_string()),
        ("SUCCESSORS", stats.successors.to_string()),
        ("DEAD", stats.dead.to_string()),
        ("NEXT IN", next_due),
        ("ENQUEUED", stats.enqueued.to_string()),
        ("ACKED", stats.acked.to_string()),
        ("RETRIED", stats.retried.to_string()),
        ("DIED", stats.died.to_string()),
    ]) + &settings(&stats.settings, false)
}

/// Settings that are in force.
pub fn settings(settings: &Settings, json: bool) -> String {
    if json {
        return format!("{}\n", settings_as_json(settings));
    }
    lines(&[
        ("MAX LEN", settings.max_len.map_or("none".into(), |limit| limit.to_string())),
        ("DEAD MAX", settings.dead_max.to_string()),
        ("DEAD AGE", left(settings.dead_age)),
        ("DEAD BYTES", settings.dead_bytes.to_string()),
        ("INTAKE", if settings.intake { "on" } else { "off" }.into()),
    ])
}

fn lines(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(heading, value)| format!("{:<13}{value}\n", format!("{heading}:"))).collect()
}

fn state(stats: &QueueStats) -> &'static str {
    if stats.paused { "paused" } else { "active" }
}

fn as_json(name: &str, stats: &QueueStats) -> Value {
    json!({
        "queue": name,
        "paused": stats.paused,
        "ready": stats.ready,
        "claimed": stats.claimed,
        "scheduled": stats.scheduled,
        "successors": stats.successors,
        "dead": stats.dead,
        "next_due_ms": stats.next_due.map(millis),
        "enqueued": stats.enqueued,
        "acked": stats.acked,
        "retried": stats.retried,
        "died": stats.died,
        "settings": settings_as_json(&stats.settings),
    })
}

fn settings_as_json(settings: &Settings) -> Value {
    json!({
        "max_len": settings.max_len,
        "dead_max": settings.dead_max,
        "dead_age_ms": millis(settings.dead_age),
        "dead_bytes": settings.dead_bytes,
        "intake": settings.intake,
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
