//! A lease in the hands of its owner: what the `Lease` types of both faces wrap.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Moment;
use crate::engine::acquire::Grant;
use crate::engine::call::{Answer, CallMachine};
use crate::engine::lease::{LeaseState, LeaseTerms, LossReason, Need, Status};
use crate::engine::release::judge_release;
use crate::engine::{Dice, deadline};
use crate::error::{Error, ErrorKind};
use crate::handle::LeaseHandle;
use crate::lease_cell::LeaseCell;
use crate::name::LockName;
use crate::options::{LockPlan, checked_ttl};
use crate::session::Live;
use crate::token::Token;
use crate::verbs::{Fence, Release, Reply, Request, ResumeReply};
use crate::wake::locked;

#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) live: Arc<Live>,
    pub(crate) cell: Arc<LeaseCell>,
    pub(crate) name: LockName,
    pub(crate) token: Token,
    pub(crate) fence: Fence,
    id: u64,
}

/// A release on its way, with what is needed to judge its answer.
pub(crate) struct Releasing {
    pub(crate) machine: CallMachine,
    fence: Fence,
    deadline: Moment,
    name: LockName,
}

impl Held {
    /// Starts a granted lease.
    pub(crate) fn granted(
        live: &Arc<Live>,
        name: &LockName,
        plan: &LockPlan,
        token: Token,
        grant: &Grant,
    ) -> Self {
        live.saw_fence(name, grant.fence);
        let now = live.clock.now();
        let terms = LeaseTerms {
            name: name.clone(),
            token,
            fence: grant.fence,
            ttl: plan.ttl,
            deadline: grant.deadline,
            hold_until: plan.max_hold.map(|max_hold| now + max_hold),
            acquire_resent: grant.resent,
            foreign_share: live.settings.foreign_share,
        };
        Self::start(live, terms, now)
    }

    /// Starts a lease whose token was swapped, or tells why it could not be.
    pub(crate) fn resumed(
        live: &Arc<Live>,
        handle: &LeaseHandle,
        token: Token,
        answer: &Answer,
    ) -> Result<Self, Error> {
        let name = handle.name(&live.prefixes)?;
        let failed = |error: Error| Err(error.during("resume", name.as_str()));
        match &answer.reply {
            Reply::Resume(ResumeReply::Resumed { fence, ttl }) => {
                live.saw_fence(&name, *fence);
                let now = live.clock.now();
                let terms = LeaseTerms {
                    token,
                    fence: *fence,
                    ttl: handle.ttl(),
                    deadline: deadline(answer.sent, *ttl),
                    hold_until: handle.max_hold().map(|max_hold| now + max_hold),
                    acquire_resent: answer.sendings > 1,
                    foreign_share: live.settings.foreign_share,
                    name: name.clone(),
                };
                if now >= terms.deadline {
                    return failed(Error::new(
                        ErrorKind::LeaseExpired,
                        "the lease ran out while it was resumed",
                    ));
                }
                Ok(Self::start(live, terms, now))
            }
            _ => failed(Error::new(
                ErrorKind::LeaseLost,
                "the handle was used already, or its lease has ended; a handle works once",
            )),
        }
    }

    /// Puts a lease into the keeper's care.
    fn start(live: &Arc<Live>, terms: LeaseTerms, now: Moment) -> Self {
        let (name, token, fence) = (terms.name.clone(), terms.token.clone(), terms.fence);
        let cell = LeaseCell::new(LeaseState::new(terms, now));
        let id = live.keeper.keep(&cell);
        Self { live: Arc::clone(live), cell, name, token, fence, id }
    }

    /// All leases of a client that are in the keeper's care.
    pub(crate) fn all(live: &Arc<Live>) -> Vec<Self> {
        let held = |(id, cell): (u64, Arc<LeaseCell>)| {
            let state = locked(&cell.state);
            let (name, token, fence) = (state.name().clone(), state.token().clone(), state.fence());
            drop(state);
            Self { live: Arc::clone(live), cell, name, token, fence, id }
        };
        live.keeper.leases().into_iter().map(held).collect()
    }

    pub(crate) fn status(&self) -> Status {
        locked(&self.cell.state).status(self.live.clock.now())
    }

    /// Whether waiting for the loss makes sense: a lease inherited by a forked child is not the child's.
    pub(crate) fn can_be_lost(&self) -> bool {
        !self.live.is_inherited()
    }

    pub(crate) fn is_valid(&self) -> bool {
        !self.live.is_inherited() && self.status() == Status::Held
    }

    pub(crate) fn remaining(&self) -> Duration {
        if !self.is_valid() {
            return Duration::ZERO;
        }
        locked(&self.cell.state).deadline().since(self.live.clock.now())
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        if self.live.is_inherited() {
            return None;
        }
        match self.status() {
            Status::Lost(reason) => Some(reason),
            Status::Held | Status::Ended => None,
        }
    }

