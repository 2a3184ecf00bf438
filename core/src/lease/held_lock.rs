//! A lease on one lock, and its verbs: release, extend, downgrade, upgrade. Both `Lease` types are made of these.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::base::name::{LockKind, LockName};
use crate::base::token::Token;
use crate::base::wake::locked;
use crate::engine::acquire::{Grant, LockPlan};
use crate::engine::call::{Answer, CallMachine};
use crate::engine::deadline;
use crate::engine::lease::{LeaseTerms, Status};
use crate::engine::leased::{Leased, LockLease, Share};
use crate::engine::loss::LossReason;
use crate::engine::release::{Company, judge_release, judge_unanswered};
use crate::lease::lease_handle::LeaseHandle;
use crate::protocol::{
    Downgrade, DowngradeReply, Fence, Release, Reply, Request, ResumeReply, StoreValue, Upgrade, UpgradeReply,
};
use crate::session::Live;
use crate::session::lease_cell::{Account, LeaseCell};
use crate::session::metrics::Ended;
use crate::session::options::{Extent, checked_ttl};
use crate::session::tracked_lease::{TrackedLease, check_status};

pub(crate) struct HeldLock {
    pub(crate) kept: TrackedLease,
    pub(crate) lock: LockLease,
}

/// A release on its way, with what is needed to judge its reply.
pub(crate) struct Releasing {
    pub(crate) machine: CallMachine,
    fence: Fence,
    company: Company,
    deadline: Moment,
    name: LockName,
    leaving: Leaving,
}

/// Counts how the lease ended, also if no reply comes.
struct Leaving {
    cell: Arc<LeaseCell>,
    at: Moment,
}

/// A cached value that was computed under a lease, and for how long it is fresh and stale.
pub(crate) struct Computed {
    pub(crate) value: Arc<[u8]>,
    pub(crate) ttl: Duration,
    pub(crate) stale: Duration,
    pub(crate) took: Duration,
}

impl HeldLock {
    /// Starts a granted lease.
    pub(crate) fn granted(live: &Arc<Live>, plan: &LockPlan, token: Token, grant: &Grant) -> Self {
        live.saw_fence(&plan.name, grant.fence);
        let lock = LockLease::granted(plan, token, grant);
        let hold_until = plan.max_hold.map(|max_hold| live.clock.now() + max_hold);
        Self::start(live, lock, plan.ttl, grant.deadline, hold_until)
    }

    /// Starts a lease from the reply to a resume; fails if the token was not swapped.
    pub(crate) fn resumed(
        live: &Arc<Live>,
        handle: &LeaseHandle,
        token: Token,
        answer: &Answer,
    ) -> Result<Self, Error> {
        let name = handle.name(&live.prefixes)?;
        let failed = |error: Error| Err(error.during("resume", name.as_str()));
        match &answer.reply {
            Reply::Resume(ResumeReply::Resumed { fence, ttl, permits }) => {
                live.saw_fence(&name, *fence);
                let now = live.clock.now();
                let deadline = deadline(answer.sent, *ttl);
                if now >= deadline {
                    return failed(Error::new(
                        ErrorKind::LeaseExpired,
                        "the lease expired while it was being resumed",
                    ));
                }
                let lock = LockLease {
                    name: name.clone(),
                    token,
                    granted: *fence,
                    acquire_resent: answer.copies > 1,
                    foreign_share: live.settings.gives_turns(&name),
                    share: permits.map(Share::new),
                    owner: live.owner(),
                };
                let hold_until = handle.max_hold().map(|max_hold| now + max_hold);
                Ok(Self::start(live, lock, handle.ttl(), deadline, hold_until))
            }
            _ => failed(Error::new(
                ErrorKind::LeaseLost,
                "the handle was used already, or its lease has ended; a handle works once",
            )),
        }
    }

    fn start(
        live: &Arc<Live>,
        lock: LockLease,
        ttl: Duration,
        deadline: Moment,
        hold_until: Option<Moment>,
    ) -> Self {
        let terms =
            LeaseTerms { leased: Leased::Lock(lock.clone()), ttl, deadline, hold_until, timeout: None };
        let account = Account::Lock(Arc::clone(&live.meters));
        Self { kept: TrackedLease::start(live, terms, account), lock }
    }

