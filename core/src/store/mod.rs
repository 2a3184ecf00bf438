//! Where locks live. A store performs one verb at a time, as one atomic step.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, Moment};
use crate::error::{Error, ErrorKind};
use crate::examine::Finding;
use crate::name::{LockKind, LockName, Prefixes, QueueName};
use crate::verbs::{Reply, Request};
use crate::wake::Hub;

mod quorum;
pub mod redis;
pub mod sqlite;
pub mod url;

pub(crate) use quorum::QuorumStore;

/// How long an offered lock waits for its waiter's confirmation. Long enough for a busy process, short
/// enough that a dead waiter costs the next one little.
pub const GRANT_WINDOW: Duration = Duration::from_secs(1);
/// A waiter whose last poll is older than this counts as dead: three polls and a half.
pub const WAITER_LIVE: Duration = Duration::from_millis(2_500);
/// How long an ended token is remembered: longer than any copy of its acquire can be on its way.
pub const ENDED_TTL: Duration = Duration::from_secs(60);
/// How long a lock's record (fence, owner) outlives its last use.
pub const META_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often the record's life is renewed; doing it at every grant would cost a call each. So long a lock is calm.
pub const META_REFRESH: Duration = Duration::from_secs(3600);
/// How long the waiting line outlives its last poll.
pub const LINE_TTL: Duration = Duration::from_secs(60);
/// Hand-offs in a row after which a client with `foreign_share` gives other lockers a turn.
pub const SHARE_AFTER: u32 = 32;
/// How long that turn is: twice the usual polling pause of older lockers.
pub const SHARE_WINDOW: Duration = Duration::from_millis(200);
/// A foreign value that lives longer than this counts as never expiring.
pub const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// How many waiters one hand-off looks at.
pub const LINE_SCAN: usize = 64;
/// How many locks are taken in one step.
pub const ACQUIRE_ALL_MAX: usize = 64;
/// How many waiters are offered permits at once; each that confirms makes the store look for more.
pub const OFFERS_MAX: usize = 16;
/// How many leases that have ended one script forgets.
pub const ENDED_SCAN: usize = 64;
/// How many holders of one lock are told.
pub const HOLDERS_MAX: usize = 100;
/// How many of those who wait for one lock are told.
pub const WAITERS_MAX: usize = 100;

/// How long the reply to a client's last call in a slot is kept: longer than any copy of it can be on its way.
pub const CALL_TTL: Duration = Duration::from_secs(600);
/// Tasks in one request at most: one script must not hold up the server.
pub const MAX_BATCH: usize = 1_000;
/// Bytes of payloads that one claim, pop, peek or list answers with at most, but always one task.
pub const MAX_REPLY_BYTES: usize = 8 << 20;
/// How many due tasks, ended leases or intake entries one script moves at most.
pub const PROMOTE_MAX: usize = 1_000;
/// A waiting claim whose last poll is older than this counts as gone: more than its longest pause.
pub const IDLE_LIVE: Duration = Duration::from_millis(7_500);
/// Dead records kept at most, unless the queue is configured otherwise.
pub const DEAD_MAX: u64 = 10_000;
/// How long a dead record is kept, unless the queue is configured otherwise.
pub const DEAD_AGE: Duration = Duration::from_secs(90 * 24 * 3600);
/// Bytes of payloads in dead records at most, unless the queue is configured otherwise.
pub const DEAD_BYTES: u64 = 256 << 20;
/// Dead records that one script drops at most.
pub const DEAD_TRIM: usize = 100;
/// A score of the intake above this is no Unix time in seconds (it is in the year 5138).
pub const INTAKE_SCORE_MAX: u64 = 100_000_000_000;
/// What a task of the intake gets: plain ZADDs carry no options.
pub const INTAKE_MAX_ATTEMPTS: u32 = 8;

/// A reply that will come.
pub type Pending<'a> = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send + 'a>>;

/// A request that was sent: hears the answer.
pub type Begun<'a> = Box<dyn FnOnce() -> Result<Reply, Failure> + 'a>;

/// Who is told the replies to many requests: the number of a request, and what came of it.
pub type Hear<'a, T> = &'a mut dyn FnMut(usize, Result<T, Failure>);

/// A place where locks live.
pub trait Store: Send + Sync + fmt::Debug {
    /// Performs one verb on the calling thread; gives up at `until`.
    fn perform(&self, request: &Request, until: Moment) -> Result<Reply, Failure>;

    /// Sends a request now and hears the answer later, if nothing has to be waited for before it can be sent.
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

    /// Whether these locks can be taken by one [`AcquireAll`](crate::verbs::AcquireAll).
    fn can_acquire_all(&self, _names: &mut dyn Iterator<Item = &LockName>) -> bool {
        false
    }

    /// Opens the channel through which hints for this client's waiters come. `None` if none is needed,
    /// because all hints are delivered to the hub directly.
    fn listen(&self, until: Moment) -> Result<Option<Box<dyn Hints>>, Failure>;

    /// Makes sure, once, that the store can be used.
    fn check(&self, until: Moment) -> Result<(), Failure>;

    /// What the store is like, and what follows for the promises.
    fn examine(&self, until: Moment) -> Result<Vec<Finding>, Failure>;

    /// In a forked child: closes what was inherited, as far as that is safe.
    fn close_inherited(&self) {}

    /// Names of locks of this kind that are held, a page at a time: pass zero first, then what was returned,
    /// until it is zero again.
    fn list(&self, kind: LockKind, cursor: u64, until: Moment) -> Result<(u64, Vec<LockName>), Failure>;

    /// Names of queues that have a record, a page at a time, as [`Store::list`].
    fn list_queues(&self, cursor: u64, until: Moment) -> Result<(u64, Vec<QueueName>), Failure>;
}

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
    /// Who to tell of hints that need no channel.
    pub hub: Arc<Hub>,
}

/// Why a request has no reply.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What happened and what to do next, without secrets.
    pub message: String,
}

/// What is known about a request that has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It was never sent: no connection.
    NotSent,
    /// It was sent, and may have been carried out.
    Lost,
    /// The store refused it for now and changed nothing.
    Refused,
    /// It may have been carried out, and must not be sent again: what takes it back may come late, and would end what
    /// a later sending is granted.
    Spent,
    /// The store refuses it for good, with this kind of error.
    Final(ErrorKind),
}

impl Failure {
    /// A failure with its explanation.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Whether the request may have been carried out, in full or in part: a script ends where a right is
    /// missing, and an answer that makes no sense is an answer.
    pub fn may_be_done(&self) -> bool {
        let in_part = matches!(
            self.kind,
            FailureKind::Final(ErrorKind::Denied | ErrorKind::Corrupt | ErrorKind::Internal)
        );
        in_part || matches!(self.kind, FailureKind::Lost | FailureKind::Spent)
    }

    /// Whether the same request may be sent again.
    pub fn is_retryable(&self) -> bool {
        !matches!(self.kind, FailureKind::Final(_) | FailureKind::Spent)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Final(kind) => kind,
            FailureKind::NotSent | FailureKind::Lost | FailureKind::Refused | FailureKind::Spent => {
                ErrorKind::StoreUnavailable
            }
        };
        Self::new(kind, failure.message)
    }
}
