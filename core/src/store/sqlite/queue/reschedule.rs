//! Give a waiting task another due time.

use crate::store::sqlite::queue::task::State;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::fence as number;
use crate::verbs::{QueueReply, Reschedule, RescheduleReply};

/// Like reschedule.lua.
pub(super) fn reschedule(work: &mut Work<'_>, request: &Reschedule) -> rusqlite::Result<QueueReply> {
    let id = request.id.as_str();
    let mut live = work.live(id)?;
    // A lease that has ended is first treated as promote would: its task may die of it.
    if let Some(ended) =
        live.take_if(|live| live.main.state == State::Claimed && !live.main.is_held(work.step.now))
    {
        work.end_lease(ended)?;
        live = work.live(id)?;
    }
    let reply = match live {
        Some(live) if live.main.state == State::Claimed => RescheduleReply::Claimed,
        Some(live) => {
            let mut main = live.main;
            main.due = work.due(request.due);
            let due = number(main.due);
            work.put(main)?;
            RescheduleReply::Moved(due)
        }
        None if work.is_dead(id)? => RescheduleReply::Dead,
        None => RescheduleReply::Absent,
    };
    Ok(QueueReply::Reschedule(reply))
}
