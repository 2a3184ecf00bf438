//! How many tasks there are.

use std::time::Duration;

use crate::protocol::{QueueReply, QueueStats};
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
    let next_due = if ready > 0 { Some(Duration::ZERO) } else { reading.next_due()? };
    let (schedules, first) =
        (schedule::count(reading.connection, key)?, schedule::first_due(reading.connection, key)?);
    Ok(QueueReply::Stats(Box::new(QueueStats {
        scheduled: number(record.count(RowState::Scheduled) - due),
        ready: number(ready),
        claimed: number(record.count(RowState::Claimed) - ended),
        dead: number(record.all_dead()),
        successors: number(record.count(RowState::Parked)),
        paused: record.paused,
        waiters: reading.waiters()?,
        next_due,
        enqueued: number(record.enqueued),
        acked: number(record.acked),
        retried: number(record.retried),
        died: number(record.died),
        settings: record.settings(),
        schedules,
        schedules_late: first.map_or(Duration::ZERO, |due| between(due.saturating_mul(1_000), reading.wall)),
    })))
}
