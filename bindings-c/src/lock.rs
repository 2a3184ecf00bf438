//! Locks: a lock is its name, so it has no handle.

use std::ffi::c_char;
use std::mem::size_of;

use stanchion::{HeldAs, Holder, blocking};

use crate::arguments::{NONE, millis, number, text, wall};
use crate::boundary::{self, Answer};
use crate::client::{Client, stanchion_client};
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle;
use crate::holders::{give, stanchion_holders};
use crate::lease::{Lease, stanchion_lease};
use crate::options::{canceller, stanchion_lock_options};
use crate::records::{self, Record, fill, needed, put};
use crate::waiters::{self, stanchion_waiters};

/// How a lock is held.
#[repr(C)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_held_as {
    /// In a way that this header does not know.
    STANCHION_HELD_OTHERWISE = 0,
    /// By a lease of this library.
    STANCHION_HELD_LEASE = 1,
    /// Offered to a waiter that has not confirmed yet.
    STANCHION_HELD_OFFER = 2,
    /// By nobody: closed for a time after a release with cooldown.
    STANCHION_HELD_COOLDOWN = 3,
    /// By a value that another program wrote.
    STANCHION_HELD_FOREIGN = 4,
}

/// A holder of a lock, as the store returns it. Out of date as soon as it is read: for people and dashboards. Texts end with a
/// NUL; what does not fit is cut off.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_holder {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// The last fence granted or offered; 0 if there was none. Of a lock with several holders: this holder's.
    pub fence: i64,
    /// When it was granted, in milliseconds since 1970; 0 if unknown.
    pub since_ms: i64,
    /// What is left of the holder's time; -1 if it never ends by itself.
    pub remaining_ms: i64,
    /// How many wait for the lock.
    pub waiters: i64,
    /// How it is held: a stanchion_held_as.
    pub held_as: i32,
    /// The holder's process id; 0 if unknown.
    pub pid: i32,
    /// How many permits it has: 1 if the lock is exclusive; of a read-write lock all of them if it writes.
    pub weight: i32,
    /// The holder's label; empty if unknown.
    pub label: [c_char; 257],
    /// The holder's host; empty if unknown.
    pub host: [c_char; 257],
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_holder {
    const NAME: &'static str = "stanchion_holder";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        fence: 0,
        since_ms: 0,
        remaining_ms: NONE,
        waiters: 0,
        held_as: 0,
        pid: 0,
        weight: 0,
        label: [0; 257],
        host: [0; 257],
    };
}

impl stanchion_holder {
    pub(crate) fn of(holder: &Holder) -> Self {
        let mut record = Self {
            fence: number(holder.fence.get()),
            since_ms: holder.since.map_or(0, wall),
            remaining_ms: holder.remaining.map_or(NONE, millis),
            waiters: number(holder.waiters),
            held_as: match holder.held_as {
                HeldAs::Lease => stanchion_held_as::STANCHION_HELD_LEASE as i32,
                HeldAs::Offer => stanchion_held_as::STANCHION_HELD_OFFER as i32,
                HeldAs::Cooldown => stanchion_held_as::STANCHION_HELD_COOLDOWN as i32,
                HeldAs::Foreign => stanchion_held_as::STANCHION_HELD_FOREIGN as i32,
                _ => stanchion_held_as::STANCHION_HELD_OTHERWISE as i32,
            },
            pid: i32::try_from(holder.pid).unwrap_or(0),
            weight: i32::try_from(holder.weight).unwrap_or(i32::MAX),
            ..Self::DEFAULT
        };
        fill(&mut record.label, &holder.label);
        fill(&mut record.host, &holder.host);
        record
    }
}

/// # Safety
/// The name is as its length says.
unsafe fn lock(client: stanchion_client, name: *const c_char, len: usize) -> Result<blocking::Lock, Failure> {
    let client = handle::get::<Client>(client)?;
    // SAFETY: as the caller promises.
    Ok(client.0.lock(unsafe { text("name", name, len) }?))
}

/// Acquires a lock, waiting in line for it. `options` may be NULL. With a `wait_ms` of 0 it does not wait, and answers
/// STANCHION_BUSY if somebody else has the lock.
///
/// Errors: LOCK_TIMEOUT if it stayed busy; CANCELLED; INVALID_ARGUMENT for a bad name or option; STORE_UNAVAILABLE, DENIED
/// or WRONG_TYPE from the store. Any thread; others go on meanwhile, with the same client, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lock_acquire(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    options: *const stanchion_lock_options,
    out: *mut stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and structs as the header says.
        unsafe { acquire(options, out, || lock(client, name, name_len)) }
    })
}

/// Acquires a lock of any kind.
///
/// # Safety
/// The options and the place are as the header says.
pub(crate) unsafe fn acquire(
    options: *const stanchion_lock_options,
    out: *mut stanchion_lease,
    lock: impl FnOnce() -> Result<blocking::Lock, Failure>,
) -> Answer {
    needed(out, "the lease")?;
    // SAFETY: as the caller promises.
    let (options, lock, core, turn) = unsafe {
        let options = records::read(options)?;
        (options, options.owned(lock()?)?, options.core()?, canceller(options.cancel))
    };
    let lease = if options.only_tries() {
        match lock.try_acquire(core)? {
            Some(lease) => lease,
            None => return Ok(stanchion_status::STANCHION_BUSY as i32),
        }
    } else if let Some(mut turn) = turn {
        lock.acquire_while(core, &mut turn)?
    } else {
        lock.acquire(core)?
    };
    let lease = handle::insert(Lease::new(lease))?;
    // SAFETY: as the caller promises.
    unsafe { put(out, lease) };
    Ok(0)
}

/// Who holds the lock now. STANCHION_ABSENT: nobody. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lock_holder(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    out: *mut stanchion_holder,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and structs as the header says.
        unsafe {
            records::check(out)?;
            let Some(holder) = lock(client, name, name_len)?.holder()? else {
                return Ok(stanchion_status::STANCHION_ABSENT as i32);
            };
            records::write(out, &stanchion_holder::of(&holder))?;
        }
        Ok(0)
    })
}

/// Who holds the lock now, as a list: one at most. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lock_holders(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    out: *mut stanchion_holders,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { give(out, || lock(client, name, name_len)) }
    })
}

/// Who waits for the lock now, as a list in the order of the line: at most 100. One that has not polled for 2.5 s, or for
/// 22 s far back in a long line, counts as dead and is left out. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lock_waiters(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    out: *mut stanchion_waiters,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { waiters::give(out, || lock(client, name, name_len)) }
    })
}

/// Whether the lock is held, offered to a waiter, cooling down, or in foreign hands: STANCHION_BUSY if so, STANCHION_OK if
/// it is free. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lock_is_locked(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        is_locked(&unsafe { lock(client, name, name_len) }?)
    })
}

/// Takes the lock from whoever has it and hands it to the next waiter. STANCHION_ABSENT: it was free. The old holder
/// learns of it at its next renewal, and may work on until then: its fence is smaller than the next holder's.
///
/// Errors: INDETERMINATE if the store did not answer; it is not asked again. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lock_break_lease(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        break_lease(&unsafe { lock(client, name, name_len) }?)
    })
}

pub(crate) fn is_locked(lock: &blocking::Lock) -> Answer {
    Ok(if lock.is_locked()? { stanchion_status::STANCHION_BUSY as i32 } else { 0 })
}

pub(crate) fn break_lease(lock: &blocking::Lock) -> Answer {
    Ok(if lock.break_lease()? { 0 } else { stanchion_status::STANCHION_ABSENT as i32 })
}
