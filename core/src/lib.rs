//! Distributed locks with fenced leases, on Redis, Valkey or an embedded SQLite store.
//!
//! A *lock* is a name that one holder at a time may hold. Acquiring it gives a *lease*: it ends by
//! release, by expiry, or by being lost, and a loss is announced in time. Every lease has a *fence*, a
//! number that grows with every grant, so that the resource behind the lock can refuse a late writer.
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
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
//!
//! # Cargo features
//!
//! All are on by default, and each only adds. A program that needs one store can leave out what belongs to the other:
//! `default-features = false, features = ["redis"]` compiles no C. Opening the URL of a store that was left out is an
//! `InvalidArgument` that names the feature.
//!
//! | feature | URLs | brings along |
//! |---|---|---|
//! | `redis` | `redis://`, `redis+unix://` | the crate `redis` |
//! | `tls` | `rediss://`, `rediss-sentinel://` and so on, with `tls_ca`, `tls_cert`, `tls_key`; implies `redis` | `rustls` and `ring`, which has C and assembler |
//! | `cluster` | `redis-cluster://`, `redis-sentinel://`; implies `redis` | |
//! | `quorum` | `redis-quorum://`; implies `redis` | |
//! | `sqlite` | `sqlite:`, `memory:` | `rusqlite`, with SQLite in C |
//!
//! Without `redis` and `sqlite` there is no store, and the build fails and says so.

// Most examples open a store in memory: a build without one has none to try.
#![cfg(any(not(doctest), feature = "sqlite"))]
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic"))]

mod api;
#[cfg_attr(
    not(all(feature = "redis", feature = "sqlite")),
    allow(dead_code, reason = "some of it is for one of the stores only")
)]
mod base;
mod cached;
mod driver;
mod lease;
mod limiter;
mod queue;
mod session;
#[cfg(all(test, feature = "redis"))]
mod vectors;

// Open to this project's own simulator and tests. Not part of the API, not covered by semver.
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod protocol;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub use api::internals;
#[doc(hidden)]
pub use base::{name, wake};

pub use api::blocking;

pub use api::asynchronous::{Begun, Claim, Client, Lease, Limiter, Lock, Queue, Queues, RwLock, Ticket};
pub use api::listing::{LimiterInfo, LimiterPage, LockPage, QueuePage};
pub use api::worker::{DEFAULT_GRACE, Worker, WorkerEvent, WorkerReport};
pub use base::clock::ManualClock;
pub use base::envelope::{Headers, MAX_PAYLOAD};
pub use base::error::{Error, ErrorKind};
pub use base::fork::fork_for_exec;
pub use base::name::LockKind;
pub use base::numbers::{Fence, Receipt, Version};
pub use base::token::Token;
pub use cached::cached_options::{CachedOptions, DEFAULT_BETA};
pub use engine::flow::{FlowState, NodeState};
pub use engine::loss::LossReason;
pub use engine::task_backoff::Backoff;
pub use lease::holder::Holder;
pub use lease::lease_handle::LeaseHandle;
pub use lease::lock_target::MAX_PERMITS;
pub use lease::waiter::Waiter;
pub use limiter::limit::Limit;
pub use limiter::taking::Taken;
pub use protocol::{
    Cancelled, DEFAULT_MAX_ATTEMPTS, Gate, Happened, HeldAs, LimitKind, Missed, OnDuplicate, Outcome,
    Overlap, QueueSettings, QueueStats, Rate, Removed, ScheduleOutcome, TaskState,
};
pub use queue::claim_calls::Verdict;
pub use queue::consumer::{ClaimedBy, Consumer};
pub use queue::dead_tasks::DeadTasks;
pub use queue::delivery::Retry;
pub use queue::flow::{Flow, Node};
pub use queue::flow_info::{FlowInfo, FlowInput, FlowPage, NodeInfo};
pub use queue::key_limits::{KeyInfo, KeyLimits, KeyPage};
pub use queue::queue_calls::Rescheduled;
pub use queue::queue_options::{ClaimOptions, ListOptions, QueueConfig};
pub use queue::schedule::{Schedule, ScheduleInfo, SchedulePage, Synced};
pub use queue::task::{Enqueued, Task, TaskFailure, TaskInfo, TaskPage, TaskResult};
pub use queue::task_events::{EventPage, TaskEvent};
pub use session::builder::{ClientBuilder, URL_VARIABLE};
pub use session::metrics::Metrics;
pub use session::options::{
    DEFAULT_LOCK_PREFIX, DEFAULT_MAX_HOLD, DEFAULT_QUEUE_PREFIX, DEFAULT_TIMEOUT, DEFAULT_TTL, DEFAULT_WAIT,
    LockOptions, MAX_TTL, MIN_TTL,
};
#[cfg(feature = "redis")]
pub use store::redis::ACL_RULE;
pub use store::{Finding, Health};

/// The examples of the README are tests; those of the project's README are so in the crate of the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
