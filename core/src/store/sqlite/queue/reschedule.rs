//! Give a waiting task another due time.

use crate::protocol::{QueueReply, Reschedule, RescheduleReply};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::task::Task;
use crate::store::sqlite::queue::work::Work;

/// Like reschedule.lua.
pub(super) fn reschedule(work: &mut Work<'_>, request: &Reschedule) -> rusqlite::Result<QueueReply> {
    let id = request.id.as_str();
    // A task whose lease has ended may die of that.
    let reply = match work.find(id)? {
        Some(live) if live.main.state == RowState::Claimed => RescheduleReply::Claimed,
        Some(live) => {
            let before = live.main;
            let mut main = Task { due: work.due(request.due), backoff: 0, ..before.clone() };
            let place = work.stays(&before, &mut main);
            let due = number(main.due);
            work.put(main, place)?;
            RescheduleReply::Moved(due)
        }
        None if work.is_dead(id)? => RescheduleReply::Dead,
        None => RescheduleReply::Absent,
    };
    Ok(QueueReply::Reschedule(reply))
}
