//! Where locks live. A store performs one verb at a time, as one atomic step.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::{Clock, Moment};
use crate::base::error::{Error, ErrorKind};
use crate::base::name::{LimiterName, LockKind, LockName, Prefixes, QueueName};
use crate::base::wake::Hub;
use crate::protocol::{Failure, FailureKind, LimitKind, Reply, Request};

mod features;
mod finding;
pub(crate) mod open;
#[cfg(feature = "quorum")]
mod quorum;
#[cfg(feature = "redis")]
#[cfg_attr(
    not(all(feature = "cluster", feature = "quorum")),
    allow(dead_code, reason = "some of it is for several servers only")
)]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod url;

pub use finding::{Finding, Health};

#[cfg(not(any(feature = "redis", feature = "sqlite")))]
compile_error!(
    "stanchion without a store can open nothing: enable its cargo feature `redis` or `sqlite`, or its default features"
);

/// A reply that will come.
pub type Pending<'a> = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send + 'a>>;

/// A request that was sent: waits for the reply.
pub type Begun<'a> = Box<dyn FnOnce() -> Result<Reply, Failure> + 'a>;

/// The callback for the number of each hinted waiter.
pub type Deliver = Arc<dyn Fn(u64) + Send + Sync>;

/// Lasts as long as hints come.
pub type Listening = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A channel of hints that opens.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Listening, Failure>> + Send + 'a>>;

/// The callback for the replies to many requests: the number of a request, and its result.
pub type Hear<'a, T> = &'a mut dyn FnMut(usize, Result<T, Failure>);

/// A place where locks live.
pub trait Store: Send + Sync + fmt::Debug {
    /// Performs one verb on the calling thread; gives up at `until`.
    fn perform(&self, request: &Request, until: Moment) -> Result<Reply, Failure>;

    /// Sends a request now and reads the reply later, if nothing has to be waited for before it can be sent.
    fn begin<'a>(&'a self, _request: &'a Request, _until: Moment) -> Option<Begun<'a>> {
        None
    }

    /// Performs one verb on the running tokio runtime; gives up at `until`.
    fn perform_async<'a>(&'a self, request: &'a Request, until: Moment) -> Pending<'a>;

    /// Performs many verbs, in one round trip to each server if the store has such a thing. Calls `hear` with the
    /// number of each request and its reply, as they come.
    fn perform_all(&self, requests: &[Request], until: Moment, hear: Hear<'_, Reply>) {
        requests.iter().enumerate().for_each(|(number, request)| hear(number, self.perform(request, until)));
    }

    /// Whether these locks can be taken by one [`AcquireAll`](crate::protocol::AcquireAll).
    fn can_acquire_all(&self, _names: &mut dyn Iterator<Item = &LockName>) -> bool {
        false
    }

    /// Opens the channel through which hints for this client's waiters come. `None` if none is needed,
    /// because all hints are delivered to the hub directly.
    fn listen(&self, until: Moment) -> Result<Option<Box<dyn Hints>>, Failure>;

    /// As [`Store::listen`], in a turn of a host's event loop, which then delivers the hints; `None` if that cannot be.
    fn listen_hosted(&self, _until: Moment, _deliver: Deliver) -> Option<Opening<'_>> {
        None
    }

    /// Makes sure, once, that the store can be used.
    fn check(&self, until: Moment) -> Result<(), Failure>;

    /// What the store is like, and what follows for the promises.
    fn doctor(&self, until: Moment) -> Result<Vec<Finding>, Failure>;

    /// In a forked child: closes what was inherited, as far as that is safe.
    fn close_inherited(&self) {}

    /// Closes what is open: no request will come any more.
    fn close(&self);

    /// Names of locks of this kind that are held, a page at a time: pass zero first, then what was returned,
    /// until it is zero again.
    fn list(&self, kind: LockKind, cursor: u64, until: Moment) -> Result<(u64, Vec<LockName>), Failure>;

    /// Limiters of this kind that something was taken of, and after how long that does not count any more; a page at a time,
    /// as [`Store::list`].
    fn list_limiters(&self, _kind: LimitKind, _cursor: u64, _until: Moment) -> Result<LimiterNames, Failure> {
        Err(Failure::new(FailureKind::Final(ErrorKind::Unsupported), "this store has no limiters"))
    }

    /// Names of queues that have a record, a page at a time, as [`Store::list`].
    fn list_queues(&self, cursor: u64, until: Moment) -> Result<(u64, Vec<QueueName>), Failure>;
}

/// A page of limiters, and where the next one begins.
pub(crate) type LimiterNames = (u64, Vec<(LimiterName, Duration)>);

/// The store at an address; `None` if the address is one for another opener.
pub(crate) type Opened = Option<Result<Arc<dyn Store>, Error>>;

/// An open channel of hints.
pub trait Hints: Send {
    /// Waits for hints, at most for `patience`; calls `deliver` with the number of each hinted waiter.
    fn read(&mut self, patience: Duration, deliver: &mut dyn FnMut(u64)) -> Result<(), Failure>;
}

/// What a store is opened with.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Prefixes of keys.
    pub(crate) prefixes: Prefixes,
    /// Where the time comes from.
    pub clock: Clock,
    /// Where hints go that need no channel.
    pub hub: Arc<Hub>,
    /// How far the store's clock may go back, and fences still grow.
    pub clock_margin: Duration,
}
