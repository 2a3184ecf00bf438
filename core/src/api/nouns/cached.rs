//! Cached values.

use std::fmt;
use std::sync::Arc;

use super::client::Client;
use super::face::{Turn, again, both, drive, rest};
use super::lock::{Lock, busy};
use crate::api::timing::Timing;
use crate::base::error::Error;
use crate::cached::cached_options::{CachedOptions, CachedPlan};
use crate::cached::computing::{Computing, Lookup, check_circuit, instead, stored};
use crate::cached::single_flight::FlightCaller;
use crate::engine::single_flight;
use crate::lease::lock_target::{LockTarget, Part};
use crate::protocol::{Invalidate, Request};
use crate::session::Live;

/// What [`Client::begin_cached`] answers.
#[derive(Debug)]
#[must_use = "dropping a ticket leaves the computation to the next caller"]
pub enum Begun {
    /// The value is there.
    Value(Vec<u8>),
    /// It is this caller who computes it, while the others wait.
    Compute(Ticket),
}

impl From<Lookup> for Begun {
    fn from(outcome: Lookup) -> Self {
        match outcome {
            Lookup::Value(value, _) => Self::Value(value),
            Lookup::Computing(computing) => Self::Compute(Ticket { computing }),
        }
    }
}

/// The right to compute a cached value, for one caller at a time. Dropping it leaves the computation to the next
/// caller. The lease behind it is renewed meanwhile.
#[must_use = "dropping a ticket leaves the computation to the next caller"]
pub struct Ticket {
    computing: Computing,
}

#[both]
impl Client {
    /// The two halves of [`Client::cached`], for a computation that is not one function.
    ///
    /// # Errors
    /// As [`Client::cached`].
    pub async fn begin_cached(&self, name: &str, options: impl Into<CachedOptions>) -> Result<Begun, Error> {
        let sought = self.seek(name, &options.into())?;
        sought.begun(look_up(&sought, None).await)
    }

    pub(crate) fn seek(&self, name: &str, options: &CachedOptions) -> Result<Sought<'_>, Error> {
        let seek = || {
            let named = LockTarget::new(Arc::clone(&self.session), name, Part::Cached);
            let (live, name) = (self.session.live()?, named.checked()?);
            Ok(Sought { live, plan: options.plan(name, &live.settings)? })
        };
        seek().map_err(|error: Error| error.rather_during("cached", name))
    }

    /// Forgets the cached value with this name. A computation that has begun does not count either: its caller gets
    /// its value, but the next waiter computes anew.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name; `StoreUnavailable`, `Indeterminate`, `Denied` or `WrongType` from the store.
    pub async fn invalidate(&self, name: &str) -> Result<(), Error> {
        let name = LockTarget::new(Arc::clone(&self.session), name, Part::Cached).checked()?;
        let live = self.session.live()?;
        let mut machine = live.call(Request::Invalidate(Invalidate { name }));
        drive(live, &mut machine, None, None).await.map(drop)
    }

    /// The lock of a value's computation: to look who computes, or to break it, not to acquire it.
    #[doc(hidden)]
    pub fn computation(&self, name: &str) -> Lock {
        Lock::new(LockTarget::new(Arc::clone(&self.session), name, Part::Cached))
    }
}

/// A value that is asked for.
pub(crate) struct Sought<'a> {
    live: &'a Arc<Live>,
    plan: CachedPlan,
}

impl Sought<'_> {
    /// What asking for it comes to.
    pub(crate) fn begun(&self, found: Result<Option<Lookup>, Error>) -> Result<Begun, Error> {
        let begun = match found {
            Ok(found) => found.map(Begun::from).ok_or_else(busy),
            Err(error) => {
                let computing = instead(self.live, &self.plan, error);
                computing.map(|computing| Begun::Compute(Ticket { computing }))
            }
        };
        begun.map_err(|error| error.rather_during("cached", self.plan.lock.name.as_str()))
    }
}

/// Asks the store, and waits while another computes; callers of one client wait for one of them (`engine/single_flight.rs`).
#[both]
pub(crate) async fn look_up(sought: &Sought<'_>, mut turn: Turn<'_>) -> Result<Option<Lookup>, Error> {
    let Sought { live, plan } = sought;
    let came = live.clock.now();
    check_circuit(live, plan)?;
    let give_up = came + plan.lock.wait;
    let tried = ask(live, &plan.without_waiting(), again(&mut turn)).await;
    if !plan.is_to_wait(&tried) {
        return tried;
    }
    let seat = FlightCaller::take(live, &plan.lock.name, came);
    loop {
        match seat.turn(give_up) {
            single_flight::Turn::Value(value) => return Ok(Some(Lookup::Value(value.to_vec(), came))),
            single_flight::Turn::Ask => break,
            single_flight::Turn::Wait(until) => rest(live, &seat.place, until, again(&mut turn)).await?,
        }
    }
    check_circuit(live, plan)?;
    let found = ask(live, &plan.within(give_up.since(live.clock.now())), turn).await?;
    if let Some(Lookup::Value(value, asked)) = &found {
        seat.answer(value, *asked);
    }
    Ok(found)
}

/// Asks the store; `None` if it is computed by another, and the plan is not to wait.
#[both]
async fn ask(live: &Arc<Live>, plan: &CachedPlan, turn: Turn<'_>) -> Result<Option<Lookup>, Error> {
    let mut attempt = live.acquire(plan.lock.clone())?;
    let timing = Timing::begin(live);
    let acquired = drive(live, &mut attempt.machine, Some(&attempt.place), turn).await;
    timing.end(&acquired);
    Ok(Computing::begin(live, plan, attempt.machine.order().token.clone(), acquired?))
}

#[both]
impl Ticket {
    /// The name of the value.
    pub fn name(&self) -> &str {
        self.computing.name()
    }

    /// Whether the lease is ours now: if not, another may compute.
    pub fn is_valid(&self) -> bool {
        self.computing.is_valid()
    }

    /// Stores the value and wakes all who wait for it. False if it was not stored, because the lease was lost or
    /// the store did not answer: then the next caller computes. A ticket stores once; after that it is false.
    ///
    /// # Errors
    /// `InvalidArgument` if it has more than 16 MiB; `Denied`, `WrongType` or `Forked`. The next caller computes.
    pub async fn store(&self, value: impl Into<Vec<u8>>) -> Result<bool, Error> {
        let Some((live, mut storing)) = self.computing.store(value.into())? else { return Ok(false) };
        let answer = drive(&live, &mut storing.machine, None, None).await;
        stored(&storing, answer)
    }

    /// What dropping it does, for a ticket that several references share.
    #[doc(hidden)]
    pub fn let_go(&self) {
        self.computing.let_go();
    }

    /// Leaves the computation to the next caller, at once.
    ///
    /// # Errors
    /// As [`Lease::release`](super::Lease::release).
    pub async fn release(&self) -> Result<(), Error> {
        let Some((live, mut releasing)) = self.computing.release()? else { return Ok(()) };
        let answer = drive(&live, &mut releasing.machine, None, None).await;
        releasing.judge(answer)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?})", self.name())
    }
}
