//! Verbs that look at tasks, take them for good, or move them.

use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{TaskId, TaskKey};
use crate::protocol::{Due, Receipt, Version, Waiter, WallMillis};

/// Take tasks for good.
#[derive(Clone, Copy, Debug)]
pub struct Pop {
    /// At most so many.
    pub max: u32,
}

/// The tasks that come next: what is due, in the order in which it would be claimed.
#[derive(Clone, Copy, Debug)]
pub struct Peek {
    /// At most so many.
    pub max: u32,
}

/// One task: the live one, else its newest dead record.
#[derive(Clone, Debug)]
pub struct Get {
    /// Which.
    pub id: TaskId,
}

/// The tasks of one state, a page at a time.
#[derive(Clone, Debug)]
pub struct List {
    /// Which state.
    pub state: TaskState,
    /// Only those whose id begins with this text.
    pub prefix: Arc<str>,
    /// Whether with their bodies.
    pub bodies: bool,
    /// `None` first, then what the last page gave.
    pub from: Option<Place>,
    /// At most so many.
    pub max: u32,
}

/// A place in the order of tasks. It stays valid whatever comes and goes: the task by which it is defined may be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The part of the order: what a state's tasks are, one part after the other.
    pub part: u8,
    /// In the part, as the store writes the number.
    pub score: Box<str>,
    /// Among those of one score.
    pub member: Box<[u8]>,
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListReply {
    /// In the state's order: by due time, by turn, by end of lease, newest dead first.
    pub tasks: Vec<TaskRecord>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Place>,
}

impl Place {
    // The parts. Users keep places, so the numbers stay.
    pub(crate) const INTAKE: u8 = 1;
    pub(crate) const SCHEDULED: u8 = 5;
    pub(crate) const READY: u8 = 6;
    pub(crate) const CLAIMED: u8 = 7;
    pub(crate) const FAILED: u8 = 8;
    pub(crate) const EXPIRED: u8 = 12;
    pub(crate) const SCHEDULES: u8 = 13;
    pub(crate) const HELD: u8 = 14;
    pub(crate) const LIMITED: u8 = 15;
    pub(crate) const FLOWS: u8 = 16;
    pub(crate) const FLOWS_ENDED: u8 = 17;

    /// As text: part, score and the member in hexadecimal.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}/{}/", self.part, self.score);
        self.member.iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
        text
    }

    /// What [`Place::text`] wrote; `None` if it is nothing of the kind.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (part, score, hex) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
        let is_score = score.len() <= 32 && score.parse::<f64>().is_ok_and(|score| !score.is_nan());
        if part == 0 || !is_score || parts.next().is_some() || !hex.is_ascii() || hex.len() % 2 == 1 {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).ok();
        let member: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
        Some(Self { part, score: score.into(), member: member?.into() })
    }
}

/// Where a task is. A live task is in exactly one of the states but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// Due later.
    Scheduled,
    /// Due now.
    Ready,
    /// Given to a worker.
    Claimed,
    /// Due now, and held by a limit of its key.
    Held,
    /// Given up; kept for a while.
    Dead,
}

impl TaskState {
    /// Which parts of the order of tasks its listing goes through.
    pub(crate) const fn parts(self) -> &'static [u8] {
        match self {
            Self::Ready => &[Place::READY, Place::SCHEDULED, Place::CLAIMED, Place::INTAKE],
            Self::Scheduled => &[Place::SCHEDULED, Place::INTAKE],
            Self::Claimed => &[Place::CLAIMED],
            Self::Held => &[Place::HELD],
            Self::Dead => &[Place::FAILED, Place::EXPIRED],
        }
    }

    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Claimed => "claimed",
            Self::Held => "held",
            Self::Dead => "dead",
        }
    }
}

