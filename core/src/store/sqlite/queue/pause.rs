//! Stop, or go on, giving out tasks.

use crate::protocol::{Pause, QueueReply};
use crate::store::sqlite::queue::work::Work;

/// Like pause.lua. Those who asked meanwhile do not know when anything is due, so one of them is woken when
/// the queue goes on, if it holds anything.
pub(super) fn pause(work: &mut Work<'_>, request: Pause) -> QueueReply {
    work.ready |=
        work.record.paused && !request.paused && (work.record.live() > 0 || work.record.outbox.count > 0);
    work.record.paused = request.paused;
    QueueReply::Pause
}
