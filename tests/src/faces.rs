//! Both faces of the library under one set of names, so that one text tests both.
//!
//! Every call blocks the calling thread: the async face runs on a runtime that all tests share, or, with
//! `STANCHION_HOST_LOOP=1` in the environment, on an event loop of the calling thread ([`host`](crate::host)).

use std::future::Future;
use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;

use stanchion::blocking;
use stanchion::{
    Client, ClientBuilder, Error, Fence, Finding, Holder, Lease, LeaseHandle, LimitKind, LimiterPage, Lock,
    LockOptions, LockPage, LossReason, Metrics, QueuePage, Token, Waiter,
};
use tokio::runtime::{Builder, Runtime};

use crate::host;

/// Which face of the library a test goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// `stanchion::Client`.
    Async,
    /// `stanchion::blocking::Client`.
    Blocking,
}

/// What runs the async face.
pub struct Runner {
    runtime: Runtime,
    hosted: bool,
}

impl Runner {
    /// Runs a future to its end on the calling thread.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        if !self.hosted {
            return self.runtime.block_on(future);
        }
        let _timers = self.runtime.enter();
        host::block_on(future)
    }
}

impl Deref for Runner {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

/// The runner of the async face.
pub fn runtime() -> &'static Runner {
    static RUNNER: OnceLock<Runner> = OnceLock::new();
    RUNNER.get_or_init(|| Runner {
        runtime: Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"),
        hosted: std::env::var_os("STANCHION_HOST_LOOP").is_some(),
    })
}

/// Runs the same call on either face: as a future there, as a plain call here.
macro_rules! either {
    ($type:ident, $value:expr, $inner:ident => $call:expr) => {
        match $value {
            $type::Async($inner) => runtime().block_on($call),
            $type::Blocking($inner) => $call,
        }
    };
}

/// The same, for what does not wait.
macro_rules! plain {
    ($type:ident, $value:expr, $inner:ident => $call:expr) => {
        match $value {
            $type::Async($inner) => $call,
            $type::Blocking($inner) => $call,
        }
    };
}

mod cached;
mod flow;
mod limiter;
mod queue;

pub use cached::{AnyBegun, AnyTicket};
pub use limiter::AnyLimiter;
pub use queue::{AnyClaim, AnyQueue, AnyQueues, AnyWorker, Stop};

/// A client of either face.
#[derive(Clone, Debug)]
pub enum AnyClient {
    /// `stanchion::Client`.
    Async(Client),
    /// `stanchion::blocking::Client`.
    Blocking(blocking::Client),
}

/// A lock of either face.
#[derive(Clone, Debug)]
pub enum AnyLock {
    /// `stanchion::Lock`.
    Async(Lock),
    /// `stanchion::blocking::Lock`.
    Blocking(blocking::Lock),
}

/// A lease of either face.
#[derive(Debug)]
#[must_use = "dropping a lease releases the lock"]
pub enum AnyLease {
    /// `stanchion::Lease`.
    Async(Lease),
    /// `stanchion::blocking::Lease`.
    Blocking(blocking::Lease),
}

impl AnyClient {
    /// Opens a client of this face.
    pub fn open(face: Face, builder: ClientBuilder) -> Result<Self, Error> {
        match face {
            Face::Async => runtime().block_on(builder.open()).map(Self::Async),
            Face::Blocking => builder.open_blocking().map(Self::Blocking),
        }
    }

    /// As `Client::lock`.
    pub fn lock(&self, name: &str) -> AnyLock {
        match self {
            Self::Async(client) => AnyLock::Async(client.lock(name)),
            Self::Blocking(client) => AnyLock::Blocking(client.lock(name)),
        }
    }

    /// The reader's side of `Client::rw_lock`.
    pub fn reader(&self, name: &str) -> AnyLock {
        match self {
            Self::Async(client) => AnyLock::Async(client.rw_lock(name).read().clone()),
            Self::Blocking(client) => AnyLock::Blocking(client.rw_lock(name).read().clone()),
        }
    }

    /// The writer's side of `Client::rw_lock`.
    pub fn writer(&self, name: &str) -> AnyLock {
        match self {
            Self::Async(client) => AnyLock::Async(client.rw_lock(name).write().clone()),
            Self::Blocking(client) => AnyLock::Blocking(client.rw_lock(name).write().clone()),
        }
    }

