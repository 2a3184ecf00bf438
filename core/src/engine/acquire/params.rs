//! What an acquire is asked for, and what it results in.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::name::LockName;
use crate::base::token::Token;
use crate::protocol::{Digest, Fence, Permits, Waiter};

/// What a caller wants of a lock: its options, checked.
#[derive(Clone, Debug)]
pub struct LockPlan {
    /// Which lock.
    pub name: LockName,
    /// What is taken of it; `None` if it is exclusive.
    pub permits: Option<Permits>,
    /// Life of the lease.
    pub ttl: Duration,
    /// For how long it is renewed; `None` if it is not.
    pub max_hold: Option<Duration>,
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
    /// Whether other programs' lockers get a share of the grants.
    pub foreign_share: bool,
    /// How many computation times before its end a cached value counts as stale.
    pub early: f64,
    /// Whether the clock stands still until a test moves it.
    pub clock_stands: bool,
}

impl LockPlan {
    /// An exclusive lock, with a lease that is not renewed, and nothing special.
    pub fn new(name: LockName, ttl: Duration, wait: Duration, timeout: Duration, owner: Arc<str>) -> Self {
        Self {
            name,
            permits: None,
            ttl,
            max_hold: None,
            wait,
            timeout,
            fail_fast: false,
            can_do_without: false,
            adopt_after: None,
            owner,
            foreign_share: false,
            early: 0.0,
            clock_stands: false,
        }
    }

    pub(crate) fn only_tries(&self) -> bool {
        self.wait.is_zero()
    }

    /// How long all of it may take.
    pub(crate) fn longest(&self) -> Duration {
        if self.only_tries() { self.timeout } else { self.wait }
    }

    /// The same with less time to wait, but never with none: that would be a try.
    pub(crate) fn within(&self, left: Duration) -> Self {
        let least = if self.only_tries() { Duration::ZERO } else { Duration::from_millis(1) };
        Self { wait: left.max(least).min(self.wait), ..self.clone() }
    }
}

/// One call of an acquire.
#[derive(Clone, Debug)]
pub struct AcquireParams {
    /// What is asked for.
    pub plan: LockPlan,
    /// Fresh for every call.
    pub token: Token,
    /// One more than the highest fence seen.
    pub min_fence: Fence,
    /// Who to hint.
    pub waiter: Waiter,
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
