//! What the engine may ask of a store: one request type and one reply type per verb.
//!
//! Each verb is one Lua script on Redis and one transaction on SQLite, of the same name.

mod failure;
mod limiter;
mod limits;
mod lock;
mod queue;

pub use failure::*;
pub use limiter::*;
pub use limits::*;
pub use lock::*;
pub use queue::*;

use crate::base::name::{LockKind, LockName};
pub use crate::base::numbers::{Fence, Receipt, Version};
pub use crate::base::wake::{ClientId, Waiter};

/// Any request.
#[derive(Clone, Debug)]
pub enum Request {
    /// Take the lock, confirm an offer, or wait for it.
    Acquire(Acquire),
    /// Take several locks, all or none.
    AcquireAll(AcquireAll),
    /// Prolong a lease.
    Extend(Extend),
    /// Give the lock back and hand it to the next waiter.
    Release(Release),
    /// End a wait: remove the entry, and the grant if one was made meanwhile.
    Leave(Leave),
    /// Swap the token of a lease that was handed over.
    Resume(Resume),
    /// Give back all permits but some.
    Downgrade(Downgrade),
    /// Take all permits if nobody else has any.
    Upgrade(Upgrade),
    /// Write a computed value and give its lock back.
    StoreValue(StoreValue),
    /// Forget a cached value.
    Invalidate(Invalidate),
    /// Who holds the lock?
    Holder(Holder),
    /// Who waits for the lock?
    Waiters(Waiters),
    /// Take the lock from whoever has it.
    BreakLease(BreakLease),
    /// Take so many of a limiter.
    Take(Take),
    /// Give a reservation back.
    GiveBack(GiveBack),
    /// Any verb of a queue.
    Queue(QueueRequest),
}

/// Any reply; a store answers a request with the reply of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To [`Request::Acquire`].
    Acquire(AcquireReply),
    /// To [`Request::AcquireAll`].
    AcquireAll(AcquireAllReply),
    /// To [`Request::Extend`].
    Extend(ExtendReply),
    /// To [`Request::Release`].
    Release(ReleaseReply),
    /// To [`Request::Leave`].
    Leave,
    /// To [`Request::Resume`].
    Resume(ResumeReply),
    /// To [`Request::Downgrade`].
    Downgrade(DowngradeReply),
    /// To [`Request::Upgrade`].
    Upgrade(UpgradeReply),
    /// To [`Request::StoreValue`].
    StoreValue(StoreValueReply),
    /// To [`Request::Invalidate`].
    Invalidate,
    /// To [`Request::Holder`]: the one whose lease ends first comes first.
    Holder(Vec<HolderReply>),
    /// To [`Request::Waiters`]: in the order of the line.
    Waiters(Vec<WaiterReply>),
    /// To [`Request::BreakLease`]: whether there was anything to break.
    BreakLease(bool),
    /// To [`Request::Take`].
    Take(TakeReply),
    /// To [`Request::GiveBack`]: whether it was given back.
    GiveBack(bool),
    /// To [`Request::Queue`].
    Queue(QueueReply),
}

impl Request {
    /// The verb's name, as in the Lua file and the SQLite transaction.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Acquire(_) => "acquire",
            Self::AcquireAll(_) => "acquire_all",
            Self::Extend(_) => "extend",
            Self::Release(_) => "release",
            Self::Leave(_) => "leave",
            Self::Resume(_) => "resume",
            Self::Downgrade(_) => "downgrade",
            Self::Upgrade(_) => "upgrade",
            Self::StoreValue(_) => "store_value",
            Self::Invalidate(_) => "invalidate",
            Self::Holder(_) => "holder",
            Self::Waiters(_) => "waiters",
            Self::BreakLease(_) => "break_lease",
            Self::Take(_) => "take",
            Self::GiveBack(_) => "give_back",
            Self::Queue(request) => request.verb.name(),
        }
    }

    /// The lock it is about; of several the first.
    fn lock(&self) -> Option<&LockName> {
        match self {
            Self::Acquire(Acquire { name, .. })
            | Self::Extend(Extend { name, .. })
            | Self::Release(Release { name, .. })
            | Self::Leave(Leave { name, .. })
            | Self::Resume(Resume { name, .. })
            | Self::Downgrade(Downgrade { name, .. })
            | Self::Upgrade(Upgrade { name, .. })
            | Self::StoreValue(StoreValue { name, .. })
            | Self::Invalidate(Invalidate { name })
            | Self::Holder(Holder { name })
            | Self::Waiters(Waiters { name })
            | Self::BreakLease(BreakLease { name }) => Some(name),
            Self::AcquireAll(AcquireAll { locks, .. }) => locks.first().map(|(name, _)| name),
            Self::Take(_) | Self::GiveBack(_) | Self::Queue(_) => None,
        }
    }

    /// The name of the lock, limiter or queue it is about, as the user gave it.
    pub fn name(&self) -> &str {
        match self {
            Self::Queue(request) => request.queue.as_str(),
            Self::Take(Take { name, .. }) | Self::GiveBack(GiveBack { name, .. }) => name.as_str(),
            _ => self.lock().map_or("", LockName::as_str),
        }
    }

    /// The kind of lock it is about, "limiter" or "queue".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Queue(_) => "queue",
            Self::Take(_) | Self::GiveBack(_) => "limiter",
            _ => self.lock().map_or(LockKind::Exclusive, LockName::kind).name(),
        }
    }

    /// Whether its effect is undone if no reply reaches the caller, as if it had never been sent.
    pub fn is_taken_back(&self) -> bool {
        matches!(self, Self::AcquireAll(_))
    }

    /// Whether it only looks: asked twice, it has done nothing.
    pub fn reads(&self) -> bool {
        match self {
            Self::Holder(_) | Self::Waiters(_) => true,
            Self::Queue(request) => request.verb.reads(),
            _ => false,
        }
    }
}
