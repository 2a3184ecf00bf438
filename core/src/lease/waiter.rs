//! Who waits for a lock.

use std::time::{Duration, SystemTime};

use crate::protocol::{Reply, WaiterReply};
use crate::session::options::Owner;

/// A waiter for a lock, as the store lists it. Out of date as soon as it is read: for people and dashboards, not for
/// decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// The waiter's label; empty if unknown.
    pub label: String,
    /// The waiter's host; empty if unknown.
    pub host: String,
    /// The waiter's process id; zero if unknown.
    pub pid: u32,
    /// When it got in line, by the store's wall clock; `None` if unknown.
    pub since: Option<SystemTime>,
    /// For how long it has waited, by the store's clock; `None` if unknown.
    pub waiting: Option<Duration>,
    /// How many permits it waits for: 1 of an exclusive lock; of a read-write lock 1 as a reader, all as a writer.
    pub weight: u32,
}

impl Waiter {
    pub(crate) fn from_reply(reply: Reply) -> Vec<Self> {
        match reply {
            Reply::Waiters(waiters) => waiters.into_iter().map(Self::new).collect(),
            _ => Vec::new(),
        }
    }

    fn new(reply: WaiterReply) -> Self {
        let WaiterReply { owner, since_ms, waiting, weight } = reply;
        let Owner { pid, host, label } = Owner::parse(&owner);
        let since = (since_ms > 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_millis(since_ms));
        Self { label, host, pid, since, waiting, weight }
    }
}
