//! Tasks as they are found in a queue.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};
use std::ptr;

use stanchion::{Headers, TaskFailure, TaskInfo, TaskState};

use crate::arguments::{NONE, millis, number, stanchion_header, stanchion_text, wall};
use crate::boundary;
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::records::{self, Record, needed, put};

/// Where a task is.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_task_state {
    /// Somewhere that this header does not know.
    STANCHION_STATE_OTHERWISE = 0,
    /// Due later.
    STANCHION_STATE_SCHEDULED = 1,
    /// Due now.
    STANCHION_STATE_READY = 2,
    /// Given to a worker.
    STANCHION_STATE_CLAIMED = 3,
    /// Given up; kept for a while.
    STANCHION_STATE_DEAD = 4,
    /// Due now, and held by a limit of its key.
    STANCHION_STATE_HELD = 5,
}

/// The state of this number.
pub(crate) fn state(state: i32) -> Result<TaskState, Failure> {
    use stanchion_task_state as states;
    [
        (states::STANCHION_STATE_SCHEDULED, TaskState::Scheduled),
        (states::STANCHION_STATE_READY, TaskState::Ready),
        (states::STANCHION_STATE_CLAIMED, TaskState::Claimed),
        (states::STANCHION_STATE_DEAD, TaskState::Dead),
        (states::STANCHION_STATE_HELD, TaskState::Held),
    ]
    .into_iter()
    .find_map(|(number, found)| (number as i32 == state).then_some(found))
    .ok_or_else(|| Failure::invalid(format!("state {state} is no stanchion_task_state")))
}

fn state_number(state: TaskState) -> i32 {
    let state = match state {
        TaskState::Scheduled => stanchion_task_state::STANCHION_STATE_SCHEDULED,
        TaskState::Ready => stanchion_task_state::STANCHION_STATE_READY,
        TaskState::Claimed => stanchion_task_state::STANCHION_STATE_CLAIMED,
        TaskState::Dead => stanchion_task_state::STANCHION_STATE_DEAD,
        TaskState::Held => stanchion_task_state::STANCHION_STATE_HELD,
        _ => stanchion_task_state::STANCHION_STATE_OTHERWISE,
    };
    state as i32
}

