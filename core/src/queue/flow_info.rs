//! Flows, as they are found in a queue.

use std::sync::Arc;
use std::time::SystemTime;

use crate::engine::flow::{Edge, FlowState, Graph, NodeState, Plan, read_names, read_summary};
use crate::protocol::{FlowRecord, ListFlowsReply, Place};
use crate::queue::flow_plan::after;
use crate::queue::task::wall_time;

/// A flow as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowInfo {
    /// Its id.
    pub id: String,
    /// How it is.
    pub state: FlowState,
    /// When it was put in.
    pub created: SystemTime,
    /// When it was noted that its last node had ended; `None` while it runs.
    pub ended: Option<SystemTime>,
    /// How many nodes are in each state; states without any are left out.
    pub counts: Vec<(NodeState, u32)>,
    /// Its nodes, each behind those that it waits for. A page of flows comes without them.
    pub nodes: Vec<NodeInfo>,
}

impl FlowInfo {
    /// How many of its nodes are in this state.
    pub fn count(&self, state: NodeState) -> u32 {
        self.counts.iter().find(|row| row.0 == state).map_or(0, |row| row.1)
    }

    /// How many nodes it has.
    pub fn size(&self) -> u32 {
        self.counts.iter().map(|row| row.1).sum()
    }
}

/// A node of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: NodeState,
    /// Its queue, if that is not the flow's.
    pub queue: Option<String>,
    /// The nodes that must have succeeded.
    pub after: Vec<String>,
    /// The nodes that must have ended.
    pub after_end: Vec<String>,
    /// The nodes of which one must have ended without success.
    pub after_failure: Vec<String>,
    /// What it waits for of all others: `then`, `failed` or `finally`.
    pub after_all: Option<&'static str>,
}

/// A page of flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowPage {
    /// Those that run, the latest first, then those that have ended.
    pub flows: Vec<FlowInfo>,
    /// Where the next page begins, if there may be one.
    pub next: Option<String>,
}

/// What a task that comes after others is given of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowInput {
    /// The node's name.
    pub node: String,
    /// What has become of it.
    pub state: NodeState,
    /// The result of its ack, if it gave one.
    pub result: Option<Arc<[u8]>>,
}

impl FlowInfo {
    /// `None` if a newer version has written it.
    pub(crate) fn read(record: &FlowRecord) -> Option<Self> {
        let (state, counts) = read_summary(&record.summary)?;
        let counts = NodeState::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect();
        let nodes = match &record.plan {
            None => Vec::new(),
            Some(plan) => nodes(&Graph::read(&plan.graph)?, &Plan::read(&plan.states)?, &plan.names)?,
        };
        Some(Self {
            id: record.id.as_str().to_owned(),
            state,
            created: wall_time(record.created),
            ended: (record.ended > 0).then(|| wall_time(record.ended)),
            counts,
            nodes,
        })
    }
}

fn nodes(graph: &Graph, plan: &Plan, names: &[u8]) -> Option<Vec<NodeInfo>> {
    let names = read_names(names)?;
    let node = |number: usize| {
        let edges = after(graph, &names, number);
        let named =
            |wanted| edges.iter().filter(|(_, edge)| *edge == wanted).map(|(name, _)| name.clone()).collect();
        Some(NodeInfo {
            name: names[number].0.clone(),
            state: *plan.nodes().get(number)?,
            queue: names[number].1.clone(),
            after: named(Edge::Success),
            after_end: named(Edge::End),
            after_failure: named(Edge::Failure),
            after_all: graph.nodes.get(number)?.after_all.map(Edge::name),
        })
    };
    (0..names.len()).map(node).collect()
}

impl From<ListFlowsReply> for FlowPage {
    fn from(reply: ListFlowsReply) -> Self {
        Self {
            flows: reply.flows.iter().filter_map(FlowInfo::read).collect(),
            next: reply.next.as_ref().map(Place::text),
        }
    }
}
