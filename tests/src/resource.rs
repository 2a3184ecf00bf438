//! What locks are for: a resource that refuses smaller fences than it has seen.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use stanchion::Fence;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Resource(Mutex<Log>);

/// What came to a resource.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// What was written, in this order.
    pub accepted: Vec<(Fence, Instant)>,
    /// Writes that came too late.
    pub refused: usize,
}

impl Resource {
    /// The largest fence that was written.
    pub fn highest(&self) -> Fence {
        self.log().accepted.last().map_or(Fence::NONE, |(fence, _)| *fence)
    }

    /// Whether the write was accepted.
    pub fn write(&self, fence: Fence) -> bool {
        let mut log = self.log();
        let accepted = log.accepted.last().is_none_or(|(highest, _)| fence > *highest);
        if accepted {
            log.accepted.push((fence, Instant::now()));
        } else {
            log.refused += 1;
        }
        accepted
    }

    /// What came to it so far.
    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
