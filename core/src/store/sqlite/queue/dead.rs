//! Dead tasks: how they get there, and how many are kept.

use rusqlite::OptionalExtension;

use crate::name::TaskId;
use crate::store::DEAD_TRIM;
use crate::store::sqlite::queue::task::Live;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::stored_fence as stored;
use crate::verbs::Receipt;

/// What a settlement needs to know of a dead task.
pub(super) struct Grave {
    pub(super) serial: i64,
    /// Of its body.
    pub(super) size: i64,
    pub(super) by_lease: bool,
    pub(super) verdict: i64,
}

impl Work<'_> {
    /// Gives the main task up: it is kept under the receipt of its last delivery, or a fresh one.
    pub(super) fn die(
        &mut self,
        live: Live,
        reason: &str,
        receipt: i64,
        by_lease: bool,
    ) -> rusqlite::Result<()> {
        let main = &live.main;
        let receipt_was_settled = receipt != 0 && main.settled == receipt;
        let verdict = if receipt_was_settled { main.verdict } else { 0 };
        let receipt = if receipt == 0 { self.next_number() } else { receipt };
        let size: i64 = self
            .step
            .connection
            .prepare_cached("SELECT length(body) FROM task WHERE serial = ?1")?
            .query_row([main.serial], |row| row.get(0))?;
        self.step.change(
            "INSERT INTO dead (queue, receipt, id, died, by_lease, version, due, priority, attempts,
               max_attempts, first, expires, verdict, reason, body)
             SELECT queue, ?2, id, ?3, ?4, version, due, priority, attempts, max_attempts, first, expires,
               ?5, ?6, body FROM task WHERE serial = ?1",
            &[&main.serial, &receipt, &self.now_ms, &by_lease, &verdict, &reason],
        )?;
        self.record.died += 1;
        self.record.dead += 1;
        self.record.dead_size += size;
        self.buried = true;
        self.succeed(live)
    }

    /// The dead task of this id that has this receipt.
    pub(super) fn grave(&self, id: &TaskId, receipt: Receipt) -> rusqlite::Result<Option<Grave>> {
        if self.record.dead == 0 {
            return Ok(None);
        }
        self.step
            .connection
            .prepare_cached(
                "SELECT serial, length(body), by_lease, verdict FROM dead
                 WHERE queue = ?1 AND id = ?2 AND receipt = ?3",
            )?
            .query_row((self.record.id, id.as_str(), stored(receipt)), |row| {
                Ok(Grave {
                    serial: row.get(0)?,
                    size: row.get(1)?,
                    by_lease: row.get(2)?,
                    verdict: row.get(3)?,
                })
            })
            .optional()
    }

    /// Whether there is a dead task of this id.
    pub(super) fn is_dead(&self, id: &str) -> rusqlite::Result<bool> {
        self.step
            .connection
            .prepare_cached("SELECT 1 FROM dead WHERE queue = ?1 AND id = ?2")?
            .exists((self.record.id, id))
    }

    /// Drops a dead task with a body of this size.
    pub(super) fn forget_dead(&mut self, serial: i64, size: i64) -> rusqlite::Result<()> {
        self.record.dead -= 1;
        self.record.dead_size -= size;
        self.step.change("DELETE FROM dead WHERE serial = ?1", &[&serial])?;
        Ok(())
    }

    /// Drops the oldest dead tasks beyond the caps, a limited number of them.
    pub(super) fn trim_dead(&mut self) -> rusqlite::Result<()> {
        let trim = i64::try_from(DEAD_TRIM).unwrap_or(i64::MAX);
        let oldest: Vec<(i64, i64, i64)> = self.step.few(
            "SELECT serial, died, length(body) FROM dead WHERE queue = ?1 ORDER BY died, receipt LIMIT ?2",
            &[&self.record.id, &trim],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let over_age = self.now_ms.saturating_sub(self.record.dead_age());
        for (serial, died, size) in oldest {
            let record = &self.record;
            let within = record.dead <= record.dead_max() && record.dead_size <= record.dead_bytes();
            if within && died > over_age {
                break;
            }
            self.forget_dead(serial, size)?;
        }
        Ok(())
    }
}
