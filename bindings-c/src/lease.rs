//! Leases.

use std::ffi::c_char;
use std::mem::size_of;
use std::sync::{Mutex, PoisonError};

use stanchion::{LossReason, blocking};

use crate::arguments::{millis, number, span, stanchion_text, text};
use crate::boundary;
use crate::client::{Client, stanchion_client};
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::records::{self, Record, needed, put};

/// A lock that is yours until it is released, expires, or is lost. 0 is none. In a forked child it is the parent's: calls
/// answer STANCHION_ERR_FORKED, and to free it there does nothing to the parent.
pub type stanchion_lease = i64;

pub(crate) struct Lease {
    lease: blocking::Lease,
    /// Never changed: views of the names are with the program.
    names: Vec<String>,
    /// What [`stanchion_lease_detach`] gave out; views of it are with the program, so it is never changed.
    detached: Mutex<Vec<Box<str>>>,
}

impl Lease {
    pub(crate) fn new(lease: blocking::Lease) -> Self {
        let names = lease.fences().into_iter().map(|(name, _)| name).collect();
        Self { lease, names, detached: Mutex::default() }
    }
}

impl Kind for Lease {
    const NAME: &'static str = "lease";
}

/// Why a lease or a claim was lost.
#[repr(C)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_loss {
    /// It is not lost.
    STANCHION_LOSS_NONE = 0,
    /// It ran out: it was not renewed, or renewals did not get through in time.
    STANCHION_LOSS_EXPIRED = 1,
    /// It was renewed for as long as max_hold_ms or max_run_ms allows.
    STANCHION_LOSS_MAX_HOLD = 2,
    /// Another has the lock or the task, or the task was settled.
    STANCHION_LOSS_TAKEN = 3,
    /// Somebody called stanchion_lock_break_lease.
    STANCHION_LOSS_BROKEN = 4,
    /// The store has no record of it: it was flushed, or restarted without its data.
    STANCHION_LOSS_FORGOTTEN = 5,
    /// Another program overwrote or deleted the lock's key.
    STANCHION_LOSS_OVERWRITTEN = 6,
    /// The task was removed, or its queue purged.
    STANCHION_LOSS_REMOVED = 7,
    /// The store refused the renewal for good.
    STANCHION_LOSS_REFUSED = 8,
    /// The worker stops, and its grace is over: the claim is still renewed, but who works on it has to end.
    STANCHION_LOSS_STOPPED = 9,
    /// For a reason that this header does not know.
    STANCHION_LOSS_OTHERWISE = 10,
    /// The run took longer than its timeout: it has failed.
    STANCHION_LOSS_TIMEOUT = 11,
    /// Somebody called stanchion_queue_cancel: the task ends with this run. Its ack is still accepted.
    STANCHION_LOSS_CANCELLED = 12,
}

pub(crate) fn loss(reason: Option<LossReason>) -> i32 {
    use stanchion_loss as loss;
    let reason = match reason {
        None => loss::STANCHION_LOSS_NONE,
        Some(LossReason::Expired) => loss::STANCHION_LOSS_EXPIRED,
        Some(LossReason::MaxHold) => loss::STANCHION_LOSS_MAX_HOLD,
        Some(LossReason::Taken) => loss::STANCHION_LOSS_TAKEN,
        Some(LossReason::Broken) => loss::STANCHION_LOSS_BROKEN,
        Some(LossReason::Forgotten) => loss::STANCHION_LOSS_FORGOTTEN,
        Some(LossReason::Overwritten) => loss::STANCHION_LOSS_OVERWRITTEN,
        Some(LossReason::Removed) => loss::STANCHION_LOSS_REMOVED,
        Some(LossReason::Refused) => loss::STANCHION_LOSS_REFUSED,
        Some(LossReason::Stopped) => loss::STANCHION_LOSS_STOPPED,
        Some(LossReason::TimedOut) => loss::STANCHION_LOSS_TIMEOUT,
        Some(LossReason::Cancelled) => loss::STANCHION_LOSS_CANCELLED,
        Some(_) => loss::STANCHION_LOSS_OTHERWISE,
    };
    reason as i32
}

/// What a lease is on. The texts live as long as the handle of the lease.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_lease_info {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// The lock's name; of several locks the first.
    pub name: stanchion_text,
    /// The secret that proves the lease is yours. Keep it out of logs.
    pub token: stanchion_text,
    /// As stanchion_lease_fence.
    pub fence: i64,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_lease_info {
    const NAME: &'static str = "stanchion_lease_info";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        name: stanchion_text::NONE,
        token: stanchion_text::NONE,
        fence: 0,
    };
}

