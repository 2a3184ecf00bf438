//! What verbs that only look work with.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Row};

use crate::base::name::TaskId;
use crate::protocol::{
    LIST_LOOK, List, MAX_BATCH, MAX_REPLY_BYTES, Place, TaskRecord, TaskState, WallMillis,
};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::due::Outlook;
use crate::store::sqlite::queue::history::History;
use crate::store::sqlite::queue::limits::Limits;
use crate::store::sqlite::queue::record::Record;
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::schedule::key_of;
use crate::store::sqlite::queue::task::{AFTER_TASK, Task, select_task};
use crate::store::sqlite::queue::walk::{ALL, DUE, ENDED, LINE, Part, Walk, Way};
use crate::store::sqlite::step::{View, between};

/// A look at one queue.
pub(super) struct Reading<'a> {
    pub(super) connection: &'a Connection,
    pub(super) record: Record,
    pub(super) limits: Option<Limits>,
    /// The boot clock in microseconds. Later than every lease if they are of an earlier boot, which no
    /// writer has ended yet.
    pub(super) now: i64,
    /// Wall time in microseconds.
    pub(super) wall: i64,
    /// Wall time in milliseconds.
    pub(super) now_ms: i64,
}

/// What is read of a live task, besides its body: that comes last.
pub(super) const TASK: &str = select_task!(
    ", (SELECT next.due FROM task AS next
       WHERE next.queue = task.queue AND next.id = task.id AND next.parked = 1), progress"
);
/// How many columns that are.
pub(super) const TASK_COLUMNS: usize = AFTER_TASK + 2;
/// The same of a dead task.
pub(super) const DEAD: &str = "SELECT id, version, due, priority, attempts, max_attempts, expires, receipt, reason, \
                               died, length(body), consumer, history, key";
/// How many columns that are.
pub(super) const DEAD_COLUMNS: usize = 14;

/// Tasks of an answer, as many as fit in it.
pub(super) struct Page {
    pub(super) tasks: Vec<TaskRecord>,
    /// Where the next page begins, if there may be one.
    pub(super) next: Option<Place>,
    wanted: List,
    bytes: u64,
    /// How many were looked at, and the last one.
    looked: usize,
    last: Option<Place>,
}

impl Page {
    pub(super) fn new(wanted: List) -> Self {
        Self { tasks: Vec::new(), next: None, wanted, bytes: 0, looked: 0, last: None }
    }

    /// One row more than there may be room for: whether there is one.
    fn limit(&self) -> i64 {
        let most = if self.wanted.prefix.is_empty() { self.max() } else { LIST_LOOK };
        i64::try_from(most + 1).unwrap_or(i64::MAX)
    }

    fn max(&self) -> usize {
        usize::try_from(self.wanted.max).unwrap_or(MAX_BATCH).min(MAX_BATCH)
    }

    /// Whether there is room for one more, with a body of this size.
    fn has_room(&self, size: u64) -> bool {
        let fits =
            !self.wanted.bodies || self.tasks.is_empty() || self.bytes + size <= MAX_REPLY_BYTES as u64;
        fits && self.tasks.len() < self.max() && self.looked < LIST_LOOK
    }

