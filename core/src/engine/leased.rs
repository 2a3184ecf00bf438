//! What a lease is on: a lock, or a task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::engine::release::{Company, is_forgotten, known_loss};
use crate::name::{LockName, QueueName, TaskId};
use crate::token::Token;
use crate::verbs::{
    Absence, Extend, ExtendClaim, ExtendClaimReply, ExtendReply, Fence, Leave, Permits, QueueReply,
    QueueRequest, QueueVerb, Receipt, Reply, Request,
};

use super::lease::LossReason;

/// What a lease is on, with what proves that it is ours.
#[derive(Clone, Debug)]
pub enum Leased {
    /// A lock.
    Lock(LockLease),
    /// A delivery of a task.
    Task(TaskLease),
}

/// A granted lock.
#[derive(Clone, Debug)]
pub struct LockLease {
    /// Which lock.
    pub name: LockName,
    /// The secret.
    pub token: Token,
    /// The number.
    pub fence: Fence,
    /// Whether another copy of the acquire may be on its way.
    pub acquire_resent: bool,
    /// As in [`Leave`].
    pub foreign_share: bool,
    /// What it has of a lock that is not exclusive.
    pub share: Option<Share>,
}

/// A lease's part of a read-write lock or a semaphore.
#[derive(Clone, Debug)]
pub struct Share {
    /// Shared by all copies of the lease: a downgrade changes it.
    weight: Arc<AtomicU32>,
    limit: u32,
}

impl Share {
    /// What was granted.
    pub fn new(permits: Permits) -> Self {
        Self { weight: Arc::new(AtomicU32::new(permits.weight)), limit: permits.limit }
    }

    /// What the lease has now.
    pub fn permits(&self) -> Permits {
        Permits { weight: self.weight.load(Ordering::Relaxed), limit: self.limit }
    }

    /// Notes that the rest was given back.
    pub fn keep(&self, weight: u32) {
        self.weight.store(weight, Ordering::Relaxed);
    }
}

impl LockLease {
    /// Who else may hold the lock at the same time.
    pub fn company(&self) -> Company {
        match &self.share {
            Some(share) if !share.permits().excludes_all() => Company::Shared,
            _ => Company::Alone,
        }
    }
}

/// A claimed task.
#[derive(Clone, Debug)]
pub struct TaskLease {
    /// Of which queue.
    pub queue: QueueName,
    /// Which task.
    pub id: TaskId,
    /// The delivery.
    pub receipt: Receipt,
}

/// What an answer to an extension says.
#[derive(Debug)]
pub(super) enum Extension {
    Extended(Duration),
    Ended(LossReason),
}

impl Leased {
    /// The name of the lock or of the task's queue.
    pub fn name(&self) -> &str {
        match self {
            Self::Lock(lock) => lock.name.as_str(),
            Self::Task(task) => task.queue.as_str(),
        }
    }

    /// The request that prolongs it.
    pub(super) fn extend(&self, ttl: Duration) -> Request {
        match self {
            Self::Lock(lock) => {
                Request::Extend(Extend { name: lock.name.clone(), token: lock.token.clone(), ttl })
            }
            Self::Task(task) => Request::Queue(QueueRequest {
                queue: task.queue.clone(),
                verb: QueueVerb::ExtendClaim(ExtendClaim {
                    id: task.id.clone(),
                    receipt: task.receipt,
                    lease: ttl,
                }),
            }),
        }
    }

    /// The request that gives it back without asking for the truth. A task comes back by itself when its
    /// lease ends, and that counts as an attempt.
    pub fn farewell(&self) -> Option<Request> {
        match self {
            Self::Lock(lock) => Some(Request::Leave(Leave {
                name: lock.name.clone(),
                token: lock.token.clone(),
                foreign_share: lock.foreign_share,
            })),
            Self::Task(_) => None,
        }
    }

    /// Reads the answer to [`Leased::extend`].
    pub(super) fn extension(&self, reply: &Reply) -> Extension {
        match (self, reply) {
            (Self::Lock(_), Reply::Extend(ExtendReply::Extended(left))) => Extension::Extended(*left),
            (Self::Lock(lock), Reply::Extend(ExtendReply::Gone(absence))) => {
                Extension::Ended(reason(absence, lock))
            }
            (Self::Task(_), Reply::Queue(QueueReply::ExtendClaim(reply))) => match reply {
                ExtendClaimReply::Extended(left) => Extension::Extended(*left),
                ExtendClaimReply::Expired => Extension::Ended(LossReason::Expired),
                ExtendClaimReply::Stale => Extension::Ended(LossReason::Taken),
                ExtendClaimReply::Gone => Extension::Ended(LossReason::Removed),
            },
            _ => Extension::Ended(LossReason::Refused),
        }
    }
}

