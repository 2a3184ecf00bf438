//! A live task's row, and the ways from one state to another that all verbs are made of.

use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::protocol::{Happened, LEASE_ENDED, NodeEvent, Receipt, TURN_BITS, Verdict, Version};
use crate::store::sqlite::queue::history::History;
use crate::store::sqlite::queue::record::{How, RowState};
use crate::store::sqlite::queue::work::Work;

/// The part of a turn that orders tasks by when they came into the line.
pub(super) const SEQUENCE: i64 = (1 << TURN_BITS) - 1;
/// The `verdict` of a receipt that was settled by no verdict.
pub(super) const NO_VERDICT: i64 = 0;

/// A row without its body.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) serial: i64,
    pub(super) id: Box<str>,
    pub(super) state: RowState,
    pub(super) turn: i64,
    pub(super) ends: i64,
    pub(super) version: Version,
    pub(super) due: i64,
    pub(super) priority: u8,
    pub(super) attempts: u32,
    pub(super) max_attempts: u32,
    pub(super) first: i64,
    pub(super) expires: i64,
    pub(super) receipt: Receipt,
    pub(super) settled: Receipt,
    pub(super) verdict: i64,
    pub(super) follows: Follows,
    pub(super) reason: Box<str>,
    /// Until when no enqueue brings it forward; 0: it is no retry.
    pub(super) backoff: i64,
    /// Who claimed it last; empty if nobody did.
    pub(super) consumer: Box<str>,
    /// Of its body.
    pub(super) size: i64,
    /// Its last failures; empty if there were none.
    pub(super) history: History,
    /// Whether its run is its last.
    pub(super) cancelled: bool,
    /// Whose limits it has; empty: nobody's.
    pub(super) key: Box<str>,
    /// Which one of which flow it is; empty: none.
    pub(super) node: Box<str>,
    /// Whether its key has been told already that it leaves the place that it has in the table.
    pub(super) left: bool,
}

/// How a successor comes after main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// When its run has ended for good.
    Run = 0,
    /// Instead of a retry.
    Retry = 1,
    /// The same, by debounce.
    Debounced = 2,
    /// The same, with the body of main.
    Again = 3,
}

/// Where in line a task stands that is due.
#[derive(Clone, Copy)]
pub(super) struct Place {
    state: RowState,
    turn: i64,
    /// Whether it is there now.
    stays: bool,
}

/// The tasks of an id that lives.
pub(super) struct Live {
    pub(super) main: Task,
    pub(super) successor: Option<Task>,
}

/// Begins a query for tasks.
macro_rules! select_task {
    ($rest:literal) => {
        concat!(
            "SELECT serial, id, state + (state = 3 AND parked = 0), turn, ends, version, due, priority, attempts, max_attempts, first, ",
            "expires, receipt, settled, verdict, replaces, reason, backoff, consumer, length(body), history, cancelled, ",
            "key, node",
            $rest
        )
    };
}
pub(super) use select_task;

/// The first column after those of a task.
pub(super) const AFTER_TASK: usize = 24;

