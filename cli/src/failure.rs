//! What went wrong, in one line: what happened, and what to do next.

use std::io;

use stanchion::{Error, ErrorKind};

use crate::exit;

/// An error on its way to stderr.
#[derive(Debug)]
pub struct Failure {
    /// The stable name of its kind.
    pub kind: &'static str,
    /// The exit code.
    pub exit: u8,
    /// What happened.
    pub what: String,
    /// What to do next; empty if the rest says it already.
    pub hint: String,
}

impl Failure {
    /// An error of this program's own.
    pub fn new(kind: &'static str, exit: u8, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, exit, what: what.into(), hint: hint.into() }
    }

    /// Arguments that are not allowed.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("InvalidArgument", exit::USAGE, what, hint)
    }

    /// All of it in one line.
    pub fn message(&self) -> String {
        let Self { what, hint, .. } = self;
        if hint.is_empty() { what.clone() } else { format!("{what}; {hint}") }
    }

    /// An error of the operating system.
    pub fn system(what: &str, error: &io::Error) -> Self {
        Self::new(
            "System",
            exit::SYSTEM,
            format!("{what}: {error}"),
            "check the system's limits and permissions, and try again",
        )
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.kind().name(), exit::of(error.kind()), error.to_string(), hint(&error))
    }
}

fn hint(error: &Error) -> &'static str {
    // Where the library knows the cause, its message says what to do after a semicolon.
    let general = matches!(error.kind(), ErrorKind::LockTimeout | ErrorKind::QueueFull);
    let advised = error.message().contains("; ") && !general;
    match error.kind() {
        _ if advised => "",
        ErrorKind::LockTimeout => {
            "wait longer with --wait, or see who holds it with `stanchion locks show NAME`"
        }
        ErrorKind::InvalidArgument => "correct it and try again",
        ErrorKind::LeaseLost | ErrorKind::LeaseExpired | ErrorKind::StaleReceipt => {
            "check what was left half done before running it again"
        }
        ErrorKind::QueueFull => {
            "let the workers catch up, or raise it with `stanchion queues configure --max-len`"
        }
        ErrorKind::StoreUnavailable => "check that the store runs, and --url or STANCHION_URL",
        ErrorKind::Denied => "give the store's user this right, or put other credentials into STANCHION_URL",
        ErrorKind::WrongType => "use another name or prefix: the key holds data of another kind",
        ErrorKind::Unsupported => "use another store, or another version of it",
        ErrorKind::Corrupt => "restore the store from a copy, or use another one",
        ErrorKind::Indeterminate => "look with `stanchion locks` or `stanchion queues` before trying again",
        _ => "try again; if it stays, report it as a defect",
    }
}
