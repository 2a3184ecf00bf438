//! What comes of a message: which nodes may go, and which never will.

use std::fmt::Write;

use crate::engine::flow::graph::{Edge, Graph, NodeGraph};
use crate::protocol::NodeEvent;

/// What a node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeState {
    /// It waits for others.
    Waiting,
    /// Its task is in its queue.
    Put,
    /// The same, and the task was told to end.
    Ending,
    /// Its task was acked.
    Done,
    /// Its task is dead.
    Dead,
    /// Its task was cancelled, removed, or lost, or the flow was cancelled before it was put into its queue.
    Cancelled,
    /// What it needs did not succeed, so it never runs.
    Skipped,
    /// What it waited to fail has not, so it never runs.
    Unneeded,
}

impl NodeState {
    /// Every state; the place is the number that stores keep.
    pub const ALL: [Self; 8] = [
        Self::Waiting,
        Self::Put,
        Self::Ending,
        Self::Done,
        Self::Dead,
        Self::Cancelled,
        Self::Skipped,
        Self::Unneeded,
    ];

    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Put => "put",
            Self::Ending => "ending",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::Unneeded => "unneeded",
        }
    }

    /// Whether nothing more comes of it by itself.
    pub const fn has_ended(self) -> bool {
        !matches!(self, Self::Waiting | Self::Put | Self::Ending)
    }

    pub(crate) const fn is_in_queue(self) -> bool {
        matches!(self, Self::Put | Self::Ending)
    }

    const fn failed(self) -> bool {
        matches!(self, Self::Dead | Self::Cancelled | Self::Skipped)
    }
}

/// How a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowState {
    /// Nodes wait, or are in their queues.
    Running,
    /// All nodes have ended, and all that were to run have succeeded.
    Done,
    /// All nodes have ended, and one that was to run did not succeed.
    Failed,
    /// It was cancelled, and all nodes have ended.
    Cancelled,
}

impl FlowState {
    pub(crate) const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Failed, Self::Cancelled];

    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What all nodes are doing, and what is to be done for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    cancelled: bool,
    /// How often it was tried again.
    retries: u32,
    nodes: Vec<NodeState>,
    /// Of a node of another queue that is let go: whether it is not known yet to have come there.
    on_the_way: Vec<bool>,
}

/// A node's byte has this beside its state if it is on the way.
const ON_THE_WAY: u8 = 0x80;

/// What is to be done for a flow's new states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// Nodes to put into their queues.
    pub(crate) puts: Vec<u32>,
    /// Nodes whose tasks are to be cancelled.
    pub(crate) cancels: Vec<u32>,
    /// Whether there is more to do than was allowed.
    pub(crate) has_more: bool,
}

/// Whether a node may go.
enum May {
    Go,
    Wait,
    Never(NodeState),
}

