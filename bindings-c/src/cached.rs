//! Cached values. There are no callbacks: a computation begins with one call and is stored with another.

use std::ffi::{c_char, c_void};
use std::mem::size_of;
use std::ptr;

use stanchion::blocking;

use crate::arguments::{NONE, bytes, option, optional_flag, optional_span, span, stanchion_text, text};
use crate::boundary;
use crate::client::{Client, stanchion_client};
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::options::canceller;
use crate::records::{self, Record, needed, put};

/// What stanchion_cached_begin gave: a value, or the right to compute it, for one caller at a time. 0 is none. In a forked
/// child the right to compute is the parent's, as a lease is.
pub type stanchion_cached = i64;

enum Cached {
    Value(Vec<u8>),
    Ticket(blocking::Ticket),
}

impl Kind for Cached {
    const NAME: &'static str = "cached value";
}

/// How a value is cached, and computed by one caller at a time. -1 stands for the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_cached_options {
    /// sizeof, set by stanchion_cached_options_init.
    pub struct_size: usize,
    /// How long the value is fresh (1 ms to 365 days). There is no default.
    pub ttl_ms: i64,
    /// For how long after that the old value is still answered, while somebody computes a new one. -1: 0, then all wait.
    pub stale_ms: i64,
    /// How long to wait at most for the value that another computes. -1: 10000.
    pub wait_ms: i64,
    /// How long the others wait for a computing caller that died; renewed while it lives. -1: 30000.
    pub lease_ms: i64,
    /// How long a computation may take at most before another caller computes. -1: 3600000.
    pub max_run_ms: i64,
    /// Whether every caller computes by itself, and stores nothing, when the store has not answered for a second; for five
    /// seconds then the client asks no more. 0: wait, and fail with STORE_UNAVAILABLE. -1: 1.
    pub without_store: i32,
    /// Before the value's time is over one caller, drawn by lot, computes it anew while the others still get the old one: the
    /// earlier, the longer that takes and the larger beta is (0 to 1000). 0: never. -1: 1.
    pub beta: f64,
    /// Shown as who computes (at most 256 bytes). NULL: the client's label.
    pub label: stanchion_text,
    /// Ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED. It must live until the call
    /// returns. NULL: nothing does.
    pub cancel: *const i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_cached_options {
    const NAME: &'static str = "stanchion_cached_options";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        ttl_ms: NONE,
        stale_ms: NONE,
        wait_ms: NONE,
        lease_ms: NONE,
        max_run_ms: NONE,
        without_store: -1,
        beta: -1.0,
        label: stanchion_text::NONE,
        cancel: ptr::null(),
    };
}

/// Makes all options the default. `struct_size` is sizeof *options. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_cached_options_init(
    options: *mut stanchion_cached_options,
    struct_size: usize,
) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(options, struct_size) });
}

impl stanchion_cached_options {
    /// # Safety
    /// The label is as its length says.
    unsafe fn core(&self) -> Result<stanchion::CachedOptions, Failure> {
        let mut options = stanchion::CachedOptions::new(span("ttl_ms", self.ttl_ms)?);
        if let Some(stale) = optional_span("stale_ms", self.stale_ms)? {
            options = options.stale(stale);
        }
        if let Some(wait) = optional_span("wait_ms", self.wait_ms)? {
            options = options.wait(wait);
        }
        if let Some(lease) = optional_span("lease_ms", self.lease_ms)? {
            options = options.lease(lease);
        }
        if let Some(max_run) = optional_span("max_run_ms", self.max_run_ms)? {
            options = options.max_run(max_run);
        }
        if let Some(without_store) = optional_flag("without_store", self.without_store)? {
            options = options.without_store(without_store);
        }
        #[allow(clippy::float_cmp, reason = "the very number that stands for the default")]
        if self.beta != -1.0 {
            options = options.beta(self.beta);
        }
        // SAFETY: as the caller promises.
        if let Some(label) = unsafe { option("label", self.label.data, self.label.len) }? {
            options = options.label(label);
        }
        Ok(options)
    }
}

