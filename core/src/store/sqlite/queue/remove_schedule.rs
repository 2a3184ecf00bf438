//! Drop a schedule.

use crate::base::name::TaskId;
use crate::protocol::QueueReply;
use crate::store::sqlite::queue::work::Work;

/// Like remove_schedule.lua. The tasks that it has made stay.
pub(super) fn remove_schedule(work: &Work<'_>, id: &TaskId) -> rusqlite::Result<QueueReply> {
    let sql = "DELETE FROM schedule WHERE queue = ?1 AND id = ?2";
    let removed = work.step.change(sql, &[&work.key, &id.as_str()])?;
    Ok(QueueReply::RemoveSchedule(removed > 0))
}
