//! End a task: one that waits goes, one that runs is told, and ends unless it is acked.

use crate::protocol::{Cancel, Cancelled, QueueReply};
use crate::store::sqlite::queue::work::Work;

/// Like cancel.lua.
pub(super) fn cancel(work: &mut Work<'_>, request: &Cancel) -> rusqlite::Result<QueueReply> {
    Ok(QueueReply::Cancel(cancel_one(work, request.id.as_str())?))
}

/// The task of this id.
pub(super) fn cancel_one(work: &mut Work<'_>, id: &str) -> rusqlite::Result<Cancelled> {
    work.close_window(id)?;
    let Some(mut live) = work.live(id)? else { return Ok(Cancelled::Absent) };
    if let Some(successor) = live.successor.take() {
        work.drop_node(&live.main, &successor)?;
        work.delete(&successor)?;
    }
    if live.main.is_held(work.step.now) {
        work.step.change("UPDATE task SET cancelled = 1 WHERE serial = ?1", &[&live.main.serial])?;
        return Ok(Cancelled::Running);
    }
    work.end_cancelled(live)?;
    Ok(Cancelled::Removed)
}
