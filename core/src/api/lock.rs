//! The async lock.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::api::lease::Lease;
use crate::base::clock::Moment;
use crate::base::error::{BY_ANOTHER, Error, ErrorKind};
use crate::base::name::LockName;
use crate::driver::{drive, rest_async};
use crate::engine::acquire::Acquired;
use crate::engine::several::Several;
use crate::lease::grip::Grip;
use crate::lease::held::Held;
use crate::lease::holder::Holder;
use crate::lease::named::Named;
use crate::lease::waiter::Waiter;
use crate::lease::wanted::{Entering, Wanted};
use crate::protocol::{self, Reply, Request};
use crate::session::Live;
use crate::session::options::{LockOptions, LockPlan};

/// A named lock that one holder at a time may hold. Made by [`Client::lock`](crate::Client::lock); cheap to
/// clone; holding the handle does not mean holding the lock.
#[derive(Clone)]
pub struct Lock {
    named: Named,
    /// The rest of a multi-lock, in the order of their names.
    others: Vec<Named>,
    owner: Option<Arc<str>>,
}

impl Lock {
    pub(crate) fn new(named: Named) -> Self {
        Self { named, others: Vec::new(), owner: None }
    }

    pub(crate) fn of_several(named: Named, others: Vec<Named>) -> Self {
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

    /// Acquires the lock, waiting in line for it. Dropping the future leaves the line.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), stanchion::Error> {
    /// # use std::time::Duration;
    /// # use stanchion::{Client, ErrorKind, LockOptions};
    /// # let client = Client::open("memory:").await?;
    /// let lock = client.lock("report");
    /// let lease = lock.acquire(LockOptions::new()).await?;
    ///
    /// let second = lock.acquire(LockOptions::new().wait(Duration::from_millis(20))).await;
    /// assert_eq!(second.unwrap_err().kind(), ErrorKind::LockTimeout);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `LockTimeout` if it stayed busy; `InvalidArgument` for a bad name or option; `StoreUnavailable`,
    /// `Denied` or `WrongType` from the store.
    pub async fn acquire(&self, options: LockOptions) -> Result<Lease, Error> {
        match self.attempt(options).await {
            Ok(Some(lease)) => Ok(lease),
            // Only a wait of zero ends here.
            Ok(None) => Err(self.whose(busy().during("acquire", self.name()))),
            Err(error) => Err(self.whose(error)),
        }
    }

    /// Acquires the lock if it is free; `None` if it is busy. Never waits for another holder.
    ///
    /// # Errors
    /// As [`Lock::acquire`], but never `LockTimeout`.
    pub async fn try_acquire(&self, options: LockOptions) -> Result<Option<Lease>, Error> {
        self.attempt(options.wait(std::time::Duration::ZERO)).await
    }

    fn whose(&self, error: Error) -> Error {
        if self.others.is_empty() { self.named.whose(error) } else { error }
    }

    async fn attempt(&self, options: LockOptions) -> Result<Option<Lease>, Error> {
        let live = self.named.session.live()?;
        let wanted = Wanted::new(live, &self.named, &self.others, self.owner.as_deref(), &options)?;
        let is_try = options.only_tries();
        let _coming = loop {
            match wanted.enter(live) {
                Ok(Entering::Again(grip)) => return Ok(Some(Lease::new(grip))),
                Ok(Entering::First(coming)) => break coming,
                Ok(Entering::Wait(place, until)) => rest_async(live, &place, until).await,
                Err(error) if is_try && error.kind() == ErrorKind::LockTimeout => return Ok(None),
                Err(error) => return Err(error),
            }
        };
        let grip = match wanted.only(live) {
            Some((name, plan)) => take(live, name, &plan).await?.map(|held| wanted.grip(held)),
            None => take_all(live, &wanted).await?,
        };
        Ok(grip.map(Lease::new))
    }

    /// Acquires, runs `body`, and releases. When the lease is lost, `body` is dropped at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), stanchion::Error> {
    /// # use stanchion::{Client, LockOptions};
    /// # let client = Client::open("memory:").await?;
    /// let fence = client.lock("report").hold(LockOptions::new(), |lease| async move { lease.fence() }).await?;
    /// assert!(fence > 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Lock::acquire`], and `LeaseLost` or `LeaseExpired` if the lease ended before `body` did; the
    /// value of `body` is dropped then.
    pub async fn hold<F, Fut, T>(&self, options: LockOptions, body: F) -> Result<T, Error>
    where
        F: FnOnce(Arc<Lease>) -> Fut,
        Fut: Future<Output = T>,
    {
        let lease = Arc::new(self.acquire(options).await?);
        let guard = LetGo(&lease);
        let value = tokio::select! {
            biased;
            value = body(Arc::clone(&lease)) => value,
            () = lease.lost() => return Err(lease.loss_error("hold")),
        };
        guard.0.release_shared(None).await?;
        Ok(value)
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
        let answer = drive(live, &mut machine, None).await?;
        Ok(answer.reply == Reply::BreakLease(true))
    }

    async fn ask(&self, request: Request) -> Result<Reply, Error> {
        let live = self.named.session.live()?;
        let mut machine = live.call(request);
        Ok(drive(live, &mut machine, None).await?.reply)
    }
}

/// The two sides of a read-write lock. Made by [`Client::rw_lock`](crate::Client::rw_lock); cheap to clone.
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

/// Counts an acquire, also one whose future is dropped.
pub(crate) struct Timing<'a> {
    live: &'a Live,
    began: Moment,
    ended: bool,
}

