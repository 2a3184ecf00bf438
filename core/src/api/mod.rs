//! What users see, async and blocking.

pub mod blocking;
pub(crate) mod cached;
pub(crate) mod claim;
pub(crate) mod client;
pub(crate) mod close;
pub mod internals;
pub(crate) mod lease;
pub(crate) mod lock;
pub(crate) mod queue;
pub(crate) mod worker;
