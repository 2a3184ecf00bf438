//! How an acquire of several locks ends, or begins anew: what was taken is given back.

use super::*;
use crate::base::error::{ErrorKind, brief};
use crate::protocol::{Leave, Release};

impl SeveralMachine {
    /// One of them was lost, or its answer took longer than it lasts.
    pub(super) fn begin_anew(&mut self, now: Moment) -> Step<Several> {
        let failure = self.last_failure.take();
        if now < self.give_up && failure.as_ref().is_none_or(Failure::is_retryable) {
            return self.give_back(now, Then::Again);
        }
        let error = match failure {
            Some(failure) => Error::from(failure),
            None if self.order.plan().only_tries() => return self.give_back(now, Then::End(Ending::Busy)),
            None => Error::new(
                ErrorKind::LockTimeout,
                format!(
                    "one of the locks was lost during the wait for the others; waited {}",
                    brief(self.order.plan().wait)
                ),
            ),
        };
        let error = error.during("acquire", self.order.plan().name.as_str());
        self.give_back(now, Then::End(Ending::Failed(error)))
    }

    pub(super) fn give_back(&mut self, now: Moment, then: Then) -> Step<Several> {
        self.collect();
        self.stage = Stage::Leaving(then);
        self.step(now)
    }

    /// Makes requests that give it back of everything that is, or may be, ours.
    pub(super) fn collect(&mut self) {
        match &mut self.stage {
            Stage::Together(machine) => self.cleanups.extend(std::iter::from_fn(|| machine.abandon())),
            Stage::Turn(machine) => self.cleanups.extend(std::iter::from_fn(|| machine.abandon())),
            _ => {}
        }
        self.in_flight = None;
        self.cleanups.extend(self.taken.drain(..).map(|taken| give_back(taken.lock)));
    }

    pub(super) fn leave(&mut self, now: Moment) -> Step<Several> {
        if let Some(until) = self.awaited_until(now) {
            return Step::Wait { until, hints: false };
        }
        // A store that did not answer one of them would not answer the others: those are left to the keeper.
        let is_silent = self.last_failure.is_some();
        if let Some(request) = self.cleanups.last().filter(|_| !is_silent).cloned() {
            let step = self.send(Route::Farewell, request, now + RESEND_AFTER);
            self.in_flight = Some((self.sendings, now));
            return step;
        }
        match std::mem::replace(&mut self.stage, Stage::Clean) {
            Stage::Leaving(Then::Again) => {
                self.begin(now);
                self.take(now)
            }
            Stage::Leaving(Then::End(ending)) => self.end(now, ending),
            _ => Step::Wait { until: Moment::FAR, hints: false },
        }
    }

    pub(super) fn end(&mut self, now: Moment, ending: Ending) -> Step<Several> {
        self.stage = Stage::Done(Some(ending));
        self.step(now)
    }

    pub(super) fn outcome(&mut self, ending: Ending) -> Result<Several, Error> {
        self.stage = Stage::Clean;
        match ending {
            Ending::Busy => Ok(Several::Busy),
            Ending::Failed(error) => Err(error),
            Ending::Taken => {
                let grant = |taken: Taken| Grant {
                    fence: taken.lock.fence(),
                    deadline: taken.lease.deadline(),
                    resent: taken.lock.acquire_resent,
                };
                let token = self.token();
                Ok(Several::Granted { token, grants: self.taken.drain(..).map(grant).collect() })
            }
        }
    }

    /// What ends whatever an unanswered attempt to take all in one step may have brought, or may yet.
    pub(super) fn leaves(&self) -> Vec<Request> {
        let leave = |lock: &AcquireParams| {
            let (name, foreign_share) = (lock.plan.name.clone(), lock.plan.foreign_share);
            Request::Leave(Leave { name, token: self.token(), foreign_share })
        };
        self.order.locks.iter().map(leave).collect()
    }
}

/// The request that gives a lock back without asking for the truth.
fn give_back(lock: LockLease) -> Request {
    let own_fence = lock.acquire_resent.then(|| lock.fence());
    Request::Release(Release {
        name: lock.name,
        token: lock.token,
        cooldown: None,
        acquire_resent: lock.acquire_resent,
        own_fence,
        foreign_share: lock.foreign_share,
    })
}
