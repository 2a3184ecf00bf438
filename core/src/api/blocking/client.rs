//! The blocking client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::blocking::{Lease, Lock, Queue, Queues, RwLock};
use crate::api::client::{LockPage, QueuePage, list, list_queues};
use crate::api::close::{Close, release_all};
use crate::base::error::Error;
use crate::base::name::LockKind;
use crate::driver::drive_blocking;
use crate::driver::host_turn::attend_call;
use crate::lease::grip::Grip;
use crate::lease::handle::LeaseHandle;
use crate::lease::held::Held;
use crate::lease::named::{Named, Part};
use crate::session::Session;
use crate::session::builder::ClientBuilder;
use crate::session::examine::examine;
use crate::session::metrics::Metrics;
use crate::store::Finding;

/// A connection to a store, for programs without async. Cheap to clone; one per process is enough.
///
/// After a fork the child may go on using it: it connects anew there.
#[derive(Clone)]
pub struct Client {
    pub(crate) session: Arc<Session>,
}

impl Client {
    /// Opens a store: `redis://`, `redis+unix://`, `redis-sentinel://`, `redis-cluster://`, `redis-quorum://`,
    /// with TLS `rediss://` and so on, `sqlite:PATH` or `memory:`.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad URL; `StoreUnavailable`, `Denied`, `Unsupported` or `Corrupt` if the store
    /// cannot be used.
    pub fn open(url: &str) -> Result<Self, Error> {
        Self::builder(url).open_blocking()
    }

