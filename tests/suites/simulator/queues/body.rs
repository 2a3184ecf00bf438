//! The bodies of tasks.

use std::sync::Arc;

/// The body of a task: a number. Each id of each queue has one that it is given more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Body(pub u64);

impl Body {
    /// The first that is given once: so many ids there are in all queues of a schedule.
    pub const COMMON: u64 = 8;

    pub fn is_common(self) -> bool {
        self.0 < Self::COMMON
    }

    pub fn read(bytes: &[u8]) -> Self {
        Self(bytes.try_into().map_or(u64::MAX, u64::from_le_bytes))
    }

    pub fn bytes(self) -> Arc<[u8]> {
        self.0.to_le_bytes().into()
    }
}