    /// All leases on locks that the keeper tracks for a client.
    pub(crate) fn all(live: &Arc<Live>) -> Vec<Self> {
        let held = |kept: TrackedLease| {
            let leased = locked(&kept.cell.state).leased().clone();
            match leased {
                Leased::Lock(lock) => Some(Self { kept, lock }),
                Leased::Task(_) => None,
            }
        };
        TrackedLease::all(live).filter_map(held).collect()
    }

    /// Fails if the lease is known to be gone.
    pub(crate) fn check(&self, operation: &'static str) -> Result<(), Error> {
        self.kept.check().map_err(|error| self.during(operation, error))
    }

    /// Ends the lease on our side, and returns the release to send. It is sent for an expired lease, too: only the store
    /// knows whether another has taken the lock.
    pub(crate) fn release(&self, cooldown: Option<Duration>) -> Result<Releasing, Error> {
        let Self { kept, lock } = self;
        // First of all: in a forked child the mutex of the state may have been inherited locked.
        kept.live.check_generation().map_err(|error| self.during("release", error))?;
        let mut state = locked(&kept.cell.state);
        let now = kept.live.clock.now();
        if !matches!(state.status(now), Status::Lost(LossReason::Expired | LossReason::MaxHold)) {
            check_status(state.status(now)).map_err(|error| self.during("release", error))?;
        }
        let (deadline, own_fence) = (state.deadline(), state.fence_to_check(now));
        state.end();
        drop(state);
        kept.ended();
        let request = Request::Release(Release {
            name: lock.name.clone(),
            token: lock.token.clone(),
            cooldown,
            acquire_resent: lock.acquire_resent,
            own_fence,
            foreign_share: lock.foreign_share,
        });
        Ok(self.releasing(request, now, deadline))
    }

    /// Ends the lease on our side, and returns the request that stores the value and gives the lock back.
    pub(crate) fn store_value(&self, computed: Computed) -> Result<Releasing, Error> {
        let Self { kept, lock } = self;
        self.check("store_value")?;
        let now = kept.live.clock.now();
        let mut state = locked(&kept.cell.state);
        let deadline = state.deadline();
        state.end();
        drop(state);
        kept.ended();
        let request = Request::StoreValue(StoreValue {
            name: lock.name.clone(),
            token: lock.token.clone(),
            fence: lock.fence(),
            value: computed.value,
            ttl: computed.ttl,
            stale: computed.stale,
            took: computed.took,
            acquire_resent: lock.acquire_resent,
        });
        Ok(self.releasing(request, now, deadline))
    }

    /// Without a reply the lock is given back in the background: a value that cannot be stored leaves the computation to
    /// the next.
    fn releasing(&self, request: Request, at: Moment, deadline: Moment) -> Releasing {
        let Self { kept, lock } = self;
        let mut machine = kept.live.call(request);
        if let Some(cleanup) = self.cleanup() {
            machine = machine.or_else(cleanup);
        }
        let (fence, company, name) = (lock.fence(), lock.company(), lock.name.clone());
        let leaving = Leaving { cell: Arc::clone(&kept.cell), at };
        Releasing { machine, fence, company, deadline, name, leaving }
    }

    /// Fails if it cannot be released with this cooldown.
    pub(crate) fn check_cooldown(&self, cooldown: Duration) -> Result<(), Error> {
        let checked = match self.lock.share {
            Some(_) => Err(Error::invalid("only an exclusive lock can be released with a cooldown")),
            None => checked_ttl("cooldown", cooldown).map(drop),
        };
        checked.map_err(|error| self.during("release", error))
    }

    /// The request that gives back all permits but one.
    pub(crate) fn downgrade(&self) -> Result<CallMachine, Error> {
        self.check("downgrade")?;
        let LockLease { name, token, share, .. } = &self.lock;
        let share = share.as_ref().filter(|_| name.kind() == LockKind::ReadWrite).ok_or_else(|| {
            self.during("downgrade", Error::invalid("only a lease of a read-write lock can be downgraded"))
        })?;
        let fence = self.lock.known_fence();
        if fence.is_none() {
            share.asks_blindly();
        }
        let (name, token) = (name.clone(), token.clone());
        let request = Request::Downgrade(Downgrade { name, token, weight: 1, fence });
        Ok(self.kept.live.call(request))
    }

