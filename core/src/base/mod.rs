//! What everything else stands on: errors, names, tokens, fences and receipts, clocks, forks, and how waiters of this
//! process are woken.

pub(crate) mod clock;
pub(crate) mod contained;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod fork;
#[cfg(feature = "redis")]
pub(crate) mod host_loop;
pub mod name;
pub(crate) mod numbers;
pub(crate) mod shown;
pub(crate) mod sigmask;
pub(crate) mod token;
pub mod wake;
