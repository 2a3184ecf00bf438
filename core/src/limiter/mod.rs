//! Limiters: limits, checked, and what is taken of them.

pub(crate) mod limit;
pub(crate) mod taking;
