//! What an error of SQLite means for the request.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;

use crate::base::error::ErrorKind;
use crate::protocol::{Failure, FailureKind};

/// Why an attempt gave no reply.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another process writes now: try again until the deadline.
    Busy,
    /// Trying again makes no sense now.
    Failed(Failure),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// An error of SQLite. The transaction was rolled back, so nothing was changed.
pub(super) fn sqlite(error: &rusqlite::Error, place: &str) -> Trouble {
    let Some(code) = error.sqlite_error_code() else {
        // A column of another type than the schema's: somebody else wrote to the tables.
        return Trouble::Failed(corrupt(place, &error.to_string()));
    };
    let number = error.sqlite_error().map_or(0, |error| error.extended_code);
    let (kind, advice) = match code {
        // A file that this process found, and another removed before it could: both open the same one.
        ErrorCode::SystemIoFailure if number == rusqlite::ffi::SQLITE_IOERR_DELETE_NOENT => {
            return Trouble::Busy;
        }
        // A protocol error is a race between processes that open or close the file at the same time.
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            return Trouble::Busy;
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            return Trouble::Failed(corrupt(place, &error.to_string()));
        }
        ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly => (
            FailureKind::Final(ErrorKind::Denied),
            "may not be written by this user; check its mode and owner",
        ),
        ErrorCode::CannotOpen => {
            (FailureKind::NotSent, "cannot be opened; check its directory and the limit of open files")
        }
        ErrorCode::DiskFull => {
            (FailureKind::Refused, "has no room: the disk is full; nothing was changed, free space on it")
        }
        ErrorCode::SystemIoFailure => {
            (FailureKind::Refused, "cannot be read or written; nothing was changed")
        }
        ErrorCode::OutOfMemory => (FailureKind::Refused, "could not get enough memory; nothing was changed"),
        ErrorCode::SchemaChanged | ErrorCode::OperationAborted | ErrorCode::OperationInterrupted => {
            (FailureKind::Refused, "was being changed by another connection; nothing was changed, try again")
        }
        _ => (FailureKind::Final(ErrorKind::Internal), "refused a request of this library"),
    };
    Trouble::Failed(Failure::new(kind, format!("{place} {advice} ({error}, SQLite's code {number})")))
}

/// The file is damaged or never was a database.
pub(super) fn corrupt(place: &str, cause: &str) -> Failure {
    Failure::new(
        FailureKind::Final(ErrorKind::Corrupt),
        format!(
            "{place} is damaged or is no SQLite database ({cause}); stop every program that uses it, move it \
             away together with its -wal and -shm files, and a new one is made"
        ),
    )
}

/// Another process came in between: the attempt is made again.
pub(super) fn busy() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)
}

/// The file is locked by another process, and the deadline has come.
pub(super) fn locked(place: &str) -> Failure {
    Failure::new(
        FailureKind::Refused,
        format!("{place}: the database file is locked by another process; nothing was changed"),
    )
}

/// The file could not be created or looked at.
pub(super) fn file(error: &io::Error, path: &Path) -> Failure {
    let place = path.display();
    let (kind, advice) = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            let directory = path.parent().unwrap_or(Path::new("/")).display();
            (
                ErrorKind::StoreUnavailable,
                format!("the directory {directory} does not exist; create it first"),
            )
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => (
            ErrorKind::Denied,
            format!(
                "{place} may not be created or written by this user; check its mode and owner, and its directory's"
            ),
        ),
        io::ErrorKind::IsADirectory => {
            (ErrorKind::InvalidArgument, format!("{place} is a directory; give the path of a file in it"))
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => {
            (ErrorKind::InvalidArgument, format!("{place} is no valid path"))
        }
        _ => return Failure::new(FailureKind::NotSent, format!("{place} cannot be opened ({error})")),
    };
    Failure::new(FailureKind::Final(kind), format!("{advice} ({error})"))
}

/// A store that may not be used on this side of a fork.
pub(super) fn forked(message: &str) -> Failure {
    Failure::new(FailureKind::Final(ErrorKind::Forked), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(code: i32) -> Trouble {
        sqlite(&rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None), "a.db")
    }

    #[test]
    fn what_another_process_removed_first_is_tried_again() {
        assert!(matches!(trouble(rusqlite::ffi::SQLITE_IOERR_DELETE_NOENT), Trouble::Busy));
        let Trouble::Failed(failure) = trouble(rusqlite::ffi::SQLITE_IOERR_DELETE) else {
            panic!("a file that cannot be removed is an error");
        };
        assert!(failure.message.contains("SQLite's code 2570"), "{failure:?}");
    }
}
