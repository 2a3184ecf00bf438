//! The verbs of queues.

use rusqlite::Connection;

use crate::name::{Prefixes, QueueName};
use crate::store::sqlite::step::{Outcome, Step};
use crate::verbs::{QueueReply, QueueRequest, Reply};

/// Performs a verb within its transaction.
pub(super) fn perform(_step: &Step<'_>, _request: &QueueRequest) -> rusqlite::Result<Outcome> {
    Ok(Reply::Queue(QueueReply::Pause).into())
}

/// A page of queues.
pub(super) fn list_queues(
    _connection: &Connection,
    _prefixes: &Prefixes,
    _cursor: u64,
) -> rusqlite::Result<(u64, Vec<QueueName>)> {
    Ok((0, Vec::new()))
}