/// Why a lock is no longer ours.
fn reason(absence: &Absence, lock: &LockLease) -> LossReason {
    match (known_loss(absence, lock.fence, lock.company()), lock.company()) {
        (Some(_), _) if is_forgotten(absence, lock.fence) => LossReason::Forgotten,
        (Some(_), _) => LossReason::Broken,
        (None, Company::Alone) if absence.fence > lock.fence => LossReason::Taken,
        (None, _) => LossReason::Overwritten,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::engine::deadline;
    use crate::engine::lease::{LeaseState, LeaseTerms, Need, Status};
    use crate::error::ErrorKind;
    use crate::name::Prefixes;
    use crate::store::{Failure, FailureKind};

    const LEASE: Duration = Duration::from_secs(30);

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn claim(hold_until: Option<Moment>) -> LeaseState {
        let leased = Leased::Task(TaskLease {
            queue: Prefixes::parse("Lock:", "Queue:").unwrap().queue_name("q").unwrap(),
            id: TaskId::parse("t").unwrap(),
            receipt: 7,
        });
        let terms = LeaseTerms { leased, ttl: LEASE, deadline: deadline(at(0), LEASE), hold_until };
        LeaseState::new(terms, at(0))
    }

    fn answer(reply: ExtendClaimReply) -> Result<Reply, Failure> {
        Ok(Reply::Queue(QueueReply::ExtendClaim(reply)))
    }

    #[test]
    fn a_claim_is_renewed_after_a_third_under_its_receipt() {
        let mut claim = claim(Some(at(3_600_000)));
        let Need::Renew(Request::Queue(QueueRequest { verb: QueueVerb::ExtendClaim(extend), .. })) =
            claim.need(at(10_000))
        else {
            panic!("no renewal");
        };
        assert_eq!((extend.id.as_str(), extend.receipt, extend.lease), ("t", 7, LEASE));
        claim.extended(at(10_001), at(10_000), &answer(ExtendClaimReply::Extended(LEASE)));
        assert_eq!(claim.deadline(), deadline(at(10_000), LEASE));
        assert_eq!(claim.due(), at(20_000));
    }

    #[test]
    fn a_refused_renewal_is_a_loss_with_its_reason() {
        for (reply, reason) in [
            (ExtendClaimReply::Expired, LossReason::Expired),
            (ExtendClaimReply::Stale, LossReason::Taken),
            (ExtendClaimReply::Gone, LossReason::Removed),
        ] {
            let mut claim = claim(Some(at(3_600_000)));
            assert!(matches!(claim.extended(at(10), at(9), &answer(reply)), Need::Announce(None)));
            assert_eq!(claim.status(at(10)), Status::Lost(reason));
        }
        let mut refused = claim(Some(at(3_600_000)));
        let denied = Failure::new(FailureKind::Final(ErrorKind::Denied), "no");
        refused.extended(at(10), at(9), &Err(denied));
        assert_eq!(refused.status(at(10)), Status::Lost(LossReason::Refused));
    }

    #[test]
    fn a_claim_that_ends_is_announced_and_comes_back_by_itself() {
        let mut fixed = claim(None);
        assert!(matches!(fixed.need(at(29_698)), Need::Announce(None)));
        assert_eq!(fixed.status(at(29_698)), Status::Lost(LossReason::Expired));

        let mut late = claim(Some(at(3_600_000)));
        assert!(matches!(late.need(at(29_000)), Need::Renew(_)));
        let need = late.extended(at(29_700), at(29_000), &answer(ExtendClaimReply::Extended(LEASE)));
        assert!(matches!(need, Need::Announce(None)), "a late answer revives nothing");
    }

    #[test]
    fn max_run_has_its_own_reason() {
        let mut claim = claim(Some(at(40_000)));
        assert!(matches!(claim.need(at(10_000)), Need::Renew(_)));
        claim.extended(at(10_001), at(10_000), &answer(ExtendClaimReply::Extended(LEASE)));
        assert!(matches!(claim.need(at(20_000)), Need::Nothing(_)), "what is left of max_run is less");
        assert_eq!(claim.status(at(40_000)), Status::Lost(LossReason::MaxHold));
    }
}
