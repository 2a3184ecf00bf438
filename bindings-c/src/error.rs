//! Statuses and errors.

use std::ffi::{CString, c_char};
use std::ptr;

use stanchion::{Error, ErrorKind};

use crate::boundary;

/// What functions return: zero; what happened, if it is no error; or an error, which is negative.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "for the header, and the test that the numbers are the core's")]
pub enum stanchion_status {
    /// Done.
    STANCHION_OK = 0,
    /// Somebody else has the lock.
    STANCHION_BUSY = 1,
    /// No task, no event, for now.
    STANCHION_EMPTY = 2,
    /// The id was in the queue already; see the outcome.
    STANCHION_DUPLICATE = 3,
    /// There is no such task or holder.
    STANCHION_ABSENT = 4,
    /// The task has another version; nothing was changed.
    STANCHION_OTHER_VERSION = 5,
    /// The task is claimed; nothing was changed.
    STANCHION_CLAIMED = 6,
    /// The task is dead; nothing was changed.
    STANCHION_DEAD = 7,
    /// The worker has ended: there will be no more tasks.
    STANCHION_OVER = 8,
    /// The lease or claim is lost, or has ended.
    STANCHION_LOST = 9,
    /// There is no value: this caller is to compute it.
    STANCHION_COMPUTE = 10,
    /// The value was not stored: the lease was lost, or the store did not answer. The next caller computes.
    STANCHION_NOT_STORED = 11,
    /// The task runs: it ends with this run.
    STANCHION_RUNNING = 12,
    /// The task is not done yet.
    STANCHION_PENDING = 13,

    /// The lock stayed busy for the whole wait.
    STANCHION_ERR_LOCK_TIMEOUT = -1,
    /// The lease is no longer yours: taken, broken, overwritten, or forgotten by the store.
    STANCHION_ERR_LEASE_LOST = -2,
    /// The lease ran out; nobody is known to have taken the lock since.
    STANCHION_ERR_LEASE_EXPIRED = -3,
    /// A newer delivery of the task exists, or it was settled otherwise.
    STANCHION_ERR_STALE_RECEIPT = -4,
    /// The queue is at its limit.
    STANCHION_ERR_QUEUE_FULL = -5,
    /// An argument is outside what is allowed; nothing was sent.
    STANCHION_ERR_INVALID_ARGUMENT = -6,
    /// The store or its version cannot do this.
    STANCHION_ERR_UNSUPPORTED = -7,
    /// The store could not be reached, or refused to work, within the time given.
    STANCHION_ERR_STORE_UNAVAILABLE = -8,
    /// The request may or may not have been carried out.
    STANCHION_ERR_INDETERMINATE = -9,
    /// The key holds a value of another kind.
    STANCHION_ERR_WRONG_TYPE = -10,
    /// The store's user lacks a right.
    STANCHION_ERR_DENIED = -11,
    /// The store answered something that makes no sense, or its file is damaged.
    STANCHION_ERR_CORRUPT = -12,
    /// The caller gave up.
    STANCHION_ERR_CANCELLED = -13,
    /// The client was closed.
    STANCHION_ERR_CLOSED = -14,
    /// The object was made before a fork and belongs to the parent process.
    STANCHION_ERR_FORKED = -15,
    /// A defect in the library.
    STANCHION_ERR_INTERNAL = -16,
    /// Not a handle of this kind: zero, freed already, or never given out. Nothing was done.
    STANCHION_ERR_INVALID_HANDLE = -100,
}

/// An error: its code and an explanation. Freed with stanchion_error_free.
pub struct stanchion_error {
    code: i32,
    retryable: bool,
    message: CString,
    operation: CString,
    name: CString,
}

/// An error on its way to the program.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    code: i32,
    message: String,
    retryable: bool,
    operation: &'static str,
    name: String,
}

impl Failure {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, operation: "", name: String::new() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument.code(), message)
    }

    pub(crate) fn handle(kind: &str) -> Self {
        let message = format!("this is no handle of a {kind}, or it was freed already");
        Self::new(stanchion_status::STANCHION_ERR_INVALID_HANDLE as i32, message)
    }

    pub(crate) fn forked(what: &str) -> Self {
        Self::new(ErrorKind::Forked.code(), format!("{what} belongs to the parent process"))
    }

    /// Of a refused argument: names the function, unless the message says already what was to be done.
    pub(crate) fn of(mut self, function: &str) -> Self {
        let refused =
            [ErrorKind::InvalidArgument.code(), stanchion_status::STANCHION_ERR_INVALID_HANDLE as i32];
        if refused.contains(&self.code) && self.operation.is_empty() && !function.is_empty() {
            self.message = format!("{function}: {}", self.message);
        }
        self
    }

    pub(crate) fn internal(message: &str) -> Self {
        Self::new(ErrorKind::Internal.code(), format!("a defect in stanchion: {message}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            code: error.kind().code(),
            message: error.to_string(),
            retryable: error.is_retryable(),
            operation: error.operation().unwrap_or_default(),
            name: error.name().unwrap_or_default().to_owned(),
        }
    }
}

/// Gives the error to the program, if it wants it; its code.
pub(crate) fn report(failure: Failure, err: *mut *mut stanchion_error) -> i32 {
    let Failure { code, message, retryable, operation, name } = failure;
    if !err.is_null() {
        let [message, operation, name] = [&*message, operation, &*name].map(ended);
        let error = Box::into_raw(Box::new(stanchion_error { code, retryable, message, operation, name }));
        // SAFETY: the caller passes NULL or a place for a pointer; not necessarily an aligned one.
        unsafe { err.write_unaligned(error) };
    }
    code
}

