//! Throttle windows: they outlive the tasks whose enqueue opened them.

use rusqlite::OptionalExtension;

use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::CLEAN_UP;

impl Work<'_> {
    /// Whether the id's window has not ended.
    pub(super) fn is_throttled(&self, id: &str) -> rusqlite::Result<bool> {
        let ends: Option<i64> = self
            .step
            .connection
            .prepare_cached("SELECT ends FROM throttle WHERE queue = ?1 AND id = ?2")?
            .query_row((self.record.id, id), |row| row.get(0))
            .optional()?;
        Ok(ends.is_some_and(|ends| ends > self.now_ms))
    }

    /// Begins a window of the id.
    pub(super) fn open_window(&self, id: &str, ends: i64) -> rusqlite::Result<()> {
        self.clean_windows()?;
        self.step.change(
            "INSERT INTO throttle (queue, id, ends) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET ends = excluded.ends",
            &[&self.record.id, &id, &ends],
        )?;
        Ok(())
    }

    /// Forgets the id's window.
    pub(super) fn close_window(&self, id: &str) -> rusqlite::Result<()> {
        self.step.change("DELETE FROM throttle WHERE queue = ?1 AND id = ?2", &[&self.record.id, &id])?;
        Ok(())
    }

    /// Forgets a few windows that have ended, of any queue.
    fn clean_windows(&self) -> rusqlite::Result<()> {
        let ended: Vec<(i64, Box<str>)> = self.step.few(
            "SELECT queue, id FROM throttle WHERE ends <= ?1 ORDER BY ends LIMIT ?2",
            &[&self.now_ms, &CLEAN_UP],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (queue, id) in ended {
            self.step.change("DELETE FROM throttle WHERE queue = ?1 AND id = ?2", &[&queue, &id])?;
        }
        Ok(())
    }
}
