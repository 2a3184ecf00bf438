//! One error type for every store and every language.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::base::shown::told;

/// What went wrong, in the words every binding uses. More kinds may be added: `tests/vectors/errors.json` lists them, and
/// what compares each language and the command line with that list says where else a new one belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The lock stayed busy for the whole wait.
    LockTimeout,
    /// The lease is no longer ours: taken, broken, overwritten, or forgotten by the store.
    LeaseLost,
    /// The lease ran out; nobody is known to have taken the lock since. A kind of `LeaseLost`.
    LeaseExpired,
    /// A newer delivery of the task exists, or it was settled otherwise.
    StaleReceipt,
    /// The queue is at its limit.
    QueueFull,
    /// An argument is outside what is allowed; nothing was sent.
    InvalidArgument,
    /// The store or its version cannot do this.
    Unsupported,
    /// The store could not be reached, or refused to work, within the time given.
    StoreUnavailable,
    /// The request may or may not have been carried out.
    Indeterminate,
    /// The key holds a value of another kind.
    WrongType,
    /// The store's user lacks a right.
    Denied,
    /// The store answered something that makes no sense, or its file is damaged.
    Corrupt,
    /// The caller gave up.
    Cancelled,
    /// The client was closed.
    Closed,
    /// The object was made before a fork and belongs to the parent process.
    Forked,
    /// A defect in this library.
    Internal,
}

impl ErrorKind {
    /// The stable number of this kind, the same in every language; always negative.
    pub const fn code(self) -> i32 {
        match self {
            Self::LockTimeout => -1,
            Self::LeaseLost => -2,
            Self::LeaseExpired => -3,
            Self::StaleReceipt => -4,
            Self::QueueFull => -5,
            Self::InvalidArgument => -6,
            Self::Unsupported => -7,
            Self::StoreUnavailable => -8,
            Self::Indeterminate => -9,
            Self::WrongType => -10,
            Self::Denied => -11,
            Self::Corrupt => -12,
            Self::Cancelled => -13,
            Self::Closed => -14,
            Self::Forked => -15,
            Self::Internal => -16,
        }
    }

    /// The stable name of this kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LockTimeout => "LockTimeout",
            Self::LeaseLost => "LeaseLost",
            Self::LeaseExpired => "LeaseExpired",
            Self::StaleReceipt => "StaleReceipt",
            Self::QueueFull => "QueueFull",
            Self::InvalidArgument => "InvalidArgument",
            Self::Unsupported => "Unsupported",
            Self::StoreUnavailable => "StoreUnavailable",
            Self::Indeterminate => "Indeterminate",
            Self::WrongType => "WrongType",
            Self::Denied => "Denied",
            Self::Corrupt => "Corrupt",
            Self::Cancelled => "Cancelled",
            Self::Closed => "Closed",
            Self::Forked => "Forked",
            Self::Internal => "Internal",
        }
    }
}

/// The holder in messages about a busy lock when the store did not return one.
pub(crate) const BY_ANOTHER: &str = "held by another";

/// A time for messages: two digits are enough for people.
pub(crate) fn brief(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let scale = match seconds {
        0.0..0.1 => 1_000.0,
        0.1..1.0 => 100.0,
        1.0..10.0 => 10.0,
        _ => 1.0,
    };
    format!("{} s", (seconds * scale).round() / scale)
}

/// What is wrong with a time that is not between its least and a year.
pub(crate) fn not_between(what: &str, given: Duration, least: &str) -> String {
    let given = if given.is_zero() { "0 s".into() } else { format!("{given:?}") };
    format!("{what} {given} is not between {least} and 365 days")
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error with its kind, the operation and the name it concerns. Holds no secret.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    operation: Option<&'static str>,
    name: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Inner { kind, message, operation: None, name: None, source: None }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// The store replied to a request with the reply of another verb.
    pub(crate) fn unexpected_reply() -> Self {
        Self::new(ErrorKind::Corrupt, "the store sent an unexpected reply type")
    }

    pub(crate) fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    /// Adds which operation on which name failed. The first call wins: it is the closest to the cause.
    pub(crate) fn during(mut self, operation: &'static str, name: &str) -> Self {
        self.0.operation.get_or_insert(operation);
        self.0.name.get_or_insert_with(|| told(name));
        self
    }

    /// Like [`Error::during`], but replaces an operation that is already set.
    pub(crate) fn rather_during(mut self, operation: &'static str, name: &str) -> Self {
        self.0.operation = Some(operation);
        self.0.name = Some(told(name));
        self
    }

    /// A copy for another result of the same request; the cause stays with the first.
    pub(crate) fn again(&self) -> Self {
        let Inner { kind, message, operation, name, .. } = &*self.0;
        Self(Box::new(Inner {
            kind: *kind,
            message: message.clone(),
            operation: *operation,
            name: name.clone(),
            source: None,
        }))
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed, such as `acquire`.
    pub fn operation(&self) -> Option<&'static str> {
        self.0.operation
    }

    /// The lock's name, if the error concerns one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// The explanation, without operation and name.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the same call may succeed later without any other change.
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::LockTimeout | ErrorKind::StoreUnavailable | ErrorKind::QueueFull)
    }

    /// Whether the lease is gone, by expiry or otherwise.
    pub fn is_lost(&self) -> bool {
        matches!(self.0.kind, ErrorKind::LeaseLost | ErrorKind::LeaseExpired)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.0.operation {
            write!(f, "{operation}")?;
            if let Some(name) = self.0.name.as_deref().filter(|name| !name.is_empty()) {
                write!(f, " {name:?}")?;
            }
            write!(f, ": ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_operation_and_lock() {
        let error = Error::new(ErrorKind::LockTimeout, "busy for 5 s").during("acquire", "invoice:42");
        assert_eq!(error.to_string(), "acquire \"invoice:42\": busy for 5 s");
        assert_eq!(error.name(), Some("invoice:42"));
    }

    #[test]
    fn the_first_context_stays() {
        let error = Error::invalid("x").during("acquire", "a").during("hold", "b");
        assert_eq!(error.operation(), Some("acquire"));
    }

    #[test]
    fn times_have_two_digits() {
        let told = [299.94603, 9.96, 1.25, 0.29994603, 0.0123, 0.0].map(Duration::from_secs_f64).map(brief);
        assert_eq!(told, ["300 s", "10 s", "1.3 s", "0.3 s", "0.012 s", "0 s"]);
    }

    #[test]
    fn expired_is_a_kind_of_lost() {
        assert!(Error::new(ErrorKind::LeaseExpired, "").is_lost());
        assert!(Error::new(ErrorKind::LeaseLost, "").is_lost());
        assert!(!Error::new(ErrorKind::Indeterminate, "").is_lost());
    }
}
