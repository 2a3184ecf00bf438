//! The outbox of a queue: how tasks that are nodes of flows ended, until a step has worked it off.

use crate::base::name::TaskId;
use crate::protocol::{Message, NODES_BATCH, NodeEvent, NodeOf, OUTBOX_MANY, OUTBOX_PAUSE};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::record::{Flows, Outbox};
use crate::store::sqlite::queue::task::Task;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::millis;

/// Rows that one answer tells of, or one request is about, at most.
pub(super) const BATCH: i64 = NODES_BATCH as i64;

impl Outbox {
    /// The number of the oldest message, if there is one.
    pub(super) fn first(self) -> Option<i64> {
        (self.count > 0).then(|| self.last - self.count + 1)
    }
}

impl Flows {
    /// Whether one is to be looked after.
    pub(super) fn is_walk_due(self, now_ms: i64) -> bool {
        self.live > 0 && self.walk_at <= now_ms
    }
}

impl Work<'_> {
    /// A task with this mark, if it has one, has ended for good.
    pub(super) fn end_node(
        &mut self,
        mark: &str,
        event: NodeEvent,
        result: Option<&[u8]>,
    ) -> rusqlite::Result<()> {
        if mark.is_empty() { Ok(()) } else { self.post(mark, event, 0, result) }
    }

    /// A successor goes with main, which is told of by itself: it may be another node.
    pub(super) fn drop_node(&mut self, main: &Task, successor: &Task) -> rusqlite::Result<()> {
        if successor.node == main.node {
            return Ok(());
        }
        self.end_node(&successor.node, NodeEvent::Cancelled, None)
    }

    /// Something is to be done for a flow.
    pub(super) fn post_begin(&mut self, flow: &TaskId) -> rusqlite::Result<()> {
        let mark = NodeOf { flow: flow.clone(), node: 0, home: None }.text();
        self.post(&mark, NodeEvent::Begin, 0, None)
    }

    /// Puts a message in.
    pub(super) fn post(
        &mut self,
        mark: &str,
        event: NodeEvent,
        retries: u32,
        result: Option<&[u8]>,
    ) -> rusqlite::Result<()> {
        let outbox = &mut self.record.outbox;
        outbox.last += 1;
        if outbox.count == 0 {
            outbox.last = outbox.last.max(self.step.wall);
        }
        outbox.count += 1;
        self.has_mail = true;
        self.step.change(
            "INSERT INTO outbox (queue, number, event, mark, retries, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            &[&self.record.id, &outbox.last, &event.number(), &mark, &retries, &result],
        )?;
        Ok(())
    }

    /// Drops all messages up to this one.
    pub(super) fn drop_messages(&mut self, through: i64) -> rusqlite::Result<()> {
        let dropped = self
            .step
            .change("DELETE FROM outbox WHERE queue = ?1 AND number <= ?2", &[&self.record.id, &through])?;
        self.record.outbox.count -= i64::try_from(dropped).unwrap_or(i64::MAX);
        Ok(())
    }

    /// Whether a claim tells of the outbox, or of a flow that is to be looked after. Then nobody else need be woken for it.
    pub(super) fn are_flows_due(&mut self, has_tasks: bool) -> bool {
        let (record, now) = (&self.record, self.now_ms);
        if record.paused {
            return false;
        }
        let outbox = record.outbox;
        let many = i64::try_from(OUTBOX_MANY).unwrap_or(i64::MAX);
        // A clock that was set back delays nothing.
        let has_waited = || outbox.last_step > now || now - outbox.last_step >= millis(OUTBOX_PAUSE);
        let is_told = outbox.count > 0 && (!has_tasks || outbox.count >= many || has_waited());
        let are_due = is_told || record.flows.is_walk_due(now);
        self.has_mail &= !are_due;
        are_due
    }

    /// A message, its row's number, and the bytes of its result, of the first ones, at most so many. Results are not read.
    pub(super) fn first_messages(&self, most: i64) -> rusqlite::Result<Vec<(Message, i64, i64)>> {
        self.step.few(
            "SELECT number, event, mark, retries, serial, coalesce(length(body), 0) FROM outbox
             WHERE queue = ?1 ORDER BY number LIMIT ?2",
            &[&self.record.id, &most],
            |row| {
                let message = Message {
                    number: number(row.get(0)?),
                    // A later library's: the flow is looked at.
                    event: NodeEvent::from_number(row.get(1)?).unwrap_or(NodeEvent::Begin),
                    of: mark_of(row.get_ref(2)?.as_str()?),
                    retries: row.get(3)?,
                    result: None,
                };
                Ok((message, row.get(4)?, row.get(5)?))
            },
        )
    }
}

/// A mark that was written by this library; otherwise that of a flow that is not there.
pub(super) fn mark_of(text: &str) -> NodeOf {
    NodeOf::parse(text).unwrap_or_else(|| NodeOf { flow: TaskId::stored(b""), node: 0, home: None })
}
