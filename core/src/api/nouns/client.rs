//! The client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::face::{aside, both, drive, driving, either, example};
use super::lease::Lease;
use super::lock::{Lock, RwLock};
use super::queue::{Queue, Queues};
use crate::api::close::{Close, release_all};
use crate::api::listing::{LimiterPage, LockPage, QueuePage, list, list_limiters, list_queues};
use crate::base::error::Error;
use crate::base::name::LockKind;
use crate::engine::several;
use crate::lease::held_lock::HeldLock;
use crate::lease::lease_handle::LeaseHandle;
use crate::lease::lease_set::LeaseSet;
use crate::lease::lock_target::{LockTarget, Part};
use crate::protocol::LimitKind;
use crate::session::Session;
use crate::session::builder::ClientBuilder;
use crate::session::doctor::doctor;
use crate::session::metrics::Metrics;
use crate::store::Finding;

/// A connection to a store,
#[doc = either!("for async programs on tokio.", "for programs without async.")]
/// Cheap to clone; one per process is enough.
///
/// After a fork the child may go on using it: it connects anew there.
#[derive(Clone)]
pub struct Client {
    pub(crate) session: Arc<Session>,
}

#[both]
impl Client {
    /// Opens a store: `redis://`, `redis+unix://`, `redis-sentinel://`, `redis-cluster://`, `redis-quorum://`,
    /// with TLS `rediss://` and so on, `sqlite:PATH` or `memory:`.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad URL; `StoreUnavailable`, `Denied`, `Unsupported` or `Corrupt` if the store
    /// cannot be used.
    pub async fn open(url: &str) -> Result<Self, Error> {
        connect(Self::builder(url)).await
    }

    /// Opens a store with options; ends with
    #[doc = either!("[`ClientBuilder::open`].", "[`ClientBuilder::open_blocking`].")]
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder::new(Some(url.to_owned()))
    }

    /// Opens the store that the environment variable `STANCHION_URL` names; ends with
    #[doc = either!("[`ClientBuilder::open`].", "[`ClientBuilder::open_blocking`].")]
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
        let names = several::in_order(names);
        let named = |name: &&str| LockTarget::new(Arc::clone(&self.session), name, Part::Exclusive);
        let first = named(names.first().unwrap_or(&""));
        Lock::of_several(first, names.iter().skip(1).map(named).collect())
    }

    fn part(&self, name: &str, part: Part) -> Lock {
        Lock::new(LockTarget::new(Arc::clone(&self.session), name, part))
    }

    /// The queue with this name. No I/O; a bad name is reported when the queue is used.
    pub fn queue(&self, name: &str) -> Queue {
        Queue::new(Arc::clone(&self.session), name)
    }

    /// Several queues, to claim from in this order.
    pub fn queues(&self, names: &[&str]) -> Queues {
        Queues::new(&self.session, names)
    }

    /// Continues a lease that [`Lease::detach`] ended, here or in another process. A handle works once.
    ///
    /// # Errors
    /// `LeaseLost` if the handle was used already or its lease has ended; `LeaseExpired` if it ran out
    /// meanwhile; `InvalidArgument` if it is of another prefix.
    pub async fn resume_lease(&self, handle: &LeaseHandle) -> Result<Lease, Error> {
        let live = self.session.live()?;
        let (mut machine, token) = handle.resume(live)?;
        let answer = drive(live, &mut machine, None, None).await?;
        HeldLock::resumed(live, handle, token, &answer).map(|held| Lease::new(LeaseSet::new(held, None)))
    }

    /// Releases every lease of this client that is still held, and says how many were. For shutdown.
    ///
    /// # Errors
    /// The first error other than a lost lease; the others are still released.
    pub async fn release_all(&self) -> Result<usize, Error> {
        let live = Arc::clone(self.session.live()?);
        driving("releasing", move || release_all(&live)).await
    }

    /// Closes the client, and with it all its clones: calls that wait end with `Closed`, and so does every later one;
    /// leases are released, and claims put back, uncounted. When this returns, its threads have ended and its
    /// connections are closed. How many leases were released. A second close does nothing.
    ///
    /// A worker is to be stopped before: one that runs ends, and what it works on is put back.
    #[doc = example!("close")]
    ///
    /// # Errors
    /// The first error of a release other than a lost lease; the client is closed nevertheless.
    pub async fn close(&self) -> Result<usize, Error> {
        let closing = Close::begin(&self.session);
        aside("closing", move || closing.finish()).await
    }

    /// Waits up to `time` for what this client does in the background, such as releasing leases that were
    /// dropped; whether it is done. For a program that is about to exit.
    pub async fn linger(&self, time: Duration) -> bool {
        let session = Arc::clone(&self.session);
        driving("lingering", move || Ok(session.linger(time))).await.unwrap_or(false)
    }

    /// What the store is like, and which promises hold on it. Takes and releases a lock named `stanchion-doctor`, some
    /// times.
    ///
    /// # Errors
    /// As [`Client::open`], if the store does not answer.
    pub async fn doctor(&self) -> Result<Vec<Finding>, Error> {
        let live = Arc::clone(self.session.live()?);
        aside("the doctor", move || doctor(&live)).await
    }

    /// What this client has counted since it was opened in this process: acquires, leases, tasks, and how long things
    /// took. No I/O. docs/METRICS.md lists them.
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
    pub async fn locks(&self, page: Option<u64>) -> Result<LockPage, Error> {
        self.locks_of(LockKind::Exclusive, page).await
    }

    /// As [`Client::locks`], of another kind.
    pub async fn locks_of(&self, kind: LockKind, page: Option<u64>) -> Result<LockPage, Error> {
        let live = Arc::clone(self.session.live()?);
        aside("the listing", move || list(&live, kind, page)).await
    }

    /// Limiters of this kind of which something that was taken still counts, a page at a time: `None` first, then what the
    /// last page gave.
    ///
    /// # Errors
    /// `StoreUnavailable` or `Denied` from the store; `Unsupported` on a quorum.
    pub async fn limiters(&self, kind: LimitKind, page: Option<u64>) -> Result<LimiterPage, Error> {
        let live = Arc::clone(self.session.live()?);
        aside("the listing", move || list_limiters(&live, kind, page)).await
    }

    /// Names of queues that have tasks or settings, or had some in the last 7 days, a page at a time: `None`
    /// first, then what the last page gave.
    pub async fn queue_names(&self, page: Option<u64>) -> Result<QueuePage, Error> {
        let live = Arc::clone(self.session.live()?);
        aside("the listing", move || list_queues(&live, page)).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(either!("Client", "blocking::Client"))
    }
}

/// Opens the store: connects once and checks the server's version.
#[both]
pub(crate) async fn connect(builder: ClientBuilder) -> Result<Client, Error> {
    let session = Arc::new(builder.session()?);
    let live = Arc::clone(session.live()?);
    let check =
        move || live.store.check(live.give_up()).map_err(|failure| Error::from(failure).during("open", ""));
    aside("opening the store", check).await?;
    Ok(Client { session })
}
