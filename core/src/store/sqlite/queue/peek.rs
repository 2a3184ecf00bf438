//! The tasks that come next.

use crate::store::sqlite::queue::view::{Page, Reading};
use crate::verbs::{Peek, QueueReply};

/// Like peek.lua.
pub(super) fn peek(reading: &Reading<'_>, request: Peek) -> rusqlite::Result<QueueReply> {
    let mut page = Page::new(request.max);
    reading.add_ready(&mut page, 0)?;
    Ok(QueueReply::Peek(page.tasks))
}
