//! Tasks, as they are put into a queue and as they are found in it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base::envelope::{self, Headers, MAX_PAYLOAD};
use crate::base::error::{Error, not_between};
use crate::base::name::{TaskId, TaskKey};
use crate::engine::task_backoff::Backoff;
use crate::protocol::{
    AttemptFailed, DEFAULT_MAX_ATTEMPTS, Due, ListReply, NewTask, OnDuplicate, Outcome, Receipt, ResultReply,
    TaskRecord, TaskState, Version, WallMillis,
};
use crate::queue::consumer::ClaimedBy;
use crate::queue::task_settings::TaskSettings;
use crate::session::options::MAX_TTL;

/// Most attempts: more would be for ever.
const MAX_ATTEMPTS: u32 = 1_000_000;
/// The last due time: the end of the year 9999.
const LAST_DUE: WallMillis = 253_402_300_799_999;
/// Longest delay.
const MAX_DELAY: Duration = Duration::from_secs(7_900 * 365 * 24 * 3600);

/// A task to put into a queue.
///
/// ```
/// use std::time::Duration;
/// use stanchion::{OnDuplicate, Task};
///
/// let task = Task::new("user:42").payload("hello").delay(Duration::from_secs(5)).priority(3);
/// let latest_only = Task::new("reindex:7").on_duplicate(OnDuplicate::Replace);
/// let any_id = Task::auto().payload("one of many");
/// ```
#[derive(Clone, Debug)]
#[must_use = "a task does nothing until it is enqueued"]
pub struct Task {
    id: Option<String>,
    payload: Vec<u8>,
    headers: Headers,
    due: TaskDue,
    priority: u8,
    max_attempts: u32,
    expires: Option<Duration>,
    on_duplicate: OnDuplicate,
    key: Option<String>,
    settings: TaskSettings,
}

#[derive(Clone, Copy, Debug)]
enum TaskDue {
    Now,
    In(Duration),
    At(SystemTime),
    /// A delay and a time: which one is meant is not known.
    Both,
}

