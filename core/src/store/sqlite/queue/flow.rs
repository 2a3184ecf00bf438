//! A flow's row, and how flows are dropped.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::base::name::TaskId;
use crate::protocol::{
    FLOW_AGE, FLOW_DRAFT, FLOWS_ENDED_MAX, FlowPlan, FlowRecord, MAX_MOVED_BYTES, Version,
};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::forget::{Left, drop_nodes};
use crate::store::sqlite::queue::outbox::BATCH;
use crate::store::sqlite::queue::record::PURGE_STEP;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::millis;

/// Flows that one verb drops at most.
const DROPPED: usize = 10;

/// What a flow is doing, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowState {
    /// Its parts are coming.
    Draft = 0,
    Live = 1,
    Ended = 2,
}

/// A row without its states.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) serial: i64,
    pub(super) id: TaskId,
    pub(super) state: FlowState,
    pub(super) token: i64,
    pub(super) version: Version,
    pub(super) created: i64,
    pub(super) ended: i64,
    pub(super) nodes: i64,
    /// Bytes of the results of its nodes.
    pub(super) results: i64,
    pub(super) summary: Box<str>,
}

/// The columns of a [`Flow`].
pub(super) const FLOW: &str =
    "SELECT serial, id, state, token, version, created, ended, nodes, results, summary FROM flow";

impl Flow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            serial: row.get(0)?,
            id: TaskId::stored(row.get_ref(1)?.as_str()?.as_bytes()),
            state: match row.get(2)? {
                0 => FlowState::Draft,
                1 => FlowState::Live,
                _ => FlowState::Ended,
            },
            token: row.get(3)?,
            version: row.get(4)?,
            created: row.get(5)?,
            ended: row.get(6)?,
            nodes: row.get(7)?,
            results: row.get(8)?,
            summary: row.get(9)?,
        })
    }

    /// The flow with this id, also one whose parts are coming, but for one that ended too long ago.
    pub(super) fn find(
        connection: &Connection,
        queue: i64,
        id: &TaskId,
        now_ms: i64,
    ) -> rusqlite::Result<Option<Self>> {
        let sql = format!("{FLOW} WHERE queue = ?1 AND id = ?2");
        let found =
            connection.prepare_cached(&sql)?.query_row((queue, id.as_str()), Self::read).optional()?;
        Ok(found.filter(|flow| !flow.is_over(now_ms)))
    }

    /// The same, if it has begun.
    pub(super) fn begun(
        connection: &Connection,
        queue: i64,
        id: &TaskId,
        now_ms: i64,
    ) -> rusqlite::Result<Option<Self>> {
        let found = Self::find(connection, queue, id, now_ms)?;
        Ok(found.filter(|flow| flow.state != FlowState::Draft))
    }

    fn is_over(&self, now_ms: i64) -> bool {
        self.state == FlowState::Ended && self.ended < kept_since(now_ms)
    }

    pub(super) fn record(self, plan: Option<FlowPlan>) -> FlowRecord {
        FlowRecord {
            id: self.id,
            version: self.version,
            created: number(self.created),
            ended: number(self.ended),
            summary: self.summary.into(),
            plan,
        }
    }
}

/// Flows that ended before then are not kept.
pub(super) fn kept_since(now_ms: i64) -> i64 {
    now_ms - millis(FLOW_AGE)
}

/// The first that ended, and the first whose parts are coming, of the queue ?1.
const FIRST_ENDED: &str =
    "SELECT serial, ended, nodes FROM flow WHERE queue = ?1 AND state = 2 ORDER BY ended, id LIMIT 1";
const FIRST_DRAFT: &str =
    "SELECT serial, created, nodes FROM flow WHERE queue = ?1 AND state = 0 ORDER BY created LIMIT 1";

/// A flow that may be dropped: its number, since when its life counts, and how many nodes it has.
type First = (i64, i64, i64);

