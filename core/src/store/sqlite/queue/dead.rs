//! Dead tasks: how they get there, and how many are kept.

use rusqlite::OptionalExtension;

use crate::base::name::TaskId;
use crate::protocol::{DEAD_TRIM, Happened, MAX_MOVED_BYTES, NodeEvent, Receipt, Version};
use crate::store::sqlite::queue::record::{Buried, How};
use crate::store::sqlite::queue::task::Live;
use crate::store::sqlite::queue::work::Work;

/// What a settlement needs to know of a dead task.
pub(super) struct Grave {
    pub(super) serial: i64,
    /// Of its body.
    pub(super) size: i64,
    pub(super) by_lease: bool,
    pub(super) verdict: i64,
    pub(super) expired: bool,
    pub(super) version: Version,
    pub(super) attempts: u32,
    /// As in a task.
    pub(super) node: Box<str>,
}

impl Work<'_> {
    /// Gives the main task up: it is kept under the receipt of its last delivery, or a fresh one.
    pub(super) fn die(
        &mut self,
        live: Live,
        reason: &str,
        receipt: Receipt,
        how: How,
    ) -> rusqlite::Result<()> {
        let main = &live.main;
        let receipt_was_settled = receipt != Receipt::NONE && main.settled == receipt;
        let verdict = if receipt_was_settled { main.verdict } else { 0 };
        let receipt = if receipt == Receipt::NONE { self.next_receipt() } else { receipt };
        let size: i64 = self
            .step
            .connection
            .prepare_cached("SELECT length(body) FROM task WHERE serial = ?1")?
            .query_row([main.serial], |row| row.get(0))?;
        self.step.change(
            "INSERT INTO dead (queue, receipt, id, died, by_lease, version, due, priority, attempts,
               max_attempts, first, expires, verdict, reason, body, expired, consumer, history, key, node)
             SELECT queue, ?2, id, ?3, ?4, version, due, priority, attempts, max_attempts, first, expires,
               ?5, ?6, body, ?7, consumer, ?8, key, node FROM task WHERE serial = ?1",
            &[
                &main.serial,
                &receipt,
                &self.now_ms,
                &(how == How::LeaseEnded),
                &verdict,
                &reason,
                &(how == How::Expired),
                &main.history,
            ],
        )?;
        self.record.died += 1;
        self.happen(Happened::Dead, main, reason)?;
        self.end_node(&main.node, NodeEvent::Dead, None)?;
        let buried = self.record.buried(how == How::Expired);
        buried.count += 1;
        buried.size += size;
        self.moved += size;
        self.succeed(live)
    }

    /// The dead task of this id that has this receipt.
    pub(super) fn grave(&self, id: &TaskId, receipt: Receipt) -> rusqlite::Result<Option<Grave>> {
        if self.record.all_dead() == 0 {
            return Ok(None);
        }
        self.step
            .connection
            .prepare_cached(
                "SELECT serial, length(body), by_lease, verdict, expired, version, attempts, node FROM dead
                 WHERE queue = ?1 AND id = ?2 AND receipt = ?3",
            )?
            .query_row((self.record.id, id.as_str(), receipt), |row| {
                Ok(Grave {
                    serial: row.get(0)?,
                    size: row.get(1)?,
                    by_lease: row.get(2)?,
                    verdict: row.get(3)?,
                    expired: row.get(4)?,
                    version: row.get(5)?,
                    attempts: row.get(6)?,
                    node: row.get(7)?,
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

    /// Drops a dead task with a body of this size; whether it was there.
    pub(super) fn forget_dead(&mut self, serial: i64, size: i64, expired: bool) -> rusqlite::Result<bool> {
        let was_there = self.step.change("DELETE FROM dead WHERE serial = ?1", &[&serial])? > 0;
        if was_there {
            let buried = self.record.buried(expired);
            buried.count -= 1;
            buried.size -= size;
        }
        Ok(was_there)
    }

    /// Whether this transaction has moved as many bytes as one may.
    pub(super) fn has_moved_enough(&self) -> bool {
        self.moved >= MAX_MOVED_BYTES
    }

    /// Drops the oldest dead tasks beyond the caps, a limited number of them; the next verb goes on.
    pub(super) fn trim_dead(&mut self) -> rusqlite::Result<()> {
        for expired in [false, true] {
            if self.record.buried(expired).count > 0 && self.is_over(expired)? {
                self.trim_kind(expired)?;
            }
        }
        Ok(())
    }

    fn is_over(&mut self, expired: bool) -> rusqlite::Result<bool> {
        if self.is_over_caps(expired) {
            return Ok(true);
        }
        let oldest: Option<i64> = self
            .step
            .connection
            .prepare_cached("SELECT min(died) FROM dead WHERE queue = ?1 AND expired = ?2")?
            .query_row((self.record.id, expired), |row| row.get(0))?;
        Ok(oldest.is_some_and(|died| died <= self.over_age()))
    }

    fn is_over_caps(&mut self, expired: bool) -> bool {
        let Buried { count, size } = *self.record.buried(expired);
        count > self.record.dead_max() || size > self.record.dead_bytes()
    }

    /// Who died then, or earlier, is not kept.
    fn over_age(&self) -> i64 {
        self.now_ms.saturating_sub(self.record.dead_age())
    }

    fn trim_kind(&mut self, expired: bool) -> rusqlite::Result<()> {
        let trim = i64::try_from(DEAD_TRIM).unwrap_or(i64::MAX);
        let oldest: Vec<(i64, i64, i64)> = self.step.few(
            "SELECT serial, died, length(body) FROM dead WHERE queue = ?1 AND expired = ?3
             ORDER BY died, receipt LIMIT ?2",
            &[&self.record.id, &trim, &expired],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        // What died now may push out as much.
        let mut left = MAX_MOVED_BYTES + self.moved;
        for (serial, died, size) in oldest {
            if left <= 0 || !self.is_over_caps(expired) && died > self.over_age() {
                break;
            }
            left -= size;
            self.forget_dead(serial, size, expired)?;
        }
        Ok(())
    }
}