/// A task as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its id.
    pub id: TaskId,
    /// Where it is.
    pub state: TaskState,
    /// Payload and headers; empty if it was not asked for.
    pub body: Arc<[u8]>,
    /// Bytes of the body.
    pub size: u64,
    /// Of the last accepted enqueue; [`Version::NONE`] if it was never enqueued (it came by the intake and is still there).
    pub version: Version,
    /// When it is or was due.
    pub due: WallMillis,
    /// Higher ones first.
    pub priority: u8,
    /// Deliveries so far.
    pub attempts: u32,
    /// After so many it is dead.
    pub max_attempts: u32,
    /// Not delivered after this; zero if it does not expire.
    pub expires: WallMillis,
    /// Of the delivery that is not settled; of a dead task, its record's key. [`Receipt::NONE`] if there is none.
    pub receipt: Receipt,
    /// What is left of the lease, if it is claimed.
    pub remaining: Duration,
    /// The reason of the last nack or bury, or why it is dead; empty if there was none.
    pub reason: String,
    /// Who claimed it last; empty if nobody did.
    pub consumer: String,
    /// When it died; zero if it lives.
    pub died: WallMillis,
    /// When the task that waits for the end of this run is due; `None` if there is none.
    pub successor_due: Option<WallMillis>,
    /// The last failed attempts, the latest last.
    pub failures: Vec<AttemptFailed>,
    /// How far its run has come, as it said; empty if it did not, or does not run.
    pub progress: Arc<[u8]>,
    /// Whether its run is to be its last: it was cancelled.
    pub cancelled: bool,
    /// Whose limits it has, if anybody's.
    pub key: Option<TaskKey>,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFailed {
    /// When.
    pub at: WallMillis,
    /// Why.
    pub reason: Box<str>,
}

/// Drop a task: its run, its successor, its intake entry and its throttle window. Dead records stay.
#[derive(Clone, Debug)]
pub struct Remove {
    /// Which.
    pub id: TaskId,
    /// Only if this is still its version (a successor's, if there is one).
    pub version: Option<Version>,
}

/// The answer to [`Remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removed {
    /// It is gone.
    Removed,
    /// There was none.
    Absent,
    /// It has another version; nothing was changed.
    OtherVersion(Version),
}

/// End a task: one that waits goes, with its successor, its intake entry and its throttle window. One that runs is told at
/// its next renewal, and whatever ends its run but an ack ends the task.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Which.
    pub id: TaskId,
}

/// The answer to [`Cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cancelled {
    /// It did not run, and is gone.
    Removed,
    /// It runs: it ends with this run.
    Running,
    /// There is none.
    Absent,
}

/// What became of a task.
#[derive(Clone, Debug)]
pub struct ResultOf {
    /// Which.
    pub id: TaskId,
    /// Of that enqueue, or of a later one.
    pub version: Version,
    /// Who to hint when the task ends.
    pub waiter: Option<Waiter>,
}

/// The answer to [`ResultOf`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultReply {
    /// It is done, and this came of it.
    Done {
        /// Of the task that had the result.
        version: Version,
        /// Its bytes.
        result: Arc<[u8]>,
    },
    /// It is not done yet.
    Pending,
    /// It is dead.
    Dead {
        /// Why.
        reason: Box<str>,
    },
    /// It is done without a result, or removed, or was never there; or its result is not kept any more.
    Gone,
}

/// Give a waiting task another due time.
#[derive(Clone, Debug)]
pub struct Reschedule {
    /// Which.
    pub id: TaskId,
    /// The new time.
    pub due: Due,
}

/// The answer to [`Reschedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RescheduleReply {
    /// It is due then.
    Moved(WallMillis),
    /// There is no such task.
    Absent,
    /// It is claimed: nothing was changed.
    Claimed,
    /// It is dead: nothing was changed. Kick it instead.
    Dead,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = Place { part: 12, score: "1.5".into(), member: (*b"a/\xff").into() };
        assert_eq!(place.text(), "12/1.5/612fff");
        assert_eq!(Place::parse("12/1.5/612fff"), Some(place));
        let bad = [
            "", "7", "7/1", "0/1/00", "7/x/00", "7/nan/00", "7/1/0", "7/1/0g", "7/1/ä", "7/1/00/",
            "300/1/00", "7//00",
        ];
        for text in bad {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }
}
