//! What verbs that only look work with.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Row, ToSql};

use crate::name::TaskId;
use crate::store::sqlite::queue::is_of_boot;
use crate::store::sqlite::queue::record::Record;
use crate::store::sqlite::queue::task::{AFTER_TASK, State, Task};
use crate::store::sqlite::queue::work::{FIRST_DUE, FIRST_END};
use crate::store::sqlite::step::{View, between, fence as number};
use crate::store::{MAX_BATCH, MAX_REPLY_BYTES};
use crate::verbs::{TaskRecord, TaskState, WallMillis};

/// A look at one queue.
pub(super) struct Reading<'a> {
    pub(super) connection: &'a Connection,
    pub(super) record: Record,
    /// The boot clock in microseconds. Later than every lease if they are of an earlier boot, which no
    /// writer has ended yet.
    pub(super) now: i64,
    /// Wall time in microseconds.
    pub(super) wall: i64,
    /// Wall time in milliseconds.
    pub(super) now_ms: i64,
}

/// Begins a query for tasks of the queue ?1 with their bodies and their successors' dues.
macro_rules! select_record {
    ($rest:literal) => {
        concat!(
            $crate::store::sqlite::queue::task::select_task!(
                ", body, (SELECT next.due FROM task AS next
                   WHERE next.queue = task.queue AND next.id = task.id AND next.parked = 1)
                 FROM task WHERE queue = ?1 AND "
            ),
            $rest
        )
    };
}
pub(super) use select_record;

/// Begins a query for dead tasks of the queue ?1.
macro_rules! select_dead {
    ($rest:literal) => {
        concat!(
            "SELECT id, version, due, priority, attempts, max_attempts, expires, receipt, reason, died, body ",
            "FROM dead WHERE queue = ?1 AND ",
            $rest
        )
    };
}
pub(super) use select_dead;

/// Tasks of an answer, as many as fit in it.
pub(super) struct Page {
    pub(super) tasks: Vec<TaskRecord>,
    max: usize,
    bytes: usize,
    /// Whether there is no room for more.
    pub(super) full: bool,
}

impl Page {
    pub(super) fn new(max: u32) -> Self {
        let max = usize::try_from(max).unwrap_or(MAX_BATCH).min(MAX_BATCH);
        Self { tasks: Vec::new(), max, bytes: 0, full: max == 0 }
    }

    /// The most that a query can add.
    pub(super) fn limit(&self) -> i64 {
        i64::try_from(self.max - self.tasks.len()).unwrap_or(i64::MAX)
    }

    fn add(&mut self, task: TaskRecord) {
        self.bytes += task.body.len();
        if self.bytes > MAX_REPLY_BYTES && !self.tasks.is_empty() {
            self.full = true;
            return;
        }
        self.tasks.push(task);
        self.full = self.tasks.len() == self.max;
    }
}

impl<'a> Reading<'a> {
    /// Begins with the queue's record.
    pub(super) fn begin(
        connection: &'a Connection,
        view: &View<'_>,
        record: Record,
    ) -> rusqlite::Result<Self> {
        let now = if is_of_boot(connection, view.boot)? { view.now } else { i64::MAX };
        Ok(Self { connection, record, now, wall: view.wall, now_ms: view.wall / 1_000 })
    }

    /// Where a task is, seen from now.
    fn state_of(&self, task: &Task) -> TaskState {
        match task.state {
            State::Claimed if task.is_held(self.now) => TaskState::Claimed,
            State::Scheduled if task.due > self.now_ms => TaskState::Scheduled,
            _ => TaskState::Ready,
        }
    }

    /// A task from a row of [`select_task`] with its body and its successor's due.
    pub(super) fn record_at(&self, row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
        let task = Task::read(row)?;
        let body = row.get_ref(AFTER_TASK)?.as_blob()?.into();
        let successor_due: Option<i64> = row.get(AFTER_TASK + 1)?;
        let state = self.state_of(&task);
        let held = state == TaskState::Claimed;
        let remaining = if held { between(self.now, task.ends) } else { Duration::ZERO };
        Ok(record_of(task, body, state, remaining, successor_due.map(number)))
    }

