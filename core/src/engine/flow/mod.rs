//! Flows: tasks that wait for others. What each node waits for, what it is doing, and what comes of that.
//!
//! All of it is decided here, for every store alike. A store keeps graph and states as bytes, notes in the outbox of a queue
//! how tasks that are nodes end, and works messages off in steps that are done whole or not at all: see [`Rounds`].

mod elsewhere;
mod graph;
mod plan;
mod rounds;
#[cfg(test)]
mod tests;

pub(crate) use graph::{Edge, Graph, NodeGraph, NodeName, read_names, write_names};
pub use plan::{FlowState, NodeState};
pub(crate) use plan::{Plan, read_summary};
pub use rounds::Rounds;
