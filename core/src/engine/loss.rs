//! Why leases end before they are released.

use crate::base::error::{Error, ErrorKind};

/// Why a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// It ran out: it was not renewed, or renewals did not get through in time.
    Expired,
    /// It was renewed for as long as `max_hold` or `max_run` allows.
    MaxHold,
    /// Another has the lock or the task, or the task was settled.
    Taken,
    /// Somebody called `break_lease`.
    Broken,
    /// The store has no record of it: it was flushed, or restarted without its data.
    Forgotten,
    /// Another program overwrote or deleted the lock's key.
    Overwritten,
    /// The task was removed, or its queue purged.
    Removed,
    /// The store refused the renewal for good: a right was taken away, or the key changed its type.
    Refused,
    /// The run took longer than its timeout: it has failed.
    TimedOut,
    /// Somebody called `cancel`: the task ends with this run. Its ack is still accepted.
    Cancelled,
    /// The worker stops, and its grace is over: the claim is still renewed, but its handler has to end.
    Stopped,
}

impl LossReason {
    /// The stable name of this reason, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::MaxHold => "max_hold",
            Self::Taken => "taken",
            Self::Broken => "broken",
            Self::Forgotten => "forgotten",
            Self::Overwritten => "overwritten",
            Self::Removed => "removed",
            Self::Refused => "refused",
            Self::TimedOut => "timeout",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
        }
    }

    /// The error that a lease lost for this reason gives.
    pub fn error(self) -> Error {
        let (kind, message) = match self {
            Self::Expired => (ErrorKind::LeaseExpired, "the lease expired"),
            Self::MaxHold => (
                ErrorKind::LeaseExpired,
                "the lease reached max_hold (a claim: max_run) and is not renewed any further",
            ),
            Self::Taken => {
                (ErrorKind::LeaseLost, "the lease ended, and the lock or task now belongs to another holder")
            }
            Self::Broken => (ErrorKind::LeaseLost, "the lease was broken by break_lease"),
            Self::Forgotten => {
                (ErrorKind::LeaseLost, "the store has forgotten the lease (flushed or restarted)")
            }
            Self::Overwritten => {
                (ErrorKind::LeaseLost, "another program overwrote or deleted the lock's key")
            }
            Self::Removed => (ErrorKind::LeaseLost, "the task was removed, or its queue was purged"),
            Self::Refused => (ErrorKind::LeaseLost, "the store refused to renew the lease"),
            Self::TimedOut => {
                (ErrorKind::LeaseExpired, "the run took longer than its timeout, and has failed")
            }
            Self::Cancelled => (ErrorKind::LeaseLost, "the task was cancelled"),
            Self::Stopped => (ErrorKind::LeaseLost, "the worker is stopping, and its handlers must end"),
        };
        Error::new(kind, message)
    }
}
