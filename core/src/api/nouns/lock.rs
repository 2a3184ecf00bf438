//! The lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::face::{Turn, again, both, drive, either, example, rest};
use super::lease::Lease;
use crate::api::timing::Timing;
use crate::base::error::{BY_ANOTHER, Error, ErrorKind};
use crate::engine::acquire::{AcquireParams, Acquired, LockPlan};
use crate::lease::acquisition::{Acquisition, Entering};
use crate::lease::held_lock::HeldLock;
use crate::lease::holder::Holder;
use crate::lease::lease_set::LeaseSet;
use crate::lease::lock_target::LockTarget;
use crate::lease::waiter::Waiter;
use crate::protocol::{self, Reply, Request};
use crate::session::Live;
use crate::session::options::LockOptions;

/// A named lock that one holder at a time may hold. Made by [`Client::lock`](super::Client::lock); cheap to
/// clone; holding the handle does not mean holding the lock.
#[derive(Clone)]
pub struct Lock {
    named: LockTarget,
    /// The rest of a multi-lock, in the order of their names.
    others: Vec<LockTarget>,
    owner: Option<Arc<str>>,
}

#[both]
impl Lock {
    pub(crate) fn new(named: LockTarget) -> Self {
        Self { named, others: Vec::new(), owner: None }
    }

    pub(crate) fn of_several(named: LockTarget, others: Vec<LockTarget>) -> Self {
        Self { named, others, owner: None }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.named.name()
    }

    /// The same lock for an owner that may come in again: an acquire by an owner that is inside returns at once, with
    /// the same fence, and the lock is given back when the owner has released as often as it acquired. What it
    /// asked for when it first came in stays (ttl, renewal). Owners are known to this client only.
    ///
    /// # Errors
    /// An acquire gives `InvalidArgument` if the owner wants more than it has: a reader does not become a writer.
    pub fn reentrant(&self, owner: &str) -> Self {
        Self { owner: Some(owner.into()), ..self.clone() }
    }

    /// Acquires the lock, waiting in line for it.
    #[doc = either!("Dropping the future leaves the line.", "")]
    #[doc = example!("acquire")]
    ///
    /// # Errors
    /// `LockTimeout` if it stayed busy; `InvalidArgument` for a bad name or option; `StoreUnavailable`,
    /// `Denied` or `WrongType` from the store.
    pub async fn acquire(&self, options: LockOptions) -> Result<Lease, Error> {
        self.acquired(self.attempt(options, None).await)
    }

    /// Acquires the lock if it is free; `None` if it is busy. Never waits for another holder.
    ///
    /// # Errors
    /// As [`Lock::acquire`], but never `LockTimeout`.
    pub async fn try_acquire(&self, options: LockOptions) -> Result<Option<Lease>, Error> {
        self.attempt(options.wait(Duration::ZERO), None).await
    }

    /// What an acquire comes to that has waited.
    pub(crate) fn acquired(&self, lease: Result<Option<Lease>, Error>) -> Result<Lease, Error> {
        // Only a wait of zero finds nothing.
        let lease = lease.and_then(|lease| lease.ok_or_else(|| busy().during("acquire", self.name())));
        lease.map_err(|error| if self.others.is_empty() { self.named.whose(error) } else { error })
    }

    pub(crate) async fn attempt(
        &self,
        options: LockOptions,
        mut turn: Turn<'_>,
    ) -> Result<Option<Lease>, Error> {
        let live = self.named.session.live()?;
        let wanted = Acquisition::new(live, &self.named, &self.others, self.owner.as_deref(), &options)?;
        let is_try = options.only_tries();
        let _coming = loop {
            match wanted.enter(live) {
                Ok(Entering::Again(grip)) => return Ok(Some(Lease::new(grip))),
                Ok(Entering::First(coming)) => break coming,
                Ok(Entering::Wait(place, until)) => rest(live, &place, until, again(&mut turn)).await?,
                Err(error) if is_try && error.kind() == ErrorKind::LockTimeout => return Ok(None),
                Err(error) => return Err(error),
            }
        };
        let grip = match wanted.only(live) {
            Some(plan) => take(live, plan, turn).await?.map(|held| wanted.grip(held)),
            None => take_all(live, &wanted, turn).await?,
        };
        Ok(grip.map(Lease::new))
    }