impl Task {
    /// Reads the columns of [`select_task`].
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            serial: row.get(0)?,
            id: row.get(1)?,
            state: row.get(2)?,
            turn: row.get(3)?,
            ends: row.get(4)?,
            version: row.get(5)?,
            due: row.get(6)?,
            priority: row.get(7)?,
            attempts: row.get(8)?,
            max_attempts: row.get(9)?,
            first: row.get(10)?,
            expires: row.get(11)?,
            receipt: row.get(12)?,
            settled: row.get(13)?,
            verdict: row.get(14)?,
            follows: row.get(15)?,
            reason: row.get(16)?,
            backoff: row.get(17)?,
            consumer: row.get(18)?,
            size: row.get(19)?,
            history: row.get(20)?,
            cancelled: row.get(21)?,
            key: row.get(22)?,
            node: row.get(23)?,
            left: false,
        })
    }

    /// Whether a worker has it now.
    pub(super) fn is_held(&self, now: i64) -> bool {
        self.state == RowState::Claimed && self.ends > now
    }

    /// Whether it may no longer be delivered.
    pub(super) fn is_expired(&self, now_ms: i64) -> bool {
        self.expires != 0 && self.expires <= now_ms
    }

    /// Where it stands, or stood before it was claimed.
    pub(super) fn stand(&self) -> Place {
        let stays = self.state != RowState::Claimed;
        let state = if stays { self.state } else { RowState::Ready };
        Place { state, turn: self.turn, stays }
    }

    /// No enqueue brings a retry forward of its back-off.
    pub(super) fn hold_back(&mut self, backoff: i64, now_ms: i64) {
        if backoff > now_ms {
            (self.backoff, self.due) = (backoff, self.due.max(backoff));
        }
    }

    /// What is asked for again by debounce, with the same body, is the same task: its attempts go on. One is
    /// left in any case.
    pub(super) fn go_on(&mut self, before: &Self) {
        self.attempts = before.attempts.min(self.max_attempts.saturating_sub(1));
    }

    /// Settles its delivery; answers the receipt.
    pub(super) fn spend(&mut self, verdict: i64) -> Receipt {
        (self.settled, self.verdict) = (self.receipt, verdict);
        std::mem::take(&mut self.receipt)
    }
}