    /// Applies the reply to a downgrade.
    pub(crate) fn downgraded(&self, answer: &Answer) -> Result<(), Error> {
        match (&answer.reply, &self.lock.share) {
            (Reply::Downgrade(DowngradeReply::Downgraded), Some(share)) => {
                share.keep(1);
                Ok(())
            }
            _ => Err(self.during("downgrade", Error::new(ErrorKind::LeaseLost, "the lease has ended"))),
        }
    }

    /// The request that takes all permits, if nobody else has any.
    pub(crate) fn upgrade(&self) -> Result<CallMachine, Error> {
        self.check("upgrade")?;
        let LockLease { name, token, share, .. } = &self.lock;
        let share = share.as_ref().filter(|_| name.kind() == LockKind::ReadWrite).ok_or_else(|| {
            self.during("upgrade", Error::invalid("only a lease of a read-write lock can be upgraded"))
        })?;
        if share.may_be_downgraded() {
            let message = "an earlier downgrade had no reply and may still be carried out; release the lease";
            return Err(self.during("upgrade", Error::new(ErrorKind::Indeterminate, message)));
        }
        share.asks_for_all();
        let limit = share.permits().limit;
        let request = Request::Upgrade(Upgrade { name: name.clone(), token: token.clone(), limit });
        Ok(self.kept.live.call(request))
    }

    /// Applies the reply to an upgrade, and returns whether the lease is a writer's.
    pub(crate) fn upgraded(&self, answer: Result<Answer, Error>) -> Result<bool, Error> {
        let is_over = match &answer {
            Ok(answer) => answer.copies == 1,
            Err(error) => error.kind() == ErrorKind::StoreUnavailable,
        };
        if let Some(share) = self.lock.share.as_ref().filter(|_| is_over) {
            share.asked_for_all();
        }
        match (&answer?.reply, &self.lock.share) {
            (Reply::Upgrade(UpgradeReply::Upgraded(fence)), Some(share)) => {
                self.kept.live.saw_fence(&self.lock.name, *fence);
                share.has_all(*fence);
                // It may have ended meanwhile.
                self.check("upgrade").map(|()| true)
            }
            (Reply::Upgrade(UpgradeReply::Busy), Some(_)) => Ok(false),
            _ => Err(self.during("upgrade", Error::new(ErrorKind::LeaseLost, "the lease has ended"))),
        }
    }

    /// The request that prolongs the lease.
    pub(crate) fn extend(&self, extent: Extent) -> Result<CallMachine, Error> {
        self.kept.extend(extent).map_err(|error| self.during("extend", error))
    }

    /// Applies the reply to an extension.
    pub(crate) fn extended(&self, extent: Extent, answer: Answer) -> Result<(), Error> {
        self.kept.extended(extent, answer).map_err(|error| self.during("extend", error))
    }

    /// Stops renewing the lease, and returns it as a handle for another process.
    pub(crate) fn detach(&self) -> LeaseHandle {
        let state = locked(&self.kept.cell.state);
        let now = self.kept.live.clock.now();
        let max_hold = state.hold_until().map(|limit| limit.since(now).max(state.ttl()));
        let handle = LeaseHandle::new(&self.lock.name, self.lock.token.clone(), state.ttl(), max_hold);
        drop(state);
        self.kept.end(Ended::Detached);
        handle
    }

    pub(super) fn cleanup(&self) -> Option<Request> {
        Leased::Lock(self.lock.clone()).cleanup()
    }

    fn during(&self, operation: &'static str, error: Error) -> Error {
        error.during(operation, self.lock.name.as_str())
    }
}

impl Releasing {
    /// Whether the lease was ours until it was released.
    pub(crate) fn judge(&self, answer: Result<Answer, Error>) -> Result<(), Error> {
        let judged = match answer {
            Ok(answer) => judge_release(&answer, self.fence, self.company, self.deadline),
            Err(failure) => Err(judge_unanswered(self.leaving.at, self.deadline, failure)),
        };
        self.leaving.cell.count(Ended::by_release(&judged), self.leaving.at);
        judged.map_err(|error| error.during("release", self.name.as_str()))
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.cell.count(Ended::Unconfirmed, self.at);
    }
}