/// What the lease is on. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_get(
    lease: stanchion_lease,
    out: *mut stanchion_lease_info,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let lease = &handle::get::<Lease>(lease)?.lease;
        let info = stanchion_lease_info {
            name: stanchion_text::of(lease.name()),
            token: stanchion_text::of(lease.token().as_str()),
            fence: number(lease.fence().get()),
            ..Record::DEFAULT
        };
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &info) }?;
        Ok(0)
    })
}

/// What is answered for a lease, or `otherwise` if the handle is of none.
fn look<T>(lease: stanchion_lease, otherwise: T, look: impl FnOnce(&blocking::Lease) -> T) -> T
where
    T: Copy,
{
    boundary::value(otherwise, || handle::get::<Lease>(lease).map_or(otherwise, |lease| look(&lease.lease)))
}

/// The number of this grant: larger than that of every earlier grant of the lock. Pass it along with writes, so that the
/// resource can refuse a holder that came too late. 0 if this is no handle of a lease. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_lease_fence(lease: stanchion_lease) -> i64 {
    look(lease, 0, |lease| number(lease.fence().get()))
}

/// For how many milliseconds the lease is surely yours from now on, without further renewal; 0 if it is not, or if this is
/// no handle of a lease. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_lease_remaining_ms(lease: stanchion_lease) -> i64 {
    look(lease, 0, |lease| millis(lease.remaining()))
}

/// 1 if the lease is yours now, otherwise 0. Computed from the clock at the time of the call. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_lease_is_valid(lease: stanchion_lease) -> i32 {
    look(lease, 0, |lease| lease.is_valid().into())
}

/// Why the lease was lost: a stanchion_loss. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_lease_loss(lease: stanchion_lease) -> i32 {
    look(lease, 0, |lease| loss(lease.loss()))
}

/// How many locks the lease is on: one, or as many as stanchion_multi_lock_acquire was asked for; 0 if this is no handle of
/// a lease. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_lease_fences_len(lease: stanchion_lease) -> usize {
    boundary::value(0, || handle::get::<Lease>(lease).map_or(0, |lease| lease.names.len()))
}

/// The name of one of the locks that the lease is on, and its fence, in the order of their names; each place may be NULL.
/// The name lives as long as the handle. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_fences_at(
    lease: stanchion_lease,
    index: usize,
    name: *mut stanchion_text,
    fence: *mut i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(lease, err, |lease| {
        let found = lease.names.get(index).ok_or_else(|| beyond(index, lease.names.len()))?;
        // An upgrade changes it.
        let now = lease.lease.fences();
        // SAFETY: the caller passes NULL or places for a text and a number.
        unsafe {
            put(name, stanchion_text::of(found));
            put(fence, number(now.get(index).map_or(0, |(_, fence)| fence.get())));
        }
        Ok(())
    })
}

/// Runs a call on a lease.
fn on(
    lease: stanchion_lease,
    err: *mut *mut stanchion_error,
    call: impl FnOnce(&Lease) -> Result<(), Failure>,
) -> i32 {
    boundary::status(err, || {
        call(&*handle::get::<Lease>(lease)?)?;
        Ok(0)
    })
}

/// Fails if the lease is known to be gone, without asking the store: LEASE_LOST, LEASE_EXPIRED or FORKED. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_check(
    lease: stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(lease, err, |lease| Ok(lease.lease.check()?))
}

/// Waits up to `time_ms` for the lease to be lost. STANCHION_LOST: it is, or it has been released. STANCHION_OK: it is
/// still yours. A loss is announced at the latest at the lease's deadline. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_wait_lost(
    lease: stanchion_lease,
    time_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let lease = handle::get::<Lease>(lease)?;
        let lost = lease.lease.wait_lost(span("time_ms", time_ms)?);
        Ok(if lost { stanchion_status::STANCHION_LOST as i32 } else { 0 })
    })
}

/// Prolongs the lease to at least `ttl_ms` from now; never shortens it.
///
/// Errors: LEASE_LOST or LEASE_EXPIRED if it has ended; STORE_UNAVAILABLE or INDETERMINATE if the store did not answer, and
/// then the lease goes on to its old deadline; FORKED. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_extend(
    lease: stanchion_lease,
    ttl_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(lease, err, |lease| Ok(lease.lease.extend(span("ttl_ms", ttl_ms)?)?))
}