impl Task {
    /// A task with this id: 1 to 512 bytes without control characters. Two tasks of a queue with the same id
    /// are the same task; see [`Task::on_duplicate`].
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::auto() }
    }

    /// A task with a random id of its own.
    pub fn auto() -> Self {
        Self {
            id: None,
            payload: Vec::new(),
            headers: Headers::new(),
            due: TaskDue::Now,
            priority: 0,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            expires: None,
            on_duplicate: OnDuplicate::Keep,
            key: None,
            settings: TaskSettings::default(),
        }
    }

    /// The bytes for the worker: with the headers 16 MiB at most (default: none).
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Adds a header: text that travels with the payload. Names that begin with `stanchion-` are refused by `enqueue`: they
    /// are the library's own.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Not delivered earlier than this long after the store accepted it (default: at once). Not together with
    /// [`Task::due`].
    pub fn delay(mut self, delay: Duration) -> Self {
        self.due = match self.due {
            TaskDue::At(_) | TaskDue::Both => TaskDue::Both,
            TaskDue::Now | TaskDue::In(_) => TaskDue::In(delay),
        };
        self
    }

    /// Not delivered earlier than this time, by the store's clock; up to the year 9999. Not together with
    /// [`Task::delay`].
    pub fn due(mut self, due: SystemTime) -> Self {
        self.due = match self.due {
            TaskDue::In(_) | TaskDue::Both => TaskDue::Both,
            TaskDue::Now | TaskDue::At(_) => TaskDue::At(due),
        };
        self
    }

    /// Of the tasks that are due, those with a higher priority are delivered first: 0 to 255 (default 0).
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// After so many deliveries without success the task is dead: 1 to 1,000,000 (default 20: with the back-off, after
    /// about two days).
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Expires this long after acceptance; then it becomes dead (default: never).
    pub fn expires(mut self, after: Duration) -> Self {
        self.expires = Some(after);
        self
    }

    /// What it has in common with others, such as `tenant:7`: 1 to 512 bytes without control characters (default: none). Tasks of one
    /// key share the limits that the queue gives each key ([`QueueConfig::key_concurrency`](crate::QueueConfig::key_concurrency),
    /// [`QueueConfig::key_rate`](crate::QueueConfig::key_rate)), and keys share the queue alike: one with a million tasks does not
    /// hold up another with ten. Without any limit one task of each key stands in line, and the next one when that is delivered.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// What kind of work it is, such as `send-welcome`, by which workers choose their handler: 1 to 128 bytes without control
    /// characters (default: none).
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.settings.kind = Some(kind.into());
        self
    }

    /// How long a run may take: 1 ms to 365 days (default: as long as its claim is renewed). A run that takes longer loses its
    /// claim with [`LossReason::TimedOut`](crate::LossReason::TimedOut), and has failed with the reason `timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// How long it waits after a failed attempt (default: as [`Retry::Backoff`](crate::Retry::Backoff) says).
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = Some(backoff);
        self
    }

    /// For how long the result that its run gives is kept: 1 ms to 30 days (default 1 h).
    pub fn keep_result(mut self, time: Duration) -> Self {
        self.settings.keep_result = Some(time);
        self
    }

    /// What to do if the id is in the queue already (default [`OnDuplicate::Keep`]).
    pub fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = on_duplicate;
        self
    }

    /// Checks it as `enqueue` does: for programs that collect many before they send them. No I/O.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad id or option, or too long a payload.
    pub fn check(&self) -> Result<(), Error> {
        self.checked().map(drop)
    }

    /// Its id, if it was given one.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// With an id: a random one, if it was given none. If there is no random source it stays without, which is found when it is
    /// checked.
    pub(crate) fn named(mut self) -> Self {
        if self.id.is_none() {
            self.id = random_id().ok();
        }
        self
    }

    /// Whether it says what to do if its id is there.
    pub(crate) fn has_duplicate_policy(&self) -> bool {
        self.on_duplicate != OnDuplicate::Keep
    }

    /// Checks everything. No I/O.
    pub(crate) fn checked(&self) -> Result<NewTask, Error> {
        let id = match &self.id {
            Some(id) => TaskId::parse(id)?,
            None => TaskId::parse(&random_id()?)?,
        };
        let name = id.as_str().to_owned();
        let wrong = |problem: String| Error::invalid(format!("task {name:?}: {problem}"));
        if !(1..=MAX_ATTEMPTS).contains(&self.max_attempts) {
            let given = self.max_attempts;
            return Err(wrong(format!("max_attempts {given} is not between 1 and {MAX_ATTEMPTS}")));
        }
        let (window, option) = match self.on_duplicate {
            OnDuplicate::Debounce { max_wait } => (Some(max_wait), "max_wait"),
            OnDuplicate::Throttle { window } => (Some(window), "window"),
            OnDuplicate::Keep | OnDuplicate::Skip | OnDuplicate::Replace => (None, ""),
        };
        for (option, time) in [(option, window), ("expires", self.expires)] {
            if let Some(time) = time
                && !(Duration::from_millis(1)..=MAX_TTL).contains(&time)
            {
                return Err(wrong(not_between(option, time, "1 ms")));
            }
        }
        let headers = self.settings.write(&self.headers).map_err(wrong)?;
        let body = envelope::encode(&self.payload, &headers).ok_or_else(|| {
            let len = self.payload.len();
            wrong(format!("payload and headers have more than {MAX_PAYLOAD} bytes (payload: {len})"))
        })?;
        Ok(NewTask {
            id,
            body,
            due: self.due.checked().map_err(wrong)?,
            priority: self.priority,
            max_attempts: self.max_attempts,
            expires: self.expires,
            on_duplicate: self.on_duplicate,
            key: self
                .key
                .as_deref()
                .map(TaskKey::parse)
                .transpose()
                .map_err(|error| wrong(error.to_string()))?,
            node: None,
        })
    }
}

