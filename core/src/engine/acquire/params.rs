//! What an acquire is asked for, and what it results in.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::name::LockName;
use crate::base::token::Token;
use crate::protocol::{Digest, Fence, Permits, Waiter};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct AcquireParams {
    /// Which lock.
    pub name: LockName,
    /// What is taken of it; `None` if it is exclusive.
    pub permits: Option<Permits>,
    /// Fresh for every call.
    pub token: Token,
    /// Life of the lease.
    pub ttl: Duration,
    /// How long to wait; zero only tries.
    pub wait: Duration,
    /// How long a try may take when the store is slow.
    pub timeout: Duration,
    /// Give up at once when the holder's ttl is longer than the wait.
    pub fail_fast: bool,
    /// The caller goes on without the store if that does not answer for a second.
    pub can_do_without: bool,
    /// Take over foreign values that never expire, after this time.
    pub adopt_after: Option<Duration>,
    /// Shown by `holder`.
    pub owner: Arc<str>,
    /// One more than the highest fence seen.
    pub min_fence: Fence,
    /// Who to hint.
    pub waiter: Waiter,
    /// Whether other programs' lockers get a share of the grants.
    pub foreign_share: bool,
    /// How many computation times before its end a cached value counts as stale.
    pub early: f64,
}

/// A lock that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The fence of the grant.
    pub fence: Fence,
    /// Until when the lease is surely ours.
    pub deadline: Moment,
    /// Whether another copy of the acquire may still be on its way.
    pub resent: bool,
}

/// How an acquire ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The lock is ours.
    Granted(Grant),
    /// A try found it busy.
    Busy,
    /// The value is cached.
    Cached {
        /// Its bytes.
        value: Vec<u8>,
        /// When the request was sent that found it.
        asked: Moment,
    },
}

/// A foreign value that never expires: since when it has been seen unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignHolder {
    /// Which value.
    pub digest: Digest,
    /// First seen.
    pub since: Moment,
}
