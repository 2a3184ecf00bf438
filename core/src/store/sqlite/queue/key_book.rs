//! What a verb has done to keys and not written yet.

use std::collections::HashSet;

/// The keys whose tasks have come or gone, in the order in which they did.
#[derive(Default)]
pub(super) struct KeyBook {
    pub(super) changed: Vec<Box<str>>,
    pub(super) known: HashSet<Box<str>>,
    /// Those of which a task of the highest priority has left the line.
    pub(super) dropped: HashSet<Box<str>>,
    /// How many tasks came into line that were held.
    pub(super) pulled: usize,
}
