//! What time has done since the last call: leases ended, scheduled tasks became due.

use crate::protocol::PROMOTE_MAX;
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::task::{Task, select_task};
use crate::store::sqlite::queue::work::Work;

impl Work<'_> {
    /// Moves what is due into the line, a limited number of tasks; whether there may be more.
    pub(super) fn promote(&mut self) -> rusqlite::Result<bool> {
        let limit = i64::try_from(PROMOTE_MAX).unwrap_or(i64::MAX);
        let ended = self.end_leases(limit)?;
        let due = self.make_ready(limit - ended)?;
        self.promote_keys()?;
        self.write_keys(0)?;
        Ok(ended + due >= limit || self.has_moved_enough())
    }

    fn end_leases(&mut self, limit: i64) -> rusqlite::Result<i64> {
        if self.record.count(RowState::Claimed) == 0 {
            return Ok(0);
        }
        let ended = self.step.few(
            select_task!(" FROM task WHERE queue = ?1 AND state = 2 AND ends <= ?2 ORDER BY ends LIMIT ?3"),
            &[&self.record.id, &self.step.now, &limit],
            Task::read,
        )?;
        let mut count = 0;
        for main in ended {
            if count > 0 && self.has_moved_enough() {
                break;
            }
            let live = self.with_successor(main)?;
            self.end_lease(live)?;
            count += 1;
        }
        Ok(count)
    }

    fn make_ready(&mut self, limit: i64) -> rusqlite::Result<i64> {
        if self.record.count(RowState::Scheduled) == 0 {
            return Ok(0);
        }
        let due = self.step.few(
            select_task!(" FROM task WHERE queue = ?1 AND state = 0 AND due <= ?2 ORDER BY due LIMIT ?3"),
            &[&self.record.id, &self.now_ms, &limit],
            Task::read,
        )?;
        let mut count = 0;
        for task in due {
            if count > 0 && self.has_moved_enough() {
                break;
            }
            self.put(task, None)?;
            count += 1;
        }
        Ok(count)
    }
}
