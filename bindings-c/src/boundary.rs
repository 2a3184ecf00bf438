//! The one place where panics end, through which every function returns; no thread is cancelled within it.

use std::any::{Any, type_name};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cancellation::Uncancelled;
use crate::error::{Failure, report, stanchion_error};

/// What a function that can fail answers: a status of zero or more.
pub(crate) type Answer = Result<i32, Failure>;

/// Runs the body of a function that returns a status, and sets `err` on an error if it is not NULL.
pub(crate) fn status<F: FnOnce() -> Answer>(err: *mut *mut stanchion_error, body: F) -> i32 {
    let _uncancelled = Uncancelled::begin();
    match caught(body).and_then(|answer| answer) {
        Ok(status) => status,
        Err(failure) => report(failure.of(function::<F>()), err),
    }
}

/// Runs the body of a function that cannot return an error; after a panic it returns `otherwise`.
pub(crate) fn value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    let _uncancelled = Uncancelled::begin();
    caught(body).unwrap_or(otherwise)
}

/// The name of the exported function that the closure stands in, as far as the compiler reveals it: for messages only.
fn function<F>() -> &'static str {
    let path = type_name::<F>();
    let begin = path.find("::stanchion_").map_or(path.len(), |colons| colons + 2);
    let name = &path[begin..];
    name.split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()).next().unwrap_or_default()
}

fn caught<T>(body: impl FnOnce() -> T) -> Result<T, Failure> {
    // What a panic left half done is behind mutexes whose poison is ignored on purpose: no call may be the last.
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| Failure::internal(message(&*panic)))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Panics, for the test that a panic does not leave the library. Not part of the interface, and not in a library that is
/// shipped: only builds with debug assertions have it.
///
/// cbindgen:ignore
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
#[allow(clippy::panic, reason = "it is there to panic")]
pub extern "C" fn stanchion_private_panic(err: *mut *mut stanchion_error) -> i32 {
    status(err, || panic!("on purpose"))
}
