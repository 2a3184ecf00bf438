//! Queues: another chance for dead tasks, or their end.

use std::ffi::c_char;
use std::mem::size_of;
use std::ptr;

use stanchion::{DeadTasks, Receipt};

use crate::arguments::{items, span, stanchion_text, text};
use crate::boundary;
use crate::client::stanchion_client;
use crate::error::{Failure, stanchion_error};
use crate::queue::{queue, texts};
use crate::records::{self, Record, put};

/// Which dead tasks: `ids`, `receipts` or `count`, one of them at most, and of these only those that match
/// `reason`, `prefix` and `older_than_ms`. With none of the first three: all that match. At least one field must be set.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_dead_tasks {
    /// sizeof, set by stanchion_dead_tasks_init.
    pub struct_size: usize,
    /// The newest dead record of each of these ids. NULL: not given; an array of none means none.
    pub ids: *const stanchion_text,
    /// How many.
    pub id_count: usize,
    /// The records with these receipts, as stanchion_task_info has them: an id that died more than once has several.
    /// NULL: not given; an array of none means none.
    pub receipts: *const i64,
    /// How many.
    pub receipt_count: usize,
    /// So many of the oldest: first those that failed, then those that expired. 0: all.
    pub count: u64,
    /// Only those whose reason begins so. Empty: any.
    pub reason: stanchion_text,
    /// Only those whose id begins so. Empty: any.
    pub prefix: stanchion_text,
    /// Only those that died so long ago, or longer. 0: any.
    pub older_than_ms: i64,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_dead_tasks {
    const NAME: &'static str = "stanchion_dead_tasks";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        ids: ptr::null(),
        id_count: 0,
        receipts: ptr::null(),
        receipt_count: 0,
        count: 0,
        reason: stanchion_text::NONE,
        prefix: stanchion_text::NONE,
        older_than_ms: 0,
    };
}

/// Makes one without any selection yet. `struct_size` is sizeof *dead. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_dead_tasks_init(dead: *mut stanchion_dead_tasks, struct_size: usize) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(dead, struct_size) });
}

impl stanchion_dead_tasks {
    /// # Safety
    /// Arrays and texts are as their lengths say.
    unsafe fn core(&self, what: &str) -> Result<DeadTasks, Failure> {
        // SAFETY: as the caller promises.
        let (reason, prefix) = unsafe {
            let reason = text("reason", self.reason.data, self.reason.len)?;
            (reason, text("prefix", self.prefix.data, self.prefix.len)?)
        };
        let age = span("older_than_ms", self.older_than_ms)?;
        let ids = !self.ids.is_null() || self.id_count > 0;
        let receipts = !self.receipts.is_null() || self.receipt_count > 0;
        let filtered = !reason.is_empty() || !prefix.is_empty() || !age.is_zero();
        let dead = match (ids, receipts, self.count) {
            // SAFETY: as the caller promises.
            (true, false, 0) => DeadTasks::ids(unsafe { texts("ids", self.ids, self.id_count) }?),
            // SAFETY: as the caller promises.
            (false, true, 0) => DeadTasks::receipts(unsafe { self.receipts() }?),
            (false, false, 0) if filtered => DeadTasks::all(),
            // Nobody is to reach all of them by accident.
            (false, false, 0) => {
                return Err(Failure::invalid(format!(
                    "{what} needs ids, receipts, a count, a reason, a prefix or older_than_ms"
                )));
            }
            (false, false, count) => DeadTasks::oldest(count),
            _ => return Err(Failure::invalid(format!("{what} takes one of ids, receipts and a count"))),
        };
        Ok(dead.reason(reason).prefix(prefix).older_than(age))
    }

    /// # Safety
    /// The array is as its length says.
    unsafe fn receipts(&self) -> Result<Vec<Receipt>, Failure> {
        // SAFETY: as the caller promises.
        let receipts = unsafe { items("receipts", self.receipts, self.receipt_count) }?;
        let checked = receipts.into_iter().map(|receipt| {
            let number = u64::try_from(receipt);
            number.map(Receipt::new).map_err(|_| Failure::invalid(format!("{receipt} is no receipt")))
        });
        checked.collect()
    }
}

/// Moves dead tasks back to ready, with all their attempts, unless their ids live; `moved` (may be NULL) gets how many. It
/// goes in steps of about 1000, each sent once.
///
/// Errors: as stanchion_queue_pop, and INVALID_ARGUMENT if `dead` is NULL or has no field set; what earlier steps have moved
/// stays moved, and is not counted. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_kick(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    dead: *const stanchion_dead_tasks,
    moved: *mut u64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            put(moved, queue.kick(records::read(dead)?.core("kick")?)?);
        }
        Ok(0)
    })
}

/// Drops dead tasks; `removed` (may be NULL) gets how many. It goes in steps of about 1000, each sent once.
///
/// Errors: as stanchion_queue_kick; what earlier steps have dropped is gone. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_remove_dead(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    dead: *const stanchion_dead_tasks,
    removed: *mut u64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            put(removed, queue.remove_dead(records::read(dead)?.core("remove_dead")?)?);
        }
        Ok(0)
    })
}
