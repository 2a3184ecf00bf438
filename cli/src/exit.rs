//! The exit codes: stable, and documented in one table.

use stanchion::ErrorKind;

/// Done.
pub const DONE: u8 = 0;
/// The lock stayed busy, as in flock(1).
pub const BUSY: u8 = 1;
/// The arguments are wrong; nothing was done.
pub const USAGE: u8 = 2;
/// The lease was lost while the command ran.
pub const LOST: u8 = 3;
/// The store could not be reached.
pub const UNAVAILABLE: u8 = 4;
/// The store refused.
pub const REFUSED: u8 = 5;
/// The store did not say whether it was done.
pub const UNKNOWN: u8 = 6;
/// The operating system failed, or this program did.
pub const SYSTEM: u8 = 7;
/// The queue is at its limit.
pub const FULL: u8 = 8;
/// There is no such task.
pub const NO_TASK: u8 = 9;
/// The command exists but cannot be run, as in a shell.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command does not exist, as in a shell.
pub const NOT_FOUND: u8 = 127;
/// Added to the number of a signal, as in a shell.
pub const SIGNAL_BASE: i32 = 128;

/// Every code with its meaning.
pub const TABLE: [(&str, &str); 13] = [
    ("0", "done; `run`: CMD exited with 0; `work`: ended as asked, however the tasks ended"),
    (
        "1",
        "the lock is busy, or the limit is used up (--conflict-exit-code changes this); `queues result`: the task is not done yet",
    ),
    ("2", "wrong usage, or an argument or URL that is not allowed; nothing was done"),
    ("3", "the lease was lost: CMD was stopped, or exited with 0 after the loss"),
    ("4", "the store could not be reached, or did not answer in time"),
    (
        "5",
        "the store refused: a right is missing, or it cannot do this, or its data make no sense; `doctor`: a promise \
          does not hold on it",
    ),
    ("6", "the store's reply was lost: it may or may not have been done"),
    ("7", "an error of the operating system, or a defect in stanchion"),
    ("8", "`enqueue`: the queue is at its limit: some tasks were not accepted"),
    ("9", "`queues`: there is no such task, or it has another version; nothing was changed for it"),
    ("126", "`run`, `limit`, `work`: CMD cannot be executed"),
    ("127", "`run`, `limit`, `work`: CMD was not found"),
    (
        "128+n",
        "`run`: CMD was ended by signal n, or stanchion was while it waited for the lock (`limit`: for its turn); `work`: signal n \
         came a second time, and the commands were killed; `enqueue --lines`: signal n came, and what was read was \
         sent; `queues events --follow`: signal n ended it",
    ),
];

/// What a reader has to know besides the table.
pub const REMARK: &str = "Any other code of `run` and `limit` is CMD's own, and CMD may use the same numbers. If CMD fails \
                          by itself, its code is passed on even if the lease was lost as well.";

/// The table as the help shows it.
pub fn help() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, meaning) in TABLE {
        text.push_str(&format!("  {code:6} {meaning}\n"));
    }
    text + REMARK
}

/// The code for an error of the library.
pub fn of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::LockTimeout => BUSY,
        ErrorKind::InvalidArgument => USAGE,
        ErrorKind::LeaseLost | ErrorKind::LeaseExpired | ErrorKind::StaleReceipt => LOST,
        ErrorKind::QueueFull => FULL,
        ErrorKind::StoreUnavailable => UNAVAILABLE,
        ErrorKind::Denied | ErrorKind::WrongType | ErrorKind::Unsupported | ErrorKind::Corrupt => REFUSED,
        ErrorKind::Indeterminate => UNKNOWN,
        _ => SYSTEM,
    }
}
