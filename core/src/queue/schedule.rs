//! Schedules, as they are put into a queue and as they are found in it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base::error::Error;
use crate::base::name::TaskId;
use crate::engine::schedule::{MAX_JITTER, Timing, TimingText};
use crate::protocol::{
    ListSchedulesReply, Missed, NewSchedule, Overlap, PutSchedulesReply, ScheduleOutcome, ScheduleRecord,
    WallMillis,
};
use crate::queue::queue_options::checked_count;
use crate::queue::task::{Task, checked_due, wall_time};

/// Longest id: the slot's time comes behind it in the id of the slot's task.
const MAX_ID: usize = 480;
/// Slots of [`Missed::All`] at most.
const MISSED_MOST: u32 = 1_000;
/// Longest text that says when.
const MAX_WHEN: usize = 4_000;

/// Tasks at set times: cron for a queue. Each time is a slot, and each slot makes one task with the id
/// `schedule@2027-01-31T02:00:00Z`, whoever fires it and however many could. Whoever claims from the queue fires what is due:
/// no process of its own is needed, and the store's clock counts.
///
/// When is a text:
/// - a cron text of 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds first; `@hourly`,
///   `@daily`, `@weekly`, `@monthly`, `@yearly`. Where clocks change, a fixed time comes once: one that is skipped at the
///   end of the gap, one that would come twice the first time.
/// - `every 90s`, `every 1h 30m`: elapsed time, 100 ms to 100 years, from when the schedule was made, or from `starts`.
/// - `at 2027-01-31T08:00:00Z, 2027-02-28T08:00:00+01:00`: these times, RFC 3339.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), stanchion::Error> {
/// use stanchion::{Client, Overlap, Schedule};
///
/// let queue = Client::open("memory:").await?.queue("reports");
/// let nightly = Schedule::new("nightly", "0 3 * * *").tz("Europe/Berlin").overlap(Overlap::Skip);
/// queue.schedule(nightly.payload("all customers")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a schedule does nothing until it is passed to a queue"]
pub struct Schedule {
    id: String,
    when: String,
    tz: String,
    missed: Missed,
    overlap: Overlap,
    jitter: Duration,
    starts: Option<SystemTime>,
    ends: Option<SystemTime>,
    paused: bool,
    task: Task,
}

