//! The async face: every call is a future, for tokio.

mod face;
#[path = "../nouns/mod.rs"]
mod nouns;
mod only;

pub use nouns::{Begun, Claim, Client, Lease, Limiter, Lock, Queue, Queues, RwLock, Ticket};
