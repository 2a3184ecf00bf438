//! Nodes of flows as they are found in a queue.

use std::mem::size_of;
use std::ptr;

use stanchion::{NodeInfo, NodeState};

use crate::arguments::stanchion_text;
use crate::flow::stanchion_after_all;
use crate::records::Record;

/// What a node of a flow is doing.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_node_state {
    /// Something that this header does not know.
    STANCHION_NODE_OTHERWISE = 0,
    /// It waits for others.
    STANCHION_NODE_WAITING = 1,
    /// Its task is in its queue.
    STANCHION_NODE_PUT = 2,
    /// The same, and the task was told to end.
    STANCHION_NODE_ENDING = 3,
    /// Its task was acked.
    STANCHION_NODE_DONE = 4,
    /// Its task is dead.
    STANCHION_NODE_DEAD = 5,
    /// Its task was cancelled, removed, or lost, or the flow was cancelled before it was put into its queue.
    STANCHION_NODE_CANCELLED = 6,
    /// What it needs did not succeed, so it never runs.
    STANCHION_NODE_SKIPPED = 7,
    /// What it waited to fail has not, so it never runs.
    STANCHION_NODE_UNNEEDED = 8,
}

pub(crate) fn state_number(state: NodeState) -> i32 {
    let state = match state {
        NodeState::Waiting => stanchion_node_state::STANCHION_NODE_WAITING,
        NodeState::Put => stanchion_node_state::STANCHION_NODE_PUT,
        NodeState::Ending => stanchion_node_state::STANCHION_NODE_ENDING,
        NodeState::Done => stanchion_node_state::STANCHION_NODE_DONE,
        NodeState::Dead => stanchion_node_state::STANCHION_NODE_DEAD,
        NodeState::Cancelled => stanchion_node_state::STANCHION_NODE_CANCELLED,
        NodeState::Skipped => stanchion_node_state::STANCHION_NODE_SKIPPED,
        NodeState::Unneeded => stanchion_node_state::STANCHION_NODE_UNNEEDED,
        #[allow(unreachable_patterns, reason = "for states to come")]
        _ => stanchion_node_state::STANCHION_NODE_OTHERWISE,
    };
    state as i32
}

/// A node of a flow as it is in a queue. Its texts live as long as the handle of the list.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_node_info {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// Its name.
    pub name: stanchion_text,
    /// The queue of its task; NULL if that is the flow's.
    pub queue: stanchion_text,
    /// The nodes that must have succeeded.
    pub after: *const stanchion_text,
    /// How many.
    pub after_count: usize,
    /// The nodes that must have ended.
    pub after_end: *const stanchion_text,
    /// How many.
    pub after_end_count: usize,
    /// The nodes of which one must have ended without success.
    pub after_failure: *const stanchion_text,
    /// How many.
    pub after_failure_count: usize,
    /// What it is doing: a stanchion_node_state.
    pub state: i32,
    /// What it waits for of all others: a stanchion_after_all; -1 if this header does not know it.
    pub after_all: i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_node_info {
    const NAME: &'static str = "stanchion_node_info";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        name: stanchion_text::NONE,
        queue: stanchion_text::NONE,
        after: ptr::null(),
        after_count: 0,
        after_end: ptr::null(),
        after_end_count: 0,
        after_failure: ptr::null(),
        after_failure_count: 0,
        state: 0,
        after_all: 0,
    };
}

/// Names in the form in which programs see them; the texts are those of the list that it was made from.
struct NameViews(Box<[stanchion_text]>);

// SAFETY: the views point into texts that are kept beside them and never changed.
unsafe impl Send for NameViews {}
// SAFETY: as above.
unsafe impl Sync for NameViews {}

impl NameViews {
    fn of(names: &[String]) -> Self {
        Self(names.iter().map(|name| stanchion_text::of(name)).collect())
    }
}

/// A node, with what programs see of it in another form.
pub(crate) struct Found {
    node: NodeInfo,
    after: NameViews,
    after_end: NameViews,
    after_failure: NameViews,
}

impl Found {
    pub(crate) fn new(node: NodeInfo) -> Self {
        // Texts stay where they are when what owns them is moved.
        let views = [&node.after, &node.after_end, &node.after_failure].map(|names| NameViews::of(names));
        let [after, after_end, after_failure] = views;
        Self { node, after, after_end, after_failure }
    }

    pub(crate) fn info(&self) -> stanchion_node_info {
        stanchion_node_info {
            name: stanchion_text::of(&self.node.name),
            queue: self.node.queue.as_deref().map_or(stanchion_text::NONE, stanchion_text::of),
            after: self.after.0.as_ptr(),
            after_count: self.after.0.len(),
            after_end: self.after_end.0.as_ptr(),
            after_end_count: self.after_end.0.len(),
            after_failure: self.after_failure.0.as_ptr(),
            after_failure_count: self.after_failure.0.len(),
            state: state_number(self.node.state),
            after_all: after_all_number(self.node.after_all),
            ..Record::DEFAULT
        }
    }
}

fn after_all_number(after_all: Option<&str>) -> i32 {
    match after_all {
        None => stanchion_after_all::STANCHION_AFTER_ALL_NONE as i32,
        Some("then") => stanchion_after_all::STANCHION_AFTER_ALL_THEN as i32,
        Some("failed") => stanchion_after_all::STANCHION_AFTER_ALL_FAILED as i32,
        Some("finally") => stanchion_after_all::STANCHION_AFTER_ALL_FINALLY as i32,
        Some(_) => -1,
    }
}