    /// Opens a store with options; ends with [`ClientBuilder::open_blocking`].
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder::new(Some(url.to_owned()))
    }

    /// Opens the store that the environment variable `STANCHION_URL` names; ends with
    /// [`ClientBuilder::open_blocking`].
    pub fn from_env() -> ClientBuilder {
        ClientBuilder::new(None)
    }

    /// The lock with this name. No I/O; a bad name is reported when the lock is used.
    pub fn lock(&self, name: &str) -> Lock {
        self.part(name, Part::Exclusive)
    }

    /// The read-write lock with this name: many readers, or one writer. Those who wait are served in the order in
    /// which they came, so that neither readers nor writers starve. No I/O.
    pub fn rw_lock(&self, name: &str) -> RwLock {
        RwLock { read: self.part(name, Part::Read), write: self.part(name, Part::Write) }
    }

    /// The semaphore with this name and so many permits (1 to 1,000,000). An acquire takes one, or
    /// [`LockOptions::weight`](crate::LockOptions::weight). While anybody holds or waits for permits, all must
    /// agree on their number; another one is `InvalidArgument`. No I/O.
    pub fn semaphore(&self, name: &str, permits: u32) -> Lock {
        self.part(name, Part::Permits(permits))
    }

    /// Several locks that are acquired together, all or none: one after another in the order of their names, so
    /// that two callers never wait for each other. Names that come twice count once; without any name an acquire is
    /// `InvalidArgument`. No I/O.
    pub fn multi_lock(&self, names: &[&str]) -> Lock {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.dedup();
        let named = |name: &&str| Named::new(Arc::clone(&self.session), name, Part::Exclusive);
        let first = named(names.first().unwrap_or(&""));
        Lock::of_several(first, names.iter().skip(1).map(named).collect())
    }

    fn part(&self, name: &str, part: Part) -> Lock {
        Lock::new(Named::new(Arc::clone(&self.session), name, part))
    }

    /// The queue with this name. No I/O; a bad name is reported when the queue is used.
    pub fn queue(&self, name: &str) -> Queue {
        Queue::new(Arc::clone(&self.session), name)
    }

    /// Several queues, to claim from in this order.
    pub fn queues(&self, names: &[&str]) -> Queues {
        Queues::new(&self.session, names)
    }

    /// Continues a lease that [`Lease::into_handle`] detached, here or in another process. A handle works once.
    ///
    /// # Errors
    /// `LeaseLost` if the handle was used already or its lease has ended; `LeaseExpired` if it ran out
    /// meanwhile; `InvalidArgument` if it is of another prefix.
    pub fn resume_lease(&self, handle: &LeaseHandle) -> Result<Lease, Error> {
        let live = self.session.live()?;
        let (mut machine, token) = handle.resume(live)?;
        let answer = drive_blocking(live, &mut machine, None, None)?;
        Held::resumed(live, handle, token, &answer).map(|held| Lease::new(Grip::new(held, None)))
    }

    /// Releases every lease of this client that is still held, and says how many were. For shutdown.
    ///
    /// # Errors
    /// The first error other than a lost lease; the others are still released.
    pub fn release_all(&self) -> Result<usize, Error> {
        let live = self.session.live()?;
        release_all(live)
    }

    /// Closes the client, and with it all its clones: calls that wait end with `Closed`, and so does every later one;
    /// leases are released, and claims put back, uncounted. When this returns, its threads have ended and its
    /// connections are closed. How many leases were released. A second close does nothing.
    ///
    /// A worker is to be stopped before: one that runs ends, and what it works on is put back.
    ///
    /// ```
    /// # fn main() -> Result<(), stanchion::Error> {
    /// use stanchion::{ErrorKind, LockOptions, blocking::Client};
    ///
    /// let client = Client::open("memory:")?;
    /// let lease = client.lock("a").acquire(LockOptions::new())?;
    /// assert_eq!(client.close()?, 1);
    /// assert!(!lease.is_valid());
    /// assert_eq!(client.lock("a").is_locked().unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first error of a release other than a lost lease; the client is closed nevertheless.
    pub fn close(&self) -> Result<usize, Error> {
        let closing = Close::begin(&self.session);
        attend_call(move || closing.finish())
    }

    /// Waits up to `time` for what this client does in the background, such as releasing leases that were
    /// dropped; whether it is done. For a program that is about to exit.
    pub fn linger(&self, time: Duration) -> bool {
        self.session.linger(time)
    }

    /// What the store is like, and which promises hold on it. Takes and releases a lock named `stanchion-doctor`, some
    /// times.
    ///
    /// # Errors
    /// As [`Client::open`], if the store does not answer.
    pub fn examine(&self) -> Result<Vec<Finding>, Error> {
        let live = Arc::clone(self.session.live()?);
        attend_call(move || examine(&live))
    }

    /// What this client has counted since it was opened in this process: acquires, leases, tasks, and how long things
    /// took. No I/O. The README has the list.
    ///
    /// # Errors
    /// `Forked` for a `memory:` store in a child process.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        self.session.life()?.meters.snapshot()
    }

    /// The same in Prometheus' text format 0.0.4, to be served as `text/plain; version=0.0.4`.
    ///
    /// # Errors
    /// As [`Client::metrics`].
    pub fn metrics_text(&self) -> Result<String, Error> {
        self.session.life()?.meters.text()
    }

    /// Names of exclusive locks that are held now, a page at a time: `None` first, then what the last page gave.
    pub fn locks(&self, page: Option<u64>) -> Result<LockPage, Error> {
        self.locks_of(LockKind::Exclusive, page)
    }

    /// As [`Client::locks`], of another kind.
    pub fn locks_of(&self, kind: LockKind, page: Option<u64>) -> Result<LockPage, Error> {
        let live = Arc::clone(self.session.live()?);
        attend_call(move || list(&live, kind, page))
    }

    /// Names of queues that have tasks or settings, or had some in the last 7 days, a page at a time: `None`
    /// first, then what the last page gave.
    pub fn queue_names(&self, page: Option<u64>) -> Result<QueuePage, Error> {
        let live = Arc::clone(self.session.live()?);
        attend_call(move || list_queues(&live, page))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blocking::Client")
    }
}

impl ClientBuilder {
    /// Opens the store for blocking use: connects once and checks the server's version.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub fn open_blocking(self) -> Result<Client, Error> {
        let session = Arc::new(self.session()?);
        let live = Arc::clone(session.live()?);
        attend_call(move || {
            live.store.check(live.give_up()).map_err(|failure| Error::from(failure).during("open", ""))
        })?;
        Ok(Client { session })
    }
}
