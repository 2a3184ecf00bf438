//! Cached values: who computes, and who waits for whom.

pub(crate) mod cached_options;
pub(crate) mod computing;
pub(crate) mod flights;
