//! Tasks.

use std::collections::HashMap;

use napi::bindgen_prelude::{Buffer, Uint8Array};
use napi_derive::napi;
use stanchion::{Backoff, Cancelled, MAX_PAYLOAD, OnDuplicate, TaskState, Version};

use crate::claim::headers;
use crate::convert::{Millis, Text, Wall, Whole, millis, wall};
use crate::error::{Failure, invalid, refused};

/// A task to put in.
#[napi]
pub struct Task(pub(crate) stanchion::Task);

#[napi]
impl Task {
    #[napi(constructor)]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    pub fn new(
        id: Option<Text>,
        payload: Option<Uint8Array>,
        headers: Option<Vec<Text>>,
        delay: Option<Millis>,
        due: Option<Wall>,
        priority: Option<Whole>,
        max_attempts: Option<Whole>,
        expires: Option<Millis>,
        policy: Option<Text>,
        policy_time: Option<Millis>,
        kind: Option<Text>,
        timeout: Option<Millis>,
        backoff: Option<Text>,
        keep_result: Option<Millis>,
        key: Option<Text>,
    ) -> napi::Result<Self> {
        let mut task = id.map_or_else(stanchion::Task::auto, |id| stanchion::Task::new(id.0));
        if let Some(payload) = payload {
            task = task.payload(checked_payload(&payload)?);
        }
        for (name, value) in pairs(headers) {
            task = task.header(name, value);
        }
        if let Some(delay) = delay {
            task = task.delay(delay.0);
        }
        if let Some(due) = due {
            task = task.due(due.0);
        }
        if let Some(priority) = priority {
            task = task.priority(checked_priority(priority)?);
        }
        if let Some(max_attempts) = max_attempts {
            task = task.max_attempts(max_attempts.narrow(u32::MAX));
        }
        if let Some(expires) = expires {
            task = task.expires(expires.0);
        }
        if let Some(policy) = policy {
            task = task.on_duplicate(on_duplicate(&policy.0, policy_time)?);
        }
        if let Some(kind) = kind {
            task = task.kind(kind.0);
        }
        if let Some(timeout) = timeout {
            task = task.timeout(timeout.0);
        }
        if let Some(backoff) = backoff {
            task = task.backoff(backoff.0.parse::<Backoff>().map_err(|error| refused(&error))?);
        }
        if let Some(keep_result) = keep_result {
            task = task.keep_result(keep_result.0);
        }
        if let Some(key) = key {
            task = task.key(key.0);
        }
        Ok(Self(task))
    }

    /// Fails for what `enqueue` would refuse.
    #[napi]
    pub fn check(&self) -> napi::Result<()> {
        self.0.check().map_err(|error| refused(&error))
    }
}

/// The core checks it, too; but by then there would be copies of it.
pub(crate) fn checked_payload(payload: &[u8]) -> napi::Result<&[u8]> {
    let length = payload.len();
    if length > MAX_PAYLOAD {
        return Err(invalid(format!("the payload has more than {MAX_PAYLOAD} bytes ({length})")));
    }
    Ok(payload)
}

/// Of headers that came as names and values in turn.
pub(crate) fn pairs(headers: Option<Vec<Text>>) -> impl Iterator<Item = (String, String)> {
    let mut headers = headers.unwrap_or_default().into_iter();
    std::iter::from_fn(move || Some((headers.next()?.0, headers.next()?.0)))
}

pub(crate) fn checked_priority(Whole(priority): Whole) -> napi::Result<u8> {
    u8::try_from(priority).map_err(|_| invalid("priority is not between 0 and 255"))
}

fn on_duplicate(policy: &str, time: Option<Millis>) -> napi::Result<OnDuplicate> {
    match (policy, time) {
        ("keep", _) => Ok(OnDuplicate::Keep),
        ("skip", _) => Ok(OnDuplicate::Skip),
        ("replace", _) => Ok(OnDuplicate::Replace),
        ("debounce", Some(Millis(max_wait))) => Ok(OnDuplicate::Debounce { max_wait }),
        ("throttle", Some(Millis(window))) => Ok(OnDuplicate::Throttle { window }),
        _ => Err(invalid(
            "onDuplicate is 'keep', 'skip', 'replace', { debounce: { maxWaitMs } } or { throttle: { windowMs } }",
        )),
    }
}

/// What an enqueue did; `due` is in milliseconds since 1970.
#[napi(object, object_from_js = false)]
pub struct Enqueued {
    pub id: String,
    pub outcome: &'static str,
    pub version: u64,
    pub due: Option<f64>,
}

impl From<stanchion::Enqueued> for Enqueued {
    fn from(enqueued: stanchion::Enqueued) -> Self {
        let outcome = enqueued.outcome.name();
        Self { id: enqueued.id, outcome, version: enqueued.version.get(), due: enqueued.due.map(wall) }
    }
}

/// One task of many: what its enqueue did, or why it failed.
#[napi(object, object_from_js = false)]
pub struct EnqueuedOrNot {
    pub enqueued: Option<Enqueued>,
    pub failure: Option<Failure>,
}

impl From<Result<stanchion::Enqueued, stanchion::Error>> for EnqueuedOrNot {
    fn from(result: Result<stanchion::Enqueued, stanchion::Error>) -> Self {
        match result {
            Ok(enqueued) => Self { enqueued: Some(enqueued.into()), failure: None },
            Err(error) => Self { enqueued: None, failure: Some((&error).into()) },
        }
    }
}

