//! One task: the live one, else its newest dead record.

use crate::store::sqlite::queue::view::{Page, Reading, select_dead, select_record};
use crate::verbs::{Get, QueueReply};

/// Like get.lua.
pub(super) fn get(reading: &Reading<'_>, request: &Get) -> rusqlite::Result<QueueReply> {
    let (queue, id) = (reading.record.id, request.id.as_str());
    let mut page = Page::new(1);
    reading.add(&mut page, select_record!("id = ?2 AND parked = 0"), &[&queue, &id])?;
    let newest = select_dead!("id = ?2 ORDER BY receipt DESC LIMIT 1");
    reading.add_dead(&mut page, newest, &[&queue, &id])?;
    Ok(QueueReply::Get(page.tasks.pop().map(Box::new)))
}
