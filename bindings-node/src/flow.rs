//! Flows.

use std::mem;

use napi::bindgen_prelude::{Buffer, ClassInstance};
use napi_derive::napi;

use crate::bridge::Bridge;
use crate::convert::{Text, Whole, wall};
use crate::error::invalid;
use crate::queue::Queue;
use crate::task::Task;

/// Flows of a page, if nothing is said.
const PAGE: usize = 100;

/// What a node waits for of all others.
#[derive(Clone, Copy)]
enum AfterAll {
    Then,
    Failed,
    Finally,
}

/// A task of a flow, and what it waits for.
#[napi]
pub struct Node {
    node: stanchion::Node,
    after_all: Option<AfterAll>,
}

#[napi]
impl Node {
    /// The task was made for this node only: it is taken out, and not copied.
    #[napi(constructor)]
    pub fn new(
        task: &mut Task,
        queue: Option<Text>,
        after: Option<Vec<Text>>,
        after_end: Option<Vec<Text>>,
        after_failure: Option<Vec<Text>>,
        after_all: Option<Text>,
    ) -> napi::Result<Self> {
        let after_all = after_all.map(|word| waits_for_all(&word.0)).transpose()?;
        let mut node = stanchion::Node::new(mem::replace(&mut task.0, stanchion::Task::auto()));
        node = names(after).fold(node, stanchion::Node::after);
        node = names(after_end).fold(node, stanchion::Node::after_end);
        node = names(after_failure).fold(node, stanchion::Node::after_failure);
        if let Some(queue) = queue {
            node = node.queue(queue.0);
        }
        Ok(Self { node, after_all })
    }
}

fn names(given: Option<Vec<Text>>) -> impl Iterator<Item = String> {
    given.unwrap_or_default().into_iter().map(|name| name.0)
}

fn waits_for_all(word: &str) -> napi::Result<AfterAll> {
    match word {
        "then" => Ok(AfterAll::Then),
        "failed" => Ok(AfterAll::Failed),
        "finally" => Ok(AfterAll::Finally),
        _ => Err(invalid(format!("afterAll is 'then', 'failed' or 'finally', not {word:?}"))),
    }
}

/// How many nodes are in a state.
#[napi(object, object_from_js = false)]
pub struct NodeCount {
    pub state: &'static str,
    pub count: u32,
}

/// A node as it is in its flow.
#[napi(object, object_from_js = false)]
pub struct NodeInfo {
    pub name: String,
    pub state: &'static str,
    pub queue: Option<String>,
    pub after: Vec<String>,
    pub after_end: Vec<String>,
    pub after_failure: Vec<String>,
    pub after_all: Option<&'static str>,
}

impl From<stanchion::NodeInfo> for NodeInfo {
    fn from(node: stanchion::NodeInfo) -> Self {
        let stanchion::NodeInfo { name, state, queue, after, after_end, after_failure, after_all, .. } = node;
        Self { name, state: state.name(), queue, after, after_end, after_failure, after_all }
    }
}

/// A flow as it is in a queue. Times are milliseconds since 1970.
#[napi(object, object_from_js = false)]
pub struct FlowInfo {
    pub id: String,
    pub state: &'static str,
    pub created: f64,
    pub ended: Option<f64>,
    pub counts: Vec<NodeCount>,
    pub nodes: Vec<NodeInfo>,
}

impl From<stanchion::FlowInfo> for FlowInfo {
    fn from(flow: stanchion::FlowInfo) -> Self {
        let count = |(state, count): (stanchion::NodeState, u32)| NodeCount { state: state.name(), count };
        Self {
            id: flow.id,
            state: flow.state.name(),
            created: wall(flow.created),
            ended: flow.ended.map(wall),
            counts: flow.counts.into_iter().map(count).collect(),
            nodes: flow.nodes.into_iter().map(NodeInfo::from).collect(),
        }
    }
}

/// Some flows, and where the next ones begin.
#[napi(object, object_from_js = false)]
pub struct FlowPage {
    pub flows: Vec<FlowInfo>,
    pub next: Option<String>,
}

impl From<stanchion::FlowPage> for FlowPage {
    fn from(page: stanchion::FlowPage) -> Self {
        Self { flows: page.flows.into_iter().map(FlowInfo::from).collect(), next: page.next }
    }
}

/// What has become of a node that another one comes after.
#[napi(object, object_from_js = false)]
pub struct FlowInput {
    pub node: String,
    pub state: &'static str,
    pub result: Option<Buffer>,
}

impl From<stanchion::FlowInput> for FlowInput {
    fn from(input: stanchion::FlowInput) -> Self {
        let result = input.result.as_deref().map(Buffer::from);
        Self { node: input.node, state: input.state.name(), result }
    }
}

#[napi]
impl Queue {
    #[napi]
    pub fn enqueue_flow(
        &self,
        bridge: Bridge,
        call: u32,
        id: Text,
        nodes: Vec<ClassInstance<'_, Node>>,
    ) -> napi::Result<()> {
        let flow = nodes.iter().fold(stanchion::Flow::new(id.0), |flow, one| {
            let node = one.node.clone();
            match one.after_all {
                None => flow.node(node),
                Some(AfterAll::Then) => flow.then(node),
                Some(AfterAll::Failed) => flow.failed(node),
                Some(AfterAll::Finally) => flow.finally(node),
            }
        });
        let queue = self.0.clone();
        bridge.start(call, async move { queue.enqueue_flow(flow).await })
    }

    #[napi]
    pub fn add_to_flow(
        &self,
        bridge: Bridge,
        call: u32,
        id: Text,
        nodes: Vec<ClassInstance<'_, Node>>,
    ) -> napi::Result<()> {
        if nodes.iter().any(|one| one.after_all.is_some()) {
            return Err(invalid(
                "nodes that wait for all come with the flow: afterAll is not for those that are added",
            ));
        }
        let queue = self.0.clone();
        let nodes: Vec<stanchion::Node> = nodes.iter().map(|one| one.node.clone()).collect();
        bridge.start(call, async move { queue.add_to_flow(&id.0, nodes).await })
    }

    #[napi]
    pub fn get_flow(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { Ok(queue.get_flow(&id.0).await?.map(FlowInfo::from)) })
    }

    #[napi]
    pub fn list_flows(
        &self,
        bridge: Bridge,
        call: u32,
        page: Option<Text>,
        max: Option<Whole>,
    ) -> napi::Result<()> {
        let (queue, max) = (self.0.clone(), max.map_or(PAGE, |max| max.narrow(usize::MAX)));
        bridge.start(call, async move {
            let from = page.as_ref().map(|page| &*page.0);
            queue.list_flows(from, max).await.map(FlowPage::from)
        })
    }

    #[napi]
    pub fn cancel_flow(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.cancel_flow(&id.0).await })
    }

    #[napi]
    pub fn retry_flow(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.retry_flow(&id.0).await })
    }
}
