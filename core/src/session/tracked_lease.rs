//! A lease that the keeper tracks: on a lock, a task, or the computation of a cached value.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, ErrorKind};
use crate::base::wake::locked;
use crate::engine::Jitter;
use crate::engine::call::{Answer, CallMachine};
use crate::engine::lease::{LeaseTerms, Need, Status};
use crate::engine::loss::LossReason;
use crate::protocol::Request;
use crate::session::Live;
use crate::session::channel::INTERRUPT_CHECK;
use crate::session::lease_cell::{Account, LeaseCell};
use crate::session::metrics::Ended;
use crate::session::options::Extent;

/// The part of its owner, who keeps the client alive by it. The keeper has the cell alone: it is a part of the client, and
/// with this it would keep itself alive.
pub(crate) struct TrackedLease {
    pub(crate) live: Arc<Live>,
    pub(crate) cell: Arc<LeaseCell>,
}

impl TrackedLease {
    /// Starts tracking a lease: the keeper renews it, and announces its loss.
    pub(crate) fn start(live: &Arc<Live>, terms: LeaseTerms, account: Account) -> Self {
        Self::of(live, live.keeper.keep(terms, account))
    }

    /// One that is in the keeper's care.
    pub(crate) fn of(live: &Arc<Live>, cell: Arc<LeaseCell>) -> Self {
        Self { live: Arc::clone(live), cell }
    }

    /// Every lease that the keeper tracks.
    pub(crate) fn all(live: &Arc<Live>) -> impl Iterator<Item = Self> {
        live.keeper.leases().into_iter().map(|cell| Self::of(live, cell))
    }

    pub(crate) fn status(&self) -> Status {
        locked(&self.cell.state).status(self.live.clock.now())
    }

    /// Whether waiting for the loss makes sense: not in a forked child, where the lease is the parent's.
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

    /// Its owner has ended: only the verdict is to be told.
    pub(crate) fn owner_ended(&self) {
        locked(&self.cell.state).owner_ended(self.live.clock.now());
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

    /// Blocks the thread until the loss, up to `time`, and returns whether it came. `interrupt` runs at least every 50 ms
    /// and may end the wait.
    pub(crate) fn wait_lost(&self, time: Duration, interrupt: &mut dyn FnMut() -> ControlFlow<()>) -> bool {
        if !self.can_be_lost() {
            return true;
        }
        let clock = &self.live.clock;
        let until = clock.now() + time;
        loop {
            let slice_end = until.min(clock.now() + INTERRUPT_CHECK);
            if self.cell.wait_lost(clock, slice_end, INTERRUPT_CHECK) {
                return true;
            }
            if clock.now() >= until || interrupt().is_break() {
                return false;
            }
        }
    }

    /// Fails if the lease is known to be gone.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.live.check_generation()?;
        check_status(self.status())
    }

    /// The request that prolongs the lease.
    pub(crate) fn extend(&self, extent: Extent) -> Result<CallMachine, Error> {
        self.extend_with(extent, |_| {})
    }

    /// The same, with more in the request.
    pub(crate) fn extend_with(
        &self,
        extent: Extent,
        more: impl FnOnce(&mut Request),
    ) -> Result<CallMachine, Error> {
        extent.check()?;
        self.check()?;
        let mut state = locked(&self.cell.state);
        let now = self.live.clock.now();
        let give_up = (now + self.live.settings.timeout).min(state.deadline());
        let mut request = match extent {
            Extent::AtLeast(ttl) => state.extend_request(ttl),
            Extent::Exactly(ttl) => state.exact_request(ttl, now),
        };
        drop(state);
        more(&mut request);
        if extent.is_exact() {
            self.live.keeper.reconsider(&self.cell);
        }
        Ok(CallMachine::new(request, now, give_up, Jitter::random()))
    }

    /// Applies the reply to an extension.
    pub(crate) fn extended(&self, extent: Extent, answer: Answer) -> Result<(), Error> {
        let now = self.live.clock.now();
        let mut state = locked(&self.cell.state);
        let need = state.extended(now, answer.sent, &Ok(answer.reply));
        if extent.is_exact() && answer.copies == 1 {
            state.exactly_ended(now);
        }
        drop(state);
        match need {
            Need::Nothing(_) => {
                self.live.keeper.reconsider(&self.cell);
                Ok(())
            }
            Need::Announce(cleanup) => {
                self.ended();
                if let Some(cleanup) = cleanup {
                    self.live.keeper.clean_up(cleanup);
                }
                self.check()
            }
            Need::Renew(_) | Need::Forget => self.check(),
        }
    }

    /// Ends it on our side, in this way. Returns false if it had ended before.
    pub(crate) fn end(&self, how: Ended) -> bool {
        let mut state = locked(&self.cell.state);
        let now = self.live.clock.now();
        if state.status(now) == Status::Ended {
            // Everything was done then.
            return false;
        }
        state.end();
        drop(state);
        self.cell.count(how, now);
        self.ended();
        true
    }

    /// Ends the waits for its loss; it is renewed as before.
    pub(crate) fn withdraw(&self) {
        locked(&self.cell.state).withdraw();
        self.cell.announce(self.live.clock.now());
    }

    /// Stops tracking it, and wakes whoever waits for its end.
    pub(crate) fn ended(&self) {
        self.live.keeper.forget(&self.cell);
        self.cell.announce(self.live.clock.now());
    }
}

/// Fails if the lease is known to be gone.
pub(crate) fn check_status(status: Status) -> Result<(), Error> {
    match status {
        Status::Held => Ok(()),
        Status::Lost(reason) => Err(reason.error()),
        Status::Ended => Err(released()),
    }
}

/// What is wrong with a lease that is used after its end.
pub(crate) fn released() -> Error {
    Error::new(ErrorKind::LeaseLost, "the lease has been released already")
}