impl TaskDue {
    fn checked(self) -> Result<Due, String> {
        match self {
            Self::Now => Ok(Due::Now),
            Self::In(Duration::ZERO) => Ok(Due::Now),
            Self::In(delay) if delay <= MAX_DELAY => Ok(Due::In(delay)),
            Self::In(delay) => Err(format!("delay {delay:?} reaches beyond the year 9999")),
            Self::At(time) => checked_due(time).map(Due::At),
            Self::Both => Err("it takes a delay or a due time, not both".into()),
        }
    }
}

/// A wall time as stores keep it. A time before 1970 becomes 1970: it is past in any case.
pub(crate) fn checked_due(time: SystemTime) -> Result<WallMillis, String> {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros().div_ceil(1_000);
    let millis = WallMillis::try_from(millis).ok().filter(|millis| *millis <= LAST_DUE);
    millis.ok_or_else(|| "the due time lies beyond the year 9999".into())
}

/// 128 random bits in hexadecimal.
fn random_id() -> Result<String, Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(crate::ErrorKind::Internal, "the system's random source failed").with_source(error)
    })?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// A stored wall time.
pub(crate) fn wall_time(millis: WallMillis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.min(LAST_DUE))
}

/// The result of an enqueue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// The task's id.
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The task's version; [`Version::NONE`] if throttled.
    pub version: Version,
    /// When the task is due; `None` if throttled.
    pub due: Option<SystemTime>,
}

/// A task as it is in a queue.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskInfo {
    /// Its id.
    pub id: String,
    /// Where it is.
    pub state: TaskState,
    /// What the worker gets. Empty in a listing without payloads.
    pub payload: Vec<u8>,
    /// What travels with it. Empty in a listing without payloads.
    pub headers: Headers,
    /// Its kind, if it has one. Not in a listing without payloads.
    pub kind: Option<String>,
    /// How long a run may take, if it says so. Not in a listing without payloads.
    pub timeout: Option<Duration>,
    /// How long it waits after a failure, if it says so. Not in a listing without payloads.
    pub backoff: Option<Backoff>,
    /// Bytes of payload and headers, as stored.
    pub size: u64,
    /// Grows with every accepted enqueue of the id. [`Version::NONE`]: a plain ZADD, not taken in yet.
    pub version: Version,
    /// When it is or was due.
    pub due: SystemTime,
    /// Higher ones first.
    pub priority: u8,
    /// Deliveries so far.
    pub attempts: u32,
    /// After so many it is dead.
    pub max_attempts: u32,
    /// Not delivered after this.
    pub expires: Option<SystemTime>,
    /// Of the last delivery that is not settled, or of the dead record. [`Receipt::NONE`] if there is none.
    pub receipt: Receipt,
    /// What is left of the lease; zero if it is not claimed.
    pub lease_left: Duration,
    /// Why the last attempt failed, or why it is dead; empty if nothing failed.
    pub reason: String,
    /// Who claimed it last, if anybody did.
    pub claimed_by: Option<ClaimedBy>,
    /// When it died, if it is dead.
    pub died: Option<SystemTime>,
    /// When the task that waits for the end of this one's run is due, if there is one.
    pub successor_due: Option<SystemTime>,
    /// The last five failed attempts, the latest last.
    pub failures: Vec<TaskFailure>,
    /// How far its run has come, as that said ([`Claim::progress`](crate::Claim::progress)); empty if it did not, or does not
    /// run.
    pub progress: Vec<u8>,
    /// Whether it was cancelled while it runs: this run is its last.
    pub cancelled: bool,
    /// Its key, if it has one.
    pub key: Option<String>,
}