    /// As `Client::semaphore`.
    pub fn semaphore(&self, name: &str, permits: u32) -> AnyLock {
        match self {
            Self::Async(client) => AnyLock::Async(client.semaphore(name, permits)),
            Self::Blocking(client) => AnyLock::Blocking(client.semaphore(name, permits)),
        }
    }

    /// As `Client::multi_lock`.
    pub fn multi_lock(&self, names: &[&str]) -> AnyLock {
        match self {
            Self::Async(client) => AnyLock::Async(client.multi_lock(names)),
            Self::Blocking(client) => AnyLock::Blocking(client.multi_lock(names)),
        }
    }

    /// As `Client::resume_lease`.
    pub fn resume_lease(&self, handle: &LeaseHandle) -> Result<AnyLease, Error> {
        match self {
            Self::Async(client) => runtime().block_on(client.resume_lease(handle)).map(AnyLease::Async),
            Self::Blocking(client) => client.resume_lease(handle).map(AnyLease::Blocking),
        }
    }

    /// As `Client::close`.
    pub fn close(&self) -> Result<usize, Error> {
        either!(Self, self, client => client.close())
    }

    /// As `Client::doctor`.
    pub fn doctor(&self) -> Result<Vec<Finding>, Error> {
        either!(Self, self, client => client.doctor())
    }

    /// As `Client::release_all`.
    pub fn release_all(&self) -> Result<usize, Error> {
        either!(Self, self, client => client.release_all())
    }

    /// As `Client::locks`.
    pub fn locks(&self, page: Option<u64>) -> Result<LockPage, Error> {
        either!(Self, self, client => client.locks(page))
    }

    /// As `Client::limiters`.
    pub fn limiters(&self, kind: LimitKind, page: Option<u64>) -> Result<LimiterPage, Error> {
        either!(Self, self, client => client.limiters(kind, page))
    }

    /// As `Client::queue_names`.
    pub fn queue_names(&self, page: Option<u64>) -> Result<QueuePage, Error> {
        either!(Self, self, client => client.queue_names(page))
    }

    /// As `Client::linger`.
    pub fn linger(&self, time: Duration) -> bool {
        either!(Self, self, client => client.linger(time))
    }

    /// As `Client::metrics`.
    pub fn metrics(&self) -> Metrics {
        plain!(Self, self, client => client.metrics()).expect("metrics")
    }

    /// As `Client::metrics_text`.
    pub fn metrics_text(&self) -> String {
        plain!(Self, self, client => client.metrics_text()).expect("metrics")
    }

    /// All pages of `Client::locks`, sorted and without repetitions.
    pub fn all_locks(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut page = None;
        loop {
            let listing = self.locks(page).expect("a listing");
            names.extend(listing.names);
            page = listing.next;
            if page.is_none() {
                names.sort();
                names.dedup();
                return names;
            }
        }
    }
}

impl AnyLock {
    /// As `Lock::reentrant`.
    pub fn reentrant(&self, owner: &str) -> Self {
        match self {
            Self::Async(lock) => Self::Async(lock.reentrant(owner)),
            Self::Blocking(lock) => Self::Blocking(lock.reentrant(owner)),
        }
    }

    /// As `Lock::acquire`.
    pub fn acquire(&self, options: LockOptions) -> Result<AnyLease, Error> {
        match self {
            Self::Async(lock) => runtime().block_on(lock.acquire(options)).map(AnyLease::Async),
            Self::Blocking(lock) => lock.acquire(options).map(AnyLease::Blocking),
        }
    }

    /// As `Lock::try_acquire`.
    pub fn try_acquire(&self, options: LockOptions) -> Result<Option<AnyLease>, Error> {
        Ok(match self {
            Self::Async(lock) => runtime().block_on(lock.try_acquire(options))?.map(AnyLease::Async),
            Self::Blocking(lock) => lock.try_acquire(options)?.map(AnyLease::Blocking),
        })
    }

