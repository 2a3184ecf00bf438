//! Look at what the outbox has, and at the flows that it is about.

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::OptionalExtension;

use crate::base::name::TaskId;
use crate::protocol::{
    FlowNow, MAX_MOVED_BYTES, MAX_REPLY_BYTES, Message, NODES_BATCH, OutboxReply, QueueReply, ReadOutbox,
    WALK_AGAIN, WALK_EVERY,
};
use crate::store::sqlite::numbers::stored;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::millis;

/// Like read_outbox.lua.
pub(super) fn read_outbox(work: &mut Work<'_>, request: ReadOutbox) -> rusqlite::Result<QueueReply> {
    let (mut messages, ids) = messages(work, i64::from(request.max).min(stored(NODES_BATCH as u64)))?;
    let mut flows = Vec::new();
    for id in &ids {
        flows.extend(flow_now(work, id)?);
    }
    let has_more = stored(messages.len() as u64) < work.record.outbox.count;
    for (message, serial) in messages.iter_mut().filter(|(message, _)| message.of.home.is_some()) {
        message.result = result(work, *serial)?;
    }
    let messages = messages.into_iter().map(|(message, _)| message).collect();
    let walk = if work.record.flows.is_walk_due(work.now_ms) { walk(work)? } else { None };
    Ok(QueueReply::ReadOutbox(OutboxReply { messages, has_more, flows, walk }))
}

/// Messages, each with the number of its row.
type Numbered = Vec<(Message, i64)>;

/// The messages that fit in an answer, with the numbers of their rows, and the flows of this queue that they are about.
fn messages(work: &Work<'_>, most: i64) -> rusqlite::Result<(Numbered, Vec<TaskId>)> {
    if work.record.outbox.count == 0 {
        return Ok((Vec::new(), Vec::new()));
    }
    let (mut told, mut known, mut ids) = (Vec::new(), HashSet::new(), Vec::new());
    let (mut bytes, mut moved) = (0, 0);
    for (message, serial, size) in work.first_messages(most)? {
        let is_here = message.of.home.is_none();
        let is_new = is_here && !known.contains(message.of.flow.as_str());
        if is_here {
            // The step that works it off moves it.
            moved += size;
        } else {
            bytes += size;
        }
        if is_new {
            bytes += size_of(work, &message.of.flow)?;
        }
        let is_over = bytes > stored(MAX_REPLY_BYTES as u64) || moved > MAX_MOVED_BYTES;
        if is_over && !told.is_empty() {
            break;
        }
        if is_new {
            known.insert(message.of.flow.as_str().to_owned());
            ids.push(message.of.flow.clone());
        }
        told.push((message, serial));
    }
    Ok((told, ids))
}

/// Bytes of a flow's graph and states.
fn size_of(work: &Work<'_>, id: &TaskId) -> rusqlite::Result<i64> {
    let sql = "SELECT length(graph) + length(states) FROM flow JOIN flow_plan ON flow_plan.flow = serial
      WHERE queue = ?1 AND id = ?2";
    let found = work
        .step
        .connection
        .prepare_cached(sql)?
        .query_row((work.record.id, id.as_str()), |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or(0))
}

/// The flow as it is now, if it is there and has begun.
fn flow_now(work: &Work<'_>, id: &TaskId) -> rusqlite::Result<Option<FlowNow>> {
    let Some(flow) = work.begun_flow(id)? else { return Ok(None) };
    work.step
        .connection
        .prepare_cached(
            "SELECT graph, states FROM flow JOIN flow_plan ON flow_plan.flow = serial WHERE serial = ?1",
        )?
        .query_row([flow.serial], |row| {
            Ok(FlowNow {
                id: flow.id.clone(),
                version: flow.version,
                graph: row.get_ref(0)?.as_blob()?.into(),
                states: row.get_ref(1)?.as_blob()?.into(),
            })
        })
        .optional()
}

fn result(work: &Work<'_>, serial: i64) -> rusqlite::Result<Option<Arc<[u8]>>> {
    work.step
        .connection
        .prepare_cached("SELECT body FROM outbox WHERE serial = ?1")?
        .query_row([serial], |row| Ok(row.get_ref(0)?.as_blob_or_null()?.map(Into::into)))
}

/// The next live flow, in the order in which they came, and the first one after the last.
fn walk(work: &mut Work<'_>) -> rusqlite::Result<Option<TaskId>> {
    let flows = work.record.flows;
    let again = millis(WALK_AGAIN) / flows.live.max(1);
    work.record.flows.walk_at = work.now_ms + again.max(millis(WALK_EVERY));
    for after in [flows.walked, 0] {
        let sql = "SELECT serial, id FROM flow INDEXED BY flow_in_turn
          WHERE queue = ?1 AND state = 1 AND serial > ?2 ORDER BY serial LIMIT 1";
        let next: Option<(i64, String)> = work
            .step
            .connection
            .prepare_cached(sql)?
            .query_row((work.record.id, after), |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        if let Some((serial, id)) = next {
            work.record.flows.walked = serial;
            return Ok(Some(TaskId::stored(id.as_bytes())));
        }
    }
    Ok(None)
}
