//! Drop every task; settings stay.

use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::fence as number;
use crate::verbs::QueueReply;

/// Like purge.lua.
pub(super) fn purge(work: &mut Work<'_>) -> rusqlite::Result<QueueReply> {
    let dropped = work.record.live() + work.record.dead;
    for table in [
        "DELETE FROM task WHERE queue = ?1",
        "DELETE FROM dead WHERE queue = ?1",
        "DELETE FROM throttle WHERE queue = ?1",
    ] {
        work.step.change(table, &[&work.record.id])?;
    }
    work.record.empty();
    Ok(QueueReply::Purge(number(dropped)))
}
