//! Change settings.

use crate::protocol::{Configure, QueueReply};
use crate::store::sqlite::numbers::stored;
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::millis;

/// Like configure.lua. The intake's setting is kept, but there is no intake here: no program can ZADD.
pub(super) fn configure(work: &mut Work<'_>, request: &Configure) -> rusqlite::Result<QueueReply> {
    let record = &mut work.record;
    if let Some(max_len) = request.max_len {
        record.max_len = max_len.map(stored);
    }
    record.dead_max = request.dead_max.map(stored).or(record.dead_max);
    record.dead_age = request.dead_age.map(millis).or(record.dead_age);
    record.dead_bytes = request.dead_bytes.map(stored).or(record.dead_bytes);
    record.intake = request.intake.or(record.intake);
    let mut changed = work.limits.clone().unwrap_or_default();
    if changed.configure(request, work.record.count(RowState::Held) > 0, work.step.wall) {
        *work.limits_mut() = changed;
        // Who waits looks when it may go on now.
        work.ready = true;
    }
    if let Some(events) = request.events {
        work.keep_events(stored(events))?;
    }
    Ok(QueueReply::Configure)
}