impl Work<'_> {
    /// The tasks of this id.
    pub(super) fn live(&self, id: &str) -> rusqlite::Result<Option<Live>> {
        let mut statement = self
            .step
            .connection
            .prepare_cached(select_task!(" FROM task WHERE queue = ?1 AND id = ?2 ORDER BY parked"))?;
        let mut rows = statement.query((self.record.id, id))?;
        let Some(main) = rows.next()?.map(Task::read).transpose()? else { return Ok(None) };
        let successor = rows.next()?.map(Task::read).transpose()?;
        Ok(Some(Live { main, successor }))
    }

    /// A main task together with its successor.
    pub(super) fn with_successor(&self, main: Task) -> rusqlite::Result<Live> {
        // A library that knows no keys counts what is held as successors.
        if self.record.count(RowState::Parked) + self.record.count(RowState::Held) == 0 {
            return Ok(Live { main, successor: None });
        }
        let successors = self.step.few(
            select_task!(" FROM task WHERE queue = ?1 AND id = ?2 AND parked = 1"),
            &[&self.record.id, &main.id],
            Task::read,
        )?;
        Ok(Live { main, successor: successors.into_iter().next() })
    }

    /// Adds a task in its state.
    pub(super) fn insert(&mut self, task: &Task, body: &[u8]) -> rusqlite::Result<()> {
        self.record.enter(task.state);
        self.step.change(
            "INSERT INTO task (queue, id, parked, state, turn, ends, version, due, priority, attempts,
               max_attempts, first, expires, receipt, settled, verdict, replaces, reason, backoff, consumer, body,
               history, key, node)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
               ?21, ?22, ?23, ?24)",
            &[
                &self.record.id,
                &task.id,
                &(task.state == RowState::Parked),
                &task.state,
                &task.turn,
                &task.ends,
                &task.version,
                &task.due,
                &task.priority,
                &task.attempts,
                &task.max_attempts,
                &task.first,
                &task.expires,
                &task.receipt,
                &task.settled,
                &task.verdict,
                &task.follows,
                &task.reason,
                &task.backoff,
                &task.consumer,
                &body,
                &task.history,
                &task.key,
                &task.node,
            ],
        )?;
        Ok(())
    }

    /// Writes a task that was in the state `from`; not its body, nor whether it is a successor. What its run has said of
    /// itself goes. The file writes the row
    /// anew with all that is in it.
    pub(super) fn update(&mut self, task: &Task, from: RowState) -> rusqlite::Result<()> {
        self.moved += task.size;
        self.record.leave(from);
        self.record.enter(task.state);
        self.step.change(
            "UPDATE task SET state = ?2, turn = ?3, ends = ?4, version = ?5, due = ?6, priority = ?7,
               attempts = ?8, max_attempts = ?9, first = ?10, expires = ?11, receipt = ?12, settled = ?13,
               verdict = ?14, replaces = ?15, reason = ?16, backoff = ?17, consumer = ?18, history = ?19,
               cancelled = ?20, key = ?21, node = ?22, progress = x''
             WHERE serial = ?1",
            &[
                &task.serial,
                &task.state,
                &task.turn,
                &task.ends,
                &task.version,
                &task.due,
                &task.priority,
                &task.attempts,
                &task.max_attempts,
                &task.first,
                &task.expires,
                &task.receipt,
                &task.settled,
                &task.verdict,
                &task.follows,
                &task.reason,
                &task.backoff,
                &task.consumer,
                &task.history,
                &task.cancelled,
                &task.key,
                &task.node,
            ],
        )?;
        Ok(())
    }

    /// Drops a task and its body.
    pub(super) fn delete(&mut self, task: &Task) -> rusqlite::Result<()> {
        self.record.leave(task.state);
        self.step.change("DELETE FROM task WHERE serial = ?1", &[&task.serial])?;
        Ok(())
    }

    /// Decides where a pending task goes: in line if its due has come.
    pub(super) fn place(&mut self, task: &mut Task) -> rusqlite::Result<()> {
        if task.due <= self.now_ms {
            self.record.sequence += 1;
            task.state = RowState::Ready;
            task.turn = i64::from(u8::MAX - task.priority) << TURN_BITS | self.record.sequence;
            self.ready = true;
            self.enter_key(task)?;
        } else {
            task.state = RowState::Scheduled;
            self.earlier |= self.is_earliest(task.due)?;
        }
        Ok(())
    }

    /// Makes a task pending that is in the table already; if it is due, in this place if it has one.
    pub(super) fn put(&mut self, mut main: Task, place: Option<Place>) -> rusqlite::Result<()> {
        let from = main.state;
        match place {
            Some(place) if main.due <= self.now_ms => {
                if !place.stays {
                    self.leave_key(&main)?;
                }
                (main.state, main.turn) = (place.state, place.turn);
                self.ready = true;
                if !place.stays {
                    self.enter_key(&mut main)?;
                }
            }
            _ => {
                self.leave_key(&main)?;
                self.place(&mut main)?;
            }
        }
        self.update(&main, from)
    }

    /// Where `task` stands if it takes the place of `before`, which waits: in the same place if both are due, of
    /// one priority, and of one key. Somebody who asks for a task all the time does not keep it from its turn.
    pub(super) fn stays(&self, before: &Task, task: &mut Task) -> Option<Place> {
        if before.due > self.now_ms
            || task.due > self.now_ms
            || before.priority != task.priority
            || before.key != task.key
        {
            return None;
        }
        task.due = before.due;
        Some(before.stand())
    }

    /// Ends the main task for good: its successor takes its place, if there is one.
    pub(super) fn succeed(&mut self, live: Live) -> rusqlite::Result<()> {
        self.succeed_in(live, None)
    }

    /// The end of a task that was cancelled.
    pub(super) fn end_cancelled(&mut self, live: Live) -> rusqlite::Result<()> {
        self.happen(Happened::Cancelled, &live.main, "")?;
        self.end_node(&live.main.node, NodeEvent::Cancelled, None)?;
        self.succeed(live)
    }

    fn succeed_in(&mut self, live: Live, place: Option<Place>) -> rusqlite::Result<()> {
        let Live { main, successor } = live;
        self.rouse(&main.id)?;
        if !place.is_some_and(|place| place.stays) {
            self.leave_key(&main)?;
        }
        self.delete(&main)?;
        let Some(mut next) = successor else { return Ok(()) };
        self.step.change("UPDATE task SET parked = 0 WHERE serial = ?1", &[&next.serial])?;
        (next.settled, next.verdict, next.follows) = (main.settled, main.verdict, Follows::Run);
        self.put(next, place)
    }

    /// The successor takes the place of a retry: no settlement of it counts any more, but its back-off stays.
    /// `place` is that of the retry, if it keeps that.
    pub(super) fn supplant(&mut self, mut live: Live, place: Option<Place>) -> rusqlite::Result<()> {
        if live.main.receipt != Receipt::NONE {
            live.main.spend(NO_VERDICT);
        }
        let Some(next) = &mut live.successor else { return self.succeed(live) };
        if next.follows == Follows::Again {
            next.go_on(&live.main);
        }
        if next.node.is_empty() && !live.main.node.is_empty() {
            next.node.clone_from(&live.main.node);
        }
        next.hold_back(live.main.backoff, self.now_ms);
        let is_alike = next.priority == live.main.priority && next.key == live.main.key;
        let place = place.filter(|_| is_alike);
        self.succeed_in(live, place)
    }

    /// Makes the main task pending again, unless its successor takes the retry's place.
    pub(super) fn retry(&mut self, live: Live, place: Option<Place>) -> rusqlite::Result<()> {
        if live.successor.as_ref().is_some_and(|successor| successor.follows != Follows::Run) {
            return self.supplant(live, place);
        }
        self.put(live.main, place)
    }

    /// Ends a delivery whose lease has ended: it has failed, but it is not settled by that.
    pub(super) fn end_lease(&mut self, mut live: Live) -> rusqlite::Result<()> {
        if live.main.cancelled {
            return self.end_cancelled(live);
        }
        let ended = self.now_ms - self.step.now.saturating_sub(live.main.ends) / 1_000;
        live.main.history.add(ended, LEASE_ENDED);
        if live.main.attempts >= live.main.max_attempts {
            let receipt = live.main.receipt;
            return self.die(live, LEASE_ENDED, receipt, How::LeaseEnded);
        }
        self.record.retried += 1;
        self.happen(Happened::Failed, &live.main, LEASE_ENDED)?;
        live.main.reason = LEASE_ENDED.into();
        // A failure begins a new burst of debounces.
        live.main.first = ended;
        self.retry(live, None)
    }

    /// The tasks of this id as an enqueue finds them: a lease that has ended is over, whether somebody has noticed
    /// before or not.
    pub(super) fn find(&mut self, id: &str) -> rusqlite::Result<Option<Live>> {
        match self.live(id)? {
            Some(live) if live.main.state == RowState::Claimed && !live.main.is_held(self.step.now) => {
                self.end_lease(live)?;
                self.live(id)
            }
            live => Ok(live),
        }
    }
}

/// A verdict as it is stored.
pub(super) fn verdict_number(verdict: &Verdict) -> i64 {
    match verdict {
        Verdict::Ack | Verdict::AckWith { .. } => 1,
        Verdict::Nack { .. } => 2,
        Verdict::Bury { .. } => 3,
        Verdict::PutBack { .. } => 4,
        Verdict::Throttle { .. } => 7,
    }
}

impl ToSql for Follows {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(*self as i64))
    }
}

impl FromSql for Follows {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value.as_i64()? {
            0 => Self::Run,
            1 => Self::Retry,
            2 => Self::Debounced,
            3 => Self::Again,
            other => return Err(FromSqlError::OutOfRange(other)),
        })
    }
}

impl ToSql for RowState {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        // With `parked`, which is 0 for one that is held.
        let state = if *self == Self::Held { Self::Parked } else { *self };
        Ok(ToSqlOutput::from(state as i64))
    }
}

impl FromSql for RowState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value.as_i64()? {
            0 => Self::Scheduled,
            1 => Self::Ready,
            2 => Self::Claimed,
            3 => Self::Parked,
            4 => Self::Held,
            other => return Err(FromSqlError::OutOfRange(other)),
        })
    }
}