impl Schedule {
    /// A schedule with this id, 1 to 480 bytes without control characters, and these times. A queue has one of each id.
    pub fn new(id: impl Into<String>, when: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            task: Task::new(id.clone()),
            id,
            when: when.into(),
            tz: "UTC".into(),
            missed: Missed::Last,
            overlap: Overlap::Queue,
            jitter: Duration::ZERO,
            starts: None,
            ends: None,
            paused: false,
        }
    }

    /// The time zone of a cron text, by its IANA name such as `Europe/Berlin` (default: `UTC`). The zones' rules come with
    /// the library, so that all programs agree on them.
    pub fn tz(mut self, tz: impl Into<String>) -> Self {
        self.tz = tz.into();
        self
    }

    /// What becomes of slots that nobody fired in time (default [`Missed::Last`]).
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// What becomes of a slot while the task of the one before is pending or running (default [`Overlap::Queue`]).
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Delays all slots by the same time, which is drawn from the id and is shorter than this, a day at most (default:
    /// none): so a thousand schedules of one hour do not come all at once.
    pub fn jitter(mut self, most: Duration) -> Self {
        self.jitter = most;
        self
    }

    /// No slot before this time.
    pub fn starts(mut self, starts: SystemTime) -> Self {
        self.starts = Some(starts);
        self
    }

    /// No slot after this time.
    pub fn ends(mut self, ends: SystemTime) -> Self {
        self.ends = Some(ends);
        self
    }

    /// Whether it fires nothing for now. Only a new one begins so; one that is there stays as it is.
    pub fn paused(mut self, paused: bool) -> Self {
        self.paused = paused;
        self
    }

    /// As [`Task::payload`], of each of its tasks.
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.task = self.task.payload(payload);
        self
    }

    /// As [`Task::header`], of each of its tasks.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.task = self.task.header(name, value);
        self
    }

    /// As [`Task::priority`], of each of its tasks.
    pub fn priority(mut self, priority: u8) -> Self {
        self.task = self.task.priority(priority);
        self
    }

    /// As [`Task::max_attempts`], of each of its tasks.
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.task = self.task.max_attempts(max_attempts);
        self
    }

    /// As [`Task::key`], of each of its tasks.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.task = self.task.key(key);
        self
    }

    /// As [`Task::expires`], of each of its tasks.
    pub fn expires(mut self, after: Duration) -> Self {
        self.task = self.task.expires(after);
        self
    }

    /// When the slots after this time are due, so many at most (1 to 1,000): fewer if the schedule ends. No I/O. One with a
    /// period begins at this time.
    ///
    /// # Errors
    /// `InvalidArgument` for a count out of range, and for a schedule that `schedule` would refuse.
    pub fn preview(&self, after: SystemTime, count: usize) -> Result<Vec<SystemTime>, Error> {
        let count = checked_count("count", count)? as usize;
        let (timing, _) = self.timing()?;
        let after = checked_due(after).map_err(|_| self.wrong("after: it lies beyond the year 9999"))?;
        Ok(timing.preview(&self.id, after, count).into_iter().map(wall_time).collect())
    }

    /// Checks it as [`Queue::schedule`](crate::Queue::schedule) does. No I/O.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad id, time or option, and if no slot comes any more.
    pub fn check(&self) -> Result<(), Error> {
        self.checked()?;
        self.check_comes()
    }

    fn wrong(&self, problem: &str) -> Error {
        Error::invalid(format!("schedule {:?}: {problem}", self.id))
    }

    fn timing(&self) -> Result<(Timing, TimingText), Error> {
        if self.when.len() > MAX_WHEN {
            return Err(self.wrong(&format!("when: it has {} bytes, more than {MAX_WHEN}", self.when.len())));
        }
        if self.jitter > MAX_JITTER {
            return Err(self.wrong("jitter: it is more than a day"));
        }
        let time = |name: &str, time: Option<SystemTime>| {
            let beyond = || self.wrong(&format!("{name}: it lies beyond the year 9999"));
            time.map(checked_due).transpose().map_err(|_| beyond())
        };
        let text = TimingText {
            when: self.when.trim().to_owned(),
            tz: self.tz.clone(),
            jitter: millis(self.jitter),
            starts: time("starts", self.starts)?,
            ends: time("ends", self.ends)?,
        };
        let timing = Timing::new(&text).map_err(|problem| self.wrong(&problem))?;
        Ok((timing, text))
    }

    /// Checks everything. No I/O.
    pub(crate) fn checked(&self) -> Result<NewSchedule, Error> {
        if self.id.len() > MAX_ID {
            return Err(Error::invalid(format!(
                "a schedule's id has at most {MAX_ID} bytes, this one {}",
                self.id.len()
            )));
        }
        let id = TaskId::parse(&self.id)?;
        let (_, text) = self.timing()?;
        if let Missed::All(max) = self.missed
            && !(1..=MISSED_MOST).contains(&max)
        {
            return Err(self.wrong(&format!("missed: all({max}) is not between 1 and {MISSED_MOST}")));
        }
        let task = self.task.checked()?;
        let timing = serde_json::to_string(&text).map_err(|_| self.wrong("it cannot be stored"))?;
        Ok(NewSchedule {
            id,
            timing: timing.into(),
            missed: self.missed,
            overlap: self.overlap,
            paused: self.paused,
            body: task.body,
            priority: task.priority,
            max_attempts: task.max_attempts,
            expires: task.expires,
            key: task.key,
        })
    }

    /// Fails if no slot comes any more.
    pub(crate) fn check_comes(&self) -> Result<(), Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (timing, _) = self.timing()?;
        match timing.next(millis(now)) {
            Some(_) => Ok(()),
            None => Err(self.wrong("it is over: no slot comes any more")),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A schedule as it is in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleInfo {
    /// Its id.
    pub id: String,
    /// When its slots are. If a newer version has put it, what that has stored: it is left alone by this one.
    pub when: String,
    /// The time zone.
    pub tz: String,
    /// What becomes of missed slots; `None` if a newer version has put it.
    pub missed: Option<Missed>,
    /// What becomes of a slot while the task of the one before lives.
    pub overlap: Overlap,
    /// By how much its slots are delayed at most.
    pub jitter: Duration,
    /// No slot before.
    pub starts: Option<SystemTime>,
    /// No slot after.
    pub ends: Option<SystemTime>,
    /// Whether it fires nothing.
    pub paused: bool,
    /// When its next slot is due; `None` if it is paused, or none comes any more.
    pub next: Option<SystemTime>,
    /// For how long that has been due, by the store's clock: more than a moment means that nobody works on the queue.
    pub late: Duration,
    /// Whose list it is in, if it is in one.
    pub owner: Option<String>,
    /// How many tasks it has made.
    pub fired: u64,
    /// How many slots got no task: the one before was running, or the queue was full.
    pub skipped: u64,
    /// How many slots were past and were not fired.
    pub missed_slots: u64,
    /// The last task that it made.
    pub last_task: Option<String>,
    /// Of its tasks.
    pub priority: u8,
    /// Of its tasks.
    pub max_attempts: u32,
    /// Of its tasks.
    pub expires: Option<Duration>,
    /// Of its tasks.
    pub key: Option<String>,
    /// Bytes of its tasks' payload and headers, as stored.
    pub size: u64,
}

impl ScheduleInfo {
    pub(crate) fn new(record: ScheduleRecord, now: WallMillis) -> Self {
        let unknown = TimingText {
            when: record.timing.clone(),
            tz: String::new(),
            jitter: 0,
            starts: None,
            ends: None,
        };
        let timing = serde_json::from_str(&record.timing).unwrap_or(unknown);
        let late = record.due.map_or(0, |due| now.saturating_sub(due));
        Self {
            id: record.id.as_str().to_owned(),
            when: timing.when,
            tz: timing.tz,
            missed: record.missed,
            overlap: record.overlap,
            jitter: Duration::from_millis(timing.jitter),
            starts: timing.starts.map(wall_time),
            ends: timing.ends.map(wall_time),
            paused: record.paused,
            next: record.due.map(wall_time),
            late: Duration::from_millis(late),
            owner: (!record.owner.is_empty()).then_some(record.owner),
            fired: record.fired,
            skipped: record.skipped,
            missed_slots: record.missed_slots,
            last_task: (!record.last_task.is_empty()).then_some(record.last_task),
            priority: record.priority,
            max_attempts: record.max_attempts,
            expires: (record.expires > 0).then(|| Duration::from_millis(record.expires)),
            key: record.key.map(|key| key.as_str().to_owned()),
            size: record.size,
        }
    }
}

/// Some of a queue's schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulePage {
    /// In the order in which they are due; those that are paused or over come last.
    pub schedules: Vec<ScheduleInfo>,
    /// Pass this to get the next page; `None` if this was the last.
    pub next: Option<String>,
}

