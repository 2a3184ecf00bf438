//! The one place where panics end, and through which every function returns.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failure, report, stanchion_error};

/// What a function that can fail answers: a status of zero or more.
pub(crate) type Answer = Result<i32, Failure>;

/// Runs the body of a function that answers a status, and tells of an error through `err` if it is not NULL.
pub(crate) fn status(err: *mut *mut stanchion_error, body: impl FnOnce() -> Answer) -> i32 {
    match caught(body).and_then(|answer| answer) {
        Ok(status) => status,
        Err(failure) => report(failure, err),
    }
}

/// Runs the body of a function that cannot tell of an error; after a panic it answers `otherwise`.
pub(crate) fn value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or(otherwise)
}

fn caught<T>(body: impl FnOnce() -> T) -> Result<T, Failure> {
    // What a panic left half done is behind mutexes whose poison is ignored on purpose: no call may be the last.
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| Failure::internal(message(&*panic)))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Panics, for the test that a panic does not leave the library. Not part of the interface.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
#[allow(clippy::panic, reason = "it is there to panic")]
pub extern "C" fn stanchion_private_panic(err: *mut *mut stanchion_error) -> i32 {
    status(err, || panic!("on purpose"))
}
