//! Claims.

use std::ffi::{c_char, c_void};
use std::mem::{offset_of, size_of};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use stanchion::{Retry, Verdict, blocking};

use crate::arguments::{
    NONE, bytes, millis, number, optional_span, span, stanchion_header, stanchion_text, text, wall,
};
use crate::boundary;
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::lease::loss;
use crate::records::{self, Record};
use crate::tasks::HeaderViews;
use crate::worker::Worker;

/// A task that is yours until it is settled, or until its lease ends or is lost. 0 is none. In a forked child it is the
/// parent's, as a lease is.
pub type stanchion_claim = i64;

pub(crate) struct Claim {
    pub(crate) claim: blocking::Claim,
    headers: HeaderViews,
    /// Which worker gave it out.
    pub(crate) worker: Option<Arc<Worker>>,
}

impl Claim {
    pub(crate) fn new(claim: blocking::Claim, worker: Option<Arc<Worker>>) -> Self {
        let headers = HeaderViews::of(claim.headers());
        Self { claim, headers, worker }
    }
}

impl Kind for Claim {
    const NAME: &'static str = "claim";
}

/// The task of a claim. Its texts, bytes and headers live as long as the handle of the claim.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_claim_info {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// The task's id.
    pub id: stanchion_text,
    /// The queue's name.
    pub queue: stanchion_text,
    /// The task's payload.
    pub payload: *const c_void,
    /// How many bytes.
    pub payload_len: usize,
    /// What travels with it.
    pub headers: *const stanchion_header,
    /// How many.
    pub header_count: usize,
    /// The number of this delivery: larger than that of every earlier one of the task. Pass it along with writes, as a
    /// lock's fence.
    pub receipt: i64,
    /// The task's version.
    pub version: i64,
    /// When it was due, in milliseconds since 1970.
    pub due_ms: i64,
    /// Counts deliveries from one.
    pub attempt: i64,
    /// After so many the task is dead.
    pub max_attempts: i64,
    /// The task's priority.
    pub priority: i32,
    /// The task's kind; NULL if it has none.
    pub kind: stanchion_text,
    /// The task's key; NULL if it has none.
    pub key: stanchion_text,
    /// The id of the flow that the task is of; NULL if it is of none.
    pub flow: stanchion_text,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_claim_info {
    const NAME: &'static str = "stanchion_claim_info";
    /// What comes behind was not there at first.
    const LEAST: usize = offset_of!(Self, kind);
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        id: stanchion_text::NONE,
        queue: stanchion_text::NONE,
        payload: ptr::null(),
        payload_len: 0,
        headers: ptr::null(),
        header_count: 0,
        receipt: 0,
        version: 0,
        due_ms: NONE,
        attempt: 0,
        max_attempts: 0,
        priority: 0,
        kind: stanchion_text::NONE,
        key: stanchion_text::NONE,
        flow: stanchion_text::NONE,
    };
}

/// The task of a claim. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_get(
    claim: stanchion_claim,
    out: *mut stanchion_claim_info,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let claim = handle::get::<Claim>(claim)?;
        let (claim, headers) = (&claim.claim, claim.headers.as_slice());
        let info = stanchion_claim_info {
            id: stanchion_text::of(claim.id()),
            queue: stanchion_text::of(claim.queue()),
            payload: claim.payload().as_ptr().cast(),
            payload_len: claim.payload().len(),
            headers: headers.as_ptr(),
            header_count: headers.len(),
            receipt: number(claim.receipt().get()),
            version: number(claim.version().get()),
            due_ms: wall(claim.due()),
            attempt: claim.attempt().into(),
            max_attempts: claim.max_attempts().into(),
            priority: claim.priority().into(),
            kind: claim.kind().map_or(stanchion_text::NONE, stanchion_text::of),
            key: claim.key().map_or(stanchion_text::NONE, stanchion_text::of),
            flow: claim.flow().map_or(stanchion_text::NONE, stanchion_text::of),
            ..Record::DEFAULT
        };
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &info) }?;
        Ok(0)
    })
}

fn look<T: Copy>(claim: stanchion_claim, otherwise: T, look: impl FnOnce(&blocking::Claim) -> T) -> T {
    boundary::value(otherwise, || handle::get::<Claim>(claim).map_or(otherwise, |claim| look(&claim.claim)))
}

/// For how many milliseconds the claim is surely yours from now on, without further renewal; 0 if it is not, or if this is
/// no handle of a claim. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_claim_remaining_ms(claim: stanchion_claim) -> i64 {
    look(claim, 0, |claim| millis(claim.remaining()))
}

/// 1 if the claim is yours now, otherwise 0. Computed from the clock at the time of the call. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_claim_is_valid(claim: stanchion_claim) -> i32 {
    look(claim, 0, |claim| claim.is_valid().into())
}

