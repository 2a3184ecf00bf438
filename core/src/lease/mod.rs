//! Leases on locks: of one lock, of several, of an owner that comes in again; and how they are asked for.

pub(crate) mod grip;
pub(crate) mod handle;
pub(crate) mod held;
pub(crate) mod holder;
pub(crate) mod named;
pub(crate) mod reentrancy;
pub(crate) mod waiter;
pub(crate) mod wanted;
