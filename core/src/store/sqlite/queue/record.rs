//! A queue's record: its row, with counters, settings and the counts of its tasks.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::protocol::{DEAD_AGE, DEAD_BYTES, DEAD_MAX, MAX_BATCH, QUEUE_REFRESH, QueueSettings};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::forget::{clean_queues, drop_rows, retire};
use crate::store::sqlite::step::{Step, millis};

/// Where a live task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowState {
    Scheduled = 0,
    Ready = 1,
    Claimed = 2,
    /// A successor.
    Parked = 3,
    /// Due, and held by a limit of its key.
    Held = 4,
}

/// What a task dies of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// A settlement.
    Failed,
    /// The end of its last lease.
    LeaseEnded,
    /// It was not delivered in time. Such ones are kept apart, so that they push no failure out.
    Expired,
}

/// How many of the tasks that a purge left each later call drops at most: enough to be done before as many new
/// ones have come, few enough not to be felt.
pub(super) const PURGE_STEP: usize = 100;

/// How many dead tasks of a kind there are, or results, and the bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Buried {
    pub(super) count: i64,
    pub(super) size: i64,
}

/// Of flows: how many have begun and not ended, those that have ended, and those that were dropped and have nodes left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flows {
    pub(super) live: i64,
    pub(super) ended: i64,
    pub(super) dropped: i64,
    /// When one is over its age, in milliseconds; 0: never.
    pub(super) look: i64,
    /// When the next one is looked after, and the one that was.
    pub(super) walk_at: i64,
    pub(super) walked: i64,
}

/// How many messages the outbox has, and the number of the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outbox {
    pub(super) count: i64,
    pub(super) last: i64,
    /// When somebody has worked some off, in milliseconds.
    pub(super) last_step: i64,
}

/// A queue's row as a verb finds it and leaves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) id: i64,
    pub(super) used: i64,
    pub(super) counter: i64,
    pub(super) sequence: i64,
    pub(super) paused: bool,
    pub(super) max_len: Option<i64>,
    pub(super) dead_max: Option<i64>,
    pub(super) dead_age: Option<i64>,
    pub(super) dead_bytes: Option<i64>,
    pub(super) intake: Option<bool>,
    /// How many tasks are in each state.
    counts: [i64; 5],
    /// Whether it has limits: 1: it had tasks with keys, 2: somebody has set some.
    pub(super) limited: i64,
    /// Dead tasks that failed, and those that expired.
    pub(super) dead: Buried,
    pub(super) expired: Buried,
    /// Results that are kept.
    pub(super) results: Buried,
    /// Until when somebody may wait for the end of a task, or for an event.
    pub(super) asked_until: i64,
    /// How many events are kept, and the number of the last one.
    pub(super) events: i64,
    pub(super) last_event: i64,
    pub(super) enqueued: i64,
    pub(super) acked: i64,
    pub(super) retried: i64,
    pub(super) died: i64,
    pub(super) flows: Flows,
    pub(super) outbox: Outbox,
    /// The row to which a purge left the tasks; they are dropped a few at a time.
    purged: i64,
}

