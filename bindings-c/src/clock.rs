//! A clock that a test moves.

use stanchion::ManualClock;

use crate::arguments::span;
use crate::boundary;
use crate::error::stanchion_error;
use crate::handle::{self, Kind};
use crate::records::{needed, put};

/// A clock that a test moves, for memory: stores. 0 is none.
pub type stanchion_clock = i64;

pub(crate) struct Clock(pub(crate) ManualClock);

impl Kind for Clock {
    const NAME: &'static str = "clock";
}

/// Makes a clock for stanchion_connect_options. It stands still until it is moved. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_clock_new(
    out: *mut stanchion_clock,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the clock")?;
        let clock = handle::insert(Clock(ManualClock::new()))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, clock) };
        Ok(0)
    })
}

/// Moves the time of all stores with this clock forward. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_clock_advance(
    clock: stanchion_clock,
    time_ms: i64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let clock = handle::get::<Clock>(clock)?;
        clock.0.advance(span("time_ms", time_ms)?);
        Ok(0)
    })
}

/// Frees the handle; stores with this clock go on having it. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_clock_free(clock: stanchion_clock) {
    boundary::value((), || drop(handle::take::<Clock>(clock)));
}
