//! Nodes of flows as they are kept until they are put into their queues, and what came of them.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::base::name::TaskKey;
use crate::protocol::{Due, FLOW_RESULTS, NewNode};
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::queue::flow::Flow;
use crate::store::sqlite::queue::schedule::key_of;
use crate::store::sqlite::queue::work::{Work, millis_up};

const AT_ONCE: i64 = 0;
const LATER: i64 = 1;
const THEN: i64 = 2;

/// The node of this number of a flow.
pub(super) fn node(
    connection: &Connection,
    queue: i64,
    flow: i64,
    number: u32,
) -> rusqlite::Result<Option<NewNode>> {
    connection
        .prepare_cached(
            "SELECT name, home, due_kind, due, priority, max_attempts, expires, key, body FROM flow_node
             WHERE queue = ?1 AND flow = ?2 AND node = ?3",
        )?
        .query_row((queue, flow, number), read)
        .optional()
}

/// Its name.
pub(super) fn node_name(
    connection: &Connection,
    queue: i64,
    flow: i64,
    number: u32,
) -> rusqlite::Result<Option<Box<str>>> {
    connection
        .prepare_cached("SELECT name FROM flow_node WHERE queue = ?1 AND flow = ?2 AND node = ?3")?
        .query_row((queue, flow, number), |row| row.get(0))
        .optional()
}

fn read(row: &Row<'_>) -> rusqlite::Result<NewNode> {
    let home = row.get_ref(1)?.as_str()?;
    let due = number(row.get(3)?);
    let expires: i64 = row.get(6)?;
    Ok(NewNode {
        name: row.get(0)?,
        queue: (!home.is_empty()).then(|| home.into()),
        due: match row.get(2)? {
            LATER => Due::In(Duration::from_millis(due)),
            THEN => Due::At(due),
            _ => Due::Now,
        },
        priority: row.get(4)?,
        max_attempts: row.get(5)?,
        expires: (expires > 0).then(|| Duration::from_millis(number(expires))),
        key: key_of(row.get_ref(7)?.as_str()?),
        body: row.get_ref(8)?.as_blob()?.into(),
    })
}

/// What came of the node of this number.
pub(super) fn node_result(
    connection: &Connection,
    queue: i64,
    flow: i64,
    number: u32,
) -> rusqlite::Result<Option<Arc<[u8]>>> {
    connection
        .prepare_cached("SELECT body FROM flow_result WHERE queue = ?1 AND flow = ?2 AND node = ?3")?
        .query_row((queue, flow, number), |row| Ok(row.get_ref(0)?.as_blob()?.into()))
        .optional()
}

impl Work<'_> {
    /// Keeps nodes of a flow, in the place of those that have these numbers.
    pub(super) fn keep_nodes(
        &mut self,
        flow: &mut Flow,
        first: u32,
        nodes: &[NewNode],
    ) -> rusqlite::Result<()> {
        for (number, node) in (i64::from(first)..).zip(nodes) {
            self.keep_node(flow.serial, number, node)?;
            flow.nodes = flow.nodes.max(number + 1);
        }
        let set = "UPDATE flow SET nodes = ?2 WHERE serial = ?1";
        self.step.change(set, &[&flow.serial, &flow.nodes])?;
        Ok(())
    }

    fn keep_node(&self, flow: i64, number: i64, node: &NewNode) -> rusqlite::Result<()> {
        let (kind, due) = match node.due {
            Due::Now => (AT_ONCE, 0),
            Due::In(delay) => (LATER, millis_up(delay)),
            Due::At(at) => (THEN, stored(at)),
        };
        self.step.change(
            "INSERT INTO flow_node (queue, flow, node, name, home, due_kind, due, priority, max_attempts, expires,
               key, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (queue, flow, node) DO UPDATE SET name = excluded.name, home = excluded.home,
               due_kind = excluded.due_kind, due = excluded.due, priority = excluded.priority,
               max_attempts = excluded.max_attempts, expires = excluded.expires, key = excluded.key,
               body = excluded.body",
            &[
                &self.record.id,
                &flow,
                &number,
                &&*node.name,
                &node.queue.as_deref().unwrap_or_default(),
                &kind,
                &due,
                &node.priority,
                &node.max_attempts,
                &node.expires.map_or(0, |expires| millis_up(expires).max(1)),
                &node.key.as_ref().map_or("", TaskKey::as_str),
                &&*node.body,
            ],
        )?;
        Ok(())
    }

    /// Keeps what a message brought as what came of a node, in the place of what came of it before, if there is room. The
    /// flow's row is not written.
    pub(super) fn keep_node_result(
        &mut self,
        flow: &mut Flow,
        node: u32,
        message: i64,
        size: i64,
    ) -> rusqlite::Result<()> {
        let (queue, serial) = (self.record.id, flow.serial);
        if flow.results > 0 {
            let sql =
                "DELETE FROM flow_result WHERE queue = ?1 AND flow = ?2 AND node = ?3 RETURNING length(body)";
            let gone: Vec<i64> = self.step.few(sql, &[&queue, &serial, &node], |row| row.get(0))?;
            flow.results -= gone.iter().sum::<i64>();
        }
        if flow.results + size <= i64::try_from(FLOW_RESULTS).unwrap_or(i64::MAX) {
            self.step.change(
                "INSERT INTO flow_result (queue, flow, node, body) SELECT ?1, ?2, ?3, body FROM outbox
                 WHERE serial = ?4
                 ON CONFLICT (queue, flow, node) DO UPDATE SET body = excluded.body",
                &[&queue, &serial, &node, &message],
            )?;
            flow.results += size;
            self.moved += size;
        }
        Ok(())
    }
}
