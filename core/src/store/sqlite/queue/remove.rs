//! Drop a task: its run, its successor and its throttle window.

use crate::protocol::{Happened, NodeEvent, QueueReply, Remove, Removed};
use crate::store::sqlite::queue::work::Work;

/// Like remove.lua.
pub(super) fn remove(work: &mut Work<'_>, request: &Remove) -> rusqlite::Result<QueueReply> {
    let id = request.id.as_str();
    let live = work.live(id)?;
    if let Some(wanted) = request.version {
        let Some(live) = &live else { return Ok(QueueReply::Remove(Removed::Absent)) };
        let version = live.successor.as_ref().unwrap_or(&live.main).version;
        if version != wanted {
            return Ok(QueueReply::Remove(Removed::OtherVersion(version)));
        }
    }
    work.close_window(id)?;
    let Some(live) = live else { return Ok(QueueReply::Remove(Removed::Absent)) };
    work.rouse(id)?;
    work.happen(Happened::Removed, &live.main, "")?;
    work.end_node(&live.main.node, NodeEvent::Cancelled, None)?;
    work.leave_key(&live.main)?;
    work.delete(&live.main)?;
    if let Some(successor) = &live.successor {
        work.drop_node(&live.main, successor)?;
        work.delete(successor)?;
    }
    Ok(QueueReply::Remove(Removed::Removed))
}
