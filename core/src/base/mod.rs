//! What everything else stands on: errors, names, tokens, clocks, forks, and how waiters of this process are woken.

pub(crate) mod body;
pub(crate) mod clock;
pub(crate) mod contained;
pub(crate) mod error;
pub(crate) mod fork;
pub mod name;
pub(crate) mod shown;
pub(crate) mod signals;
pub(crate) mod token;
pub mod wake;
