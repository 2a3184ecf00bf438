//! What the nouns are made of, for the blocking face.

use crate::base::error::Error;
use crate::driver::interrupt::attend_call;

pub(crate) use super::worker::Worker;
pub(crate) use crate::driver::{
    Interrupt as Turn, again, drive_all_blocking as drive_all, drive_blocking as drive, rest,
};
/// The code without `async` and `.await`. A block `async { ... }` would become one whose `?` leaves the whole function:
/// the nouns have none.
pub(crate) use maybe_async::must_be_sync as both;

/// The second of two texts, which is that of the blocking face.
macro_rules! either {
    ($asynchronous:literal, $blocking:literal) => {
        $blocking
    };
}
/// The documentation's example of this name.
macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../blocking/examples/", $name, ".md"))
    };
}
pub(crate) use {either, example};

/// Runs what is no machine, with the host's interrupt checks.
pub(crate) fn aside<T: Send + 'static>(
    _what: &'static str,
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    attend_call(run)
}

/// Runs what drives machines: they give the host its turns.
pub(crate) fn driving<T>(_what: &'static str, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    run()
}
