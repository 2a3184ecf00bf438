//! Distributed locks with fenced leases, on Redis, Valkey or an embedded SQLite store.
//!
//! A *lock* is a name that one holder at a time may hold. Acquiring it gives a *lease*: it ends by
//! release, by expiry, or by being lost, and a loss is announced in time. Every lease has a *fence*, a
//! number that grows with every grant, so that the resource behind the lock can refuse a late writer.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), stanchion::Error> {
//! use stanchion::{Client, LockOptions};
//!
//! let client = Client::open("memory:").await?; // or redis://localhost, or sqlite:/var/lib/app/locks.db
//! let lock = client.lock("invoice:42");
//!
//! let lease = lock.acquire(LockOptions::new()).await?;
//! // ... nobody else is here; pass lease.fence() along with every write ...
//! lease.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The same without async is in [`blocking`]. What is promised, and what is not, is in the project's
//! `docs/GUARANTEES.md`.

#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic"))]

mod backoff;
pub mod blocking;
mod body;
mod builder;
mod cached;
mod cached_options;
mod channel;
mod claim;
mod claim_calls;
mod client;
mod clock;
mod close;
mod closing;
mod computing;
mod consumer;
mod contained;
mod dead_tasks;
mod delivery;
mod drive;
mod entries;
mod error;
mod examine;
mod flights;
mod fork;
mod grip;
mod handle;
mod held;
mod holder;
mod host_turn;
mod keeper;
mod kept;
mod lease;
mod lease_cell;
mod lock;
mod memory;
mod metrics;
mod named;
mod options;
mod queue;
mod queue_calls;
mod queue_options;
mod session;
mod signals;
mod slots;
mod task;
mod token;
mod trace;
#[cfg(test)]
mod vectors;
mod waiter;
mod worker;

// Open to this project's own simulator and tests. Not part of the API, not covered by semver.
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod internals;
#[doc(hidden)]
pub mod name;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod verbs;
#[doc(hidden)]
pub mod wake;
mod wanted;

pub use body::{Headers, MAX_PAYLOAD};
pub use builder::{ClientBuilder, URL_VARIABLE};
pub use cached::{Begun, Ticket};
pub use cached_options::{CachedOptions, DEFAULT_BETA};
pub use claim::Claim;
pub use claim_calls::Verdict;
pub use client::{Client, LockPage, QueuePage};
pub use clock::ManualClock;
pub use consumer::{ClaimedBy, Consumer};
pub use dead_tasks::DeadTasks;
pub use delivery::Retry;
pub use engine::lease::LossReason;
pub use error::{Error, ErrorKind};
pub use examine::{Finding, Health};
pub use fork::fork_for_exec;
pub use handle::LeaseHandle;
pub use holder::Holder;
pub use lease::Lease;
pub use lock::{Lock, RwLock};
pub use metrics::Metrics;
pub use name::LockKind;
pub use named::MAX_PERMITS;
pub use options::{
    DEFAULT_LOCK_PREFIX, DEFAULT_MAX_HOLD, DEFAULT_QUEUE_PREFIX, DEFAULT_TIMEOUT, DEFAULT_TTL, DEFAULT_WAIT,
    LockOptions, MAX_TTL, MIN_TTL,
};
pub use queue::{Queue, Queues};
pub use queue_calls::Rescheduled;
pub use queue_options::{ClaimOptions, ListOptions, QueueSettings};
pub use store::redis::ACL_RULE;
pub use task::{DEFAULT_MAX_ATTEMPTS, Enqueued, Task, TaskInfo, TaskPage};
pub use token::Token;
pub use verbs::{
    Fence, HeldAs, OnDuplicate, Outcome, QueueStats, Receipt, Removed, Settings, TaskState, Version,
};
pub use waiter::Waiter;
pub use worker::{DEFAULT_GRACE, Worker, WorkerEvent, WorkerReport};

/// The README's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
