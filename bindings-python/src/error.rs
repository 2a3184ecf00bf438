//! Errors of the core as the exceptions that `stanchion._errors` defines.

use std::any::Any;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use stanchion::{Error, ErrorKind};

static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static WRONG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let details = (error.operation(), error.name(), error.is_retryable());
    make(py, error.kind(), &error.to_string(), details)
}

/// What is wrong with an argument, such as "must be a number", and what was given. Whose it is, and its name, are added as the
/// exception goes through pyo3 and `stanchion._arguments`.
pub(crate) fn wrong(value: &Bound<'_, PyAny>, problem: &str) -> PyErr {
    let py = value.py();
    let made = WRONG
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("stanchion._arguments")?.getattr("wrong")?.unbind()))
        .and_then(|make| make.call1(py, (problem, value)));
    made.map_or_else(|error| error, |exception| PyErr::from_value(exception.into_bound(py)))
}

/// Arguments that do not go together.
pub(crate) fn invalid(py: Python<'_>, message: &str) -> PyErr {
    make(py, ErrorKind::InvalidArgument, message, (None, None, false))
}

/// The exception for a panic.
pub(crate) fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("a defect in stanchion: {}", text.unwrap_or("no message"));
    make(py, ErrorKind::Internal, &message, (None, None, false))
}

/// What is known about an error besides its message: operation, name, whether it is retryable.
type Details<'a> = (Option<&'a str>, Option<&'a str>, bool);

fn make(py: Python<'_>, kind: ErrorKind, message: &str, details: Details<'_>) -> PyErr {
    let (operation, name, retryable) = details;
    let made = MAKE
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("stanchion._errors")?.getattr("make")?.unbind()))
        .and_then(|make| make.call1(py, (kind.name(), kind.code(), message, operation, name, retryable)));
    match made {
        Ok(exception) => PyErr::from_value(exception.into_bound(py)),
        Err(error) => error,
    }
}
