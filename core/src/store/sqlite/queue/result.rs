//! Results that tasks leave behind, and callers that wait for one.

use rusqlite::{OptionalExtension, ToSql};

use crate::protocol::{
    ASKED_MAX, ClientId, DEAD_TRIM, IDLE_LIVE, QueueReply, RESULTS_BYTES, RESULTS_MAX, ResultOf, ResultReply,
    Version, Waiter,
};
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::{CLEAN_UP, micros};

/// Like result.lua.
pub(super) fn result(work: &mut Work<'_>, request: &ResultOf) -> rusqlite::Result<QueueReply> {
    let reply = find(work, request)?;
    match request.waiter {
        Some(waiter) if reply == ResultReply::Pending => work.ask(request.id.as_str(), waiter)?,
        Some(waiter) => work.forget_asker(waiter)?,
        None => {}
    }
    Ok(QueueReply::Result(reply))
}

fn find(work: &Work<'_>, request: &ResultOf) -> rusqlite::Result<ResultReply> {
    let (id, wanted) = (request.id.as_str(), request.version);
    if let Some((version, result)) = work.kept_result(id)?.filter(|(version, _)| *version >= wanted) {
        return Ok(ResultReply::Done { version, result: result.into() });
    }
    let live = work.live(id)?;
    let version = live.map(|live| live.successor.map_or(live.main.version, |next| next.version));
    if version.is_some_and(|version| version >= wanted) {
        return Ok(ResultReply::Pending);
    }
    let dead: Option<(Version, Box<str>)> = work
        .step
        .connection
        .prepare_cached(
            "SELECT version, reason FROM dead WHERE queue = ?1 AND id = ?2 ORDER BY receipt DESC LIMIT 1",
        )?
        .query_row((work.record.id, id), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match dead {
        Some((version, reason)) if version >= wanted => ResultReply::Dead { reason },
        _ => ResultReply::Gone,
    })
}