    /// Looks at one row at its place: whether there is room for more.
    fn see(
        &mut self,
        id: &str,
        place: Place,
        read: impl FnOnce() -> rusqlite::Result<TaskRecord>,
        body: impl FnOnce() -> rusqlite::Result<Arc<[u8]>>,
    ) -> rusqlite::Result<ControlFlow<()>> {
        let task = if id.starts_with(&*self.wanted.prefix) { Some(read()?) } else { None };
        if !self.has_room(task.as_ref().map_or(0, |task| task.size)) {
            self.next = self.last.take();
            return Ok(ControlFlow::Break(()));
        }
        self.looked += 1;
        self.last = Some(place);
        if let Some(mut task) = task {
            self.bytes += task.size;
            if self.wanted.bodies {
                task.body = body()?;
            }
            self.tasks.push(task);
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl<'a> Reading<'a> {
    /// Begins with the queue's record.
    pub(super) fn begin(
        connection: &'a Connection,
        view: &View<'_>,
        record: Record,
        queue: &str,
    ) -> rusqlite::Result<Self> {
        let now = if is_of_boot(connection, view.boot)? { view.now } else { i64::MAX };
        let limits = if record.limited == 0 { None } else { Some(Limits::find(connection, queue)?) };
        Ok(Self { connection, record, limits, now, wall: view.wall, now_ms: view.wall / 1_000 })
    }

    /// Where a task is, seen from now.
    fn state_of(&self, task: &Task) -> TaskState {
        match task.state {
            RowState::Claimed if task.is_held(self.now) => TaskState::Claimed,
            RowState::Scheduled if task.due > self.now_ms => TaskState::Scheduled,
            RowState::Held => TaskState::Held,
            _ => TaskState::Ready,
        }
    }

    /// A task from a row of [`TASK`] with its body.
    pub(super) fn record_at(&self, row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
        let task = Task::read(row)?;
        let successor_due: Option<i64> = row.get(AFTER_TASK)?;
        let body = row.get_ref(TASK_COLUMNS)?.as_blob()?.into();
        let state = self.state_of(&task);
        let held = state == TaskState::Claimed;
        let remaining = if held { between(self.now, task.ends) } else { Duration::ZERO };
        let progress = row.get_ref(AFTER_TASK + 1)?.as_blob()?.into();
        Ok(TaskRecord { progress, ..record_of(task, body, state, remaining, successor_due.map(number)) })
    }

    /// The body of the task whose member of a place this is.
    fn body(&self, is_dead: bool, member: i64) -> rusqlite::Result<Arc<[u8]>> {
        let read = |row: &Row<'_>| Ok(row.get_ref(0)?.as_blob()?.into());
        if is_dead {
            self.connection
                .prepare_cached("SELECT body FROM dead WHERE queue = ?1 AND receipt = ?2")?
                .query_row((self.record.id, member), read)
        } else {
            self.connection
                .prepare_cached("SELECT body FROM task WHERE serial = ?1")?
                .query_row([member], read)
        }
    }

    /// A page of tasks, by the parts of their order, each with its bound.
    pub(super) fn page(&self, wanted: List, parts: &[(&Part, i64)]) -> rusqlite::Result<Page> {
        let is_dead = wanted.state == TaskState::Dead;
        let (select, columns, id) = if is_dead { (DEAD, DEAD_COLUMNS, 0) } else { (TASK, TASK_COLUMNS, 1) };
        // Bodies are read of those alone that are returned.
        let select = format!("{select}, x''");
        let (from, mut page) = (wanted.from.clone(), Page::new(wanted));
        let mut walk = Walk {
            connection: self.connection,
            queue: self.record.id,
            way: if is_dead { Way::Back } else { Way::Forward },
            select: &select,
            limit: page.limit(),
            from: from.as_ref(),
        };
        for (part, bound) in parts {
            let mut see = |row: &Row<'_>| {
                let place = part.place(row, columns + 1)?;
                let read = || if is_dead { dead_at(row) } else { self.record_at(row) };
                let member = row.get(columns + 2)?;
                page.see(row.get_ref(id)?.as_str()?, place, read, || self.body(is_dead, member))
            };
            if walk.along(part, *bound, &mut see)?.is_break() {
                break;
            }
        }
        Ok(page)
    }

    /// What can be claimed, in order: the line, then what is due and not promoted, then what has a lease that ended.
    pub(super) fn due_parts(&self) -> [(&'static Part, i64); 3] {
        [(&LINE, ALL), (&DUE, self.now_ms), (&ENDED, self.now)]
    }

    /// How many scheduled tasks are due.
    pub(super) fn count_due(&self) -> rusqlite::Result<i64> {
        self.connection
            .prepare_cached("SELECT count(*) FROM task WHERE queue = ?1 AND state = 0 AND due <= ?2")?
            .query_row((self.record.id, self.now_ms), |row| row.get(0))
    }

    /// Whether there is something to claim, promoted or not.
    pub(super) fn has_due(&self) -> rusqlite::Result<bool> {
        Ok(self.next_due()? == Some(Duration::ZERO))
    }

    /// How long until something becomes due, a lease ends, or a limit lets something go.
    pub(super) fn next_due(&self) -> rusqlite::Result<Option<Duration>> {
        let Self { connection, record, limits, now, wall, .. } = self;
        Outlook { connection, record, limits: limits.as_ref(), now: *now, wall: *wall }.next_due()
    }

    /// A page of held tasks, by key and turn. A place has a turn as its score, and key and id as its member.
    pub(super) fn held(&self, wanted: List) -> rusqlite::Result<Page> {
        let from = wanted.from.as_ref().and_then(|place| {
            let member = str::from_utf8(&place.member).ok()?;
            let (key, id) = member.split_once(char::from(1))?;
            Some((key.to_owned(), place.score.parse::<i64>().ok()?, id.to_owned()))
        });
        let (key, turn, id) = from.unwrap_or_default();
        let sql = format!(
            "{TASK}, x'' FROM task WHERE queue = ?1 AND state = 3 AND parked = 0 AND (key, turn, id) > (?2, ?3, ?4)
             ORDER BY key, turn, id LIMIT ?5"
        );
        let mut page = Page::new(wanted);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query((self.record.id, key, turn, id, page.limit()))?;
        while let Some(row) = rows.next()? {
            let task = Task::read(row)?;
            let member = format!("{}\u{1}{}", task.key, task.id).into_bytes().into();
            let place = Place { part: Place::HELD, score: task.turn.to_string().into(), member };
            let read = || self.record_at(row);
            if page.see(&task.id, place, read, || self.body(false, task.serial))?.is_break() {
                break;
            }
        }
        Ok(page)
    }

    /// How many calls wait for a task.
    pub(super) fn waiters(&self) -> rusqlite::Result<u64> {
        self.connection
            .prepare_cached("SELECT count(*) FROM idle WHERE queue = ?1 AND chosen = 0 AND until > ?2")?
            .query_row((self.record.id, self.now), |row| row.get(0).map(number))
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
        size: number(task.size),
        body,
        version: task.version,
        due: number(task.due),
        priority: task.priority,
        attempts: task.attempts,
        max_attempts: task.max_attempts,
        expires: number(task.expires),
        receipt: task.receipt,
        remaining,
        reason: task.reason.into(),
        consumer: task.consumer.into(),
        died: 0,
        successor_due,
        failures: task.history.failures(),
        progress: [].into(),
        cancelled: task.cancelled,
        key: key_of(&task.key),
    }
}

/// A dead task from a row of [`DEAD`] with its body.
pub(super) fn dead_at(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    Ok(TaskRecord {
        id: TaskId::stored(row.get_ref(0)?.as_str()?.as_bytes()),
        state: TaskState::Dead,
        version: row.get(1)?,
        due: number(row.get(2)?),
        priority: row.get(3)?,
        attempts: row.get(4)?,
        max_attempts: row.get(5)?,
        expires: number(row.get(6)?),
        receipt: row.get(7)?,
        remaining: Duration::ZERO,
        reason: row.get(8)?,
        died: number(row.get(9)?),
        successor_due: None,
        size: number(row.get(10)?),
        consumer: row.get(11)?,
        failures: row.get::<_, History>(12)?.failures(),
        progress: [].into(),
        cancelled: false,
        key: key_of(row.get_ref(13)?.as_str()?),
        body: row.get_ref(DEAD_COLUMNS)?.as_blob()?.into(),
    })
}

/// Whether the times of leases are of this boot.
pub(super) fn is_of_boot(connection: &Connection, boot: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM queue_boot WHERE boot = ?1")?.exists([boot])
}