    /// Adds what can be claimed, in order, from the `skip`th task on: the line, then what is due and not
    /// promoted, then what has a lease that ended.
    pub(super) fn add_ready(&self, page: &mut Page, skip: i64) -> rusqlite::Result<()> {
        let queue = self.record.id;
        let line = select_record!("state = 1 ORDER BY turn LIMIT ?2 OFFSET ?3");
        self.add(page, line, &[&queue, &page.limit(), &skip])?;
        let skip = (skip - self.record.count(State::Ready)).max(0);
        let due = select_record!("state = 0 AND due <= ?4 ORDER BY due LIMIT ?2 OFFSET ?3");
        self.add(page, due, &[&queue, &page.limit(), &skip, &self.now_ms])?;
        let skip = if skip > 0 { (skip - self.count_due()?).max(0) } else { 0 };
        let ended = select_record!("state = 2 AND ends <= ?4 ORDER BY ends LIMIT ?2 OFFSET ?3");
        self.add(page, ended, &[&queue, &page.limit(), &skip, &self.now])
    }

    /// Adds the live tasks of a query until the page is full.
    pub(super) fn add(&self, page: &mut Page, sql: &str, values: &[&dyn ToSql]) -> rusqlite::Result<()> {
        self.fill(page, sql, values, |row| self.record_at(row))
    }

    /// Adds the dead tasks of a query until the page is full.
    pub(super) fn add_dead(&self, page: &mut Page, sql: &str, values: &[&dyn ToSql]) -> rusqlite::Result<()> {
        self.fill(page, sql, values, dead_at)
    }

    fn fill(
        &self,
        page: &mut Page,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl Fn(&Row<'_>) -> rusqlite::Result<TaskRecord>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        while !page.full
            && let Some(row) = rows.next()?
        {
            page.add(read(row)?);
        }
        Ok(())
    }

    /// How many scheduled tasks are due.
    pub(super) fn count_due(&self) -> rusqlite::Result<i64> {
        self.connection
            .prepare_cached("SELECT count(*) FROM task WHERE queue = ?1 AND state = 0 AND due <= ?2")?
            .query_row((self.record.id, self.now_ms), |row| row.get(0))
    }

    /// Whether there is something to claim, promoted or not.
    pub(super) fn has_due(&self) -> rusqlite::Result<bool> {
        Ok(self.record.count(State::Ready) > 0 || self.next_due()? == Some(Duration::ZERO))
    }

    /// How long until something becomes due or a lease ends, if nothing is in line.
    pub(super) fn next_due(&self) -> rusqlite::Result<Option<Duration>> {
        let first = |sql: &str| -> rusqlite::Result<Option<i64>> {
            self.connection.prepare_cached(sql)?.query_row([self.record.id], |row| row.get(0))
        };
        let due = first(FIRST_DUE)?.map(|due| between(self.wall, due.saturating_mul(1_000)));
        let ends = first(FIRST_END)?.map(|ends| between(self.now, ends));
        Ok(due.into_iter().chain(ends).min())
    }

    /// How many leases have ended.
    pub(super) fn count_ended(&self) -> rusqlite::Result<i64> {
        self.connection
            .prepare_cached("SELECT count(*) FROM task WHERE queue = ?1 AND state = 2 AND ends <= ?2")?
            .query_row((self.record.id, self.now), |row| row.get(0))
    }
}

/// A live task as it is shown.
pub(super) fn record_of(
    task: Task,
    body: Arc<[u8]>,
    state: TaskState,
    remaining: Duration,
    successor_due: Option<WallMillis>,
) -> TaskRecord {
    TaskRecord {
        id: TaskId::stored(task.id.as_bytes()),
        state,
        body,
        version: number(task.version),
        due: number(task.due),
        priority: task.priority,
        attempts: task.attempts,
        max_attempts: task.max_attempts,
        expires: number(task.expires),
        receipt: number(task.receipt),
        remaining,
        reason: task.reason.into(),
        died: 0,
        successor_due,
    }
}

/// A dead task from a row of [`select_dead`].
fn dead_at(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    Ok(TaskRecord {
        id: TaskId::stored(row.get_ref(0)?.as_str()?.as_bytes()),
        state: TaskState::Dead,
        version: number(row.get(1)?),
        due: number(row.get(2)?),
        priority: row.get(3)?,
        attempts: row.get(4)?,
        max_attempts: row.get(5)?,
        expires: number(row.get(6)?),
        receipt: number(row.get(7)?),
        remaining: Duration::ZERO,
        reason: row.get(8)?,
        died: number(row.get(9)?),
        successor_due: None,
        body: row.get_ref(10)?.as_blob()?.into(),
    })
}