/// A task as it is in a queue. Its texts, bytes and headers live as long as the handle of the list.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_task_info {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// Its id.
    pub id: stanchion_text,
    /// Why the last attempt failed, or why it is dead; empty if nothing failed.
    pub reason: stanchion_text,
    /// What the worker gets. Empty in a listing without payloads.
    pub payload: *const c_void,
    /// How many bytes.
    pub payload_len: usize,
    /// What travels with it. Empty in a listing without payloads.
    pub headers: *const stanchion_header,
    /// How many.
    pub header_count: usize,
    /// Bytes of payload and headers, as stored.
    pub size: i64,
    /// Grows with every accepted enqueue of the id. 0: a plain ZADD, not taken in yet.
    pub version: i64,
    /// When it is or was due, in milliseconds since 1970.
    pub due_ms: i64,
    /// Not delivered after this, in milliseconds since 1970; -1 if it does not expire.
    pub expires_ms: i64,
    /// Of the last delivery that is not settled, or of the dead record; 0 if there is none.
    pub receipt: i64,
    /// What is left of the lease; 0 if it is not claimed.
    pub lease_left_ms: i64,
    /// When it died, in milliseconds since 1970; -1 if it lives.
    pub died_ms: i64,
    /// When the task that waits for the end of this one's run is due, in milliseconds since 1970; -1 if there is none.
    pub successor_due_ms: i64,
    /// Deliveries so far.
    pub attempts: i64,
    /// After so many it is dead.
    pub max_attempts: i64,
    /// Where it is: a stanchion_task_state.
    pub state: i32,
    /// Higher ones first.
    pub priority: i32,
    /// Who claimed it last: the client's label; empty if it has none.
    pub claimed_by_label: stanchion_text,
    /// Its host; empty if unknown.
    pub claimed_by_host: stanchion_text,
    /// When that was, by the store's clock, in milliseconds since 1970; -1 if the delivery was settled and the task lives, or
    /// if nobody claimed it.
    pub claimed_at_ms: i64,
    /// The process id of who claimed it last; 0 if unknown, -1 if nobody did.
    pub claimed_by_pid: i32,
    /// Its kind; NULL if it has none. As timeout_ms and backoff not in a listing without payloads.
    pub kind: stanchion_text,
    /// How long a run may take; -1 if it does not say so.
    pub timeout_ms: i64,
    /// How long it waits after a failed attempt, as stanchion_task has it; NULL if it does not say so.
    pub backoff: stanchion_text,
    /// How far its run has come, as that said (stanchion_claim_progress); empty if it did not, or does not run.
    pub progress: *const c_void,
    /// How many bytes.
    pub progress_len: usize,
    /// How many of its failed attempts are known, for stanchion_tasks_failure_at: the last five.
    pub failure_count: usize,
    /// 1 if it was cancelled while it runs: this run is its last.
    pub cancelled: i32,
    /// Its key; NULL if it has none.
    pub key: stanchion_text,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_task_info {
    const NAME: &'static str = "stanchion_task_info";
    /// What comes behind was not there at first.
    const LEAST: usize = offset_of!(Self, kind);
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        id: stanchion_text::NONE,
        reason: stanchion_text::NONE,
        payload: ptr::null(),
        payload_len: 0,
        headers: ptr::null(),
        header_count: 0,
        size: 0,
        version: 0,
        due_ms: NONE,
        expires_ms: NONE,
        receipt: 0,
        lease_left_ms: 0,
        died_ms: NONE,
        successor_due_ms: NONE,
        attempts: 0,
        max_attempts: 0,
        state: 0,
        priority: 0,
        claimed_by_label: stanchion_text::NONE,
        claimed_by_host: stanchion_text::NONE,
        claimed_at_ms: NONE,
        claimed_by_pid: -1,
        kind: stanchion_text::NONE,
        timeout_ms: NONE,
        backoff: stanchion_text::NONE,
        progress: ptr::null(),
        progress_len: 0,
        failure_count: 0,
        cancelled: 0,
        key: stanchion_text::NONE,
    };
}

/// Headers in the form in which programs see them; the texts are those of the map that it was made from.
pub(crate) struct HeaderViews(Box<[stanchion_header]>);

// SAFETY: the views point into maps that are kept beside them and never changed.
unsafe impl Send for HeaderViews {}
// SAFETY: as above.
unsafe impl Sync for HeaderViews {}

impl HeaderViews {
    pub(crate) fn of(headers: &Headers) -> Self {
        let view = |(name, value): (&String, &String)| stanchion_header {
            name: stanchion_text::of(name),
            value: stanchion_text::of(value),
        };
        Self(headers.iter().map(view).collect())
    }

    pub(crate) fn as_slice(&self) -> &[stanchion_header] {
        &self.0
    }
}

/// A list of tasks. 0 is none.
pub type stanchion_tasks = i64;

/// A task, with what programs see of it in another form.
struct Found {
    task: TaskInfo,
    headers: HeaderViews,
    backoff: Option<String>,
}

pub(crate) struct Tasks {
    tasks: Vec<Found>,
    /// The next page, if this is one and not the last.
    next: Option<String>,
}

impl Kind for Tasks {
    const NAME: &'static str = "list of tasks";
}

impl Tasks {
    pub(crate) fn new(tasks: Vec<TaskInfo>, next: Option<String>) -> Self {
        let with_views = |task: TaskInfo| {
            // The texts of a map stay where they are when the map itself is moved.
            let headers = HeaderViews::of(&task.headers);
            let backoff = task.backoff.as_ref().map(ToString::to_string);
            Found { task, headers, backoff }
        };
        Self { tasks: tasks.into_iter().map(with_views).collect(), next }
    }
}

/// How many tasks are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_tasks_len(tasks: stanchion_tasks) -> usize {
    boundary::value(0, || handle::get::<Tasks>(tasks).map_or(0, |tasks| tasks.tasks.len()))
}

