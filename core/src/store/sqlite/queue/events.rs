//! What happens to tasks: kept, if the queue keeps events, and told.

use crate::base::name::TaskId;
use crate::protocol::{EVENTS_PAGE, EventRecord, Events, EventsReply, Happened, QueueReply, Version};
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::queue::task::Task;
use crate::store::sqlite::queue::work::Work;

/// Those who wait for an event wait for the end of no task: this is no task's id.
const NO_TASK: &str = "";
/// Events that one verb drops at most: more than it makes.
const DROPPED: i64 = 2_000;

/// Like events.lua.
pub(super) fn events(work: &mut Work<'_>, request: &Events) -> rusqlite::Result<QueueReply> {
    if work.record.events == 0 {
        return Ok(QueueReply::Events(EventsReply::Off));
    }
    let last = number(work.record.last_event);
    // One that is beyond was of a record that is gone.
    let after = request.after.map(|after| if after > last { 0 } else { after });
    let events =
        after.filter(|after| *after < last).map_or_else(|| Ok(Vec::new()), |after| work.happened(after))?;
    match request.waiter {
        Some(waiter) if events.is_empty() => work.ask(NO_TASK, waiter)?,
        Some(waiter) => work.forget_asker(waiter)?,
        None => {}
    }
    Ok(QueueReply::Events(EventsReply::Found { events, last }))
}

impl Work<'_> {
    /// Notes something that happened to a task, if that is kept.
    pub(super) fn happen(&mut self, what: Happened, task: &Task, reason: &str) -> rusqlite::Result<()> {
        self.happen_to(what, &task.id, task.version, task.attempts, reason)
    }

    /// The same of a task that is known by this.
    pub(super) fn happen_to(
        &mut self,
        what: Happened,
        id: &str,
        version: Version,
        attempts: u32,
        reason: &str,
    ) -> rusqlite::Result<()> {
        if self.record.events == 0 {
            return Ok(());
        }
        self.record.last_event += 1;
        self.has_happened = true;
        self.step.change(
            "INSERT INTO event (queue, number, at, what, id, version, attempt, reason)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            &[
                &self.key,
                &self.record.last_event,
                &self.now_ms,
                &(what as i64),
                &id,
                &version,
                &attempts,
                &reason,
            ],
        )?;
        Ok(())
    }

    /// Drops the oldest events beyond what is kept, a limited number of them, and tells those who wait for one.
    pub(super) fn tell_events(&mut self) -> rusqlite::Result<()> {
        if !std::mem::take(&mut self.has_happened) {
            return Ok(());
        }
        self.step.change(
            "DELETE FROM event WHERE queue = ?1 AND number IN (
               SELECT number FROM event WHERE queue = ?1 AND number <= ?2 ORDER BY number LIMIT ?3)",
            &[&self.key, &(self.record.last_event - self.record.events), &DROPPED],
        )?;
        self.rouse(NO_TASK)
    }

    /// Keeps so many events from now on, or none.
    pub(super) fn keep_events(&mut self, most: i64) -> rusqlite::Result<()> {
        if most == 0 || self.record.events == 0 {
            // What is left of others has other numbers.
            self.step.change("DELETE FROM event WHERE queue = ?1", &[&self.key])?;
        }
        if most > 0 && self.record.events == 0 {
            // There may have been more events than versions.
            self.record.last_event = self.record.last_event.max(stored(self.next_version().get()));
        }
        let ends = most == 0 && self.record.events > 0;
        self.record.events = most;
        if ends { self.rouse(NO_TASK) } else { Ok(()) }
    }

    fn happened(&self, after: u64) -> rusqlite::Result<Vec<EventRecord>> {
        let mut statement = self.step.connection.prepare_cached(
            "SELECT number, at, what, id, version, attempt, reason FROM event
             WHERE queue = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
        )?;
        let mut rows = statement.query((self.key, stored(after), stored(EVENTS_PAGE as u64)))?;
        let mut events = Vec::new();
        while let Some(row) = rows.next()? {
            // What a later library has told of is left out.
            let Some(what) = Happened::stored(number(row.get(2)?)) else { continue };
            events.push(EventRecord {
                number: number(row.get(0)?),
                at: number(row.get(1)?),
                what,
                id: TaskId::stored(row.get_ref(3)?.as_str()?.as_bytes()),
                version: row.get(4)?,
                attempt: row.get(5)?,
                reason: row.get(6)?,
            });
        }
        Ok(events)
    }
}