    /// Fails if the lease is known to be gone.
    pub(crate) fn check(&self, operation: &'static str) -> Result<(), Error> {
        let checked = self.live.check_generation().and_then(|()| check_status(self.status()));
        checked.map_err(|error| error.during(operation, self.name.as_str()))
    }

    /// Ends the lease on our side and asks the store to release it. A lease that merely ran out asks too:
    /// only the store knows whether it was taken.
    pub(crate) fn release(&self, cooldown: Option<Duration>) -> Result<Releasing, Error> {
        if let Some(cooldown) = cooldown {
            checked_ttl("cooldown", cooldown).map_err(|error| self.during("release", error))?;
        }
        // First of all: in a forked child the mutex of the state may have been inherited locked.
        self.live.check_generation().map_err(|error| self.during("release", error))?;
        let mut state = locked(&self.cell.state);
        let now = self.live.clock.now();
        if !matches!(state.status(now), Status::Lost(LossReason::Expired | LossReason::MaxHold)) {
            check_status(state.status(now)).map_err(|error| self.during("release", error))?;
        }
        let deadline = state.deadline();
        let may_have_ended = state.acquire_resent || now >= deadline;
        state.end();
        let request = Request::Release(Release {
            name: self.name.clone(),
            token: self.token.clone(),
            cooldown,
            acquire_resent: state.acquire_resent,
            own_fence: may_have_ended.then_some(self.fence),
            foreign_share: self.live.settings.foreign_share,
        });
        let farewell = state.farewell();
        drop(state);
        self.ended();
        let machine = self.live.call(request).or_else(farewell);
        Ok(Releasing { machine, fence: self.fence, deadline, name: self.name.clone() })
    }

    /// Asks the store to prolong the lease.
    pub(crate) fn extend(&self, ttl: Duration) -> Result<CallMachine, Error> {
        checked_ttl("ttl", ttl).map_err(|error| self.during("extend", error))?;
        self.check("extend")?;
        let mut state = locked(&self.cell.state);
        let now = self.live.clock.now();
        let give_up = (now + self.live.settings.timeout).min(state.deadline());
        Ok(CallMachine::new(state.extend_request(ttl), now, give_up, Dice::random()))
    }

    /// Takes in the answer to an extension.
    pub(crate) fn extended(&self, answer: Answer) -> Result<(), Error> {
        let now = self.live.clock.now();
        let need = locked(&self.cell.state).extended(now, answer.sent, &Ok(answer.reply));
        match need {
            Need::Nothing(_) => {
                self.live.keeper.reconsider(self.id, &self.cell);
                Ok(())
            }
            Need::Announce(farewell) => {
                self.live.keeper.forget(self.id);
                self.cell.announce();
                if let Some(farewell) = farewell {
                    self.live.keeper.errand(farewell);
                }
                self.check("extend")
            }
            Need::Renew(_) | Need::Forget => self.check("extend"),
        }
    }

    /// Stops caring for the lease and gives it a form that travels.
    pub(crate) fn detach(&self) -> LeaseHandle {
        let mut state = locked(&self.cell.state);
        let now = self.live.clock.now();
        let max_hold = state.hold_until().map(|limit| limit.since(now).max(state.ttl()));
        let handle = LeaseHandle::new(&self.name, self.token.clone(), state.ttl(), max_hold);
        state.end();
        drop(state);
        self.ended();
        handle
    }

    /// What happens to a lease that is dropped unreleased: released in the background, as far as possible.
    /// A lease inherited by a forked child is the parent's, and is left alone.
    pub(crate) fn let_go(&self) {
        if self.live.is_inherited() {
            return self.live.leave_to_parent();
        }
        let mut state = locked(&self.cell.state);
        if state.status(self.live.clock.now()) == Status::Ended {
            // Released or detached: everything was done then.
            return;
        }
        let farewell = state.farewell();
        state.end();
        drop(state);
        self.ended();
        self.live.keeper.errand(farewell);
    }

    /// The keeper forgets it, and whoever waits for its end is told.
    fn ended(&self) {
        self.live.keeper.forget(self.id);
        self.cell.announce();
    }

    fn during(&self, operation: &'static str, error: Error) -> Error {
        error.during(operation, self.name.as_str())
    }
}

/// Fails if the lease is known to be gone.
fn check_status(status: Status) -> Result<(), Error> {
    match status {
        Status::Held => Ok(()),
        Status::Lost(reason) => Err(reason.error()),
        Status::Ended => Err(Error::new(ErrorKind::LeaseLost, "the lease has been released already")),
    }
}

impl Releasing {
    /// Whether the lease was ours until it was released.
    pub(crate) fn judge(&self, answer: &Answer) -> Result<(), Error> {
        judge_release(answer, self.fence, self.deadline)
            .map_err(|error| error.during("release", self.name.as_str()))
    }
}
