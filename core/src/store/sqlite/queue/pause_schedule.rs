//! Pause a schedule, or let it go on.

use crate::protocol::{PauseSchedule, QueueReply};
use crate::store::sqlite::queue::schedule::{find, stored_due};
use crate::store::sqlite::queue::work::Work;

/// Like pause_schedule.lua. The slots of the pause are not meant.
pub(super) fn pause_schedule(work: &mut Work<'_>, request: &PauseSchedule) -> rusqlite::Result<QueueReply> {
    let id = request.id.as_str();
    let Some(schedule) = find(work.step.connection, work.key, id)? else {
        return Ok(QueueReply::PauseSchedule(false));
    };
    if schedule.paused == request.paused {
        return Ok(QueueReply::PauseSchedule(true));
    }
    work.earlier |= !request.paused;
    let due = if request.paused { stored_due(None) } else { work.now_ms };
    let version = work.next_version();
    work.step.change(
        "UPDATE schedule SET version = ?3, paused = ?4, fresh = 1, due = ?5 WHERE queue = ?1 AND id = ?2",
        &[&work.key, &id, &version, &request.paused, &due],
    )?;
    Ok(QueueReply::PauseSchedule(true))
}
