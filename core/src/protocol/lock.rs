//! The verbs of locks.

use std::sync::Arc;
use std::time::Duration;

use crate::base::name::LockName;
use crate::base::token::Token;
use crate::protocol::{Fence, Waiter};

/// How much of a read-write lock or a semaphore a lease takes. A reader has one permit, a writer all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permits {
    /// How many permits the lease has.
    pub weight: u32,
    /// How many there are.
    pub limit: u32,
}

impl Permits {
    /// Whether nobody else can hold anything beside it.
    pub fn excludes_all(self) -> bool {
        self.weight == self.limit
    }
}

/// Take the lock, confirm an offer, or wait for it.
#[derive(Clone, Debug)]
pub struct Acquire {
    /// Which lock.
    pub name: LockName,
    /// What is taken of it; `None` if it is exclusive.
    pub permits: Option<Permits>,
    /// The same for every attempt of one call of the user.
    pub token: Token,
    /// How long the store keeps the lease.
    pub ttl: Duration,
    /// The new fence is at least this: one more than the highest this client has seen.
    pub min_fence: Fence,
    /// Who to hint when the lock is offered. `None` never registers.
    pub waiter: Option<Waiter>,
    /// If set, answer `Busy` instead of registering when the holder's remaining ttl is longer.
    pub patience: Option<Duration>,
    /// Shown by `holder`.
    pub owner: Arc<str>,
    /// Take over this very foreign value if it still never expires.
    pub adopt: Option<Digest>,
    /// Of a cached value: compute it anew so many computation times before it is stale.
    pub early: f64,
    /// Of a cached value: look for one that is fresh first, and do the rest only if there is none. Where such a look is
    /// cheaper, the rest then takes a round trip more.
    pub looks: bool,
}

/// SHA-1 of a foreign value, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest(pub Box<str>);

/// The answer to [`Acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireReply {
    /// The lock is this token's.
    Granted {
        /// The fence of the grant.
        fence: Fence,
        /// What is left of the lease, counted from when the store answered.
        ttl: Duration,
    },
    /// Registered; poll again.
    Waiting(Obstacle),
    /// Busy, and not registered.
    Busy(Obstacle),
    /// This token's wait or lease has ended; nothing was changed.
    Ended,
    /// The semaphore is in use with so many permits in all, not with the number asked for; nothing was changed.
    OtherLimit(u32),
    /// The cached value. This token does not wait any more.
    Cached(Vec<u8>),
}

/// What stands in the way of an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// How long the present holder's key has to live; `None` if it never expires. Less, if the store wants to be asked
    /// again earlier.
    pub remaining: Option<Duration>,
    /// The digest of a foreign value that never expires, or not within a year.
    pub unexpiring: Option<Digest>,
    /// How many are in line before this one; zero if it is to ask again as soon as the first.
    pub rank: u32,
}

/// Take several exclusive locks, all or none. Whoever finds one of them busy waits for each in turn, by
/// [`Acquire`].
#[derive(Clone, Debug)]
pub struct AcquireAll {
    /// Which locks, and the least fence of each.
    pub locks: Vec<(LockName, Fence)>,
    /// The same for all of them, and for every attempt of one call of the user.
    pub token: Token,
    /// How long the store keeps the leases.
    pub ttl: Duration,
    /// Shown by `holder`.
    pub owner: Arc<str>,
}

/// The answer to [`AcquireAll`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireAllReply {
    /// All of them are this token's, for the whole ttl.
    Granted(Vec<Fence>),
    /// One of them is held, or somebody waits for it or did a moment ago; nothing was changed.
    Busy,
    /// This token's wait or lease has ended; nothing was changed.
    Ended,
}

/// Prolong a lease; never shortens it, unless it is exact.
#[derive(Clone, Debug)]
pub struct Extend {
    /// Which lock.
    pub name: LockName,
    /// Whose lease.
    pub token: Token,
    /// At least this much from now.
    pub ttl: Duration,
    /// Not more either: the lease ends then, also if it had longer to live.
    pub exact: bool,
    /// How an exclusive lock was granted.
    pub granted: Option<Granted>,
    /// Take the lock as it was granted, if it is free: this server of a quorum has forgotten it, while most of the
    /// others have not. Not if the token has ended, or the lease was broken.
    pub again: bool,
}

impl Extend {
    /// Prolongs what is there.
    pub fn new(name: LockName, token: Token, ttl: Duration) -> Self {
        Self { name, token, ttl, exact: false, granted: None, again: false }
    }
}

/// What a grant wrote beside the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Its fence.
    pub fence: Fence,
    /// Shown by `holder`.
    pub owner: Arc<str>,
}

/// The answer to [`Extend`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtendReply {
    /// What is left of the lease now.
    Extended(Duration),
    /// The key is not this token's any more.
    Gone(Absence),
}

/// Give the lock back.
#[derive(Clone, Debug)]
pub struct Release {
    /// Which lock.
    pub name: LockName,
    /// Whose lease.
    pub token: Token,
    /// Keep the lock closed for this long.
    pub cooldown: Option<Duration>,
    /// Remember the token as ended: a late copy of an acquire may still be on its way.
    pub acquire_resent: bool,
    /// The lease's fence, if it may have ended before: a late copy of its acquire can have got in line
    /// again, and the lock may be offered to the token anew. The fence distinguishes the two.
    pub own_fence: Option<Fence>,
    /// Give lockers of other kinds a turn after many hand-offs in a row.
    pub foreign_share: bool,
}

/// The answer to [`Release`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseReply {
    /// The token was there and is gone now.
    Released,
    /// The key was not this token's any more.
    Gone(Absence),
}

