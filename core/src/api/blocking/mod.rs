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

mod face;
// The same files as in `asynchronous`: without `async` here.
#[allow(clippy::duplicate_mod, reason = "each noun is compiled once for each face")]
#[path = "../nouns/mod.rs"]
mod nouns;
mod only;
mod worker;

pub use nouns::{Begun, Claim, Client, Lease, Limiter, Lock, Queue, Queues, RwLock, Ticket};
#[doc(hidden)]
pub use worker::{Direction, Hands, Hosted, Taken, Unsettled};
pub use worker::{Stopper, Worker};

pub use crate::driver::interrupt::with_interrupt_check;

use std::ops::ControlFlow;

/// A host that has nothing to do while a thread waits.
pub(crate) fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}
