//! How many tasks there are.

use std::time::Duration;

use crate::protocol::{Gate, QueueReply, QueueStats};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::schedule;
use crate::store::sqlite::queue::view::Reading;
use crate::store::sqlite::step::between;

/// Like stats.lua. Only what is due and not promoted is counted row by row, in an index: few tasks, unless
/// nobody has claimed for long.
pub(super) fn stats(reading: &Reading<'_>, key: &str) -> rusqlite::Result<QueueReply> {
    let record = &reading.record;
    let (due, ended) = (reading.count_due()?, reading.count_ended()?);
    let ready = record.count(RowState::Ready) + due + ended;
    let (keys_waiting, next_key) = keys_waiting(reading)?;
    let mut settings = record.settings();
    let limits = reading.limits.as_ref();
    limits.iter().for_each(|limits| limits.tell(&mut settings));
    let claims = record.count(RowState::Claimed);
    let gate = match limits {
        _ if record.paused => Gate::Paused,
        Some(limits) => limits.gate(reading.wall, claims).1,
        None => Gate::Open,
    };
    let (schedules, first) =
        (schedule::count(reading.connection, key)?, schedule::first_due(reading.connection, key)?);
    Ok(QueueReply::Stats(Box::new(QueueStats {
        scheduled: number(record.count(RowState::Scheduled) - due),
        ready: number(ready),
        claimed: number(claims - ended),
        held: number(record.count(RowState::Held)),
        keys_waiting,
        next_key,
        gate,
        dead: number(record.all_dead()),
        successors: number(record.count(RowState::Parked)),
        paused: record.paused,
        waiters: reading.waiters()?,
        next_due: reading.next_due()?,
        enqueued: number(record.enqueued),
        acked: number(record.acked),
        retried: number(record.retried),
        died: number(record.died),
        settings,
        schedules,
        schedules_late: first.map_or(Duration::ZERO, |due| between(due.saturating_mul(1_000), reading.wall)),
        flows: number(record.flows.live),
    })))
}

/// How many keys wait for a time, and for how long the first of them does.
fn keys_waiting(reading: &Reading<'_>) -> rusqlite::Result<(u64, Option<Duration>)> {
    if reading.limits.is_none() {
        return Ok((0, None));
    }
    let sql = "SELECT count(*), min(looks) FROM key_time WHERE queue = ?1 AND looks IS NOT NULL";
    let (count, first): (i64, Option<i64>) = reading
        .connection
        .prepare_cached(sql)?
        .query_row([reading.record.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let left = |at: i64| Duration::from_millis(number(at - reading.now_ms));
    Ok((number(count), first.map(left)))
}
