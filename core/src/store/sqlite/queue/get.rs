//! One task: the live one, else its newest dead record.

use rusqlite::OptionalExtension;

use crate::protocol::{Get, QueueReply};
use crate::store::sqlite::queue::view::{DEAD, Reading, TASK, dead_at};

/// Like get.lua.
pub(super) fn get(reading: &Reading<'_>, request: &Get) -> rusqlite::Result<QueueReply> {
    let key = (reading.record.id, request.id.as_str());
    let live = format!("{TASK}, body FROM task WHERE queue = ?1 AND id = ?2 AND parked = 0");
    let mut live = reading.connection.prepare_cached(&live)?;
    let mut found = live.query_row(key, |row| reading.record_at(row)).optional()?;
    if found.is_none() {
        let newest =
            format!("{DEAD}, body FROM dead WHERE queue = ?1 AND id = ?2 ORDER BY receipt DESC LIMIT 1");
        found = reading.connection.prepare_cached(&newest)?.query_row(key, dead_at).optional()?;
    }
    Ok(QueueReply::Get(found.map(Box::new)))
}
