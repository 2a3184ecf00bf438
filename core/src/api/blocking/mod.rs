//! The same nouns without async: every call runs on the calling thread, on a connection of its own, with
//! no runtime and no thread hop.
//!
//! ```
//! # fn main() -> Result<(), stanchion::Error> {
//! use stanchion::{LockOptions, blocking::Client};
//!
//! let client = Client::open("memory:")?;
//! let lease = client.lock("invoice:42").acquire(LockOptions::new())?;
//! // ... nobody else is here ...
//! lease.release()?;
//! # Ok(())
//! # }
//! ```

mod cached;
mod claim;
mod client;
mod lease;
mod lock;
mod queue;
mod worker;

pub use cached::{Begun, Ticket};
pub use claim::Claim;
pub use client::Client;
pub use lease::Lease;
pub use lock::{Lock, RwLock};
pub use queue::{Queue, Queues};
pub use worker::{Direction, Hands, Hosted, Stopper, Taken, Unsettled, Worker};

pub use crate::driver::host_turn::with_host_turn;

use std::ops::ControlFlow;

/// A host that has nothing to do while a thread waits.
pub(crate) fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}
