//! The blocking lock.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::blocking::Lease;
use crate::drive::{HostTurn, drive_blocking};
use crate::engine::acquire::Acquired;
use crate::error::Error;
use crate::held::Held;
use crate::holder::Holder;
use crate::lock::busy;
use crate::name::LockName;
use crate::options::LockOptions;
use crate::session::Session;
use crate::verbs::{self, Reply, Request};

/// A named lock that one holder at a time may hold. Made by [`Client::lock`](super::Client::lock); cheap to
/// clone; holding the handle does not mean holding the lock.
#[derive(Clone)]
pub struct Lock {
    session: Arc<Session>,
    name: Arc<str>,
    /// Checked once, not in every call; `None` if the name is bad.
    checked: Option<LockName>,
}

impl Lock {
    pub(crate) fn new(session: Arc<Session>, name: &str) -> Self {
        let checked = session.lock_name(name).ok();
        Self { session, name: name.into(), checked }
    }

    fn checked(&self) -> Result<LockName, Error> {
        match &self.checked {
            Some(name) => Ok(name.clone()),
            // Says what is wrong with it.
            None => self.session.lock_name(&self.name),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Acquires the lock, waiting in line for it.
    ///
    /// # Errors
    /// `LockTimeout` if it stayed busy; `InvalidArgument` for a bad name or option; `StoreUnavailable`,
    /// `Denied` or `WrongType` from the store.
    pub fn acquire(&self, options: LockOptions) -> Result<Lease, Error> {
        self.acquire_with(options, None)
    }

    /// As [`Lock::acquire`]; `host_turn` runs at least every 50 ms on this thread and may end the wait. Requests
    /// run on threads of their own meanwhile. For hosts that have to run signal handlers.
    ///
    /// # Errors
    /// As [`Lock::acquire`], and `Cancelled` if `host_turn` ended the wait.
    pub fn acquire_while(
        &self,
        options: LockOptions,
        host_turn: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Lease, Error> {
        self.acquire_with(options, Some(host_turn))
    }

    fn acquire_with(&self, options: LockOptions, host_turn: HostTurn<'_>) -> Result<Lease, Error> {
        let lease = self.attempt(options, host_turn)?;
        // Only a wait of zero finds nothing.
        lease.ok_or_else(|| busy().during("acquire", &self.name))
    }

    /// Acquires the lock if it is free; `None` if it is busy. Never waits for another holder.
    ///
    /// # Errors
    /// As [`Lock::acquire`], but never `LockTimeout`.
    pub fn try_acquire(&self, options: LockOptions) -> Result<Option<Lease>, Error> {
        self.attempt(options.wait(Duration::ZERO), None)
    }

    fn attempt(&self, options: LockOptions, host_turn: HostTurn<'_>) -> Result<Option<Lease>, Error> {
        let name = self.checked()?;
        let live = self.session.live()?;
        let plan = options.plan(&live.settings).map_err(|error| error.during("acquire", &self.name))?;
        let mut attempt = live.acquire(&name, &plan)?;
        let result = drive_blocking(live, &mut attempt.machine, Some(&attempt.place), host_turn);
        live.note(&name, &plan, &attempt.machine);
        match result.map_err(|error| error.during("acquire", &self.name))? {
            Acquired::Granted(grant) => {
                Ok(Some(Lease::new(Held::granted(live, &name, &plan, attempt.token, &grant))))
            }
            Acquired::Busy => Ok(None),
        }
    }

    /// Acquires, runs `body`, and releases. `body` should look at [`Lease::is_valid`] now and then: a thread
    /// cannot be stopped from outside.
    ///
    /// # Errors
    /// As [`Lock::acquire`], and `LeaseLost` or `LeaseExpired` if the lease ended before `body` did; the
    /// value of `body` is dropped then.
    pub fn hold<T>(&self, options: LockOptions, body: impl FnOnce(&Lease) -> T) -> Result<T, Error> {
        let lease = self.acquire(options)?;
        let value = body(&lease);
        lease.release()?;
        Ok(value)
    }

    /// Who holds the lock now, if anybody does.
    pub fn holder(&self) -> Result<Option<Holder>, Error> {
        let name = self.checked()?;
        let live = self.session.live()?;
        let mut machine = live.call(Request::Holder(verbs::Holder { name }));
        let answer = drive_blocking(live, &mut machine, None, None)?;
        Ok(Holder::from_reply(answer.reply))
    }

    /// Whether the lock is held, offered to a waiter, cooling down, or in foreign hands.
    pub fn is_locked(&self) -> Result<bool, Error> {
        Ok(self.holder()?.is_some())
    }

    /// Takes the lock from whoever has it and hands it to the next waiter; false if it was free.
    ///
    /// The old holder learns of it at its next renewal, and may work on until then: its fence is smaller
    /// than the next holder's.
    ///
    /// # Errors
    /// `Indeterminate` if the store did not answer; the request is not repeated, since a repetition could
    /// break the next lease.
    pub fn break_lease(&self) -> Result<bool, Error> {
        let name = self.checked()?;
        let live = self.session.live()?;
        let mut machine = live.call(Request::BreakLease(verbs::BreakLease { name })).once();
        let answer = drive_blocking(live, &mut machine, None, None)?;
        Ok(answer.reply == Reply::BreakLease(true))
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock({:?})", self.name)
    }
}
