//! Why a request has no reply, and what may be done about it.

use crate::base::error::{Error, ErrorKind};

/// Why a request has no reply.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What happened and what to do next, without secrets.
    pub message: String,
}

/// What is known about a request that has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It was never sent: no connection.
    NotSent,
    /// It was sent, and may have been carried out.
    Lost,
    /// The store refused it for now and changed nothing.
    Refused,
    /// It may have been carried out, and must not be sent again: what takes it back may come late, and would end what
    /// a later sending is granted.
    Spent,
    /// The store refuses it for good, with this kind of error.
    Final(ErrorKind),
}

impl Failure {
    /// A failure with its explanation.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Whether the request may have been carried out, in full or in part: a script ends where a right is
    /// missing, and an answer that makes no sense is an answer.
    pub fn may_be_done(&self) -> bool {
        let in_part = matches!(
            self.kind,
            FailureKind::Final(ErrorKind::Denied | ErrorKind::Corrupt | ErrorKind::Internal)
        );
        in_part || matches!(self.kind, FailureKind::Lost | FailureKind::Spent)
    }

    /// Whether the same request may be sent again.
    pub fn is_retryable(&self) -> bool {
        !matches!(self.kind, FailureKind::Final(_) | FailureKind::Spent)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Final(kind) => kind,
            FailureKind::NotSent | FailureKind::Lost | FailureKind::Refused | FailureKind::Spent => {
                ErrorKind::StoreUnavailable
            }
        };
        Self::new(kind, failure.message)
    }
}
