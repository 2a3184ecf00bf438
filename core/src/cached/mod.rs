//! Cached values: options, computations and their leases, single flight.

pub(crate) mod cached_options;
pub(crate) mod computing;
pub(crate) mod single_flight;
