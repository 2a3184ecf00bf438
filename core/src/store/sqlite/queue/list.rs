//! The tasks of one state, a page at a time.

use crate::protocol::{List, ListReply, QueueReply, TaskState};
use crate::store::sqlite::queue::view::Reading;
use crate::store::sqlite::queue::walk::{ALL, CLAIMED, EXPIRED, FAILED, LATER};

/// Like list.lua.
pub(super) fn list(reading: &Reading<'_>, request: &List) -> rusqlite::Result<QueueReply> {
    let page = match request.state {
        TaskState::Ready => reading.page(request.clone(), &reading.due_parts())?,
        TaskState::Scheduled => reading.page(request.clone(), &[(&LATER, reading.now_ms)])?,
        TaskState::Claimed => reading.page(request.clone(), &[(&CLAIMED, reading.now)])?,
        TaskState::Held => reading.held(request.clone())?,
        // What failed first, then what expired.
        TaskState::Dead => reading.page(request.clone(), &[(&FAILED, ALL), (&EXPIRED, ALL)])?,
    };
    Ok(QueueReply::List(ListReply { tasks: page.tasks, next: page.next }))
}
