//! Schedules, as they are shown.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};
use stanchion::{Missed, Overlap, ScheduleInfo};

use crate::enqueue::millis;
use crate::text::{left, plain, shortened, table};

const HEADINGS: [&str; 7] = ["ID", "WHEN", "TZ", "NEXT", "STATE", "FIRED", "OWNER"];
/// How much of a text a table shows.
const CELL: usize = 40;
/// A schedule that has been due for longer is late.
const LATE: Duration = Duration::from_secs(5);

/// All of them: a table, or a line of JSON for each.
pub fn table_of(schedules: &[ScheduleInfo], json: bool) -> String {
    if json {
        return schedules.iter().map(|one| format!("{}\n", as_json(one))).collect();
    }
    let row = |one: &ScheduleInfo| {
        [
            shortened(&plain(&one.id), CELL),
            shortened(&plain(&one.when), CELL),
            plain(&one.tz),
            one.next.map_or("-".into(), when),
            state(one),
            one.fired.to_string(),
            one.owner.as_deref().map_or("-".into(), plain),
        ]
    };
    table(HEADINGS, schedules.iter().map(row))
}

/// One schedule, with everything, and its next slots.
pub fn described(one: &ScheduleInfo, next: &[SystemTime], json: bool) -> String {
    if json {
        let mut fields = as_json(one);
        fields["coming_ms"] = next.iter().copied().map(millis).collect();
        return format!("{fields}\n");
    }
    let mut rows = vec![
        ("ID", plain(&one.id)),
        ("STATE", state(one)),
        ("WHEN", plain(&one.when)),
        ("TZ", plain(&one.tz)),
        ("MISSED", missed(one).map_or("-".into(), |word| word.to_string())),
        ("OVERLAP", overlap(one).into()),
    ];
    rows.extend((!one.jitter.is_zero()).then(|| ("JITTER", left(one.jitter))));
    rows.extend(one.starts.map(|time| ("STARTS", utc(time))));
    rows.extend(one.ends.map(|time| ("ENDS", utc(time))));
    rows.extend(one.owner.as_ref().map(|owner| ("OWNER", plain(owner))));
    rows.extend([
        ("FIRED", one.fired.to_string()),
        ("SKIPPED", one.skipped.to_string()),
        ("NOT FIRED", one.missed_slots.to_string()),
    ]);
    rows.extend(one.last_task.as_ref().map(|task| ("LAST TASK", plain(task))));
    rows.extend([
        ("PRIORITY", one.priority.to_string()),
        ("ATTEMPTS", one.max_attempts.to_string()),
        ("SIZE", format!("{} bytes", one.size)),
    ]);
    rows.extend(one.expires.map(|time| ("EXPIRES", left(time))));
    rows.extend(one.key.as_ref().map(|key| ("KEY", plain(key))));
    rows.extend(next.iter().map(|time| ("NEXT", format!("{} ({})", utc(*time), when(*time)))));
    rows.iter().map(|(heading, value)| format!("{:<12}{value}\n", format!("{heading}:"))).collect()
}

/// Times, a line for each.
pub fn slots(slots: &[SystemTime], json: bool) -> String {
    let line = |slot: &SystemTime| match json {
        true => format!("{}\n", json!({ "slot_ms": millis(*slot), "slot": utc(*slot) })),
        false => format!("{}\n", utc(*slot)),
    };
    slots.iter().map(line).collect()
}

fn as_json(one: &ScheduleInfo) -> Value {
    json!({
        "id": one.id,
        "when": one.when,
        "tz": one.tz,
        "missed": missed(one),
        "overlap": overlap(one),
        "jitter_ms": whole(one.jitter),
        "starts_ms": one.starts.map(millis),
        "ends_ms": one.ends.map(millis),
        "paused": one.paused,
        "next_ms": one.next.map(millis),
        "late_ms": whole(one.late),
        "owner": one.owner,
        "fired": one.fired,
        "skipped": one.skipped,
        "missed_slots": one.missed_slots,
        "last_task": one.last_task,
        "priority": one.priority,
        "max_attempts": one.max_attempts,
        "expires_ms": one.expires.map(whole),
        "size": one.size,
        "key": one.key,
    })
}

/// "last", "skip", or how many.
fn missed(one: &ScheduleInfo) -> Option<Value> {
    match one.missed? {
        Missed::Last => Some("last".into()),
        Missed::Skip => Some("skip".into()),
        Missed::All(most) => Some(most.into()),
        _ => None,
    }
}

fn overlap(one: &ScheduleInfo) -> &'static str {
    if one.overlap == Overlap::Skip { "skip" } else { "queue" }
}

fn state(one: &ScheduleInfo) -> String {
    match one.next {
        _ if one.paused => "paused".into(),
        None => "over".into(),
        Some(_) if one.late > LATE => format!("late by {}", left(one.late)),
        Some(_) => "active".into(),
    }
}

/// Seen from now.
fn when(time: SystemTime) -> String {
    match time.duration_since(SystemTime::now()) {
        Ok(until) => format!("in {}", left(until)),
        Err(since) => format!("{} ago", left(since.duration())),
    }
}

fn utc(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| "-".into(), |time| time.to_string())
}

fn whole(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
