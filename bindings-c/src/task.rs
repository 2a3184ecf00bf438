//! Tasks to put in, and what became of them.

use std::ffi::{c_char, c_void};
use std::mem::{offset_of, size_of};
use std::ptr;

use stanchion::{Backoff, Enqueued, OnDuplicate, Outcome, Task};

use crate::arguments::{
    NONE, bytes, header_pairs, level, moment, number, option, optional_count, optional_span, span,
    stanchion_header, stanchion_text, text, wall,
};
use crate::boundary;
use crate::error::{Failure, stanchion_status};
use crate::records::{self, Record, fill};

/// Bytes of an id and the NUL at its end.
pub const STANCHION_ID_SIZE: usize = 513;

/// What to do if the id is in the queue already.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_on_duplicate {
    /// The task that is there stays as it is.
    STANCHION_KEEP = 0,
    /// The new task takes its place, attempts start again.
    STANCHION_REPLACE = 1,
    /// As REPLACE, but the due time moves on with every enqueue, until `window_ms` after the first.
    STANCHION_DEBOUNCE = 2,
    /// At most one enqueue of the id is accepted per `window_ms`, whatever became of the task; otherwise as KEEP.
    STANCHION_THROTTLE = 3,
    /// As KEEP, but if the id is running nothing comes after it.
    STANCHION_SKIP = 4,
}

/// What an enqueue did.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_outcome {
    /// In a way that this header does not know.
    STANCHION_ENQUEUED_OTHERWISE = 0,
    /// A new task.
    STANCHION_ADDED = 1,
    /// The id was pending and stays as it is.
    STANCHION_KEPT = 2,
    /// The id was pending and has been replaced.
    STANCHION_REPLACED = 3,
    /// The id is running: this task comes after it.
    STANCHION_SUCCESSOR = 4,
    /// Within the throttle window: nothing was changed.
    STANCHION_THROTTLED = 5,
    /// The id is running, and the policy is SKIP: nothing was changed.
    STANCHION_SKIPPED = 6,
}

/// The most bytes of a task's payload: 16 MiB. Of a task with headers these count, too, as a JSON object without spaces.
pub const STANCHION_MAX_PAYLOAD: usize = 16777216;
const _: () = assert!(STANCHION_MAX_PAYLOAD == stanchion::MAX_PAYLOAD);

