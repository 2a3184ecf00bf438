//! Take tasks for good.

use std::time::Duration;

use crate::protocol::{Happened, NodeEvent, Pop, QueueReply, TaskState, Verdict};
use crate::store::sqlite::queue::task::verdict_number;
use crate::store::sqlite::queue::view::record_of;
use crate::store::sqlite::queue::work::Work;

/// Like pop.lua.
pub(super) fn pop(work: &mut Work<'_>, request: Pop) -> rusqlite::Result<QueueReply> {
    if work.record.paused {
        return Ok(QueueReply::Pop(None));
    }
    let more = work.promote()?;
    let taken = work.take(request.max, |work, mut live| {
        live.main.spend(verdict_number(&Verdict::Ack));
        work.record.acked += 1;
        work.end_node(&live.main.node, NodeEvent::Done, None)?;
        work.succeed(live)
    })?;
    for (task, _) in &taken {
        work.happen(Happened::Done, task, "")?;
    }
    work.ready = more || work.is_left()?;
    let records = taken.into_iter().map(|(task, body)| {
        let remaining = Duration::ZERO;
        record_of(task, body.into(), TaskState::Claimed, remaining, None)
    });
    Ok(QueueReply::Pop(Some(records.collect())))
}
