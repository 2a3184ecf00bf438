//! The nouns of a face: compiled once in each.

pub(super) mod cached;
mod claim;
pub(super) mod client;
mod flow;
mod lease;
mod limiter;
mod lock;
pub(super) mod queue;
mod worker;

pub use cached::{Begun, Ticket};
pub use claim::Claim;
pub use client::Client;
pub use lease::Lease;
pub use limiter::Limiter;
pub use lock::{Lock, RwLock};
pub use queue::{Queue, Queues};

use super::face;
