//! Drop every task; settings stay.

use crate::protocol::QueueReply;
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::work::Work;

/// Like purge.lua.
pub(super) fn purge(work: &mut Work<'_>) -> rusqlite::Result<QueueReply> {
    let dropped = work.record.live() + work.record.all_dead();
    work.record.purge(&work.step)?;
    Ok(QueueReply::Purge(number(dropped)))
}