impl Record {
    /// The row of the queue with this key.
    pub(super) fn find(connection: &Connection, key: &str) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(
                "SELECT id, used, counter, sequence, paused, max_len, dead_max, dead_age, dead_bytes, intake,
                   scheduled, ready, claimed, parked, dead, dead_size, enqueued, acked, retried, died, purged,
                   expired, expired_size, results, results_size, asked_until, events, last_event,
                   held, limited, flows, flows_ended, flows_dropped, flows_look, walk_at, walked, messages,
                   last_message, last_step
                 FROM queue WHERE key = ?1",
            )?
            .query_row([key], Self::read)
            .optional()
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        // Those that are held are among the parked ones for a library that knows no keys, which may have dropped some.
        let (both, held): (i64, i64) = (row.get(13)?, row.get(28)?);
        let held = held.min(both);
        let parked = both - held;
        Ok(Self {
            id: row.get(0)?,
            used: row.get(1)?,
            counter: row.get(2)?,
            sequence: row.get(3)?,
            paused: row.get(4)?,
            max_len: row.get(5)?,
            dead_max: row.get(6)?,
            dead_age: row.get(7)?,
            dead_bytes: row.get(8)?,
            intake: row.get(9)?,
            counts: [row.get(10)?, row.get(11)?, row.get(12)?, parked, held],
            limited: row.get(29)?,
            dead: Buried { count: row.get(14)?, size: row.get(15)? },
            expired: Buried { count: row.get(21)?, size: row.get(22)? },
            results: Buried { count: row.get(23)?, size: row.get(24)? },
            asked_until: row.get(25)?,
            events: row.get(26)?,
            last_event: row.get(27)?,
            enqueued: row.get(16)?,
            acked: row.get(17)?,
            retried: row.get(18)?,
            died: row.get(19)?,
            flows: Flows {
                live: row.get(30)?,
                ended: row.get(31)?,
                dropped: row.get(32)?,
                look: row.get(33)?,
                walk_at: row.get(34)?,
                walked: row.get(35)?,
            },
            outbox: Outbox { count: row.get(36)?, last: row.get(37)?, last_step: row.get(38)? },
            purged: row.get(20)?,
        })
    }

    /// The queue's row, made if it has none; then a few leftovers of other queues are cleared away.
    pub(super) fn find_or_create(step: &Step<'_>, key: &str) -> rusqlite::Result<Self> {
        if let Some(record) = Self::find(step.connection, key)? {
            return Ok(record);
        }
        clean_queues(step)?;
        Ok(Self { id: insert(step, key)?, used: step.wall / 1_000, ..Self::default() })
    }

    /// Writes what has changed.
    pub(super) fn save(&self, step: &Step<'_>, before: &Self) -> rusqlite::Result<()> {
        let now = step.wall / 1_000;
        // Once an hour, which saves most of the index updates.
        if self.used.saturating_add(millis(QUEUE_REFRESH)) <= now {
            step.change("UPDATE queue SET used = ?2 WHERE id = ?1", &[&self.id, &now])?;
        }
        if self == before {
            return Ok(());
        }
        step.change(
            "UPDATE queue SET counter = ?2, sequence = ?3, paused = ?4, max_len = ?5, dead_max = ?6,
               dead_age = ?7, dead_bytes = ?8, intake = ?9, scheduled = ?10, ready = ?11, claimed = ?12,
               parked = ?13, dead = ?14, dead_size = ?15, enqueued = ?16, acked = ?17, retried = ?18,
               died = ?19, purged = ?20, expired = ?21, expired_size = ?22, results = ?23, results_size = ?24,
               asked_until = ?25, events = ?26, last_event = ?27, held = ?28, limited = ?29,
               flows = ?30, flows_ended = ?31, flows_dropped = ?32, flows_look = ?33, walk_at = ?34, walked = ?35,
               messages = ?36, last_message = ?37, last_step = ?38
             WHERE id = ?1",
            &[
                &self.id,
                &self.counter,
                &self.sequence,
                &self.paused,
                &self.max_len,
                &self.dead_max,
                &self.dead_age,
                &self.dead_bytes,
                &self.intake,
                &self.counts[0],
                &self.counts[1],
                &self.counts[2],
                &(self.counts[3] + self.counts[4]),
                &self.dead.count,
                &self.dead.size,
                &self.enqueued,
                &self.acked,
                &self.retried,
                &self.died,
                &self.purged,
                &self.expired.count,
                &self.expired.size,
                &self.results.count,
                &self.results.size,
                &self.asked_until,
                &self.events,
                &self.last_event,
                &self.counts[4],
                &self.limited,
                &self.flows.live,
                &self.flows.ended,
                &self.flows.dropped,
                &self.flows.look,
                &self.flows.walk_at,
                &self.flows.walked,
                &self.outbox.count,
                &self.outbox.last,
                &self.outbox.last_step,
            ],
        )?;
        Ok(())
    }

    /// How many tasks are in this state.
    pub(super) fn count(&self, state: RowState) -> i64 {
        self.counts[state as usize]
    }

    /// Notes that a task came into a state.
    pub(super) fn enter(&mut self, state: RowState) {
        self.counts[state as usize] += 1;
    }

    /// Notes that a task left a state.
    pub(super) fn leave(&mut self, state: RowState) {
        self.counts[state as usize] -= 1;
    }

    /// No task is held, whatever was counted: a library that knows no keys has dropped some.
    pub(super) fn holds_nothing(&mut self) {
        let held = std::mem::take(&mut self.counts[RowState::Held as usize]);
        self.counts[RowState::Parked as usize] += held;
    }

    /// Leaves all tasks, windows, flows and messages to another row and goes on without any under a new number. To delete a
    /// million rows takes seconds, in which nobody could renew a lease.
    pub(super) fn purge(&mut self, step: &Step<'_>) -> rusqlite::Result<()> {
        let old = self.id;
        let key: Box<str> = step
            .connection
            .prepare_cached("SELECT key FROM queue WHERE id = ?1")?
            .query_row([old], |row| row.get(0))?;
        retire(step, old)?;
        let id = insert(step, &key)?;
        *self = Self {
            id,
            counts: [0; 5],
            dead: Buried::default(),
            expired: Buried::default(),
            results: Buried::default(),
            flows: Flows::default(),
            // Numbers go on.
            outbox: Outbox { last: self.outbox.last, ..Outbox::default() },
            purged: old,
            ..*self
        };
        step.change("UPDATE idle SET queue = ?2 WHERE queue = ?1", &[&old, &self.id])?;
        step.change("UPDATE call SET queue = ?2 WHERE queue = ?1", &[&old, &self.id])?;
        step.change("UPDATE asker SET queue = ?2 WHERE queue = ?1", &[&old, &self.id])?;
        self.drop_purged(step, MAX_BATCH)
    }

    /// Drops some of what a purge left, if there is anything.
    pub(super) fn clean_purged(&mut self, step: &Step<'_>) -> rusqlite::Result<()> {
        if self.purged == 0 { Ok(()) } else { self.drop_purged(step, PURGE_STEP) }
    }

    /// Drops more of that; whether there is still something left.
    pub(super) fn sweep(&mut self, step: &Step<'_>) -> rusqlite::Result<bool> {
        if self.purged != 0 {
            self.drop_purged(step, MAX_BATCH)?;
        }
        Ok(self.purged != 0)
    }

    fn drop_purged(&mut self, step: &Step<'_>, limit: usize) -> rusqlite::Result<()> {
        if drop_rows(step, self.purged, limit)? {
            // There may be the remains of an earlier purge.
            self.purged = step
                .connection
                .prepare_cached("DELETE FROM queue WHERE id = ?1 RETURNING purged")?
                .query_row([self.purged], |row| row.get(0))
                .optional()?
                .unwrap_or(0);
        }
        Ok(())
    }

    /// How many ids live.
    pub(super) fn live(&self) -> i64 {
        [RowState::Scheduled, RowState::Ready, RowState::Claimed, RowState::Held]
            .into_iter()
            .map(|state| self.count(state))
            .sum()
    }

    /// Whether no new id is accepted.
    pub(super) fn is_full(&self) -> bool {
        self.max_len.is_some_and(|max| self.live() >= max)
    }

    /// How many are dead, of either kind.
    pub(super) fn all_dead(&self) -> i64 {
        self.dead.count + self.expired.count
    }

    /// Dead tasks of this kind.
    pub(super) fn buried(&mut self, expired: bool) -> &mut Buried {
        if expired { &mut self.expired } else { &mut self.dead }
    }

    /// Dead records of a kind at most.
    pub(super) fn dead_max(&self) -> i64 {
        self.dead_max.unwrap_or(i64::try_from(DEAD_MAX).unwrap_or(i64::MAX))
    }

    /// How long they are kept, in milliseconds.
    pub(super) fn dead_age(&self) -> i64 {
        self.dead_age.unwrap_or(millis(DEAD_AGE))
    }

    /// Bytes of their bodies at most.
    pub(super) fn dead_bytes(&self) -> i64 {
        self.dead_bytes.unwrap_or(i64::try_from(DEAD_BYTES).unwrap_or(i64::MAX))
    }

    /// The settings in force.
    pub(super) fn settings(&self) -> QueueSettings {
        QueueSettings {
            max_len: self.max_len.map(number),
            dead_max: number(self.dead_max()),
            dead_age: Duration::from_millis(number(self.dead_age())),
            dead_bytes: number(self.dead_bytes()),
            intake: self.intake.unwrap_or(true),
            events: number(self.events),
            ..QueueSettings::default()
        }
    }
}

fn insert(step: &Step<'_>, key: &str) -> rusqlite::Result<i64> {
    step.connection
        .prepare_cached("INSERT INTO queue (key, used) VALUES (?1, ?2)")?
        .insert((key, step.wall / 1_000))
}