impl Work<'_> {
    /// Keeps what came of a task, in the place of what came of it before.
    pub(super) fn keep_result(
        &mut self,
        id: &str,
        version: Version,
        ends: i64,
        result: &[u8],
    ) -> rusqlite::Result<()> {
        const INSERT: &str = "INSERT INTO result (queue, id, version, ends, body) VALUES (?1, ?2, ?3, ?4, ?5)
           ON CONFLICT (queue, id) DO NOTHING";
        let queue = self.record.id;
        let values: [&dyn ToSql; 5] = [&queue, &id, &version, &ends, &result];
        if self.step.change(INSERT, &values)? == 0 {
            self.drop_results("id = ?2", &id, 1)?;
            self.step.change(INSERT, &values)?;
        }
        self.record.results.count += 1;
        self.record.results.size += i64::try_from(result.len()).unwrap_or(i64::MAX);
        self.new_results += 1;
        Ok(())
    }

    /// If there are new results: what has ended goes, and what is too much, those that end first. At most `DEAD_TRIM` more than
    /// came, so that there are never more for long.
    pub(super) fn trim_results(&mut self) -> rusqlite::Result<()> {
        let new = std::mem::take(&mut self.new_results);
        if new == 0 {
            return Ok(());
        }
        let (now, bound) = (self.now_ms, DEAD_TRIM + new);
        let most = |most: usize| i64::try_from(most).unwrap_or(i64::MAX);
        self.drop_results("ends <= ?2", &now, bound)?;
        let over = usize::try_from(self.record.results.count - most(RESULTS_MAX)).unwrap_or(0);
        if over > 0 {
            self.drop_results("ends > ?2", &now, over.min(bound))?;
        }
        for _ in 0..bound {
            if self.record.results.size <= most(RESULTS_BYTES) {
                break;
            }
            self.drop_results("ends > ?2", &now, 1)?;
        }
        Ok(())
    }

    /// Drops those of the results for which this holds, the first that end, at most so many.
    fn drop_results(&mut self, holds: &str, value: &dyn ToSql, most: usize) -> rusqlite::Result<()> {
        if self.record.results.count == 0 {
            return Ok(());
        }
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let sql = format!(
            "DELETE FROM result WHERE queue = ?1 AND id IN (
               SELECT id FROM result WHERE queue = ?1 AND {holds} ORDER BY ends LIMIT ?3) RETURNING length(body)"
        );
        let gone: Vec<i64> = self.step.few(&sql, &[&self.record.id, value, &most], |row| row.get(0))?;
        self.record.results.count -= i64::try_from(gone.len()).unwrap_or(i64::MAX);
        self.record.results.size -= gone.iter().sum::<i64>();
        Ok(())
    }

    fn kept_result(&self, id: &str) -> rusqlite::Result<Option<(Version, Box<[u8]>)>> {
        if self.record.results.count == 0 {
            return Ok(None);
        }
        self.step
            .connection
            .prepare_cached("SELECT version, body FROM result WHERE queue = ?1 AND id = ?2 AND ends > ?3")?
            .query_row((self.record.id, id, self.now_ms), |row| {
                Ok((row.get(0)?, row.get_ref(1)?.as_blob()?.into()))
            })
            .optional()
    }

    /// Notes that somebody waits for the end of a task, or for an event, if that is of no task.
    pub(super) fn ask(&mut self, id: &str, waiter: Waiter) -> rusqlite::Result<()> {
        self.clean_askers()?;
        let (client, seq) = (waiter.client.0.cast_signed(), waiter.seq.cast_signed());
        let until = self.step.now.saturating_add(micros(IDLE_LIVE));
        self.step.change(
            "INSERT INTO asker (queue, id, client, seq, until, chosen) VALUES (?1, ?2, ?3, ?4, ?5, 0)
             ON CONFLICT DO UPDATE SET until = excluded.until, chosen = 0",
            &[&self.record.id, &id, &client, &seq, &until],
        )?;
        self.record.asked_until = until;
        Ok(())
    }

    /// Tells those who wait for that.
    pub(super) fn rouse(&mut self, id: &str) -> rusqlite::Result<()> {
        if self.record.asked_until <= self.step.now {
            return Ok(());
        }
        let most = i64::try_from(ASKED_MAX).unwrap_or(i64::MAX);
        let askers: Vec<(i64, i64)> = self.step.few(
            "SELECT client, seq FROM asker WHERE queue = ?1 AND id = ?2 AND chosen = 0 AND until > ?3 LIMIT ?4",
            &[&self.record.id, &id, &self.step.now, &most],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        // Their processes look soon; until then the rows must not be cleaned away.
        let until = self.step.now.saturating_add(micros(IDLE_LIVE));
        for (client, seq) in askers {
            self.step.change(
                "UPDATE asker SET chosen = 1, until = ?5 WHERE queue = ?1 AND id = ?2 AND client = ?3 AND seq = ?4",
                &[&self.record.id, &id, &client, &seq, &until],
            )?;
            self.roused.push(Waiter { client: ClientId(client.cast_unsigned()), seq: seq.cast_unsigned() });
        }
        Ok(())
    }

    pub(super) fn forget_asker(&self, waiter: Waiter) -> rusqlite::Result<()> {
        let (client, seq) = (waiter.client.0.cast_signed(), waiter.seq.cast_signed());
        self.step
            .change("DELETE FROM asker WHERE client = ?1 AND seq = ?2 AND chosen = 1", &[&client, &seq])?;
        Ok(())
    }

    /// Forgets a few that stopped asking, of any queue.
    fn clean_askers(&self) -> rusqlite::Result<()> {
        self.step.change(
            "DELETE FROM asker WHERE (queue, id, client, seq) IN (
               SELECT queue, id, client, seq FROM asker WHERE until <= ?1 ORDER BY until LIMIT ?2)",
            &[&self.step.now, &CLEAN_UP],
        )?;
        Ok(())
    }
}