/// A task to put into a queue. -1 stands for the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_task {
    /// sizeof, set by stanchion_task_init. The same for all tasks of an array.
    pub struct_size: usize,
    /// 1 to 512 bytes of UTF-8 without control characters. Two tasks of a queue with the same id are the same task. NULL: a
    /// random id.
    pub id: stanchion_text,
    /// What the worker gets: any bytes, STANCHION_MAX_PAYLOAD at most.
    pub payload: *const c_void,
    /// How many bytes.
    pub payload_len: usize,
    /// Texts that travel along.
    pub headers: *const stanchion_header,
    /// How many.
    pub header_count: usize,
    /// Deliver it so long after the store accepted it. -1: at once.
    pub delay_ms: i64,
    /// Deliver it at this time, in milliseconds since 1970, by the store's clock. Not together with delay_ms. -1: at once.
    pub due_ms: i64,
    /// After so many deliveries without success it is dead. -1: 20, which takes about two days.
    pub max_attempts: i64,
    /// Do not deliver it later than so long after it was accepted: then it is dead. -1: never.
    pub expires_ms: i64,
    /// For DEBOUNCE and THROTTLE.
    pub window_ms: i64,
    /// What to do if the id is in the queue already: a stanchion_on_duplicate. -1: STANCHION_KEEP.
    pub on_duplicate: i32,
    /// 0 to 255, higher ones first. -1: 0.
    pub priority: i32,
    /// What kind of work it is, such as `send-welcome`, by which programs choose what handles it: 1 to 128 bytes of UTF-8 without
    /// control characters. NULL: none.
    pub kind: stanchion_text,
    /// How long a run may take (1 ms to 365 days): one that takes longer loses its claim with STANCHION_LOSS_TIMEOUT, and has
    /// failed with the reason `timeout`. -1: as long as its claim is renewed.
    pub timeout_ms: i64,
    /// How long it waits after a failed attempt, as JSON in milliseconds: a list of pauses, such as `[1000,60000]` (the last one
    /// for all that follow; 1 to 100), or `{"base":1000,"factor":2,"max":60000,"jitter":0.5}`, of which base is needed. NULL: as
    /// stanchion_claim_nack says.
    pub backoff: stanchion_text,
    /// For how long the result that its run gives is kept: 1 ms to 30 days. -1: 3600000.
    pub keep_result_ms: i64,
    /// Whose task it is, such as `tenant:7`: 1 to 512 bytes of UTF-8 without control characters. Tasks with a key in common share
    /// the limits that the queue gives each key (stanchion_queue_config), and keys share the queue alike: one with a million tasks
    /// does not hold up another with ten. Without any limit one task of each key stands in line, and the next one when that is
    /// delivered. NULL: none.
    pub key: stanchion_text,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_task {
    const NAME: &'static str = "stanchion_task";
    /// What comes behind was not there at first.
    const LEAST: usize = offset_of!(Self, kind);
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        id: stanchion_text::NONE,
        payload: ptr::null(),
        payload_len: 0,
        headers: ptr::null(),
        header_count: 0,
        delay_ms: NONE,
        due_ms: NONE,
        max_attempts: NONE,
        expires_ms: NONE,
        window_ms: NONE,
        on_duplicate: -1,
        priority: -1,
        kind: stanchion_text::NONE,
        timeout_ms: NONE,
        backoff: stanchion_text::NONE,
        keep_result_ms: NONE,
        key: stanchion_text::NONE,
    };
}

/// Makes a task with a random id, no payload, and defaults. `struct_size` is sizeof *task. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_task_init(task: *mut stanchion_task, struct_size: usize) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(task, struct_size) });
}

impl stanchion_task {
    /// # Safety
    /// Texts, bytes and headers are as their lengths say.
    pub(crate) unsafe fn core(&self) -> Result<Task, Failure> {
        let mut task = if self.id.data.is_null() && self.id.len == 0 {
            Task::auto()
        } else {
            // SAFETY: as the caller promises.
            Task::new(unsafe { text("id", self.id.data, self.id.len) }?)
        };
        // SAFETY: as the caller promises.
        let (payload, headers) = unsafe {
            (
                bytes("payload", self.payload, self.payload_len)?,
                header_pairs(self.headers, self.header_count)?,
            )
        };
        task = task.payload(payload).on_duplicate(self.policy()?);
        for (name, value) in headers {
            task = task.header(name, value);
        }
        if let Some(delay) = optional_span("delay_ms", self.delay_ms)? {
            task = task.delay(delay);
        }
        if self.due_ms != NONE {
            task = task.due(moment("due_ms", self.due_ms)?);
        }
        if let Some(priority) = level(self.priority)? {
            task = task.priority(priority);
        }
        if let Some(attempts) = optional_count("max_attempts", self.max_attempts, u32::MAX)? {
            task = task.max_attempts(attempts);
        }
        if let Some(after) = optional_span("expires_ms", self.expires_ms)? {
            task = task.expires(after);
        }
        // SAFETY: as the caller promises.
        unsafe { self.with_runs(task) }
    }