    /// Who holds the lock now, if anybody does; of several holders the one whose lease ends first.
    pub async fn holder(&self) -> Result<Option<Holder>, Error> {
        Ok(self.holders().await?.into_iter().next())
    }

    /// Who holds the lock now: one at most if it is exclusive, else up to 100, those whose leases end first.
    pub async fn holders(&self) -> Result<Vec<Holder>, Error> {
        let name = self.named.checked()?;
        let reply = self.ask(Request::Holder(protocol::Holder { name })).await?;
        Ok(Holder::from_reply(reply))
    }

    /// Who waits for the lock now, in the order of the line: up to 100. One that was not heard of for 2.5 s, or for
    /// 22 s far back in a long line, counts as dead and is left out.
    pub async fn waiters(&self) -> Result<Vec<Waiter>, Error> {
        let name = self.named.checked()?;
        let reply = self.ask(Request::Waiters(protocol::Waiters { name })).await?;
        Ok(Waiter::from_reply(reply))
    }

    /// Whether the lock is held, offered to a waiter, cooling down, or in foreign hands.
    pub async fn is_locked(&self) -> Result<bool, Error> {
        Ok(self.holder().await?.is_some())
    }

    /// Takes the lock from whoever has it and hands it to the next waiter; false if it was free.
    ///
    /// The old holder learns of it at its next renewal, and may work on until then: its fence is smaller
    /// than the next holder's.
    ///
    /// # Errors
    /// `Indeterminate` if the store did not answer; the request is not repeated, since a repetition could
    /// break the next lease.
    pub async fn break_lease(&self) -> Result<bool, Error> {
        let name = self.named.checked()?;
        let live = self.named.session.live()?;
        let mut machine = live.call(Request::BreakLease(protocol::BreakLease { name })).once();
        let answer = drive(live, &mut machine, None, None).await?;
        Ok(answer.reply == Reply::BreakLease(true))
    }

    async fn ask(&self, request: Request) -> Result<Reply, Error> {
        let live = self.named.session.live()?;
        let mut machine = live.call(request);
        Ok(drive(live, &mut machine, None, None).await?.reply)
    }
}

/// The two sides of a read-write lock. Made by [`Client::rw_lock`](super::Client::rw_lock); cheap to clone.
#[derive(Clone, Debug)]
pub struct RwLock {
    pub(crate) read: Lock,
    pub(crate) write: Lock,
}

impl RwLock {
    /// The name.
    pub fn name(&self) -> &str {
        self.read.name()
    }

    /// What readers acquire: any number of them may hold it, unless a writer does.
    pub fn read(&self) -> &Lock {
        &self.read
    }

    /// What a writer acquires: nobody else holds anything then. [`Lease::downgrade`] makes the writer a reader.
    pub fn write(&self) -> &Lock {
        &self.write
    }
}

/// Takes one lock; `None` if it is busy and the plan is not to wait.
#[both]
async fn take(live: &Arc<Live>, plan: LockPlan, turn: Turn<'_>) -> Result<Option<HeldLock>, Error> {
    let mut attempt = live.acquire(plan)?;
    let timing = Timing::begin(live);
    let result = drive(live, &mut attempt.machine, Some(&attempt.place), turn).await;
    timing.end(&result);
    let AcquireParams { plan, token, .. } = attempt.machine.order();
    live.note(plan, attempt.machine.foreign_holder());
    match result.map_err(|error| error.during("acquire", plan.name.as_str()))? {
        Acquired::Granted(grant) => Ok(Some(HeldLock::granted(live, plan, token.clone(), &grant))),
        // Only the lock of a cached value answers with the value.
        Acquired::Busy | Acquired::Cached { .. } => Ok(None),
    }
}

/// Takes several locks, all or none; `None` if one is busy and the plan is not to wait.
#[both]
async fn take_all(live: &Arc<Live>, wanted: &Acquisition, turn: Turn<'_>) -> Result<Option<LeaseSet>, Error> {
    let mut several = wanted.several(live)?;
    let timing = Timing::begin(live);
    let result = drive(live, &mut several.machine, Some(&several.place), turn).await;
    timing.end_of_several(&result);
    Ok(wanted.held(live, &several.machine, result?))
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock({:?})", self.name())
    }
}

/// The error of an `acquire` that was told not to wait.
pub(crate) fn busy() -> Error {
    Error::new(ErrorKind::LockTimeout, format!("the lock is {BY_ANOTHER}; did not wait"))
}