/// Why the claim was lost: a stanchion_loss. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_claim_loss(claim: stanchion_claim) -> i32 {
    look(claim, 0, |claim| loss(claim.loss()))
}

/// Waits up to `time_ms` for the claim to be lost or settled: STANCHION_LOST if it is, STANCHION_OK if it is still yours. A
/// loss is announced at the latest at the deadline. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_wait_lost(
    claim: stanchion_claim,
    time_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let claim = handle::get::<Claim>(claim)?;
        let lost = claim.claim.wait_lost(span("time_ms", time_ms)?);
        Ok(if lost { stanchion_status::STANCHION_LOST as i32 } else { 0 })
    })
}

/// Runs a call on a claim.
fn on(
    claim: stanchion_claim,
    err: *mut *mut stanchion_error,
    call: impl FnOnce(&blocking::Claim) -> Result<(), Failure>,
) -> i32 {
    boundary::status(err, || {
        call(&handle::get::<Claim>(claim)?.claim)?;
        Ok(0)
    })
}

/// Done: the task leaves the queue. A second ack repeats the answer of the first, without I/O. The handle is to be freed
/// nevertheless.
///
/// Errors: STALE_RECEIPT if the lease had ended and the task was delivered again or settled meanwhile (an ack that is
/// merely late is accepted); STORE_UNAVAILABLE or INDETERMINATE if the store did not answer; FORKED. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_ack(claim: stanchion_claim, err: *mut *mut stanchion_error) -> i32 {
    on(claim, err, |claim| Ok(claim.ack()?))
}

/// Done, with a result (1 MiB at most; NULL and 0: an empty one), which stanchion_queue_result returns for as long as the task
/// says in keep_result_ms. Of a queue 10,000 results and 64 MiB are kept.
///
/// Errors: as stanchion_claim_ack; INVALID_ARGUMENT for a result that is too large, and nothing is sent then. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_ack_with(
    claim: stanchion_claim,
    result: *const c_void,
    result_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(claim, err, |claim| {
        // SAFETY: the caller passes bytes as the header says.
        let result = unsafe { bytes("result", result, result_len) }?;
        Ok(claim.ack_with(result)?)
    })
}

/// Notes how far the work has come (4 KiB at most), which stanchion_queue_get and _list show until the run ends, and renews the
/// lease.
///
/// Errors: as stanchion_claim_extend; INVALID_ARGUMENT for more bytes, and nothing is sent then. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_progress(
    claim: stanchion_claim,
    progress: *const c_void,
    progress_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(claim, err, |claim| {
        // SAFETY: the caller passes bytes as the header says.
        let progress = unsafe { bytes("progress", progress, progress_len) }?;
        Ok(claim.progress(progress)?)
    })
}

/// Not done: the task is tried again after `delay_ms`, or is dead after its last attempt. -1: as the task says; if it does not, 1 s, 16 s, 81 s, 4 min and so on
/// after the first, second, ... attempt (the fourth power of its number), less up to half of it by chance, 7 h at most. The
/// reason (1 KiB at most, the rest is cut off; may be NULL) is kept with it.
///
/// Errors: as stanchion_claim_ack. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_nack(
    claim: stanchion_claim,
    delay_ms: i64,
    reason: *const c_char,
    reason_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(claim, err, |claim| {
        // SAFETY: the caller passes texts as the header says.
        let reason = unsafe { text("reason", reason, reason_len) }?;
        Ok(claim.nack(retry(delay_ms)?, reason)?)
    })
}

/// Not done, and not to be retried: the task is dead. The reason (1 KiB at most, the rest is cut off; may be NULL) is kept with it.
///
/// Errors: as stanchion_claim_ack. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_bury(
    claim: stanchion_claim,
    reason: *const c_char,
    reason_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(claim, err, |claim| {
        // SAFETY: the caller passes texts as the header says.
        let reason = unsafe { text("reason", reason, reason_len) }?;
        Ok(claim.bury(reason)?)
    })
}

/// Not tried: the task goes back without counting an attempt, and waits for `delay_ms`. 0 or -1: it comes back to its
/// place in line, so the next claim gets it again.
///
/// Errors: as stanchion_claim_ack; INVALID_ARGUMENT for a delay over 365 days. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_put_back(
    claim: stanchion_claim,
    delay_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(claim, err, |claim| Ok(claim.put_back(at_once(delay_ms)?)?))
}

/// Not tried, because whoever it calls has had enough (a 429, `Retry-After`): the task goes back to its place without counting
/// an attempt, and nothing more of its key is given out for `time_ms` (0 to 365 days); if it has no key, nothing of the queue.
/// A later throttle makes that longer, never shorter.
///
/// Errors: as stanchion_claim_ack; INVALID_ARGUMENT for a time over 365 days. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_throttle(
    claim: stanchion_claim,
    time_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(claim, err, |claim| Ok(claim.throttle(span("time_ms", time_ms)?)?))
}