/// Has the lease end `ttl_ms` from now (1 ms to 365 days), also earlier than it would, as lockers do that set an expiry. It
/// is not renewed any more.
///
/// Errors: as stanchion_lease_extend, but if the store did not answer, the lease goes on to the earlier of both ends;
/// LEASE_EXPIRED also if it was over before the answer came: its validity is up to 2 ms and 1 % shorter. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_extend_exact(
    lease: stanchion_lease,
    ttl_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(lease, err, |lease| Ok(lease.lease.extend_exact(span("ttl_ms", ttl_ms)?)?))
}

/// Turns the lease of a writer into that of a reader, with the same fence: other readers may come in. A reader's lease stays
/// as it is.
///
/// Errors: INVALID_ARGUMENT for a lease of another kind of lock; LEASE_LOST or LEASE_EXPIRED if it has ended;
/// STORE_UNAVAILABLE or INDETERMINATE if the store did not answer; FORKED. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_downgrade(
    lease: stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(lease, err, |lease| Ok(lease.lease.downgrade()?))
}

/// Turns the lease of a reader into that of a writer if nobody else holds the lock; STANCHION_BUSY if somebody does. It
/// never waits: two readers that both wait to become the writer would wait for each other for ever. The lease gets a new
/// fence, above those of the readers before; its end stays. A writer's stays as it is.
///
/// Errors: as stanchion_lease_downgrade. If the store did not answer it may be a writer's there until it is released. Any
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_upgrade(
    lease: stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let lease = handle::get::<Lease>(lease)?;
        let upgraded = lease.lease.upgrade()?;
        Ok(if upgraded { 0 } else { stanchion_status::STANCHION_BUSY as i32 })
    })
}

/// Gives the lock back and hands it to the next waiter. The handle is to be freed nevertheless.
///
/// Errors: LEASE_EXPIRED if the lease had run out, LEASE_LOST if another got the lock meanwhile, INDETERMINATE if that
/// cannot be known; FORKED. But for the last, the lease is over in any case. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_release(
    lease: stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(lease, err, |lease| Ok(lease.lease.release()?))
}

/// As stanchion_lease_release, but the lock stays closed for `cooldown_ms` (50 ms to 365 days) before anybody can get it.
/// After an error there is no cooldown. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_release_with_cooldown(
    lease: stanchion_lease,
    cooldown_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(lease, err, |lease| Ok(lease.lease.release_with_cooldown(span("cooldown_ms", cooldown_ms)?)?))
}

/// Prolongs the lease to `ttl_ms`, stops renewing it, and gives a text with which another process can resume it within
/// that time, once. Whoever has the text can take the lease: treat it as a password. It lives as long as this handle, with
/// which nothing else can be done any more.
///
/// Errors: as stanchion_lease_extend; the lease goes on as it was. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_lease_detach(
    lease: stanchion_lease,
    ttl_ms: i64,
    out: *mut stanchion_text,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(lease, err, |lease| {
        needed(out, "the text")?;
        let text = lease.lease.detach(span("ttl_ms", ttl_ms)?)?.to_text().into_boxed_str();
        let view = stanchion_text::of(&text);
        lease.detached.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        // SAFETY: the caller passes a place for a text.
        unsafe { put(out, view) };
        Ok(())
    })
}

/// Continues a lease with the text of stanchion_lease_detach, here or in another process.
///
/// Errors: LEASE_LOST if the text was used already or its lease has ended; LEASE_EXPIRED if it ran out meanwhile;
/// INVALID_ARGUMENT if it is no such text, or of another lock_prefix. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_client_resume_lease(
    client: stanchion_client,
    text_of_handle: *const c_char,
    text_len: usize,
    out: *mut stanchion_lease,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the lease")?;
        let client = handle::get::<Client>(client)?;
        // SAFETY: the caller passes texts as the header says.
        let text = unsafe { text("text_of_handle", text_of_handle, text_len) }?;
        let lease = client.0.resume_lease(&text.parse()?)?;
        let lease = handle::insert(Lease::new(lease))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, lease) };
        Ok(0)
    })
}

/// Frees the handle. A lease that was not released is released in the background, as far as the store can be reached; to
/// be sure, and to learn whether it was yours to the end, release it first. 0 and freed handles are harmless. Never waits.
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_lease_free(lease: stanchion_lease) {
    boundary::value((), || {
        if let Ok(lease) = handle::take::<Lease>(lease) {
            // Now, even if another thread is in a call on it.
            lease.lease.let_go();
        }
    });
}
