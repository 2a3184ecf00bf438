//! How long the server has left to answer.

use std::time::{Duration, Instant};

/// The time that is left; zero if it is over.
pub(crate) fn rest(give_up: Instant) -> Duration {
    give_up.saturating_duration_since(Instant::now())
}
