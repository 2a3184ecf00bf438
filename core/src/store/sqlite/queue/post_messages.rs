//! Put messages into the outbox of the queue that the flows are in.

use rusqlite::OptionalExtension;

use crate::protocol::{NodeOf, PostMessages, QueueReply};
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::queue::work::Work;

/// Like post_messages.lua.
pub(super) fn post_messages(work: &mut Work<'_>, request: &PostMessages) -> rusqlite::Result<QueueReply> {
    let known = request.source.as_deref().map_or(Ok(0), |source| known(work, source))?;
    let is_new = |number: u64| request.source.is_none() || number > known;
    for message in request.messages.iter().filter(|message| is_new(message.number)) {
        let mark = NodeOf { home: None, ..message.of.clone() }.text();
        work.post(&mark, message.event, message.retries, message.result.as_deref())?;
    }
    let last = request.messages.last().map_or(0, |message| message.number);
    match &request.source {
        Some(source) if last > known => remember(work, source, last)?,
        _ => {}
    }
    Ok(QueueReply::PostMessages)
}

/// The number of the last one that came from there.
fn known(work: &Work<'_>, source: &str) -> rusqlite::Result<u64> {
    let found: Option<i64> = work
        .step
        .connection
        .prepare_cached("SELECT number FROM outbox_source WHERE queue = ?1 AND source = ?2")?
        .query_row((work.record.id, source), |row| row.get(0))
        .optional()?;
    Ok(found.map_or(0, number))
}

fn remember(work: &Work<'_>, source: &str, last: u64) -> rusqlite::Result<()> {
    work.step.change(
        "INSERT INTO outbox_source (queue, source, number) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET number = excluded.number",
        &[&work.record.id, &source, &stored(last)],
    )?;
    Ok(())
}