    /// As `Lock::hold`, with a body that is given the fence.
    pub fn hold<T>(&self, options: LockOptions, body: impl FnOnce(Fence) -> T) -> Result<T, Error> {
        match self {
            Self::Async(lock) => {
                runtime().block_on(lock.hold(options, |lease| async move { body(lease.fence()) }))
            }
            Self::Blocking(lock) => lock.hold(options, |lease| body(lease.fence())),
        }
    }

    /// As `Lock::name`.
    pub fn name(&self) -> &str {
        plain!(Self, self, lock => lock.name())
    }

    /// As `Lock::holder`.
    pub fn holder(&self) -> Result<Option<Holder>, Error> {
        either!(Self, self, lock => lock.holder())
    }

    /// As `Lock::holders`.
    pub fn holders(&self) -> Result<Vec<Holder>, Error> {
        either!(Self, self, lock => lock.holders())
    }

    /// As `Lock::waiters`.
    pub fn who_waits(&self) -> Result<Vec<Waiter>, Error> {
        either!(Self, self, lock => lock.waiters())
    }

    /// As `Lock::is_locked`.
    pub fn is_locked(&self) -> Result<bool, Error> {
        either!(Self, self, lock => lock.is_locked())
    }

    /// As `Lock::break_lease`.
    pub fn break_lease(&self) -> Result<bool, Error> {
        either!(Self, self, lock => lock.break_lease())
    }

    /// How many wait for the lock; zero if it is free.
    pub fn waiters(&self) -> u64 {
        self.holder().expect("a holder").map_or(0, |holder| holder.waiters)
    }
}

impl AnyLease {
    /// As `Lease::name`.
    pub fn name(&self) -> &str {
        plain!(Self, self, lease => lease.name())
    }

    /// As `Lease::fence`.
    pub fn fence(&self) -> Fence {
        plain!(Self, self, lease => lease.fence())
    }

    /// As `Lease::fences`.
    pub fn fences(&self) -> Vec<(String, Fence)> {
        plain!(Self, self, lease => lease.fences())
    }

    /// As `Lease::token`.
    pub fn token(&self) -> &Token {
        plain!(Self, self, lease => lease.token())
    }

    /// As `Lease::remaining`.
    pub fn remaining(&self) -> Duration {
        plain!(Self, self, lease => lease.remaining())
    }

    /// As `Lease::is_valid`.
    pub fn is_valid(&self) -> bool {
        plain!(Self, self, lease => lease.is_valid())
    }

    /// As `Lease::loss`.
    pub fn loss(&self) -> Option<LossReason> {
        plain!(Self, self, lease => lease.loss())
    }

    /// Waits for the loss signal; true if it came within `time`.
    pub fn wait_lost(&self, time: Duration) -> bool {
        match self {
            Self::Async(lease) => {
                runtime().block_on(async { tokio::time::timeout(time, lease.lost()).await.is_ok() })
            }
            Self::Blocking(lease) => lease.wait_lost(time),
        }
    }

    /// As `Lease::extend`.
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        either!(Self, self, lease => lease.extend(ttl))
    }

    /// As `Lease::extend_exact`.
    pub fn extend_exact(&self, ttl: Duration) -> Result<(), Error> {
        either!(Self, self, lease => lease.extend_exact(ttl))
    }

    /// As `Lease::downgrade`.
    pub fn downgrade(&self) -> Result<(), Error> {
        either!(Self, self, lease => lease.downgrade())
    }

    /// As `Lease::upgrade`.
    pub fn upgrade(&self) -> Result<bool, Error> {
        either!(Self, self, lease => lease.upgrade())
    }

    /// As `Lease::release`.
    pub fn release(&self) -> Result<(), Error> {
        either!(Self, self, lease => lease.release())
    }

    /// As `Lease::release_with_cooldown`.
    pub fn release_with_cooldown(&self, cooldown: Duration) -> Result<(), Error> {
        either!(Self, self, lease => lease.release_with_cooldown(cooldown))
    }

    /// As `Lease::check`.
    pub fn check(&self) -> Result<(), Error> {
        plain!(Self, self, lease => lease.check())
    }

    /// As `Lease::detach`.
    pub fn detach(&self, ttl: Duration) -> Result<LeaseHandle, Error> {
        either!(Self, self, lease => lease.detach(ttl))
    }
}