/// Text with a NUL at its end, and none before.
fn ended(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// A text of an error; empty if there is none.
///
/// # Safety
/// `error` is NULL or an error that was not freed.
unsafe fn text(error: *const stanchion_error, which: fn(&stanchion_error) -> &CString) -> *const c_char {
    boundary::value(c"".as_ptr(), || {
        // SAFETY: as the caller promises.
        unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| which(error).as_ptr())
    })
}

/// Of which kind it is: a negative stanchion_status. Zero for NULL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_error_code(error: *const stanchion_error) -> i32 {
    // SAFETY: the caller passes NULL or an error that was not freed.
    boundary::value(0, || unsafe { error.as_ref() }.map_or(0, |error| error.code))
}

/// What happened, in words: UTF-8 with a NUL at its end. Of a refused argument it names the function, the argument and what
/// it was. It lives as long as the error, and holds no secret. Empty for NULL. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_error_message(error: *const stanchion_error) -> *const c_char {
    // SAFETY: the caller passes NULL or an error that was not freed.
    unsafe { text(error, |error| &error.message) }
}

/// The operation that failed, such as "acquire"; empty if it failed before it began. As stanchion_error_message. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_error_operation(error: *const stanchion_error) -> *const c_char {
    // SAFETY: the caller passes NULL or an error that was not freed.
    unsafe { text(error, |error| &error.operation) }
}

/// The name of the lock or queue that it concerns; empty if it concerns none. As stanchion_error_message. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_error_name(error: *const stanchion_error) -> *const c_char {
    // SAFETY: the caller passes NULL or an error that was not freed.
    unsafe { text(error, |error| &error.name) }
}

/// 1 if the same call may succeed later without any other change, otherwise 0. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_error_is_retryable(error: *const stanchion_error) -> i32 {
    // SAFETY: the caller passes NULL or an error that was not freed.
    boundary::value(0, || unsafe { error.as_ref() }.map_or(0, |error| error.retryable.into()))
}

/// Frees an error, once. NULL is harmless. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_error_free(error: *mut stanchion_error) {
    boundary::value((), || {
        if !error.is_null() {
            // SAFETY: it was made by `report` and is freed once.
            drop(unsafe { Box::from_raw(error) });
        }
    });
}

/// The name of a status, such as "LockTimeout" or "Busy"; "Unknown" for others. Never NULL, and never freed. Any
/// thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_status_name(status: i32) -> *const c_char {
    boundary::value(ptr::null(), || name(status).as_ptr())
}

fn name(status: i32) -> &'static std::ffi::CStr {
    match status {
        0 => c"Ok",
        1 => c"Busy",
        2 => c"Empty",
        3 => c"Duplicate",
        4 => c"Absent",
        5 => c"OtherVersion",
        6 => c"Claimed",
        7 => c"Dead",
        8 => c"Over",
        9 => c"Lost",
        10 => c"Compute",
        11 => c"NotStored",
        12 => c"Running",
        13 => c"Pending",
        -1 => c"LockTimeout",
        -2 => c"LeaseLost",
        -3 => c"LeaseExpired",
        -4 => c"StaleReceipt",
        -5 => c"QueueFull",
        -6 => c"InvalidArgument",
        -7 => c"Unsupported",
        -8 => c"StoreUnavailable",
        -9 => c"Indeterminate",
        -10 => c"WrongType",
        -11 => c"Denied",
        -12 => c"Corrupt",
        -13 => c"Cancelled",
        -14 => c"Closed",
        -15 => c"Forked",
        -16 => c"Internal",
        -100 => c"InvalidHandle",
        _ => c"Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_status as status;

    #[test]
    fn codes_and_names_are_those_of_the_core() {
        let kinds = [
            (ErrorKind::LockTimeout, status::STANCHION_ERR_LOCK_TIMEOUT),
            (ErrorKind::LeaseLost, status::STANCHION_ERR_LEASE_LOST),
            (ErrorKind::LeaseExpired, status::STANCHION_ERR_LEASE_EXPIRED),
            (ErrorKind::StaleReceipt, status::STANCHION_ERR_STALE_RECEIPT),
            (ErrorKind::QueueFull, status::STANCHION_ERR_QUEUE_FULL),
            (ErrorKind::InvalidArgument, status::STANCHION_ERR_INVALID_ARGUMENT),
            (ErrorKind::Unsupported, status::STANCHION_ERR_UNSUPPORTED),
            (ErrorKind::StoreUnavailable, status::STANCHION_ERR_STORE_UNAVAILABLE),
            (ErrorKind::Indeterminate, status::STANCHION_ERR_INDETERMINATE),
            (ErrorKind::WrongType, status::STANCHION_ERR_WRONG_TYPE),
            (ErrorKind::Denied, status::STANCHION_ERR_DENIED),
            (ErrorKind::Corrupt, status::STANCHION_ERR_CORRUPT),
            (ErrorKind::Cancelled, status::STANCHION_ERR_CANCELLED),
            (ErrorKind::Closed, status::STANCHION_ERR_CLOSED),
            (ErrorKind::Forked, status::STANCHION_ERR_FORKED),
            (ErrorKind::Internal, status::STANCHION_ERR_INTERNAL),
        ];
        for (kind, code) in kinds {
            assert_eq!(kind.code(), code as i32, "{kind}");
            assert_eq!(name(kind.code()).to_str(), Ok(kind.name()));
        }
    }
}