impl<'a> Timing<'a> {
    pub(crate) fn begin(live: &'a Live) -> Self {
        Self { live, began: live.clock.now(), ended: false }
    }

    pub(crate) fn end(mut self, result: &Result<Acquired, Error>) {
        self.ended = true;
        self.live.meters.acquired(result.as_ref(), self.live.clock.now().since(self.began));
    }

    /// Of several locks: each that was granted is counted.
    pub(crate) fn end_of_several(mut self, result: &Result<Several, Error>) {
        self.ended = true;
        let took = self.live.clock.now().since(self.began);
        match result {
            Ok(Several::Granted { grants, .. }) => {
                grants
                    .iter()
                    .for_each(|grant| self.live.meters.acquired(Ok(&Acquired::Granted(grant.clone())), took));
            }
            Ok(Several::Busy) => self.live.meters.acquired(Ok(&Acquired::Busy), took),
            Err(error) => self.live.meters.acquired(Err(error), took),
        }
    }
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.live.meters.acquire_dropped();
        }
    }
}

/// Takes one lock; `None` if it is busy and the plan is not to wait.
async fn take(live: &Arc<Live>, name: &LockName, plan: &LockPlan) -> Result<Option<Held>, Error> {
    let mut attempt = live.acquire(name, plan)?;
    let timing = Timing::begin(live);
    let result = drive(live, &mut attempt.machine, Some(&attempt.place)).await;
    timing.end(&result);
    live.note(name, plan, attempt.machine.sighting());
    match result? {
        Acquired::Granted(grant) => Ok(Some(Held::granted(live, name, plan, attempt.token, &grant))),
        // Only the lock of a cached value answers with the value.
        Acquired::Busy | Acquired::Cached { .. } => Ok(None),
    }
}

/// Takes several locks, all or none; `None` if one is busy and the plan is not to wait.
async fn take_all(live: &Arc<Live>, wanted: &Wanted) -> Result<Option<Grip>, Error> {
    let mut several = wanted.several(live)?;
    let timing = Timing::begin(live);
    let result = drive(live, &mut several.machine, Some(&several.place)).await;
    timing.end_of_several(&result);
    Ok(wanted.held(live, &several.machine, result?))
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock({:?})", self.name())
    }
}

/// Releases even when the body kept a clone of the lease, or was dropped.
struct LetGo<'a>(&'a Lease);

impl Drop for LetGo<'_> {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

/// The error of an `acquire` that was told not to wait.
pub(crate) fn busy() -> Error {
    Error::new(ErrorKind::LockTimeout, format!("the lock is {BY_ANOTHER}; did not wait"))
}
