//! Read-write locks, semaphores, and several locks at once. Their leases, options and outcomes are those of every lock.

use std::ffi::c_char;

use stanchion::blocking;

use crate::arguments::{stanchion_text, text};
use crate::boundary;
use crate::client::{Client, stanchion_client};
use crate::error::{Failure, stanchion_error};
use crate::handle;
use crate::holders::{give, stanchion_holders};
use crate::lease::stanchion_lease;
use crate::lock::{acquire, break_lease, is_locked};
use crate::options::stanchion_lock_options;
use crate::queue::texts;
use crate::waiters::{self, stanchion_waiters};

/// # Safety
/// The name is as its length says.
unsafe fn rw_lock(
    client: stanchion_client,
    name: *const c_char,
    len: usize,
) -> Result<blocking::RwLock, Failure> {
    let client = handle::get::<Client>(client)?;
    // SAFETY: as the caller promises.
    Ok(client.0.rw_lock(unsafe { text("name", name, len) }?))
}

/// # Safety
/// The name is as its length says.
unsafe fn semaphore(
    client: stanchion_client,
    name: *const c_char,
    len: usize,
    permits: i64,
) -> Result<blocking::Lock, Failure> {
    let client = handle::get::<Client>(client)?;
    // SAFETY: as the caller promises.
    let name = unsafe { text("name", name, len) }?;
    // One that is too large the core refuses.
    let count = u32::try_from(permits.min(u32::MAX.into()));
    let count = count.map_err(|_| Failure::invalid(format!("permits {permits} is no count")))?;
    Ok(client.0.semaphore(name, count))
}

/// To look at a semaphore, nobody needs to know how many permits it has.
const NO_PERMITS: i64 = 0;

/// Becomes a reader of a read-write lock: any number of them may hold it, unless a writer does. Those who wait are served in
/// the order in which they came, so that neither readers nor writers starve. Options and errors are those of
/// stanchion_lock_acquire: by default a lease of 30 s that is renewed, a wait of 10 s.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_read_lock_acquire(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    options: *const stanchion_lock_options,
    out: *mut stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe { acquire(options, out, || Ok(rw_lock(client, name, name_len)?.read().clone())) }
    })
}

/// Becomes the writer of a read-write lock: nobody else holds anything then. stanchion_lease_downgrade makes it a reader.
/// Otherwise as stanchion_lock_acquire. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_write_lock_acquire(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    options: *const stanchion_lock_options,
    out: *mut stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe { acquire(options, out, || Ok(rw_lock(client, name, name_len)?.write().clone())) }
    })
}

/// Who holds the read-write lock now: at most 100, those whose leases end first. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_rw_lock_holders(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    out: *mut stanchion_holders,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { give(out, || Ok(rw_lock(client, name, name_len)?.read().clone())) }
    })
}

/// As stanchion_lock_waiters, of a read-write lock. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_rw_lock_waiters(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    out: *mut stanchion_waiters,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { waiters::give(out, || Ok(rw_lock(client, name, name_len)?.read().clone())) }
    })
}

/// As stanchion_lock_is_locked, of a read-write lock. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_rw_lock_is_locked(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        is_locked(unsafe { rw_lock(client, name, name_len) }?.read())
    })
}

/// As stanchion_lock_break_lease, of a read-write lock: from all who hold it. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_rw_lock_break_lease(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        break_lease(unsafe { rw_lock(client, name, name_len) }?.read())
    })
}

/// Acquires permits of a semaphore that has `permits` of them (1 to 1000000): one, or `weight` in the options. While anybody
/// holds or waits for permits, all must agree on their number; another one is INVALID_ARGUMENT. Otherwise as
/// stanchion_lock_acquire. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_semaphore_acquire(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    permits: i64,
    options: *const stanchion_lock_options,
    out: *mut stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts, structs and places as the header says.
        unsafe { acquire(options, out, || semaphore(client, name, name_len, permits)) }
    })
}

/// Who holds permits of the semaphore now: at most 100, those whose leases end first. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_semaphore_holders(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    out: *mut stanchion_holders,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { give(out, || semaphore(client, name, name_len, NO_PERMITS)) }
    })
}

/// As stanchion_lock_waiters, of a semaphore. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_semaphore_waiters(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    out: *mut stanchion_waiters,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { waiters::give(out, || semaphore(client, name, name_len, NO_PERMITS)) }
    })
}

/// As stanchion_lock_is_locked, of a semaphore: whether anybody has permits. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_semaphore_is_locked(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        is_locked(&unsafe { semaphore(client, name, name_len, NO_PERMITS) }?)
    })
}

/// As stanchion_lock_break_lease, of a semaphore: from all who have permits. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_semaphore_break_lease(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        break_lease(&unsafe { semaphore(client, name, name_len, NO_PERMITS) }?)
    })
}

/// Acquires several exclusive locks, all or none: one after another in the order of their names, so that two callers never
/// wait for each other. Names that come twice count once; without any it is INVALID_ARGUMENT. One lease is on all of them:
/// it is lost when one of them is, and stanchion_lease_fences_at returns the fence of each. It cannot be downgraded, nor
/// handed over as a text. Otherwise as stanchion_lock_acquire. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_multi_lock_acquire(
    client: stanchion_client,
    names: *const stanchion_text,
    name_count: usize,
    options: *const stanchion_lock_options,
    out: *mut stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let lock = || {
            let client = handle::get::<Client>(client)?;
            // SAFETY: the caller passes texts as the header says.
            Ok(client.0.multi_lock(&unsafe { texts("names", names, name_count) }?))
        };
        // SAFETY: the caller passes structs and places as the header says.
        unsafe { acquire(options, out, lock) }
    })
}
