//! What only the blocking face has.

use std::ops::ControlFlow;
use std::time::Duration;

use super::face::example;
use super::nouns::cached::look_up;
use super::nouns::client::connect;
use super::nouns::queue::{claim, claims};
use super::{Begun, Claim, Client, Lease, Limiter, Lock, Queue, Queues, go_on};
use crate::base::error::Error;
use crate::cached::cached_options::CachedOptions;
use crate::limiter::taking::Taken;
use crate::queue::claim_calls::Claiming;
use crate::queue::queue_options::ClaimOptions;
use crate::session::builder::ClientBuilder;
use crate::session::options::LockOptions;

impl ClientBuilder {
    /// Opens the store for blocking use: connects once and checks the server's version.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub fn open_blocking(self) -> Result<Client, Error> {
        connect(self)
    }
}

impl Client {
    #[doc = include_str!("../nouns/cached.md")]
    #[doc = example!("cached")]
    pub fn cached<V, E>(
        &self,
        name: &str,
        options: impl Into<CachedOptions>,
        compute: impl FnOnce() -> Result<V, E>,
    ) -> Result<Vec<u8>, E>
    where
        V: Into<Vec<u8>>,
        E: From<Error>,
    {
        let ticket = match self.begin_cached(name, options)? {
            Begun::Value(value) => return Ok(value),
            Begun::Compute(ticket) => ticket,
        };
        let value: Vec<u8> = compute()?.into();
        ticket.store(value.clone())?;
        Ok(value)
    }

    /// As [`Client::begin_cached`]; `interrupt` as in [`Lock::acquire_while`].
    ///
    /// # Errors
    /// As [`Client::cached`], and `Cancelled` if `interrupt` ended the wait.
    pub fn begin_cached_while(
        &self,
        name: &str,
        options: &CachedOptions,
        interrupt: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Begun, Error> {
        let sought = self.seek(name, options)?;
        sought.begun(look_up(&sought, Some(interrupt)))
    }
}

impl Lock {
    /// As [`Lock::acquire`]; `interrupt` runs at least every 50 ms on this thread and may end the wait. Requests
    /// run on threads of their own meanwhile. For hosts that have to run signal handlers.
    ///
    /// # Errors
    /// As [`Lock::acquire`], and `Cancelled` if `interrupt` ended the wait.
    pub fn acquire_while(
        &self,
        options: LockOptions,
        interrupt: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Lease, Error> {
        self.acquired(self.attempt(options, Some(interrupt)))
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
}

impl Limiter {
    /// As [`Limiter::take`]; `interrupt` runs at least every 50 ms on this thread and may end the wait. Requests
    /// run on threads of their own meanwhile. For hosts that have to run signal handlers.
    ///
    /// # Errors
    /// As [`Limiter::take`], and `Cancelled` if `interrupt` ended the wait; its turn is given back.
    pub fn take_while(
        &self,
        n: u32,
        wait: Duration,
        interrupt: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Taken, Error> {
        self.taken(n, wait, Some(interrupt))
    }
}

impl Lease {
    /// Waits up to `time` for the lease to be lost; true if it was. The loss is announced at the latest at
    /// the lease's deadline.
    pub fn wait_lost(&self, time: Duration) -> bool {
        self.wait_lost_while(time, &mut go_on)
    }

    /// As [`Lease::wait_lost`]; while waiting, `interrupt` runs at least every 50 ms on this thread and may
    /// end the wait.
    pub fn wait_lost_while(&self, time: Duration, interrupt: &mut dyn FnMut() -> ControlFlow<()>) -> bool {
        self.grip.wait_lost(time, interrupt)
    }
}

impl Claim {
    /// Waits up to `time` for the claim to be lost or settled; true if it was. A loss is announced at the
    /// latest at the deadline.
    pub fn wait_lost(&self, time: Duration) -> bool {
        self.wait_lost_while(time, &mut go_on)
    }

    /// As [`Claim::wait_lost`]; while waiting, `interrupt` runs at least every 50 ms on this thread and may
    /// end the wait.
    pub fn wait_lost_while(&self, time: Duration, interrupt: &mut dyn FnMut() -> ControlFlow<()>) -> bool {
        self.delivery().kept.wait_lost(time, interrupt)
    }
}

impl Queue {
    /// As [`Queue::claim`]; `interrupt` runs at least every 50 ms on this thread and may end the wait. Requests
    /// run on threads of their own meanwhile. For hosts that have to run signal handlers.
    ///
    /// # Errors
    /// As [`Queue::claim`], and `Cancelled` if `interrupt` ended the wait; no task is lost.
    pub fn claim_while(
        &self,
        options: ClaimOptions,
        interrupt: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Vec<Claim>, Error> {
        let queues = std::slice::from_ref(&self.calls);
        claims(queues, claim(Claiming::new(queues, &options, None)?, Some(interrupt)))
    }
}

impl Queues {
    /// As [`Queue::claim_while`].
    ///
    /// # Errors
    /// As [`Queue::claim_while`].
    pub fn claim_while(
        &self,
        options: ClaimOptions,
        interrupt: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Vec<Claim>, Error> {
        claims(&self.calls, claim(Claiming::new(&self.calls, &options, None)?, Some(interrupt)))
    }
}