/// Prolongs the lease of the claim to at least `lease_ms` from now; never shortens it.
///
/// Errors: as stanchion_lease_extend. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_claim_extend(
    claim: stanchion_claim,
    lease_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    on(claim, err, |claim| Ok(claim.extend(span("lease_ms", lease_ms)?)?))
}

/// Frees the handle. A claim that was not settled counts as failed: its task comes back after a pause. One that a worker
/// gave out and that was not settled waits for the store. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_claim_free(claim: stanchion_claim) {
    boundary::value((), || {
        if let Ok(claim) = handle::take::<Claim>(claim)
            && let Some(worker) = &claim.worker
        {
            // Unless its fate is known already, this is what it says of the claim.
            worker.done(claim.claim.receipt(), Err("dropped without a verdict".into()));
        }
    });
}

fn at_once(delay_ms: i64) -> Result<Duration, Failure> {
    Ok(optional_span("delay_ms", delay_ms)?.unwrap_or_default())
}

fn retry(delay_ms: i64) -> Result<Retry, Failure> {
    Ok(optional_span("delay_ms", delay_ms)?.map_or(Retry::Backoff, Retry::After))
}

/// How a claim ended.
#[repr(C)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_verdict_kind {
    /// Done.
    STANCHION_ACK = 1,
    /// To be tried again.
    STANCHION_NACK = 2,
    /// Dead.
    STANCHION_BURY = 3,
    /// Not tried.
    STANCHION_PUT_BACK = 4,
    /// Not tried, and nothing more of its key for so long: see stanchion_claim_throttle.
    STANCHION_VERDICT_THROTTLE = 5,
}

/// How a claim ended, to be settled together with others.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_verdict {
    /// sizeof, set by stanchion_verdict_init. The same for all verdicts of an array.
    pub struct_size: usize,
    /// On which claim.
    pub claim: stanchion_claim,
    /// For NACK: when it is tried again; -1: after the back-off of stanchion_claim_nack. For PUT_BACK: not before so long; 0 or
    /// -1: at once. For VERDICT_THROTTLE: for how long; it is needed.
    pub delay_ms: i64,
    /// For NACK and BURY: kept with the task; 1 KiB at most, the rest is cut off; may be NULL.
    pub reason: stanchion_text,
    /// How it ended: a stanchion_verdict_kind. -1: STANCHION_ACK.
    pub kind: i32,
    /// For ACK: its result, as in stanchion_claim_ack_with. NULL: none; an empty one is not NULL.
    pub result: *const c_void,
    /// How many bytes.
    pub result_len: usize,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_verdict {
    const NAME: &'static str = "stanchion_verdict";
    /// What comes behind was not there at first.
    const LEAST: usize = offset_of!(Self, result);
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        claim: 0,
        delay_ms: NONE,
        reason: stanchion_text::NONE,
        kind: -1,
        result: ptr::null(),
        result_len: 0,
    };
}

/// Makes a verdict "done" on no claim. `struct_size` is sizeof *verdict. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_verdict_init(verdict: *mut stanchion_verdict, struct_size: usize) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(verdict, struct_size) });
}

impl stanchion_verdict {
    /// # Safety
    /// The reason and the result are as their lengths say.
    pub(crate) unsafe fn core(&self) -> Result<Verdict, Failure> {
        use stanchion_verdict_kind::{
            STANCHION_ACK, STANCHION_BURY, STANCHION_NACK, STANCHION_PUT_BACK, STANCHION_VERDICT_THROTTLE,
        };
        let claim = handle::get::<Claim>(self.claim)?.claim.clone();
        // SAFETY: as the caller promises.
        let (reason, result) = unsafe {
            let reason = text("reason", self.reason.data, self.reason.len)?;
            (reason, bytes("result", self.result, self.result_len)?)
        };
        let kind = self.kind;
        let is_ack = kind == -1 || kind == STANCHION_ACK as i32;
        if !is_ack && !self.result.is_null() {
            Err(Failure::invalid("result is only for STANCHION_ACK"))
        } else if is_ack && self.result.is_null() {
            Ok(claim.acked())
        } else if is_ack {
            Ok(claim.acked_with(result)?)
        } else if kind == STANCHION_NACK as i32 {
            Ok(claim.nacked(retry(self.delay_ms)?, reason)?)
        } else if kind == STANCHION_BURY as i32 {
            Ok(claim.buried(reason))
        } else if kind == STANCHION_PUT_BACK as i32 {
            Ok(claim.returned(at_once(self.delay_ms)?)?)
        } else if kind == STANCHION_VERDICT_THROTTLE as i32 {
            Ok(claim.throttled(span("delay_ms", self.delay_ms)?)?)
        } else {
            Err(Failure::invalid(format!("kind {kind} is no stanchion_verdict_kind")))
        }
    }
}
