//! The tasks of one state, a page at a time.

use crate::store::sqlite::queue::view::{Page, Reading, select_dead, select_record};
use crate::store::sqlite::step::stored_fence as stored;
use crate::verbs::{List, ListReply, QueueReply, TaskState};

/// Like list.lua: pages by rank.
pub(super) fn list(reading: &Reading<'_>, request: List) -> rusqlite::Result<QueueReply> {
    let (queue, skip) = (reading.record.id, stored(request.cursor));
    let mut page = Page::new(request.max);
    let limit = page.limit();
    match request.state {
        TaskState::Ready => reading.add_ready(&mut page, skip)?,
        TaskState::Scheduled => {
            let later = select_record!("state = 0 AND due > ?4 ORDER BY due LIMIT ?2 OFFSET ?3");
            reading.add(&mut page, later, &[&queue, &limit, &skip, &reading.now_ms])?;
        }
        TaskState::Claimed => {
            let held = select_record!("state = 2 AND ends > ?4 ORDER BY ends LIMIT ?2 OFFSET ?3");
            reading.add(&mut page, held, &[&queue, &limit, &skip, &reading.now])?;
        }
        TaskState::Dead => {
            // What failed first, then what expired.
            let newest = select_dead!("true ORDER BY expired, died DESC, receipt DESC LIMIT ?2 OFFSET ?3");
            reading.add_dead(&mut page, newest, &[&queue, &limit, &skip])?;
        }
    }
    let next = page.full.then(|| request.cursor.saturating_add(page.tasks.len() as u64));
    Ok(QueueReply::List(ListReply { tasks: page.tasks, next }))
}
