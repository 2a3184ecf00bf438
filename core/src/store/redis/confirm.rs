//! Grants that count only when replicas have them.

use std::time::Duration;

use redis::{Cmd, Value};

use crate::protocol::{AcquireReply, ExtendReply, Failure, FailureKind, Release, Reply, Request};
use crate::store::redis::codec;
pub use crate::store::url::Confirm;

impl Confirm {
    /// Whether the answer begins or prolongs a lease. Nothing else has to be on a replica.
    pub(crate) fn concerns(request: &Request, value: &Value) -> bool {
        Self::may_concern(request)
            && matches!(
                codec::decode(request, value),
                Ok(Reply::Acquire(AcquireReply::Granted { .. }) | Reply::Extend(ExtendReply::Extended(_)))
            )
    }

    /// Whether an answer to this may begin or prolong a lease.
    pub(crate) fn may_concern(request: &Request) -> bool {
        matches!(request, Request::Acquire(_) | Request::Extend(_))
    }

    /// The question how many replicas have all that this connection has written.
    pub(crate) fn question(self, left: Duration) -> Cmd {
        // Zero would wait for ever; the answer itself takes time, too.
        let millis = self.within.min(left * 3 / 4).as_millis().max(1);
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.replicas).arg(u64::try_from(millis).unwrap_or(u64::MAX));
        wait
    }

    /// The failure that follows from the answer, if too few have it.
    pub(crate) fn judge(self, request: Option<&Request>, answer: &Value, place: &str) -> Result<(), Failure> {
        let Self { replicas, within } = self;
        let confirmed = match answer {
            Value::Int(count) => u32::try_from(*count).unwrap_or(0),
            _ => 0,
        };
        if confirmed >= replicas {
            return Ok(());
        }
        let message = format!(
            "{confirmed} replicas of {place} confirmed the lease within {within:?}, and {replicas} must (min_replicas)"
        );
        let kind = match request {
            // It is given back, as if nothing had happened.
            Some(Request::Acquire(_)) => FailureKind::Refused,
            // It may be prolonged or not; until somebody knows, it is not.
            _ => FailureKind::Lost,
        };
        Err(Failure::new(kind, message))
    }

    /// The request that gives back what too few replicas have. The call may go on with its token.
    pub(crate) fn undo(request: &Request) -> Option<Request> {
        let Request::Acquire(acquire) = request else { return None };
        Some(Request::Release(Release {
            name: acquire.name.clone(),
            token: acquire.token.clone(),
            cooldown: None,
            acquire_resent: false,
            own_fence: None,
            foreign_share: false,
        }))
    }
}
