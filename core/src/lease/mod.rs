//! Leases on locks: on one lock, on several, reentrant ones; and the requests for them.

pub(crate) mod grip;
pub(crate) mod handle;
pub(crate) mod held;
pub(crate) mod holder;
pub(crate) mod named;
pub(crate) mod reentrancy;
pub(crate) mod waiter;
pub(crate) mod wanted;