/// Looks for the cached value with this name. STANCHION_OK: it is there, and stanchion_cached_get returns it.
/// STANCHION_COMPUTE: this caller computes it, while the others wait; stanchion_cached_store stores the result. Both set a
/// handle, to be freed: if nothing was stored by then, the next caller computes.
///
/// Errors: LOCK_TIMEOUT if another computed for the whole wait; CANCELLED; INVALID_ARGUMENT for a bad name or option;
/// STORE_UNAVAILABLE, DENIED or WRONG_TYPE from the store. Any thread; others go on meanwhile, with the same client, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_cached_begin(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    options: *const stanchion_cached_options,
    out: *mut stanchion_cached,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the cached value")?;
        let client = handle::get::<Client>(client)?;
        // SAFETY: the caller passes texts and structs as the header says.
        let (name, options, turn) = unsafe {
            let options = records::read(options)?;
            (text("name", name, name_len)?, options.core()?, canceller(options.cancel))
        };
        let begun = match turn {
            Some(mut turn) => client.0.begin_cached_while(name, &options, &mut turn)?,
            None => client.0.begin_cached(name, options)?,
        };
        let (status, cached) = match begun {
            blocking::Begun::Value(value) => (stanchion_status::STANCHION_OK, Cached::Value(value)),
            blocking::Begun::Compute(ticket) => (stanchion_status::STANCHION_COMPUTE, Cached::Ticket(ticket)),
        };
        let cached = handle::insert(cached)?;
        // SAFETY: as above.
        unsafe { put(out, cached) };
        Ok(status as i32)
    })
}

/// The value. It lives as long as the handle. Does no I/O.
///
/// Errors: INVALID_ARGUMENT if it is still to be computed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_cached_get(
    cached: stanchion_cached,
    value: *mut *const c_void,
    value_len: *mut usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || match &*handle::get::<Cached>(cached)? {
        Cached::Value(found) => {
            // SAFETY: the caller passes places as the header says.
            unsafe {
                put(value, found.as_ptr().cast());
                put(value_len, found.len());
            }
            Ok(0)
        }
        Cached::Ticket(_) => Err(Failure::invalid("there is no value yet: this caller is to compute it")),
    })
}

/// Stores the value that was computed (any bytes, STANCHION_MAX_PAYLOAD at most) and wakes all who wait for it.
/// STANCHION_NOT_STORED: the lease was lost, or the store did not answer; the value is as good as ever, and the next caller
/// computes. So it does after an error. The handle is to be freed nevertheless.
///
/// Errors: INVALID_ARGUMENT if the value is too large, or was there already; DENIED, WRONG_TYPE or FORKED. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_cached_store(
    cached: stanchion_cached,
    value: *const c_void,
    value_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let cached = handle::get::<Cached>(cached)?;
        let Cached::Ticket(ticket) = &*cached else {
            return Err(Failure::invalid("the value is there: it is not this caller who computes it"));
        };
        // SAFETY: the caller passes bytes as the header says.
        let stored = ticket.store(unsafe { bytes("value", value, value_len) }?)?;
        Ok(if stored { 0 } else { stanchion_status::STANCHION_NOT_STORED as i32 })
    })
}

/// 1 if it is still this caller who computes, otherwise 0: then another may. Computed from the clock at the time of the call.
/// Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_cached_is_valid(cached: stanchion_cached) -> i32 {
    boundary::value(0, || match handle::get::<Cached>(cached).as_deref() {
        Ok(Cached::Ticket(ticket)) => ticket.is_valid().into(),
        _ => 0,
    })
}

/// Frees the handle. A computation that was not stored is left to the next caller, in the background. 0 and stale handles are
/// harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_cached_free(cached: stanchion_cached) {
    boundary::value((), || {
        // Another thread may be in a call with it.
        if let Ok(cached) = handle::take::<Cached>(cached)
            && let Cached::Ticket(ticket) = &*cached
        {
            ticket.let_go();
        }
    });
}

/// Forgets the cached value with this name. A computation that has begun does not count either: it is not stored, and the next
/// caller computes anew.
///
/// Errors: INVALID_ARGUMENT for a bad name; STORE_UNAVAILABLE, INDETERMINATE, DENIED or WRONG_TYPE from the store. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_invalidate(
    client: stanchion_client,
    name: *const c_char,
    name_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let client = handle::get::<Client>(client)?;
        // SAFETY: the caller passes texts as the header says.
        client.0.invalidate(unsafe { text("name", name, name_len) }?)?;
        Ok(0)
    })
}
