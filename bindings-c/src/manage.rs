//! Queues: looking at tasks, and moving them.

use std::ffi::c_char;

use stanchion::{Cancelled, Removed, Rescheduled, TaskInfo, Version};

use crate::arguments::{moment, number, optional_count, text, wall};
use crate::boundary;
use crate::client::stanchion_client;
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle;
use crate::options::stanchion_list_options;
use crate::queue::queue;
use crate::records::{self, needed, put};
use crate::tasks::{Tasks, stanchion_tasks};

/// # Safety
/// `out` is a place for a handle.
unsafe fn give(tasks: Vec<TaskInfo>, out: *mut stanchion_tasks) -> Result<i32, Failure> {
    if tasks.is_empty() {
        return Ok(stanchion_status::STANCHION_EMPTY as i32);
    }
    let tasks = handle::insert(Tasks::new(tasks, None))?;
    // SAFETY: as the caller promises.
    unsafe { put(out, tasks) };
    Ok(0)
}

/// Takes at most `max` tasks (1 to 1000) for good, without a lease: if this process dies, they are lost. STANCHION_EMPTY:
/// none; `out` is not written. Sent once.
///
/// Errors: INDETERMINATE if no answer came: the tasks may be gone. Otherwise as stanchion_queue_claim. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_pop(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    max: usize,
    out: *mut stanchion_tasks,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the tasks")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { give(queue(client, queue_name, queue_len)?.pop(max)?, out) }
    })
}

/// The tasks that would be claimed next, at most `max` (1 to 1000). STANCHION_EMPTY: none; `out` is not written. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_peek(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    max: usize,
    out: *mut stanchion_tasks,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the tasks")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { give(queue(client, queue_name, queue_len)?.peek(max)?, out) }
    })
}

/// One task, as a list of one: the live one with this id, else the newest dead one. STANCHION_ABSENT: none; `out` is not
/// written. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_get(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    out: *mut stanchion_tasks,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the task")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe {
            match queue(client, queue_name, queue_len)?.get(text("id", id, id_len)?)? {
                Some(task) => give(vec![task], out),
                None => Ok(stanchion_status::STANCHION_ABSENT as i32),
            }
        }
    })
}

/// The tasks of one state, a page of them, by the options. `out` gets the page, also if there is no task in it: there
/// may be a next one all the same, which stanchion_tasks_next returns. A task that moves while pages are read may be in two
/// of them or in none. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_list(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    options: *const stanchion_list_options,
    out: *mut stanchion_tasks,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the tasks")?;
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let found = queue.list(records::read(options)?.core()?)?;
            put(out, handle::insert(Tasks::new(found.tasks, found.next))?);
        }
        Ok(0)
    })
}

/// Drops a task, also while it is claimed: its claim is lost then. With a version (-1: any), only if it is still the
/// task's. STANCHION_ABSENT: there was none. STANCHION_OTHER_VERSION: it has another version, which `found_version` (may be
/// NULL) gets. Sent once.
///
/// Errors: as stanchion_queue_pop. Any thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_remove(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    if_version: i64,
    found_version: *mut i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let version = optional_count("if_version", if_version, u64::MAX)?.map(Version::new);
        // SAFETY: the caller passes texts as the header says.
        let removed =
            unsafe { queue(client, queue_name, queue_len)?.remove(text("id", id, id_len)?, version)? };
        match removed {
            Removed::Removed => Ok(0),
            Removed::Absent => Ok(stanchion_status::STANCHION_ABSENT as i32),
            Removed::OtherVersion(version) => {
                // SAFETY: the caller passes NULL or a place for a number.
                unsafe { put(found_version, number(version.get())) };
                Ok(stanchion_status::STANCHION_OTHER_VERSION as i32)
            }
            _ => Err(Failure::internal("an outcome that the C interface does not have")),
        }
    })
}

/// Ends a task. One that waits is dropped, as by stanchion_queue_remove. STANCHION_RUNNING: it runs, and is told at the next
/// renewal of its claim, which is lost then (STANCHION_LOSS_CANCELLED): after a third of its lease at the latest. An ack of
/// that run is still accepted; whatever else it ends with, the task is not tried again. What comes after the run goes, too;
/// what is enqueued later is a new task. STANCHION_ABSENT: there is none. Sent once.
///
/// Errors: as stanchion_queue_pop. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_cancel(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        let cancelled = unsafe { queue(client, queue_name, queue_len)?.cancel(text("id", id, id_len)?)? };
        match cancelled {
            Cancelled::Removed => Ok(0),
            Cancelled::Running => Ok(stanchion_status::STANCHION_RUNNING as i32),
            Cancelled::Absent => Ok(stanchion_status::STANCHION_ABSENT as i32),
            _ => Err(Failure::internal("an outcome that the C interface does not have")),
        }
    })
}

/// Gives a waiting task another due time, in milliseconds since 1970; `moved_ms` (may be NULL) gets it as the store keeps
/// it. STANCHION_ABSENT: no such task. STANCHION_CLAIMED, STANCHION_DEAD: it is, and nothing was changed. Any thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_reschedule(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    due_ms: i64,
    moved_ms: *mut i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let due = moment("due_ms", due_ms)?;
        // SAFETY: the caller passes texts as the header says.
        let rescheduled =
            unsafe { queue(client, queue_name, queue_len)?.reschedule(text("id", id, id_len)?, due)? };
        match rescheduled {
            Rescheduled::Moved(due) => {
                // SAFETY: the caller passes NULL or a place for a number.
                unsafe { put(moved_ms, wall(due)) };
                Ok(0)
            }
            Rescheduled::Absent => Ok(stanchion_status::STANCHION_ABSENT as i32),
            Rescheduled::Claimed => Ok(stanchion_status::STANCHION_CLAIMED as i32),
            Rescheduled::Dead => Ok(stanchion_status::STANCHION_DEAD as i32),
            _ => Err(Failure::internal("an outcome that the C interface does not have")),
        }
    })
}
