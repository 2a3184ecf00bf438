//! What the queue's own limits let go now.

use crate::protocol::{Gate, KEY_SOON};
use crate::store::sqlite::queue::due::FIRST_KEY;
use crate::store::sqlite::queue::limits::Limits;
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::millis;

impl Work<'_> {
    /// The limits, if the queue has any.
    pub(super) fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    /// The limits, to be changed: they are there from now on.
    pub(super) fn limits_mut(&mut self) -> &mut Limits {
        self.limits_changed = true;
        self.limits.get_or_insert_default()
    }

    /// How many tasks may go now, and what is in the way if none may.
    pub(super) fn gate(&self) -> (i64, Gate) {
        let claimed = self.record.count(RowState::Claimed);
        self.limits().map_or((i64::MAX, Gate::Open), |limits| limits.gate(self.step.wall, claimed))
    }

    /// Whether another may claim something now, or soon: who waits does not know of a rate or a key that has to wait since.
    pub(super) fn is_left(&self) -> rusqlite::Result<bool> {
        if self.gate().1 == Gate::MaxRunning {
            return Ok(false);
        }
        let soon = self.now_ms.saturating_add(millis(KEY_SOON));
        Ok(self.record.count(RowState::Ready) > 0 || self.first_key()?.is_some_and(|first| first <= soon))
    }

    /// When the first key that waits for a time may go on.
    pub(super) fn first_key(&self) -> rusqlite::Result<Option<i64>> {
        if !self.limits().is_some_and(|limits| limits.timed) {
            return Ok(None);
        }
        self.step.connection.prepare_cached(FIRST_KEY)?.query_row([self.record.id], |row| row.get(0))
    }

    /// So many tasks went.
    pub(super) fn pass(&mut self, count: usize) {
        if count > 0 && self.limits().is_some_and(|limits| limits.rate.is_some()) {
            let wall = self.step.wall;
            self.limits_mut().pass(wall, count);
        }
    }

    /// Leaves the limits as they are now.
    pub(super) fn save_limits(&mut self) -> rusqlite::Result<()> {
        let Some(limits) = self.limits.as_ref().filter(|_| self.limits_changed) else { return Ok(()) };
        self.record.limited = if limits.are_set() { 2 } else { 1 };
        limits.save(&self.step, self.key)
    }
}
