//! Limiters: so many in so long, for all who use a name.

use std::ffi::c_char;
use std::mem::size_of;
use std::ptr;
use std::time::Duration;

use stanchion::{DEFAULT_WAIT, Limit, Taken};

use crate::arguments::{NONE, number, optional_count, optional_span, text};
use crate::boundary;
use crate::client::{Client, stanchion_client};
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle;
use crate::options::canceller;
use crate::records::{self, Record, put};

/// How a limiter counts. Each kind has names of its own.
#[repr(C)]
pub enum stanchion_limit_kind {
    /// Evenly spaced, with bursts: a leaky bucket, a token bucket.
    STANCHION_GCRA = 0,
    /// So many in each window of the store's clock.
    STANCHION_FIXED_WINDOW = 1,
    /// So many in any window, wherever it begins.
    STANCHION_SLIDING_WINDOW = 2,
}

const NO_KIND: i32 = -1;
const GCRA: i32 = stanchion_limit_kind::STANCHION_GCRA as i32;
const FIXED_WINDOW: i32 = stanchion_limit_kind::STANCHION_FIXED_WINDOW as i32;
const SLIDING_WINDOW: i32 = stanchion_limit_kind::STANCHION_SLIDING_WINDOW as i32;

/// What a limiter allows, and how to take of it. All who use a limiter should give the same limit. -1 stands for the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_limit {
    /// sizeof, set by stanchion_limit_init.
    pub struct_size: usize,
    /// So many (1 to 1000000; of a sliding window to 10000), and no more than one per microsecond. It has no default.
    pub n: i64,
    /// In so many microseconds (1 ms to 365 days). -1: 1000000.
    pub per_us: i64,
    /// Of STANCHION_GCRA, how many may come at once after a calm time. -1: 1.
    pub burst: i64,
    /// A stanchion_limit_kind. -1: STANCHION_GCRA.
    pub kind: i32,
    /// How many to take: no more than the burst, or than a window has. -1: 1.
    pub count: i64,
    /// How long to wait in line (1 h at most). 0: only try. -1: 10000.
    pub wait_ms: i64,
    /// Ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED, and the turn is given back. It may
    /// be set by another thread or a signal handler, and must live until the call returns. NULL: nothing does.
    pub cancel: *const i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_limit {
    const NAME: &'static str = "stanchion_limit";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        n: 0,
        per_us: NONE,
        burst: NONE,
        kind: NO_KIND,
        count: NONE,
        wait_ms: NONE,
        cancel: ptr::null(),
    };
}

impl stanchion_limit {
    fn core(&self) -> Result<Limit, Failure> {
        let n = optional_count("n", self.n, u32::MAX)?.unwrap_or(0);
        let per = optional_count("per_us", self.per_us, u64::MAX)?
            .map_or(Duration::from_secs(1), Duration::from_micros);
        let limit = match self.kind {
            NO_KIND | GCRA => Limit::rate(n, per),
            FIXED_WINDOW => Limit::fixed_window(n, per),
            SLIDING_WINDOW => Limit::sliding_window(n, per),
            other => return Err(Failure::invalid(format!("kind {other} is no stanchion_limit_kind"))),
        };
        Ok(optional_count("burst", self.burst, u32::MAX)?.map_or(limit, |burst| limit.burst(burst)))
    }
}

/// Makes all options the default; `n` is then 0, which is no limit. `struct_size` is sizeof *limit. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_limit_init(limit: *mut stanchion_limit, struct_size: usize) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(limit, struct_size) });
}

/// Takes some of what the limiter of this name allows, waiting for its turn. STANCHION_OK: taken. STANCHION_BUSY: nothing was
/// taken, and `retry_after_us` (may be NULL) gets the microseconds after which a try would succeed, if nobody else takes any
/// meanwhile.
///
/// Who waits is in line in the order of arrival, and goes on when its turn has come by the store's clock, without asking again. If
/// the turn would come later than `wait_ms`, that is STANCHION_BUSY at once. A wait that is ended by `cancel` gives its turn back,
/// unless somebody is in line behind it.
///
/// Errors: INVALID_ARGUMENT for a bad name or limit, or a `count` that can never be allowed at once; STORE_UNAVAILABLE,
/// INDETERMINATE (it may or may not have been taken), DENIED or WRONG_TYPE from the store; UNSUPPORTED on a quorum. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_limiter_take(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    limit: *const stanchion_limit,
    retry_after_us: *mut i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and structs as the header says.
        let (limit, name, turn) = unsafe {
            let limit = records::read(limit)?;
            (limit, text("name", name, name_len)?, canceller(limit.cancel))
        };
        let client = handle::get::<Client>(client)?;
        let limiter = client.0.limiter(name, limit.core()?)?;
        let count = optional_count("count", limit.count, u32::MAX)?.unwrap_or(1);
        let wait = optional_span("wait_ms", limit.wait_ms)?.unwrap_or(DEFAULT_WAIT);
        let taken = match turn {
            Some(mut turn) => limiter.take_while(count, wait, &mut turn)?,
            None => limiter.take(count, wait)?,
        };
        let Taken::RetryAfter(time) = taken else { return Ok(0) };
        if !retry_after_us.is_null() {
            let micros = number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
            // SAFETY: the caller passes a place for a number.
            unsafe { put(retry_after_us, micros) };
        }
        Ok(stanchion_status::STANCHION_BUSY as i32)
    })
}