    /// What it says about its runs.
    ///
    /// # Safety
    /// As for [`Self::core`].
    unsafe fn with_runs(&self, mut task: Task) -> Result<Task, Failure> {
        // SAFETY: as the caller promises.
        let (kind, backoff, key) = unsafe {
            (
                option("kind", self.kind.data, self.kind.len)?,
                option("backoff", self.backoff.data, self.backoff.len)?,
                option("key", self.key.data, self.key.len)?,
            )
        };
        if let Some(key) = key {
            task = task.key(key);
        }
        if let Some(kind) = kind {
            task = task.kind(kind);
        }
        if let Some(backoff) = backoff {
            task = task.backoff(backoff.parse::<Backoff>()?);
        }
        if let Some(timeout) = optional_span("timeout_ms", self.timeout_ms)? {
            task = task.timeout(timeout);
        }
        if let Some(time) = optional_span("keep_result_ms", self.keep_result_ms)? {
            task = task.keep_result(time);
        }
        Ok(task)
    }

    fn policy(&self) -> Result<OnDuplicate, Failure> {
        use stanchion_on_duplicate::{
            STANCHION_DEBOUNCE, STANCHION_KEEP, STANCHION_REPLACE, STANCHION_SKIP, STANCHION_THROTTLE,
        };
        let policy = self.on_duplicate;
        if policy == -1 || policy == STANCHION_KEEP as i32 {
            Ok(OnDuplicate::Keep)
        } else if policy == STANCHION_SKIP as i32 {
            Ok(OnDuplicate::Skip)
        } else if policy == STANCHION_REPLACE as i32 {
            Ok(OnDuplicate::Replace)
        } else if policy == STANCHION_DEBOUNCE as i32 {
            Ok(OnDuplicate::Debounce { max_wait: span("window_ms", self.window_ms)? })
        } else if policy == STANCHION_THROTTLE as i32 {
            Ok(OnDuplicate::Throttle { window: span("window_ms", self.window_ms)? })
        } else {
            Err(Failure::invalid(format!("on_duplicate {policy} is no stanchion_on_duplicate")))
        }
    }
}

/// What became of a task.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_enqueued {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// The task's version; 0 if throttled.
    pub version: i64,
    /// When it is due, in milliseconds since 1970; -1 if throttled.
    pub due_ms: i64,
    /// How it ended: a stanchion_outcome.
    pub outcome: i32,
    /// Bytes of the id.
    pub id_len: i32,
    /// The task's id, with a NUL at its end.
    pub id: [c_char; 513],
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_enqueued {
    const NAME: &'static str = "stanchion_enqueued";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        version: 0,
        due_ms: NONE,
        outcome: 0,
        id_len: 0,
        id: [0; STANCHION_ID_SIZE],
    };
}

impl stanchion_enqueued {
    pub(crate) fn of(enqueued: &Enqueued) -> Self {
        let mut record = Self {
            version: number(enqueued.version.get()),
            due_ms: enqueued.due.map_or(NONE, wall),
            outcome: outcome(enqueued.outcome) as i32,
            ..Self::DEFAULT
        };
        record.id_len = i32::try_from(fill(&mut record.id, &enqueued.id)).unwrap_or(0);
        record
    }
}

fn outcome(outcome: Outcome) -> stanchion_outcome {
    match outcome {
        Outcome::Added => stanchion_outcome::STANCHION_ADDED,
        Outcome::Kept => stanchion_outcome::STANCHION_KEPT,
        Outcome::Replaced => stanchion_outcome::STANCHION_REPLACED,
        Outcome::Successor => stanchion_outcome::STANCHION_SUCCESSOR,
        Outcome::Throttled => stanchion_outcome::STANCHION_THROTTLED,
        Outcome::Skipped => stanchion_outcome::STANCHION_SKIPPED,
        #[allow(unreachable_patterns, reason = "for outcomes to come")]
        _ => stanchion_outcome::STANCHION_ENQUEUED_OTHERWISE,
    }
}

/// The status of an accepted enqueue.
pub(crate) fn status(enqueued: &Enqueued) -> i32 {
    match enqueued.outcome {
        Outcome::Added => 0,
        _ => stanchion_status::STANCHION_DUPLICATE as i32,
    }
}
