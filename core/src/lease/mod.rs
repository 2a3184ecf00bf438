//! Leases on locks: on one lock, on several, reentrant ones; and the requests for them.

pub(crate) mod acquisition;
pub(crate) mod dropped;
pub(crate) mod held_lock;
pub(crate) mod holder;
pub(crate) mod lease_handle;
pub(crate) mod lease_set;
pub(crate) mod lock_target;
pub(crate) mod reentrancy;
pub(crate) mod waiter;
