//! Drop dead tasks.

use crate::protocol::{QueueReply, Sweep};
use crate::store::sqlite::queue::work::Work;

/// Like remove_dead.lua.
pub(super) fn remove_dead(work: &mut Work<'_>, request: &Sweep) -> rusqlite::Result<QueueReply> {
    let swept = work.sweep(request, |work, dead| work.forget_dead(dead.serial, dead.size, dead.expired))?;
    Ok(QueueReply::RemoveDead(swept))
}
