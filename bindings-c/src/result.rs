//! What became of tasks.

use std::ffi::{c_char, c_void};
use std::mem::size_of;
use std::ptr;

use stanchion::{TaskResult, Version};

use crate::arguments::{number, optional_count, optional_span, stanchion_text, text};
use crate::boundary;
use crate::client::stanchion_client;
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::queue::queue;
use crate::records::{self, Record, needed, put};

/// What became of a task. 0 is none.
pub type stanchion_result = i64;

/// Of one that is done, or dead.
struct Known(TaskResult);

impl Kind for Known {
    const NAME: &'static str = "result";
}

/// What became of a task. Its bytes and its text live as long as the handle of the result.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_result_info {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// What came of it. NULL if it is dead.
    pub result: *const c_void,
    /// How many bytes.
    pub result_len: usize,
    /// The version of the task that had it: the one asked for, or a later one. 0 if it is dead.
    pub version: i64,
    /// Why it is dead. NULL if it is not.
    pub reason: stanchion_text,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_result_info {
    const NAME: &'static str = "stanchion_result_info";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        result: ptr::null(),
        result_len: 0,
        version: 0,
        reason: stanchion_text::NONE,
    };
}

/// What became of a task. STANCHION_OK: it is done, and `out` gets its result (stanchion_claim_ack_with). STANCHION_DEAD: it is
/// dead, and `out` gets why. Otherwise `out` is not written. STANCHION_PENDING: it is not done yet. STANCHION_ABSENT: it was
/// done without a result, or removed, or cancelled, or never there; or its result is not kept any more.
///
/// `version` is that of stanchion_enqueued, and asks about that task or a later one of the id; -1: about any. Waits up to
/// `wait_ms` (365 days at most; 0 or -1: only looks) while the task is not done.
///
/// Errors: as stanchion_queue_claim. Any thread; others go on meanwhile, with the same client, too.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_result(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    version: i64,
    wait_ms: i64,
    out: *mut stanchion_result,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the result")?;
        let version = optional_count("version", version, u64::MAX)?.map(Version::new);
        let wait = optional_span("wait_ms", wait_ms)?.unwrap_or_default();
        // SAFETY: the caller passes texts as the header says.
        let became = unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            queue.result(text("id", id, id_len)?, version, wait)?
        };
        let status = match &became {
            TaskResult::Done { .. } => 0,
            TaskResult::Dead { .. } => stanchion_status::STANCHION_DEAD as i32,
            TaskResult::Pending => return Ok(stanchion_status::STANCHION_PENDING as i32),
            TaskResult::Gone => return Ok(stanchion_status::STANCHION_ABSENT as i32),
            _ => return Err(Failure::internal("an outcome that the C interface does not have")),
        };
        let result = handle::insert(Known(became))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, result) };
        Ok(status)
    })
}

/// What became of the task. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_result_get(
    result: stanchion_result,
    out: *mut stanchion_result_info,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let known = handle::get::<Known>(result)?;
        let mut info = stanchion_result_info::DEFAULT;
        match &known.0 {
            TaskResult::Done { result, version } => {
                info.result = result.as_ptr().cast();
                info.result_len = result.len();
                info.version = number(version.get());
            }
            TaskResult::Dead { reason } => info.reason = stanchion_text::of(reason),
            _ => {}
        }
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &info) }?;
        Ok(0)
    })
}

/// Frees the result. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_result_free(result: stanchion_result) {
    boundary::value((), || drop(handle::take::<Known>(result)));
}
