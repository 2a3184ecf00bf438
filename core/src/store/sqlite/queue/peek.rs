//! The tasks that come next.

use crate::protocol::{List, Peek, QueueReply, TaskState};
use crate::store::sqlite::queue::view::Reading;

/// Like peek.lua.
pub(super) fn peek(reading: &Reading<'_>, request: Peek) -> rusqlite::Result<QueueReply> {
    let wanted =
        List { state: TaskState::Ready, prefix: "".into(), bodies: true, from: None, max: request.max };
    Ok(QueueReply::Peek(reading.page(wanted, &reading.due_parts())?.tasks))
}