impl From<ListSchedulesReply> for SchedulePage {
    fn from(reply: ListSchedulesReply) -> Self {
        let ListSchedulesReply { now, schedules, next } = reply;
        Self {
            schedules: schedules.into_iter().map(|record| ScheduleInfo::new(record, now)).collect(),
            next: next.map(|place| place.text()),
        }
    }
}

/// What became of an owner's list of schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// How many are new.
    pub added: u64,
    /// How many were changed.
    pub changed: u64,
    /// How many are as they were.
    pub kept: u64,
    /// How many the owner had and has no more.
    pub removed: u64,
    /// If the queue has a list of a later generation, that one: then nothing was changed.
    pub newer: Option<u64>,
}

impl From<PutSchedulesReply> for Synced {
    fn from(reply: PutSchedulesReply) -> Self {
        let mut synced = Self::default();
        match reply {
            PutSchedulesReply::Older(newer) => synced.newer = Some(newer),
            PutSchedulesReply::Put(outcomes, removed) => {
                synced.removed = removed;
                for outcome in outcomes {
                    match outcome {
                        ScheduleOutcome::Added => synced.added += 1,
                        ScheduleOutcome::Changed => synced.changed += 1,
                        ScheduleOutcome::Kept => synced.kept += 1,
                    }
                }
            }
        }
        synced
    }
}