impl From<TaskRecord> for TaskInfo {
    fn from(record: TaskRecord) -> Self {
        let (start, mut headers) = envelope::decode(&record.body);
        let TaskSettings { kind, timeout, backoff, .. } = TaskSettings::take(&mut headers);
        let some = |millis: WallMillis| (millis > 0).then(|| wall_time(millis));
        Self {
            id: record.id.as_str().to_owned(),
            state: record.state,
            payload: record.body[start..].to_vec(),
            headers,
            kind,
            timeout,
            backoff,
            size: record.size,
            version: record.version,
            due: wall_time(record.due),
            priority: record.priority,
            attempts: record.attempts,
            max_attempts: record.max_attempts,
            expires: some(record.expires),
            receipt: record.receipt,
            lease_left: record.remaining,
            reason: record.reason,
            claimed_by: ClaimedBy::parse(&record.consumer, record.receipt),
            died: some(record.died),
            successor_due: record.successor_due.map(wall_time),
            failures: record
                .failures
                .into_iter()
                .map(|AttemptFailed { at, reason }| TaskFailure { at: wall_time(at), reason: reason.into() })
                .collect(),
            progress: record.progress.to_vec(),
            cancelled: record.cancelled,
            key: record.key.map(|key| key.as_str().to_owned()),
        }
    }
}

/// A failed attempt of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskFailure {
    /// When it failed; if its lease ended, when that was.
    pub at: SystemTime,
    /// Why.
    pub reason: String,
}

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskResult {
    /// It is done, with a result.
    Done {
        /// What came of it.
        result: Vec<u8>,
        /// The version of the task that had it: the one asked for, or a later one.
        version: Version,
    },
    /// It is not done yet.
    Pending,
    /// It is dead, for this reason.
    Dead {
        /// Why.
        reason: String,
    },
    /// It was done without a result, or removed, or cancelled, or never there; or its result is not kept any more.
    Gone,
}

impl TaskResult {
    /// The stable name of this outcome, the same in every language.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Done { .. } => "done",
            Self::Pending => "pending",
            Self::Dead { .. } => "dead",
            Self::Gone => "gone",
        }
    }
}

impl From<ResultReply> for TaskResult {
    fn from(reply: ResultReply) -> Self {
        match reply {
            ResultReply::Done { version, result } => Self::Done { result: result.to_vec(), version },
            ResultReply::Pending => Self::Pending,
            ResultReply::Dead { reason } => Self::Dead { reason: reason.into() },
            ResultReply::Gone => Self::Gone,
        }
    }
}

/// Some of the tasks of one state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskPage {
    /// The tasks, in the state's order. One that moves while pages are read may be in two or in none.
    pub tasks: Vec<TaskInfo>,
    /// Pass this to get the next page, which goes on there whatever comes and goes meanwhile; `None` if this was the
    /// last.
    pub next: Option<String>,
}

impl From<ListReply> for TaskPage {
    fn from(reply: ListReply) -> Self {
        Self {
            tasks: reply.tasks.into_iter().map(TaskInfo::from).collect(),
            next: reply.next.map(|place| place.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    #[test]
    fn a_bad_task_is_refused_before_it_is_sent() {
        let ms = Duration::from_millis;
        let bad = [
            Task::new(""),
            Task::new("a\nb"),
            Task::new("x".repeat(513)),
            Task::new("a").max_attempts(0),
            Task::new("a").expires(Duration::ZERO),
            Task::new("a").expires(Duration::MAX),
            Task::new("a").delay(Duration::MAX),
            Task::new("a").due(UNIX_EPOCH + Duration::from_secs(400_000_000_000)),
            Task::new("a").on_duplicate(OnDuplicate::Throttle { window: ms(0) }),
            Task::new("a").on_duplicate(OnDuplicate::Debounce { max_wait: Duration::MAX }),
            Task::new("a").payload(vec![0; MAX_PAYLOAD + 1]),
        ];
        for task in bad {
            assert_eq!(task.checked().unwrap_err().kind(), ErrorKind::InvalidArgument, "{:?}", task.id);
        }
    }

    #[test]
    fn ordinary_tasks_are_accepted() {
        let year_9999 = wall_time(LAST_DUE);
        for task in [Task::auto(), Task::new("{braces} and spaces"), Task::new("a").due(year_9999)] {
            assert!(task.checked().is_ok(), "{:?}", task.id);
        }
        let before_1970 = Task::new("a").due(UNIX_EPOCH - Duration::from_secs(5));
        assert_eq!(before_1970.checked().unwrap().due, Due::At(0));
        assert_ne!(Task::auto().checked().unwrap().id, Task::auto().checked().unwrap().id);
    }
}
