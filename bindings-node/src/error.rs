//! Errors of the core as the facade gets them: it makes instances of its classes from them.

use std::any::Any;

use napi::Status;
use napi_derive::napi;
use stanchion::{Error, ErrorKind};

/// What is known about an error.
#[napi(object)]
pub struct Failure {
    pub kind: String,
    pub message: String,
    pub operation: Option<String>,
    pub name: Option<String>,
    pub retryable: bool,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind().name().to_owned(),
            message: error.to_string(),
            operation: error.operation().map(str::to_owned),
            name: error.name().map(str::to_owned),
            retryable: error.is_retryable(),
        }
    }
}

impl Failure {
    /// A defect of ours.
    pub(crate) fn internal(message: &str) -> Self {
        let kind = ErrorKind::Internal.name().to_owned();
        let message = format!("a defect in stanchion: {message}");
        Self { kind, message, operation: None, name: None, retryable: false }
    }

    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::internal(text.unwrap_or("no message"))
    }
}

/// An argument that cannot be converted: the facade makes it a rejected promise.
pub(crate) fn invalid(message: impl Into<String>) -> napi::Error {
    napi::Error::new(Status::InvalidArg, message.into())
}

/// As [`invalid`], for what the core says of an argument.
pub(crate) fn refused(error: &Error) -> napi::Error {
    invalid(error.to_string())
}
