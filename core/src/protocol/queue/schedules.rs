//! Verbs about schedules. A store keeps them, tells which are due, and fires them; when slots are is for the engine to say.

use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{TaskId, TaskKey};
use crate::protocol::{Place, Version, WallMillis};

/// What becomes of slots that nobody fired in time, because nobody worked on the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed {
    /// The last of them is fired, late.
    #[default]
    Last,
    /// None that is more than a minute late.
    Skip,
    /// All, but for so many at most: the newest. 1 to 1,000.
    All(u32),
}

impl Missed {
    /// As stores keep it.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Last => "last".into(),
            Self::Skip => "skip".into(),
            Self::All(max) => format!("all:{max}"),
        }
    }

    /// What [`Missed::text`] wrote; `None` if it is of a newer version.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "last" => Some(Self::Last),
            "skip" => Some(Self::Skip),
            _ => text.strip_prefix("all:")?.parse().ok().map(Self::All),
        }
    }
}

/// What becomes of a slot while the task of the slot before is pending or running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overlap {
    /// It gets its task all the same.
    #[default]
    Queue,
    /// It gets none.
    Skip,
}

/// Add schedules, or change them.
#[derive(Clone, Debug)]
pub struct PutSchedules {
    /// If given, these are all that this owner has: others of the owner's go.
    pub owner: Option<ScheduleOwner>,
    /// In this order.
    pub schedules: Arc<[NewSchedule]>,
}

/// Whose list of schedules it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleOwner {
    /// Its name.
    pub name: Arc<str>,
    /// A list of an older generation changes nothing.
    pub generation: u64,
}

/// A schedule to put.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// Its id.
    pub id: TaskId,
    /// When its slots are. Stores do not look into it, they only compare it.
    pub timing: Arc<str>,
    /// What becomes of missed slots.
    pub missed: Missed,
    /// What becomes of a slot while the one before runs.
    pub overlap: Overlap,
    /// Whether a new one begins paused; one that is there stays as it is.
    pub paused: bool,
    /// Payload and headers of its tasks.
    pub body: Arc<[u8]>,
    /// Of its tasks.
    pub priority: u8,
    /// Of its tasks.
    pub max_attempts: u32,
    /// Of its tasks.
    pub expires: Option<Duration>,
    /// Of its tasks.
    pub key: Option<TaskKey>,
}

/// The answer to [`PutSchedules`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutSchedulesReply {
    /// One outcome for each, and how many others of the owner's were removed.
    Put(Vec<ScheduleOutcome>, u64),
    /// The owner's list is of this generation, which is newer: nothing was changed.
    Older(u64),
}

/// What became of a schedule that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScheduleOutcome {
    /// It is new.
    Added,
    /// It was there, and is changed.
    Changed,
    /// It was there as it is.
    Kept,
}

/// The due of a schedule that has none, as stores keep it: after all others, and exact in every number.
pub(crate) const NEVER: WallMillis = 1 << 52;

impl ScheduleOutcome {
    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Kept => "kept",
        }
    }
}

/// Look at schedules.
#[derive(Clone, Debug)]
pub enum ListSchedules {
    /// Those that are due, the first ones first.
    Due {
        /// At most so many.
        max: u32,
        /// Those, too, that are due by then: who waits for a slot looks at it before.
        until: WallMillis,
    },
    /// One.
    One(TaskId),
    /// A page of all, in the order in which they are due.
    Page {
        /// `None` first, then what the last page gave.
        from: Option<Place>,
        /// At most so many.
        max: u32,
    },
}

/// The answer to [`ListSchedules`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSchedulesReply {
    /// The store's wall time.
    pub now: WallMillis,
    /// In order.
    pub schedules: Vec<ScheduleRecord>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Place>,
}

/// A schedule as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRecord {
    /// Its id.
    pub id: TaskId,
    /// Changes whenever it does.
    pub version: Version,
    /// When its slots are, as it was put.
    pub timing: String,
    /// What becomes of missed slots; `None` if this version does not know the word.
    pub missed: Option<Missed>,
    /// What becomes of a slot while the one before runs.
    pub overlap: Overlap,
    /// Whether it fires nothing.
    pub paused: bool,
    /// The last slot that was seen to, or when it was made.
    pub cursor: WallMillis,
    /// Whether slots up to now are not meant: it was just added, changed or resumed.
    pub fresh: bool,
    /// When its next slot is due; `None` if none comes.
    pub due: Option<WallMillis>,
    /// Whose list it is in; empty: nobody's.
    pub owner: String,
    /// How many tasks it has made.
    pub fired: u64,
    /// How many slots got no task: the one before was running, or the queue was full.
    pub skipped: u64,
    /// How many slots were past and were not fired.
    pub missed_slots: u64,
    /// The last task that it made; empty if none.
    pub last_task: String,
    /// Of its tasks.
    pub priority: u8,
    /// Of its tasks.
    pub max_attempts: u32,
    /// Of its tasks, in milliseconds; 0: never.
    pub expires: u64,
    /// Bytes of the body.
    pub size: u64,
    /// Of its tasks.
    pub key: Option<TaskKey>,
}

/// Fire schedules: each moves on, and its slots get tasks, if nobody has moved it before.
#[derive(Clone, Debug)]
pub struct Fire {
    /// Each as if alone.
    pub schedules: Arc<[FireSchedule]>,
}

/// How one is fired.
#[derive(Clone, Debug)]
pub struct FireSchedule {
    /// Its id.
    pub id: TaskId,
    /// As it was looked at. If it has another version by now, nothing happens.
    pub version: Version,
    /// The last slot that is seen to from now on.
    pub cursor: WallMillis,
    /// When the next is due; `None` if none comes.
    pub due: Option<WallMillis>,
    /// How many slots are past and get no task.
    pub missed: u64,
    /// As the schedule has it.
    pub overlap: Overlap,
    /// The ids of the tasks, and when they are due.
    pub tasks: Vec<(TaskId, WallMillis)>,
}

/// What became of one that was to be fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// It has moved on.
    Fired {
        /// So many slots got a task.
        tasks: u64,
        /// So many got none: the one before was running, or the queue was full.
        skipped: u64,
    },
    /// Somebody else was faster, or it was changed: nothing happened.
    Stale,
    /// There is no such schedule.
    Absent,
}

/// Pause a schedule, or let it go on.
#[derive(Clone, Debug)]
pub struct PauseSchedule {
    /// Which.
    pub id: TaskId,
    /// Which of both.
    pub paused: bool,
}
