//! Look for tasks that are nodes.

use std::collections::HashSet;

use crate::base::name::TaskId;
use crate::protocol::{LostNodes, NodeEvent, QueueReply};
use crate::store::sqlite::queue::outbox::BATCH;
use crate::store::sqlite::queue::view::Reading;

/// Like lost_nodes.lua.
pub(super) fn lost_nodes(reading: &Reading<'_>, request: &LostNodes) -> rusqlite::Result<QueueReply> {
    if reading.record.outbox.count > BATCH {
        return Ok(QueueReply::LostNodes(Vec::new()));
    }
    let told = told(reading)?;
    let mut lost = Vec::new();
    for (place, (id, of)) in (0..).zip(request.nodes.iter()) {
        if !told.contains(&of.text()) && !lives(reading, id)? {
            lost.push(place);
        }
    }
    Ok(QueueReply::LostNodes(lost))
}

/// Marks of nodes whose end is known. Other messages are of no node, though a number stands there.
fn told(reading: &Reading<'_>) -> rusqlite::Result<HashSet<String>> {
    let of_none = [NodeEvent::Begin, NodeEvent::Cancel, NodeEvent::Retry].map(NodeEvent::number);
    let values = (reading.record.id, of_none[0], of_none[1], of_none[2]);
    reading
        .connection
        .prepare_cached("SELECT mark FROM outbox WHERE queue = ?1 AND event NOT IN (?2, ?3, ?4)")?
        .query_map(values, |row| row.get(0))?
        .collect()
}

fn lives(reading: &Reading<'_>, id: &TaskId) -> rusqlite::Result<bool> {
    reading
        .connection
        .prepare_cached("SELECT 1 FROM task WHERE queue = ?1 AND id = ?2")?
        .exists((reading.record.id, id.as_str()))
}
