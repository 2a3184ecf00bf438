//! Those who wait for a lock.

use std::ffi::c_char;
use std::mem::size_of;

use stanchion::{Waiter, blocking};

use crate::arguments::{NONE, millis, wall};
use crate::boundary::{self, Answer};
use crate::error::{Failure, stanchion_error};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::records::{self, Record, fill, needed, put};

/// A list of those who wait, in the order of the line. 0 is none.
pub type stanchion_waiters = i64;

struct Waiters(Vec<Waiter>);

impl Kind for Waiters {
    const NAME: &'static str = "list of waiters";
}

/// A waiter for a lock, as the store lists it. Out of date as soon as it is read: for people and dashboards.
/// Texts end with a NUL; what does not fit is cut off.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_waiter {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// When it got in line, by the store's clock, in milliseconds since 1970; 0 if unknown.
    pub since_ms: i64,
    /// For how long it has waited, by the store's clock; -1 if unknown.
    pub waiting_ms: i64,
    /// The waiter's process id; 0 if unknown.
    pub pid: i32,
    /// How many permits it waits for: 1 if the lock is exclusive; of a read-write lock all of them if it wants to write.
    pub weight: i32,
    /// The waiter's label; empty if unknown.
    pub label: [c_char; 257],
    /// The waiter's host; empty if unknown.
    pub host: [c_char; 257],
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_waiter {
    const NAME: &'static str = "stanchion_waiter";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        since_ms: 0,
        waiting_ms: NONE,
        pid: 0,
        weight: 0,
        label: [0; 257],
        host: [0; 257],
    };
}

impl stanchion_waiter {
    fn of(waiter: &Waiter) -> Self {
        let mut record = Self {
            since_ms: waiter.since.map_or(0, wall),
            waiting_ms: waiter.waiting.map_or(NONE, millis),
            pid: i32::try_from(waiter.pid).unwrap_or(0),
            weight: i32::try_from(waiter.weight).unwrap_or(i32::MAX),
            ..Self::DEFAULT
        };
        fill(&mut record.label, &waiter.label);
        fill(&mut record.host, &waiter.host);
        record
    }
}

/// # Safety
/// The place is as the header says.
pub(crate) unsafe fn give(
    out: *mut stanchion_waiters,
    lock: impl FnOnce() -> Result<blocking::Lock, Failure>,
) -> Answer {
    needed(out, "the waiters")?;
    let waiters = handle::insert(Waiters(lock()?.waiters()?))?;
    // SAFETY: as the caller promises.
    unsafe { put(out, waiters) };
    Ok(0)
}

/// How many waiters are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_waiters_len(waiters: stanchion_waiters) -> usize {
    boundary::value(0, || handle::get::<Waiters>(waiters).map_or(0, |waiters| waiters.0.len()))
}

/// One of the waiters. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_waiters_at(
    waiters: stanchion_waiters,
    index: usize,
    out: *mut stanchion_waiter,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let waiters = handle::get::<Waiters>(waiters)?;
        let waiter = waiters.0.get(index).ok_or_else(|| beyond(index, waiters.0.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &stanchion_waiter::of(waiter)) }?;
        Ok(0)
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_waiters_free(waiters: stanchion_waiters) {
    boundary::value((), || drop(handle::take::<Waiters>(waiters)));
}
