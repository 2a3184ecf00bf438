//! Cached values of the async client.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::api::client::Client;
use crate::api::lock::{Lock, Timing, busy};
use crate::base::error::Error;
use crate::base::name::LockName;
use crate::cached::cached_options::{CachedOptions, CachedPlan};
use crate::cached::computing::{Computing, Outcome, check_circuit, instead, stored};
use crate::cached::flights::Seat;
use crate::driver::drive;
use crate::engine::single_flight::Turn;
use crate::lease::named::{Named, Part};
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

impl From<Outcome> for Begun {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Value(value, _) => Self::Value(value),
            Outcome::Computing(computing) => Self::Compute(Ticket { computing }),
        }
    }
}

/// The right to compute a cached value, for one caller at a time. Dropping it leaves the computation to the next
/// caller. The lease behind it is renewed meanwhile.
#[must_use = "dropping a ticket leaves the computation to the next caller"]
pub struct Ticket {
    computing: Computing,
}

impl Client {
    /// The cached value with this name (bytes, at most 16 MiB); if there is none, `compute` makes it, for one
    /// caller at a time: the others wait, and get what it made. Instead of options a `Duration` says how long the
    /// value is fresh. If `compute` fails or its caller dies, the next caller computes.
    ///
    /// The caller that computed gets its value also if it could not be stored, because its lease was lost or the
    /// store did not answer; then the next caller computes again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), stanchion::Error> {
    /// # use std::time::Duration;
    /// # use stanchion::{Client, Error};
    /// # let client = Client::open("memory:").await?;
    /// let price = client.cached("price:7", Duration::from_secs(60), || async { Ok::<_, Error>("9.99") }).await?;
    /// assert_eq!(price, b"9.99");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `compute`; `LockTimeout` if another computed for the whole wait; `InvalidArgument` for a bad name,
    /// a bad option or a value that is too large; `StoreUnavailable`, `Denied` or `WrongType` from the store.
    pub async fn cached<F, Fut, V, E>(
        &self,
        name: &str,
        options: impl Into<CachedOptions>,
        compute: F,
    ) -> Result<Vec<u8>, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<V, E>>,
        V: Into<Vec<u8>>,
        E: From<Error>,
    {
        let ticket = match self.begin_cached(name, options).await? {
            Begun::Value(value) => return Ok(value),
            Begun::Compute(ticket) => ticket,
        };
        let value: Vec<u8> = compute().await?.into();
        ticket.store(value.clone()).await?;
        Ok(value)
    }

    /// The two halves of [`Client::cached`], for a computation that is not one function.
    ///
    /// # Errors
    /// As [`Client::cached`].
    pub async fn begin_cached(&self, name: &str, options: impl Into<CachedOptions>) -> Result<Begun, Error> {
        let begun = async {
            let named = Named::new(Arc::clone(&self.session), name, Part::Cached);
            let (live, lock) = (self.session.live()?, named.checked()?);
            let plan = options.into().plan(&live.settings)?;
            match begin(live, &lock, &plan).await {
                Ok(found) => found.map(Begun::from).ok_or_else(busy),
                Err(error) => {
                    let computing = instead(live, name, &plan, error)?;
                    Ok(Begun::Compute(Ticket { computing }))
                }
            }
        };
        begun.await.map_err(|error| error.rather_during("cached", name))
    }

    /// Forgets the cached value with this name. A computation that has begun does not count either: its caller gets
    /// its value, but the next waiter computes anew.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name; `StoreUnavailable`, `Indeterminate`, `Denied` or `WrongType` from the store.
    pub async fn invalidate(&self, name: &str) -> Result<(), Error> {
        let name = Named::new(Arc::clone(&self.session), name, Part::Cached).checked()?;
        let live = self.session.live()?;
        let mut machine = live.call(Request::Invalidate(Invalidate { name }));
        drive(live, &mut machine, None).await.map(drop)
    }

    /// The lock of a value's computation: to look who computes, or to break it, not to acquire it.
    #[doc(hidden)]
    pub fn computation(&self, name: &str) -> Lock {
        Lock::new(Named::new(Arc::clone(&self.session), name, Part::Cached))
    }
}

/// Asks the store, and waits while another computes; callers of one process wait for one of them.
async fn begin(live: &Arc<Live>, name: &LockName, plan: &CachedPlan) -> Result<Option<Outcome>, Error> {
    let came = live.clock.now();
    check_circuit(live, plan)?;
    let give_up = came + plan.lock.wait;
    let tried = ask(live, name, &plan.without_waiting()).await;
    if !plan.is_to_wait(&tried) {
        return tried;
    }
    let seat = Seat::take(live, name, came);
    loop {
        match seat.turn(give_up) {
            Turn::Value(value) => return Ok(Some(Outcome::Value(value.to_vec(), came))),
            Turn::Ask => break,
            Turn::Wait(until) => seat.wait(until).await,
        }
    }
    check_circuit(live, plan)?;
    let found = ask(live, name, &plan.within(give_up.since(live.clock.now()))).await?;
    if let Some(Outcome::Value(value, asked)) = &found {
        seat.answer(value, *asked);
    }
    Ok(found)
}

/// Asks the store; `None` if it is computed by another, and the plan is not to wait.
async fn ask(live: &Arc<Live>, name: &LockName, plan: &CachedPlan) -> Result<Option<Outcome>, Error> {
    let mut attempt = live.acquire(name, &plan.lock)?;
    let timing = Timing::begin(live);
    let acquired = drive(live, &mut attempt.machine, Some(&attempt.place)).await;
    timing.end(&acquired);
    Ok(Computing::begin(live, name, plan, attempt.token, acquired?))
}

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
    /// the store did not answer: then the next caller computes.
    ///
    /// # Errors
    /// `InvalidArgument` if it has more than 16 MiB; `Denied`, `WrongType` or `Forked`. The next caller computes.
    pub async fn store(self, value: impl Into<Vec<u8>>) -> Result<bool, Error> {
        self.store_shared(value).await
    }

    /// As [`Ticket::store`], for a ticket that several references share: it stores once.
    #[doc(hidden)]
    pub async fn store_shared(&self, value: impl Into<Vec<u8>>) -> Result<bool, Error> {
        let Some((live, mut storing)) = self.computing.store(value.into())? else { return Ok(false) };
        let answer = drive(&live, &mut storing.machine, None).await;
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
    /// As [`Lease::release`](crate::Lease::release).
    pub async fn release(self) -> Result<(), Error> {
        let Some((live, mut releasing)) = self.computing.release()? else { return Ok(()) };
        let answer = drive(&live, &mut releasing.machine, None).await;
        releasing.judge(answer)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?})", self.name())
    }
}