impl Plan {
    /// Of a flow in which nothing has happened yet.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            cancelled: false,
            retries: 0,
            nodes: vec![NodeState::Waiting; count],
            on_the_way: vec![false; count],
        }
    }

    /// As bytes: whether it was cancelled, how often it was tried again, and a byte for each node.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.cancelled)];
        bytes.extend(self.retries.to_le_bytes());
        let number = |state: &NodeState| NodeState::ALL.iter().position(|known| known == state);
        let byte = |(state, on_the_way): (&NodeState, &bool)| {
            number(state).unwrap_or_default() as u8 | if *on_the_way { ON_THE_WAY } else { 0 }
        };
        bytes.extend(self.nodes.iter().zip(&self.on_the_way).map(byte));
        bytes
    }

    /// What [`Plan::write`] wrote; `None` if it is nothing of the kind.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (cancelled, rest) = bytes.split_first()?;
        let (retries, nodes) = rest.split_first_chunk()?;
        let on_the_way = nodes.iter().map(|byte| byte & ON_THE_WAY != 0).collect();
        let nodes = nodes.iter().map(|byte| NodeState::ALL.get(usize::from(byte & !ON_THE_WAY)).copied());
        Some(Self {
            cancelled: *cancelled != 0,
            retries: u32::from_le_bytes(*retries),
            nodes: nodes.collect::<Option<_>>()?,
            on_the_way,
        })
    }

    pub(crate) fn nodes(&self) -> &[NodeState] {
        &self.nodes
    }

    pub(crate) fn retries(&self) -> u32 {
        self.retries
    }

    /// There are more nodes now.
    pub(crate) fn grow(&mut self, count: usize) {
        self.nodes.resize(count, NodeState::Waiting);
        self.on_the_way.resize(count, false);
    }

    /// Whether it was let go into another queue, and is not known to have come there.
    pub(crate) fn is_on_the_way(&self, node: usize) -> bool {
        self.nodes.get(node) == Some(&NodeState::Put) && self.on_the_way[node]
    }

    /// Something has happened. A message about what is known, or was before the flow was tried again, changes nothing.
    pub(crate) fn apply(&mut self, graph: &Graph, event: NodeEvent, node: u32, retries: u32) {
        match event {
            NodeEvent::Begin => return,
            NodeEvent::Cancel => {
                self.cancelled = true;
                return;
            }
            NodeEvent::Retry => return self.retry(),
            NodeEvent::Placed => return self.placed(node, retries),
            _ => {}
        }
        let now_retries = self.retries;
        let Some(state) = self.nodes.get_mut(node as usize) else { return };
        // One of another queue may end before it is noted that it was put there.
        let elsewhere = graph.nodes.get(node as usize).is_some_and(|node| node.elsewhere);
        let may_run = state.is_in_queue() || (*state == NodeState::Waiting && elsewhere && now_retries == 0);
        let new = match event {
            // A dead task may be kicked.
            NodeEvent::Done => NodeState::Done,
            NodeEvent::Dead if may_run => NodeState::Dead,
            NodeEvent::Cancelled if may_run => NodeState::Cancelled,
            NodeEvent::Lost if state.is_in_queue() && retries == now_retries => NodeState::Cancelled,
            _ => return,
        };
        *state = new;
        self.on_the_way[node as usize] = false;
    }

    /// It has come into its queue. If the flow was cancelled meanwhile, it is to be cancelled once more: the first time nothing may
    /// have been there.
    fn placed(&mut self, node: u32, retries: u32) {
        let is_on_the_way = self.on_the_way.get_mut(node as usize).filter(|is| **is);
        let Some(is_on_the_way) = is_on_the_way.filter(|_| retries == self.retries) else { return };
        *is_on_the_way = false;
        let state = &mut self.nodes[node as usize];
        if *state == NodeState::Ending {
            *state = NodeState::Put;
        }
    }

    fn retry(&mut self) {
        self.cancelled = false;
        self.retries += 1;
        for state in &mut self.nodes {
            if state.has_ended() && *state != NodeState::Done {
                *state = NodeState::Waiting;
            }
        }
    }

    /// Lets go what may, and ends what never will: at most `budget` nodes are put or cancelled.
    pub(crate) fn settle(&mut self, graph: &Graph, budget: &mut usize) -> Effects {
        let mut effects = Effects::default();
        // Those that wait for all others look at these when they have been settled.
        for waits_for_all in [false, true] {
            for (number, node) in graph.nodes.iter().enumerate().take(self.nodes.len()) {
                if node.after_all.is_some() == waits_for_all {
                    self.settle_node(graph, number, node, budget, &mut effects);
                }
            }
        }
        effects
    }

    fn settle_node(
        &mut self,
        graph: &Graph,
        number: usize,
        node: &NodeGraph,
        budget: &mut usize,
        effects: &mut Effects,
    ) {
        let state = self.nodes[number];
        let (new, into) = match state {
            NodeState::Put if self.cancelled && !needs_no_success(node) => {
                (NodeState::Ending, &mut effects.cancels)
            }
            NodeState::Waiting if self.cancelled && !needs_no_success(node) => {
                self.nodes[number] = NodeState::Cancelled;
                return;
            }
            NodeState::Waiting => match self.may(graph, node) {
                May::Wait => return,
                May::Never(state) => {
                    self.nodes[number] = state;
                    return;
                }
                May::Go => (NodeState::Put, &mut effects.puts),
            },
            _ => return,
        };
        if *budget == 0 {
            effects.has_more = true;
            return;
        }
        *budget -= 1;
        self.nodes[number] = new;
        self.on_the_way[number] |= new == NodeState::Put && node.elsewhere;
        into.push(number as u32);
    }

    fn may(&self, graph: &Graph, node: &NodeGraph) -> May {
        let all = node.after_all.into_iter().flat_map(|edge| {
            let others = graph.nodes.iter().zip(&self.nodes).filter(|(node, _)| node.after_all.is_none());
            // Of all, what need not run is as good as done.
            others.map(move |(_, state)| match state {
                NodeState::Unneeded => (NodeState::Done, edge),
                state => (*state, edge),
            })
        });
        let named = node.after.iter().map(|(other, edge)| (self.nodes[*other as usize], *edge));
        let mut failures = node.after_all == Some(Edge::Failure);
        let (mut waits, mut has_failed, mut may_fail, mut unneeded) = (false, false, false, false);
        for (state, edge) in named.chain(all) {
            match edge {
                Edge::Success if state.failed() => return May::Never(NodeState::Skipped),
                Edge::Success | Edge::End => {
                    waits |= !state.has_ended();
                    unneeded |= edge == Edge::Success && state == NodeState::Unneeded;
                }
                Edge::Failure => {
                    failures = true;
                    has_failed |= state.failed();
                    may_fail |= !state.has_ended();
                }
            }
        }
        // Not before all have ended: which of both "never" it is does not hang on who is first.
        match unneeded || (failures && !has_failed) {
            true if waits || may_fail => May::Wait,
            true => May::Never(NodeState::Unneeded),
            false if waits => May::Wait,
            false => May::Go,
        }
    }

    pub(crate) fn state(&self) -> FlowState {
        if !self.nodes.iter().all(|state| state.has_ended()) {
            return FlowState::Running;
        }
        match self.cancelled {
            true => FlowState::Cancelled,
            false if self.nodes.iter().any(|state| state.failed()) => FlowState::Failed,
            false => FlowState::Done,
        }
    }

    /// The flow's state, and how many nodes are in each.
    pub(crate) fn summary(&self) -> String {
        let mut text = self.state().name().to_owned();
        for state in NodeState::ALL {
            let count = self.nodes.iter().filter(|known| **known == state).count();
            // Writing to a String cannot fail.
            let _ = write!(text, " {count}");
        }
        text
    }
}

/// What [`Plan::summary`] wrote; `None` if it is nothing of the kind.
pub(crate) fn read_summary(text: &str) -> Option<(FlowState, [u32; NodeState::ALL.len()])> {
    let mut words = text.split(' ');
    let state = words.next()?;
    let state = FlowState::ALL.into_iter().find(|known| known.name() == state)?;
    let mut counts = [0; NodeState::ALL.len()];
    for count in &mut counts {
        *count = words.next()?.parse().ok()?;
    }
    Some((state, counts))
}

/// Whether it runs although the flow is cancelled: all that it waits for is that others end.
fn needs_no_success(node: &NodeGraph) -> bool {
    let mut edges = node.after.iter().map(|(_, edge)| *edge).chain(node.after_all).peekable();
    edges.peek().is_some() && edges.all(|edge| edge == Edge::End)
}
