//! What a lease is on: a lock, or a task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::base::name::{LockName, QueueName, TaskId};
use crate::base::token::Token;
use crate::engine::acquire::{Grant, LockPlan};
use crate::engine::release::{Company, is_forgotten, known_loss};
use crate::protocol::{
    Absence, Extend, ExtendClaim, ExtendClaimReply, ExtendReply, Fence, Granted, Leave, Permits, QueueReply,
    QueueRequest, QueueVerb, Receipt, Reply, Request, Settle, Settlement, Verdict,
};

use crate::engine::loss::LossReason;

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
    /// The number of the grant; see [`LockLease::fence`].
    pub granted: Fence,
    /// Whether another copy of the acquire may be on its way.
    pub acquire_resent: bool,
    /// Whether other programs' lockers get a share of the grants.
    pub foreign_share: bool,
    /// What it has of a lock that is not exclusive.
    pub share: Option<Share>,
    /// Shown by `holder`.
    pub owner: Arc<str>,
}

/// A lease's part of a read-write lock or a semaphore.
#[derive(Clone, Debug)]
pub struct Share {
    limit: u32,
    changes: Arc<Changes>,
}

/// What a downgrade or an upgrade changes; shared by all copies of the lease.
#[derive(Debug)]
struct Changes {
    weight: AtomicU32,
    /// Zero until an upgrade gives a new one.
    fence: AtomicU64,
    /// Upgrades of which a copy may still come: the store may know the lease by a later fence.
    upgrades: AtomicU32,
    /// A downgrade was sent without a fence: if it came late, it would end what a later upgrade has given.
    blind: AtomicBool,
}

impl Share {
    /// What was granted.
    pub fn new(permits: Permits) -> Self {
        let weight = AtomicU32::new(permits.weight);
        let (fence, upgrades, blind) = (AtomicU64::new(0), AtomicU32::new(0), AtomicBool::new(false));
        let changes = Changes { weight, fence, upgrades, blind };
        Self { limit: permits.limit, changes: Arc::new(changes) }
    }

    /// What the lease has now.
    pub fn permits(&self) -> Permits {
        Permits { weight: self.changes.weight.load(Ordering::Relaxed), limit: self.limit }
    }

    /// Notes that the rest was given back.
    pub fn keep(&self, weight: u32) {
        self.changes.weight.store(weight, Ordering::Relaxed);
    }

    /// Notes that the rest is to be given back, whatever fence the store knows the lease by.
    pub fn asks_blindly(&self) {
        self.changes.blind.store(true, Ordering::Relaxed);
    }

    /// Whether a late downgrade may take back what an upgrade gives.
    pub fn may_be_downgraded(&self) -> bool {
        self.changes.blind.load(Ordering::Relaxed)
    }

    /// Notes that all permits are asked for, which the store may give without our hearing of it, also late.
    pub fn asks_for_all(&self) {
        self.changes.upgrades.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that no copy of such a request is on its way any more.
    pub fn asked_for_all(&self) {
        self.changes.upgrades.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that it has all permits now, under a new fence.
    pub fn has_all(&self, fence: Fence) {
        self.changes.fence.store(fence.get(), Ordering::Relaxed);
        self.keep(self.limit);
    }

    /// Whether the store may know the lease by a later fence. A writer's stays as it is.
    fn is_unsure(&self) -> bool {
        self.changes.upgrades.load(Ordering::Relaxed) > 0 && !self.permits().excludes_all()
    }
}

impl LockLease {
    /// What a plan was granted.
    pub(crate) fn granted(plan: &LockPlan, token: Token, grant: &Grant) -> Self {
        Self {
            name: plan.name.clone(),
            token,
            granted: grant.fence,
            acquire_resent: grant.resent,
            foreign_share: plan.foreign_share,
            share: plan.permits.map(Share::new),
            owner: Arc::clone(&plan.owner),
        }
    }

    /// The number of the grant, or of the last upgrade.
    pub fn fence(&self) -> Fence {
        let upgraded = self.share.as_ref().map(|share| share.changes.fence.load(Ordering::Relaxed));
        upgraded.map(Fence::new).filter(|fence| *fence != Fence::NONE).unwrap_or(self.granted)
    }

    /// The fence that the store has for this lease, unless an upgrade left that open.
    pub fn known_fence(&self) -> Option<Fence> {
        let unsure = self.share.as_ref().is_some_and(Share::is_unsure);
        (!unsure).then(|| self.fence())
    }

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

impl TaskLease {
    /// The request that settles it.
    pub fn settled(self, verdict: Verdict) -> Request {
        let Self { queue, id, receipt } = self;
        let verb = QueueVerb::Settle(Settle { items: Arc::new([Settlement { id, receipt, verdict }]) });
        Request::Queue(QueueRequest { queue, verb })
    }
}

/// The result of an extension, by its reply.
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

    /// The request that prolongs it; that of a lock may set its end exactly.
    pub(super) fn extend(&self, ttl: Duration, exact: bool) -> Request {
        match self {
            Self::Lock(lock) => Request::Extend(Extend {
                name: lock.name.clone(),
                token: lock.token.clone(),
                ttl,
                granted: Some(Granted { fence: lock.fence(), owner: Arc::clone(&lock.owner) }),
                exact,
                again: false,
            }),
            Self::Task(task) => Request::Queue(QueueRequest {
                queue: task.queue.clone(),
                verb: QueueVerb::ExtendClaim(ExtendClaim {
                    id: task.id.clone(),
                    receipt: task.receipt,
                    lease: ttl,
                    progress: None,
                }),
            }),
        }
    }

    /// The request that gives it back without asking for the truth. A task comes back by itself when its
    /// lease ends, and that counts as an attempt.
    pub fn cleanup(&self) -> Option<Request> {
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
                ExtendClaimReply::Cancelled => Extension::Ended(LossReason::Cancelled),
                ExtendClaimReply::Stale => Extension::Ended(LossReason::Taken),
                ExtendClaimReply::Gone => Extension::Ended(LossReason::Removed),
            },
            _ => Extension::Ended(LossReason::Refused),
        }
    }
}

/// Why a lock is no longer ours.
fn reason(absence: &Absence, lock: &LockLease) -> LossReason {
    match (known_loss(absence, lock.fence(), lock.company()), lock.company()) {
        (Some(_), _) if is_forgotten(absence, lock.fence()) => LossReason::Forgotten,
        (Some(_), _) => LossReason::Broken,
        (None, Company::Alone) if absence.fence > lock.fence() => LossReason::Taken,
        (None, _) => LossReason::Overwritten,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Moment;
    use crate::base::error::ErrorKind;
    use crate::base::name::Prefixes;
    use crate::engine::deadline;
    use crate::engine::lease::{LeaseState, LeaseTerms, Need, Status};
    use crate::protocol::{Failure, FailureKind};

    const LEASE: Duration = Duration::from_secs(30);

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn claim(hold_until: Option<Moment>) -> LeaseState {
        let leased = Leased::Task(TaskLease {
            queue: Prefixes::parse("Lock:", "Queue:").unwrap().queue_name("q").unwrap(),
            id: TaskId::parse("t").unwrap(),
            receipt: Receipt::new(7),
        });
        let terms =
            LeaseTerms { leased, ttl: LEASE, deadline: deadline(at(0), LEASE), hold_until, timeout: None };
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
        assert_eq!((extend.id.as_str(), extend.receipt, extend.lease), ("t", Receipt::new(7), LEASE));
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
