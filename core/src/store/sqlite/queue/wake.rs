//! Consumers that wait, and choosing one of them to be woken.

use rusqlite::OptionalExtension;

use crate::protocol::{ClientId, IDLE_LIVE, Waiter};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::{CLEAN_UP, micros};

impl Work<'_> {
    /// Notes that a consumer waits; how many wait before it.
    pub(super) fn register(&mut self, waiter: Waiter, consumer: &str) -> rusqlite::Result<u32> {
        self.clean_idle()?;
        let (client, seq) = (waiter.client.0.cast_signed(), waiter.seq.cast_signed());
        let until = self.step.now.saturating_add(micros(IDLE_LIVE));
        self.step.change(
            "INSERT INTO idle (queue, client, seq, until, chosen, consumer) VALUES (?1, ?2, ?3, ?4, 0, ?5)
             ON CONFLICT DO UPDATE SET until = excluded.until, chosen = 0",
            &[&self.record.id, &client, &seq, &until, &consumer],
        )?;
        let before: i64 = self
            .step
            .connection
            .prepare_cached(
                "SELECT count(*) FROM idle WHERE queue = ?1 AND chosen = 0 AND until > ?2
                   AND (until, client, seq) < (?3, ?4, ?5)",
            )?
            .query_row((self.record.id, self.step.now, until, client, seq), |row| row.get(0))?;
        Ok(u32::try_from(number(before)).unwrap_or(u32::MAX))
    }

    /// Forgets a consumer; whether it waited and had not been chosen.
    pub(super) fn leave_idle(&mut self, waiter: Waiter) -> rusqlite::Result<bool> {
        let (client, seq) = (waiter.client.0.cast_signed(), waiter.seq.cast_signed());
        let chosen: Option<bool> = self
            .step
            .connection
            .prepare_cached("SELECT chosen FROM idle WHERE queue = ?1 AND client = ?2 AND seq = ?3")?
            .query_row((self.record.id, client, seq), |row| row.get(0))
            .optional()?;
        if chosen.is_some() {
            self.drop_idle(self.record.id, client, seq)?;
        }
        Ok(chosen == Some(false))
    }

    /// Chooses the consumer that waits longest among the live ones.
    pub(super) fn choose(&mut self) -> rusqlite::Result<Option<Waiter>> {
        let first: Option<(i64, i64)> = self
            .step
            .connection
            .prepare_cached(
                "SELECT client, seq FROM idle WHERE queue = ?1 AND chosen = 0 AND until > ?2
                 ORDER BY until, client, seq LIMIT 1",
            )?
            .query_row((self.record.id, self.step.now), |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((client, seq)) = first else { return Ok(None) };
        // Its process looks soon; until then the row must not be cleaned away.
        let until = self.step.now.saturating_add(micros(IDLE_LIVE));
        self.step.change(
            "UPDATE idle SET chosen = 1, until = ?4 WHERE queue = ?1 AND client = ?2 AND seq = ?3",
            &[&self.record.id, &client, &seq, &until],
        )?;
        Ok(Some(Waiter { client: ClientId(client.cast_unsigned()), seq: seq.cast_unsigned() }))
    }

    /// Forgets a few consumers that stopped asking, of any queue.
    fn clean_idle(&self) -> rusqlite::Result<()> {
        let dead: Vec<(i64, i64, i64)> = self.step.few(
            "SELECT queue, client, seq FROM idle WHERE until <= ?1 ORDER BY until LIMIT ?2",
            &[&self.step.now, &CLEAN_UP],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        dead.into_iter().try_for_each(|(queue, client, seq)| self.drop_idle(queue, client, seq))
    }

    fn drop_idle(&self, queue: i64, client: i64, seq: i64) -> rusqlite::Result<()> {
        self.step.change(
            "DELETE FROM idle WHERE queue = ?1 AND client = ?2 AND seq = ?3",
            &[&queue, &client, &seq],
        )?;
        Ok(())
    }
}
