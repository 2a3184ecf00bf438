//! Who holds a lock.

use std::time::{Duration, SystemTime};

use crate::protocol::{Fence, HeldAs, HolderReply, Reply};
use crate::session::options::Owner;

/// A holder of a lock, as the store returns it. Out of date as soon as it is read: for people and dashboards,
/// not for decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// How it is held: by a lease, by an offer to a waiter, by a cooldown, or by another program.
    pub held_as: HeldAs,
    /// The holder's label; empty if unknown.
    pub label: String,
    /// The holder's host; empty if unknown.
    pub host: String,
    /// The holder's process id; zero if unknown.
    pub pid: u32,
    /// The last fence granted or offered; [`Fence::NONE`] if there was none. Of a lock with several holders: this holder's.
    pub fence: Fence,
    /// When it was granted, by the store's wall clock; `None` if unknown.
    pub since: Option<SystemTime>,
    /// What is left of the holder's time; `None` if it never ends by itself.
    pub remaining: Option<Duration>,
    /// How many wait for the lock.
    pub waiters: u64,
    /// How many permits it has: 1 of an exclusive lock; of a read-write lock 1 as a reader, all as the writer.
    pub weight: u32,
}

impl Holder {
    pub(crate) fn from_reply(reply: Reply) -> Vec<Self> {
        match reply {
            Reply::Holder(holders) => holders.into_iter().map(Self::new).collect(),
            _ => Vec::new(),
        }
    }

    fn new(reply: HolderReply) -> Self {
        let HolderReply { held_as, fence, remaining, since_ms, owner, waiters, weight } = reply;
        let known = held_as == HeldAs::Lease && !owner.is_empty();
        let owner = Owner::parse(if known { &owner } else { "" });
        let Owner { pid, host, label } = owner;
        let since = (since_ms > 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_millis(since_ms));
        Self { held_as, label, host, pid, fence, since, remaining, waiters, weight }
    }
}