impl Work<'_> {
    /// The flow with this id, if it may be seen.
    pub(super) fn flow(&self, id: &TaskId) -> rusqlite::Result<Option<Flow>> {
        Flow::find(self.step.connection, self.record.id, id, self.now_ms)
    }

    /// The same, if it has begun.
    pub(super) fn begun_flow(&self, id: &TaskId) -> rusqlite::Result<Option<Flow>> {
        Flow::begun(self.step.connection, self.record.id, id, self.now_ms)
    }

    /// Nothing of a flow is seen any more. Its nodes go a few at a time.
    pub(super) fn drop_flow(&mut self, serial: i64, state: FlowState) -> rusqlite::Result<()> {
        self.step
            .change("UPDATE flow SET state = 3, id = char(1) || serial WHERE serial = ?1", &[&serial])?;
        let flows = &mut self.record.flows;
        flows.dropped += 1;
        match state {
            FlowState::Draft => {}
            FlowState::Live => flows.live -= 1,
            FlowState::Ended => flows.ended -= 1,
        }
        Ok(())
    }

    /// Goes on with what was dropped, and drops what is over its age.
    pub(super) fn tidy_flows(&mut self) -> rusqlite::Result<()> {
        let look = self.record.flows.look;
        if look != 0 && look <= self.now_ms || self.has_many_ended() {
            self.trim_flows()?;
        }
        self.drop_dropped(i64::try_from(PURGE_STEP).unwrap_or(i64::MAX))
    }

    /// Drops flows that are over their age, or too many, a limited number of them.
    fn trim_flows(&mut self) -> rusqlite::Result<()> {
        let mut nodes = 0;
        for _ in 0..DROPPED {
            let Some((serial, count, state)) = self.first_over()?.filter(|_| nodes < BATCH) else { break };
            nodes += count;
            self.drop_flow(serial, state)?;
        }
        self.drop_dropped(BATCH)?;
        self.record.flows.look = 0;
        for (first, age) in [(FIRST_ENDED, FLOW_AGE), (FIRST_DRAFT, FLOW_DRAFT)] {
            if let Some((_, since, _)) = self.first_flow(first)? {
                self.look_at_flows(since + millis(age) + 1);
            }
        }
        Ok(())
    }

    /// One is over its age then.
    pub(super) fn look_at_flows(&mut self, at: i64) {
        let look = &mut self.record.flows.look;
        *look = if *look == 0 { at } else { at.min(*look) };
    }

    fn has_many_ended(&self) -> bool {
        self.record.flows.ended > i64::try_from(FLOWS_ENDED_MAX).unwrap_or(i64::MAX)
    }

    fn first_over(&self) -> rusqlite::Result<Option<(i64, i64, FlowState)>> {
        let are_many = self.has_many_ended();
        let ended = self.first_flow(FIRST_ENDED)?;
        if let Some((serial, _, nodes)) = ended.filter(|first| are_many || first.1 < kept_since(self.now_ms))
        {
            return Ok(Some((serial, nodes, FlowState::Ended)));
        }
        let draft = self.first_flow(FIRST_DRAFT)?;
        let is_over = |first: &First| first.1 < self.now_ms - millis(FLOW_DRAFT);
        Ok(draft.filter(is_over).map(|(serial, _, nodes)| (serial, nodes, FlowState::Draft)))
    }

    fn first_flow(&self, sql: &str) -> rusqlite::Result<Option<First>> {
        self.step
            .connection
            .prepare_cached(sql)?
            .query_row([self.record.id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()
    }

    /// Drops nodes of flows that were dropped, at most so many.
    fn drop_dropped(&mut self, limit: i64) -> rusqlite::Result<()> {
        let mut left = Left { rows: limit, bytes: MAX_MOVED_BYTES };
        while self.record.flows.dropped > 0 {
            let sql = "SELECT serial FROM flow WHERE queue = ?1 AND state = 3 LIMIT 1";
            let queue = self.record.id;
            let first: Option<i64> =
                self.step.connection.prepare_cached(sql)?.query_row([queue], |row| row.get(0)).optional()?;
            let Some(serial) = first else {
                self.record.flows.dropped = 0;
                break;
            };
            drop_nodes(&self.step, queue, serial, &mut left)?;
            if !self.is_empty(serial)? {
                break;
            }
            self.step.change("DELETE FROM flow WHERE serial = ?1", &[&serial])?;
            self.record.flows.dropped -= 1;
            self.forget_sources()?;
        }
        Ok(())
    }

    fn is_empty(&self, serial: i64) -> rusqlite::Result<bool> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM flow_node WHERE queue = ?1 AND flow = ?2)
          AND NOT EXISTS (SELECT 1 FROM flow_result WHERE queue = ?1 AND flow = ?2)";
        self.step.connection.prepare_cached(sql)?.query_row((self.record.id, serial), |row| row.get(0))
    }

    /// When the last flow is gone, nothing is known of other outboxes either.
    fn forget_sources(&self) -> rusqlite::Result<()> {
        self.step.change(
            "DELETE FROM outbox_source WHERE queue = ?1 AND NOT EXISTS (SELECT 1 FROM flow WHERE queue = ?1)",
            &[&self.record.id],
        )?;
        Ok(())
    }
}