/// One of the tasks. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_tasks_at(
    tasks: stanchion_tasks,
    index: usize,
    out: *mut stanchion_task_info,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let tasks = handle::get::<Tasks>(tasks)?;
        let found = tasks.tasks.get(index).ok_or_else(|| beyond(index, tasks.tasks.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &info(found)) }?;
        Ok(0)
    })
}

/// A failed attempt of a task. The text lives as long as the handle of the list.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_task_failure {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// When it failed; if its lease ended, when that was. In milliseconds since 1970, by the store's clock.
    pub at_ms: i64,
    /// Why.
    pub reason: stanchion_text,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_task_failure {
    const NAME: &'static str = "stanchion_task_failure";
    const DEFAULT: Self = Self { struct_size: size_of::<Self>(), at_ms: NONE, reason: stanchion_text::NONE };
}

/// One of the failed attempts of one of the tasks: `failure` counts from 0, and the latest is the last. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_tasks_failure_at(
    tasks: stanchion_tasks,
    index: usize,
    failure: usize,
    out: *mut stanchion_task_failure,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let tasks = handle::get::<Tasks>(tasks)?;
        let found = tasks.tasks.get(index).ok_or_else(|| beyond(index, tasks.tasks.len()))?;
        let failures = &found.task.failures;
        let TaskFailure { at, reason, .. } =
            failures.get(failure).ok_or_else(|| beyond(failure, failures.len()))?;
        let record = stanchion_task_failure {
            at_ms: wall(*at),
            reason: stanchion_text::of(reason),
            ..Record::DEFAULT
        };
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &record) }?;
        Ok(0)
    })
}

/// The page after this one, for `page` of stanchion_list_options; it lives as long as the handle of the list.
/// STANCHION_ABSENT: this was the last, or is no page; `out` is not written. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_tasks_next(
    tasks: stanchion_tasks,
    out: *mut stanchion_text,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the next page")?;
        let tasks = handle::get::<Tasks>(tasks)?;
        let Some(next) = &tasks.next else { return Ok(stanchion_status::STANCHION_ABSENT as i32) };
        // SAFETY: the caller passes a place for a text.
        unsafe { put(out, stanchion_text::of(next)) };
        Ok(0)
    })
}

fn info(Found { task, headers, backoff }: &Found) -> stanchion_task_info {
    let maybe = |text: &Option<String>| text.as_deref().map_or(stanchion_text::NONE, stanchion_text::of);
    let by = task.claimed_by.as_ref();
    stanchion_task_info {
        id: stanchion_text::of(&task.id),
        reason: stanchion_text::of(&task.reason),
        payload: task.payload.as_ptr().cast(),
        payload_len: task.payload.len(),
        headers: headers.as_slice().as_ptr(),
        header_count: headers.as_slice().len(),
        size: number(task.size),
        version: number(task.version.get()),
        due_ms: wall(task.due),
        expires_ms: task.expires.map_or(NONE, wall),
        receipt: number(task.receipt.get()),
        lease_left_ms: millis(task.lease_left),
        died_ms: task.died.map_or(NONE, wall),
        successor_due_ms: task.successor_due.map_or(NONE, wall),
        attempts: task.attempts.into(),
        max_attempts: task.max_attempts.into(),
        state: state_number(task.state),
        priority: task.priority.into(),
        claimed_by_label: by.map_or(stanchion_text::NONE, |by| stanchion_text::of(&by.label)),
        claimed_by_host: by.map_or(stanchion_text::NONE, |by| stanchion_text::of(&by.host)),
        claimed_at_ms: by.and_then(|by| by.since).map_or(NONE, wall),
        claimed_by_pid: by.map_or(-1, |by| i32::try_from(by.pid).unwrap_or(0)),
        kind: maybe(&task.kind),
        timeout_ms: task.timeout.map_or(NONE, millis),
        backoff: maybe(backoff),
        progress: task.progress.as_ptr().cast(),
        progress_len: task.progress.len(),
        failure_count: task.failures.len(),
        cancelled: task.cancelled.into(),
        key: maybe(&task.key),
        ..Record::DEFAULT
    }
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_tasks_free(tasks: stanchion_tasks) {
    boundary::value((), || drop(handle::take::<Tasks>(tasks)));
}