/// What the store knows about a lock whose key does not hold our token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Absence {
    /// The last fence granted or offered; [`Fence::NONE`] if the store has no record of the lock.
    pub fence: Fence,
    /// The first fence of the store's present record.
    pub born: Fence,
    /// The last fence that `break_lease` ended; [`Fence::NONE`] if none.
    pub broken: Fence,
    /// Whether the key holds a value this library did not write.
    pub foreign: bool,
}

/// End a wait.
#[derive(Clone, Debug)]
pub struct Leave {
    /// Which lock.
    pub name: LockName,
    /// Whose wait.
    pub token: Token,
    /// Give lockers of other kinds a turn after many hand-offs in a row.
    pub foreign_share: bool,
}

/// Swap the token of a lease that was handed over.
#[derive(Clone, Debug)]
pub struct Resume {
    /// Which lock.
    pub name: LockName,
    /// The token in the handle.
    pub old: Token,
    /// The token that replaces it.
    pub new: Token,
    /// Takes an earlier swap back, also one that is yet to come: `old` is what that one gave, and is never had again.
    pub undo: bool,
    /// Shown by `holder`.
    pub owner: Arc<str>,
}

/// The answer to [`Resume`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeReply {
    /// The lease is the new token's.
    Resumed {
        /// Unchanged by the swap.
        fence: Fence,
        /// What is left of the lease.
        ttl: Duration,
        /// What it has of a lock that is not exclusive.
        permits: Option<Permits>,
    },
    /// The key held neither token.
    Gone(Absence),
}

/// Give back all permits of a lease but some: a writer becomes a reader.
#[derive(Clone, Debug)]
pub struct Downgrade {
    /// Which lock.
    pub name: LockName,
    /// Whose lease.
    pub token: Token,
    /// How many permits it keeps.
    pub weight: u32,
    /// The lease's fence, if it is known: a copy that arrives after a later upgrade changes nothing.
    pub fence: Option<Fence>,
}

/// The answer to [`Downgrade`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DowngradeReply {
    /// The lease has no more than the permits it asked to keep.
    Downgraded,
    /// The lease has ended.
    Gone(Absence),
}

/// Take all permits of a lock if nobody else has any: a reader becomes a writer. It never waits, and may pass those in
/// line: none of them can come in before the reader leaves.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// Which lock.
    pub name: LockName,
    /// Whose lease.
    pub token: Token,
    /// How many permits there are.
    pub limit: u32,
}

/// The answer to [`Upgrade`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeReply {
    /// The lease has all permits. Its new fence is above those of all whom it excludes now.
    Upgraded(Fence),
    /// Somebody else has permits, or was offered some; nothing was changed.
    Busy,
    /// The lease has ended.
    Gone(Absence),
}

/// Write a computed value, give its lock back, and wake those who wait for the value.
#[derive(Clone, Debug)]
pub struct StoreValue {
    /// Which value.
    pub name: LockName,
    /// Who has computed it.
    pub token: Token,
    /// The lease's fence: a lease that ended and was granted anew to a late copy of the acquire has another.
    pub fence: Fence,
    /// The value.
    pub value: Arc<[u8]>,
    /// How long it is fresh.
    pub ttl: Duration,
    /// For how long after that it is still answered while somebody computes a new one.
    pub stale: Duration,
    /// How long the computation took.
    pub took: Duration,
    /// Whether another copy of the acquire may be on its way.
    pub acquire_resent: bool,
}

/// The answer to [`StoreValue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreValueReply {
    /// The value is there, and the lock is free.
    Stored,
    /// The lock was not this token's any more; nothing was changed.
    Gone(Absence),
}

/// Forget a cached value, and let nobody store one whose computation has begun.
#[derive(Clone, Debug)]
pub struct Invalidate {
    /// Which value.
    pub name: LockName,
}

/// Who holds the lock?
#[derive(Clone, Debug)]
pub struct Holder {
    /// Which lock.
    pub name: LockName,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeldAs {
    /// By a lease of this library.
    Lease,
    /// Offered to a waiter that has not confirmed yet.
    Offer,
    /// By nobody: closed for a time after a release with cooldown.
    Cooldown,
    /// By a value that another program wrote.
    Foreign,
}

impl HeldAs {
    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Offer => "offer",
            Self::Cooldown => "cooldown",
            Self::Foreign => "foreign",
        }
    }
}

/// One holder in the answer to [`Holder`]: an exclusive lock has one at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderReply {
    /// How it is held.
    pub held_as: HeldAs,
    /// The last fence granted or offered; [`Fence::NONE`] if there was none.
    pub fence: Fence,
    /// What is left of the key's life; `None` if it never expires.
    pub remaining: Option<Duration>,
    /// Wall time of the grant in milliseconds since 1970; zero if unknown.
    pub since_ms: u64,
    /// The owner's text, as its acquire gave it; empty unless `held_as` is `Lease`.
    pub owner: String,
    /// How many wait.
    pub waiters: u64,
    /// How many permits this holder has: one if the lock is exclusive.
    pub weight: u32,
}

/// Who waits for the lock?
#[derive(Clone, Debug)]
pub struct Waiters {
    /// Which lock.
    pub name: LockName,
}

/// One of those in line, in the answer to [`Waiters`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterReply {
    /// The owner's text, as its acquire gave it; empty if an older library got in line.
    pub owner: String,
    /// When it got in line, by the store's wall clock, in milliseconds since 1970; zero if unknown.
    pub since_ms: u64,
    /// For how long it has waited; `None` if unknown.
    pub waiting: Option<Duration>,
    /// How many permits it waits for: one if the lock is exclusive.
    pub weight: u32,
}

/// Take the lock from whoever has it.
#[derive(Clone, Debug)]
pub struct BreakLease {
    /// Which lock.
    pub name: LockName,
}
