//! End a task: one that waits goes, one that runs is told, and ends unless it is acked.

use crate::protocol::{Cancel, Cancelled, QueueReply};
use crate::store::sqlite::queue::work::Work;

/// Like cancel.lua.
pub(super) fn cancel(work: &mut Work<'_>, request: &Cancel) -> rusqlite::Result<QueueReply> {
    let id = request.id.as_str();
    work.close_window(id)?;
    let Some(mut live) = work.live(id)? else { return Ok(QueueReply::Cancel(Cancelled::Absent)) };
    if let Some(successor) = live.successor.take() {
        work.delete(&successor)?;
    }
    if live.main.is_held(work.step.now) {
        work.step.change("UPDATE task SET cancelled = 1 WHERE serial = ?1", &[&live.main.serial])?;
        return Ok(QueueReply::Cancel(Cancelled::Running));
    }
    work.end_cancelled(live)?;
    Ok(QueueReply::Cancel(Cancelled::Removed))
}
