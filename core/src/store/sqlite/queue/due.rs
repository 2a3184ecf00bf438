//! When there will be something to claim.

use std::time::Duration;

use rusqlite::Connection;

use crate::protocol::Gate;
use crate::store::sqlite::queue::limits::Limits;
use crate::store::sqlite::queue::record::{Record, RowState};
use crate::store::sqlite::step::between;

/// When the first scheduled task of the queue ?1 is due.
pub(super) const FIRST_DUE: &str = "SELECT min(due) FROM task WHERE queue = ?1 AND state = 0";
/// When the first lease of the queue ?1 ends.
const FIRST_END: &str = "SELECT min(ends) FROM task WHERE queue = ?1 AND state = 2";
/// When the first key of the queue ?1 may go on.
pub(super) const FIRST_KEY: &str = "SELECT min(looks) FROM key_time WHERE queue = ?1 AND looks IS NOT NULL";

/// What is needed to tell.
pub(super) struct Outlook<'a> {
    pub(super) connection: &'a Connection,
    pub(super) record: &'a Record,
    pub(super) limits: Option<&'a Limits>,
    /// The boot clock in microseconds.
    pub(super) now: i64,
    /// Wall time in microseconds.
    pub(super) wall: i64,
}

impl Outlook<'_> {
    /// How long until something becomes due, a lease ends, or a limit lets something go.
    pub(super) fn next_due(&self) -> rusqlite::Result<Option<Duration>> {
        let gate = match self.limits {
            Some(limits) => limits.gate(self.wall, self.record.count(RowState::Claimed)).1,
            None => Gate::Open,
        };
        let comes = match (self.next_task()?, gate) {
            (_, Gate::MaxRunning) => None,
            (comes, gate) => comes.map(|comes| comes.max(gate.opens().unwrap_or_default())),
        };
        if comes == Some(Duration::ZERO) {
            return Ok(comes);
        }
        let ends = self.first(FIRST_END)?.map(|ends| between(self.now, ends));
        Ok(comes.into_iter().chain(ends).min())
    }

    /// The same without the ends of leases, as far as the queue's own limits are nothing to it.
    fn next_task(&self) -> rusqlite::Result<Option<Duration>> {
        let sweeps = self.limits.is_some_and(|limits| limits.sweep.is_some());
        if sweeps || self.record.count(RowState::Ready) > 0 {
            return Ok(Some(Duration::ZERO));
        }
        let key = if self.limits.is_some() { self.first(FIRST_KEY)? } else { None };
        let first = self.first(FIRST_DUE)?.into_iter().chain(key).min();
        Ok(first.map(|due| between(self.wall, due.saturating_mul(1_000))))
    }

    fn first(&self, sql: &str) -> rusqlite::Result<Option<i64>> {
        self.connection.prepare_cached(sql)?.query_row([self.record.id], |row| row.get(0))
    }
}
