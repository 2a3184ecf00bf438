//! Queues: their schedules.

use std::ffi::c_char;
use std::mem::size_of;

use stanchion::Synced;

use crate::arguments::{NONE, number, option, text};
use crate::boundary;
use crate::client::stanchion_client;
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle;
use crate::queue::queue;
use crate::records::{self, Record, fill, needed, put};
use crate::schedule::{outcome_number, stanchion_schedule};
use crate::schedules::{Schedules, stanchion_schedules};
use crate::task::STANCHION_ID_SIZE;

/// What became of an owner's list of schedules.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_synced {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// How many are new.
    pub added: i64,
    /// How many were changed.
    pub changed: i64,
    /// How many are as they were.
    pub kept: i64,
    /// How many the owner had and has no more.
    pub removed: i64,
    /// If the queue has a list of a later generation, that one: then nothing was changed. Otherwise -1.
    pub newer: i64,
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_synced {
    const NAME: &'static str = "stanchion_synced";
    const DEFAULT: Self =
        Self { struct_size: size_of::<Self>(), added: 0, changed: 0, kept: 0, removed: 0, newer: NONE };
}

impl stanchion_synced {
    fn of(synced: Synced) -> Self {
        Self {
            added: number(synced.added),
            changed: number(synced.changed),
            kept: number(synced.kept),
            removed: number(synced.removed),
            newer: synced.newer.map_or(NONE, number),
            ..Self::DEFAULT
        }
    }
}

/// The task that stanchion_queue_run_schedule made.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_ran {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// Bytes of the id.
    pub id_len: i32,
    /// The task's id, with a NUL at its end.
    pub id: [c_char; 513],
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_ran {
    const NAME: &'static str = "stanchion_ran";
    const DEFAULT: Self = Self { struct_size: size_of::<Self>(), id_len: 0, id: [0; STANCHION_ID_SIZE] };
}

impl stanchion_ran {
    fn of(id: &str) -> Self {
        let mut record = Self::DEFAULT;
        record.id_len = i32::try_from(fill(&mut record.id, id)).unwrap_or(0);
        record
    }
}

/// The status of a call about one schedule.
fn found(found: bool) -> i32 {
    if found { 0 } else { stanchion_status::STANCHION_ABSENT as i32 }
}

/// Adds a schedule, or changes the one with its id: its slots go on as they are, unless what says when they are is another.
/// `outcome` (may be NULL) gets a stanchion_schedule_outcome. Sent once.
///
/// Errors: INVALID_ARGUMENT for a bad id, time or option, and if no slot comes any more; otherwise as stanchion_queue_pop.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_schedule(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    schedule: *const stanchion_schedule,
    outcome: *mut i32,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(schedule, "the schedule")?;
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let done = queue.schedule(records::read(schedule)?.core()?)?;
            put(outcome, outcome_number(done));
        }
        Ok(0)
    })
}

/// Makes these (1000 at most) all the schedules of this owner, an application for example: adds what is new, changes what is
/// other, removes what the owner has no more. What others have put stays. To be called at each start, with a generation (0
/// to 2^52) that grows with each deploy: a list of an older one changes nothing, so that programs of the old deploy that
/// still run, or start once more, do no harm. `out` may be NULL.
///
/// Errors: as stanchion_queue_claim, and INVALID_ARGUMENT if a schedule is bad or there twice; nothing is sent then. Any
/// thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_sync_schedules(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    owner: *const c_char,
    owner_len: usize,
    generation: i64,
    schedules: *const stanchion_schedule,
    schedule_count: usize,
    out: *mut stanchion_synced,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let wrong = |_| Failure::invalid(format!("generation {generation} is no count"));
        let generation = u64::try_from(generation).map_err(wrong)?;
        // SAFETY: the caller passes texts and structs as the header says.
        unsafe {
            if !out.is_null() {
                records::check(out)?;
            }
            let queue = queue(client, queue_name, queue_len)?;
            let owner = text("owner", owner, owner_len)?;
            let list = records::all("schedules", schedules, schedule_count)?;
            let list: Result<Vec<_>, Failure> = list.iter().map(|schedule| schedule.core()).collect();
            let synced = queue.sync_schedules(owner, generation, list?)?;
            if !out.is_null() {
                records::write(out, &stanchion_synced::of(synced))?;
            }
        }
        Ok(0)
    })
}

/// One schedule, as a list of one. STANCHION_ABSENT: none; `out` is not written. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_get_schedule(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    out: *mut stanchion_schedules,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the schedule")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe {
            let schedule = queue(client, queue_name, queue_len)?.get_schedule(text("id", id, id_len)?)?;
            if let Some(schedule) = schedule {
                put(out, handle::insert(Schedules::new(vec![schedule], None))?);
                return Ok(0);
            }
        }
        Ok(stanchion_status::STANCHION_ABSENT as i32)
    })
}

/// The schedules in the order in which they are due, those that are paused or over last: a page of at most `max` (1 to 1000,
/// and never more than 100). `page` is NULL first, then what stanchion_schedules_next gave for the last one. `out` gets the
/// page, also if there is no schedule in it. Any thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_list_schedules(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    page: *const c_char,
    page_len: usize,
    max: usize,
    out: *mut stanchion_schedules,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the schedules")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let found = queue.list_schedules(option("page", page, page_len)?, max)?;
            put(out, handle::insert(Schedules::new(found.schedules, found.next))?);
        }
        Ok(0)
    })
}

/// Lets a schedule fire nothing until it is resumed. STANCHION_ABSENT: there is no such schedule. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_pause_schedule(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        unsafe { Ok(found(queue(client, queue_name, queue_len)?.pause_schedule(text("id", id, id_len)?)?)) }
    })
}

/// Lets a schedule go on; the slots of the pause are not fired. STANCHION_ABSENT: there is no such schedule. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_resume_schedule(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        unsafe { Ok(found(queue(client, queue_name, queue_len)?.resume_schedule(text("id", id, id_len)?)?)) }
    })
}

/// Makes a task of a schedule now, also if it is paused; its slots stay as they are. `out` (may be NULL) gets the task's id.
/// STANCHION_ABSENT: there is no such schedule; `out` is not written. Sent once.
///
/// Errors: QUEUE_FULL; otherwise as stanchion_queue_pop. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_run_schedule(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    out: *mut stanchion_ran,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and structs as the header says.
        unsafe {
            if !out.is_null() {
                records::check(out)?;
            }
            let task = queue(client, queue_name, queue_len)?.run_schedule(text("id", id, id_len)?)?;
            if let Some(task) = &task
                && !out.is_null()
            {
                records::write(out, &stanchion_ran::of(task))?;
            }
            Ok(found(task.is_some()))
        }
    })
}

/// Drops a schedule; the tasks that it has made stay. STANCHION_ABSENT: there was none. Sent once.
///
/// Errors: as stanchion_queue_pop. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_remove_schedule(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    id: *const c_char,
    id_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        unsafe { Ok(found(queue(client, queue_name, queue_len)?.remove_schedule(text("id", id, id_len)?)?)) }
    })
}