/// A task as it is in a queue. Times are milliseconds, points in time from 1970 on.
#[napi(object, object_from_js = false)]
pub struct TaskInfo {
    pub id: String,
    pub state: &'static str,
    pub payload: Buffer,
    #[napi(ts_type = "Record<string, string>")]
    pub headers: HashMap<String, String>,
    pub size: f64,
    pub version: u64,
    pub due: f64,
    pub priority: u32,
    pub attempts: u32,
    pub max_attempts: u32,
    pub expires: Option<f64>,
    pub receipt: u64,
    pub lease_left: f64,
    pub reason: String,
    pub claimed_by: Option<ClaimedBy>,
    pub died: Option<f64>,
    pub successor_due: Option<f64>,
    pub kind: Option<String>,
    pub timeout: Option<f64>,
    /// Its text, which is JSON.
    pub backoff: Option<String>,
    pub failures: Vec<TaskFailure>,
    pub progress: Buffer,
    pub cancelled: bool,
    pub key: Option<String>,
}

/// A failed attempt; `at` is milliseconds since 1970.
#[napi(object, object_from_js = false)]
pub struct TaskFailure {
    pub at: f64,
    pub reason: String,
}

impl From<stanchion::TaskFailure> for TaskFailure {
    fn from(failure: stanchion::TaskFailure) -> Self {
        Self { at: wall(failure.at), reason: failure.reason }
    }
}

/// What became of a task.
#[napi(object, object_from_js = false)]
pub struct TaskResult {
    pub outcome: &'static str,
    pub result: Option<Buffer>,
    pub version: Option<u64>,
    pub reason: Option<String>,
}

impl From<stanchion::TaskResult> for TaskResult {
    fn from(found: stanchion::TaskResult) -> Self {
        let outcome = found.name();
        let (result, version, reason) = match found {
            stanchion::TaskResult::Done { result, version } => (Some(result), Some(version), None),
            stanchion::TaskResult::Dead { reason } => (None, None, Some(reason)),
            _ => (None, None, None),
        };
        Self { outcome, result: result.map(Buffer::from), version: version.map(Version::get), reason }
    }
}

/// Something that happened to a task; `at` is milliseconds since 1970.
#[napi(object, object_from_js = false)]
pub struct TaskEvent {
    pub number: f64,
    pub at: f64,
    pub what: &'static str,
    pub id: String,
    pub version: u64,
    pub attempt: u32,
    pub reason: Option<String>,
}

impl From<stanchion::TaskEvent> for TaskEvent {
    fn from(event: stanchion::TaskEvent) -> Self {
        let stanchion::TaskEvent { number, at, what, id, version, attempt, reason, .. } = event;
        let (number, at, version) = (number as f64, wall(at), version.get());
        Self { number, at, what: what.name(), id, version, attempt, reason }
    }
}

/// Some events, whether others before them are missed, and after which to go on.
#[napi(object, object_from_js = false)]
pub struct EventPage {
    pub events: Vec<TaskEvent>,
    pub missed: bool,
    pub cursor: f64,
}

impl From<stanchion::EventPage> for EventPage {
    fn from(page: stanchion::EventPage) -> Self {
        let stanchion::EventPage { events, missed, cursor, .. } = page;
        Self { events: events.into_iter().map(TaskEvent::from).collect(), missed, cursor: cursor as f64 }
    }
}

/// How a cancel ended.
pub(crate) fn cancelled(cancelled: Cancelled) -> &'static str {
    match cancelled {
        Cancelled::Removed => "removed",
        Cancelled::Running => "running",
        Cancelled::Absent => "absent",
        _ => "other",
    }
}

/// Who claimed a task last; `since` is milliseconds since 1970.
#[napi(object, object_from_js = false)]
pub struct ClaimedBy {
    pub label: String,
    pub host: String,
    pub pid: u32,
    pub since: Option<f64>,
}

impl From<stanchion::ClaimedBy> for ClaimedBy {
    fn from(by: stanchion::ClaimedBy) -> Self {
        Self { label: by.label, host: by.host, pid: by.pid, since: by.since.map(wall) }
    }
}

impl From<stanchion::TaskInfo> for TaskInfo {
    fn from(info: stanchion::TaskInfo) -> Self {
        Self {
            id: info.id,
            state: info.state.name(),
            payload: info.payload.into(),
            headers: headers(&info.headers),
            size: info.size as f64,
            version: info.version.get(),
            due: wall(info.due),
            priority: u32::from(info.priority),
            attempts: info.attempts,
            max_attempts: info.max_attempts,
            expires: info.expires.map(wall),
            receipt: info.receipt.get(),
            lease_left: millis(info.lease_left),
            reason: info.reason,
            claimed_by: info.claimed_by.map(ClaimedBy::from),
            died: info.died.map(wall),
            successor_due: info.successor_due.map(wall),
            kind: info.kind,
            timeout: info.timeout.map(millis),
            backoff: info.backoff.map(|backoff| backoff.to_string()),
            failures: info.failures.into_iter().map(TaskFailure::from).collect(),
            progress: info.progress.into(),
            cancelled: info.cancelled,
            key: info.key,
        }
    }
}

pub(crate) fn infos(tasks: Vec<stanchion::TaskInfo>) -> Vec<TaskInfo> {
    tasks.into_iter().map(TaskInfo::from).collect()
}

pub(crate) fn state(name: &str) -> napi::Result<TaskState> {
    match name {
        "scheduled" => Ok(TaskState::Scheduled),
        "ready" => Ok(TaskState::Ready),
        "claimed" => Ok(TaskState::Claimed),
        "held" => Ok(TaskState::Held),
        "dead" => Ok(TaskState::Dead),
        _ => Err(invalid("a state is 'scheduled', 'ready', 'claimed', 'held' or 'dead'")),
    }
}
