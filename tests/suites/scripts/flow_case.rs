//! Requests about flows, replies to them in one line, and what is stored of flows.

use std::sync::Arc;

use stanchion::internals::task_id;
use stanchion::protocol::{
    Due, FlowPlan, FlowRecord, FlowStep, ListFlows, LostNodes, Message, NewNode, NewTask, NodeEvent, NodeOf,
    OutboxReply, PostMessages, PutFlow, QueueReply, QueueVerb, ReadNodes, ReadNodesReply, ReadOutbox,
    StepFlows, Version,
};

use crate::queue_case::{joined, place, told};
use crate::state::{Content, State, nothing};

/// How long a flow is kept after its end.
pub const FLOW_AGE: u64 = 7 * 24 * 3_600_000;
/// What the time is added to at which a flow was put in.
const BASE: u64 = 1 << 51;
/// The options of a plain node.
pub const OPTIONS: &str = "i0 0 20 0 k0";

/// What the record says where one flow lives, and its walk is not due.
pub const CALM: &str = "first_message 60, last_message 59, walk_at {then+9000}, live_flows 1";

/// Two nodes.
pub fn two(state: State) -> State {
    state.node(0, "a", "").node(1, "b", "")
}

/// The flow f with two nodes, and nothing to do.
pub fn calm() -> State {
    two(nothing()).flow("f", "{then-5}", "node_count 2").outbox(CALM).counts("counter 50, sequence 20")
}

/// A node of a flow of this queue, or of one of another.
pub fn node_of(flow: &str, node: u32, home: Option<&str>) -> NodeOf {
    NodeOf { flow: task_id(flow).unwrap(), node, home: home.map(Into::into) }
}

/// A task that is the node 3 of the flow f.
pub fn marked(task: NewTask) -> NewTask {
    NewTask { node: Some(node_of("f", 3, None)), ..task }
}

/// A plain node with the body `b`.
pub fn node(name: &str) -> NewNode {
    NewNode {
        name: name.into(),
        queue: None,
        due: Due::Now,
        priority: 0,
        max_attempts: 20,
        expires: None,
        key: None,
        body: Arc::from(*b"b"),
    }
}

fn plan() -> FlowPlan {
    FlowPlan {
        graph: Arc::from(*b"g"),
        names: Arc::from(*b"n"),
        states: Arc::from(*b"s"),
        summary: "sum".into(),
    }
}

/// All of the flow f in one part.
pub fn put_flow(token: u64, nodes: impl IntoIterator<Item = NewNode>) -> QueueVerb {
    put_part(token, 0, true, nodes)
}

pub fn put_part(
    token: u64,
    first: u32,
    is_last: bool,
    nodes: impl IntoIterator<Item = NewNode>,
) -> QueueVerb {
    QueueVerb::PutFlow(PutFlow {
        id: task_id("f").unwrap(),
        token,
        first,
        nodes: nodes.into_iter().collect(),
        plan: is_last.then(plan),
        adds_to: None,
    })
}

/// A node more for the flow f.
pub fn add_nodes(token: u64, first: u32, version: u64) -> QueueVerb {
    let QueueVerb::PutFlow(put) = put_part(token, first, true, [node("more")]) else { unreachable!() };
    QueueVerb::PutFlow(PutFlow { adds_to: Some(Version::new(version)), ..put })
}

pub fn read_outbox(max: u32) -> QueueVerb {
    QueueVerb::ReadOutbox(ReadOutbox { max })
}

pub fn step(first: u64, through: u64, flows: impl IntoIterator<Item = FlowStep>) -> QueueVerb {
    QueueVerb::StepFlows(StepFlows { first, through, flows: flows.into_iter().collect() })
}

/// A step of the flow f that puts no node in.
pub fn step_of(version: u64) -> FlowStep {
    FlowStep {
        id: task_id("f").unwrap(),
        version: Version::new(version),
        states: Arc::from(*b"t"),
        summary: "new".into(),
        ended: false,
        puts: Vec::new(),
        cancels: Vec::new(),
        goes_on: false,
    }
}

/// A message about the node 3 of the flow f.
pub fn message(number: u64, event: NodeEvent, result: Option<&str>) -> Message {
    let result = result.map(|result| result.as_bytes().into());
    Message { number, event, of: node_of("f", 3, Some("elsewhere")), retries: 0, result }
}

pub fn post(source: Option<&str>, messages: impl IntoIterator<Item = Message>) -> QueueVerb {
    QueueVerb::PostMessages(PostMessages {
        source: source.map(Into::into),
        messages: messages.into_iter().collect(),
    })
}

pub fn get_flow(id: &str) -> QueueVerb {
    QueueVerb::GetFlow(task_id(id).unwrap())
}

pub fn list_flows(from: Option<&str>, max: u32) -> QueueVerb {
    QueueVerb::ListFlows(ListFlows { from: from.map(place), max })
}

/// Nodes of the flow f.
pub fn read_nodes(nodes: &[u32], results: bool) -> QueueVerb {
    QueueVerb::ReadNodes(ReadNodes { flow: task_id("f").unwrap(), nodes: nodes.into(), results })
}

pub fn lost_nodes(nodes: &[(&str, NodeOf)]) -> QueueVerb {
    let node = |(id, node): &(&str, NodeOf)| (task_id(id).unwrap(), node.clone());
    QueueVerb::LostNodes(LostNodes { nodes: nodes.iter().map(node).collect() })
}

/// As "3 f", with the home after a slash.
pub fn mark(node: &NodeOf) -> String {
    let home = node.home.as_ref().map_or_else(String::new, |home| format!("/{home}"));
    format!("{} {}{home}", node.node, node.flow.as_str())
}

/// The reply in one line.
pub fn describe(reply: &QueueReply) -> String {
    match reply {
        QueueReply::PutFlow(reply) => format!("{reply:?}").to_lowercase(),
        QueueReply::ReadOutbox(reply) => outbox(reply),
        QueueReply::StepFlows(true) | QueueReply::PostMessages => "done".into(),
        QueueReply::StepFlows(false) => "stale".into(),
        QueueReply::GetFlow(None) => "unknown".into(),
        QueueReply::GetFlow(Some(flow)) => record(flow),
        QueueReply::ListFlows(reply) => {
            format!("{}{}", joined(&reply.flows, record), told(reply.next.as_ref()))
        }
        QueueReply::ReadNodes(ReadNodesReply::Nodes(nodes)) => {
            joined(nodes, |node| node.as_ref().map_or_else(|| "none".into(), new_node))
        }
        QueueReply::ReadNodes(ReadNodesReply::Results(results)) => {
            joined(results, |found| found.as_ref().map_or_else(|| "none".into(), |bytes| blob(bytes)))
        }
        QueueReply::LostNodes(places) => format!("lost {places:?}"),
        other => panic!("{other:?} is about no flow"),
    }
}

fn blob(bytes: &[u8]) -> String {
    match bytes.len() {
        0..100 => String::from_utf8_lossy(bytes).into_owned(),
        length => format!("{length} bytes"),
    }
}

fn outbox(reply: &OutboxReply) -> String {
    let message = |message: &Message| {
        let Message { number, event, of, retries, result } = message;
        let retries = if *retries > 0 { format!(" after {retries}") } else { String::new() };
        let result = result.as_ref().map_or_else(String::new, |result| format!(" {}", blob(result)));
        format!("{number} {event:?} {}{retries}{result}", mark(of))
    };
    let mut text = joined(&reply.messages, message);
    if reply.has_more {
        text += " and more";
    }
    for flow in &reply.flows {
        let (graph, states) = (blob(&flow.graph), blob(&flow.states));
        text += &format!(" | {} version {} {graph} {states}", flow.id.as_str(), flow.version);
    }
    if let Some(walk) = &reply.walk {
        text += &format!(" | walk {}", walk.as_str());
    }
    text
}

fn record(flow: &FlowRecord) -> String {
    let FlowRecord { id, version, created, ended, summary, plan } = flow;
    let plan = plan.as_ref().map_or_else(String::new, |FlowPlan { graph, names, states, .. }| {
        format!(" plan {} {} {}", blob(graph), blob(names), blob(states))
    });
    format!("{} version {version} created {created} ended {ended} {summary}{plan}", id.as_str())
}

fn new_node(node: &NewNode) -> String {
    let NewNode { name, queue, due, priority, max_attempts, expires, key, body } = node;
    let queue = queue.as_ref().map_or_else(String::new, |queue| format!(" in {queue}"));
    let key = key.as_ref().map_or_else(String::new, |key| format!(" key {}", key.as_str()));
    let expires = expires.map_or_else(String::new, |time| format!(" expires {}", time.as_millis()));
    format!("{name}{queue} {due:?} {priority} {max_attempts}{expires}{key} {}", blob(body))
}

impl State {
    /// What the record says of the outbox and of flows.
    pub fn outbox(self, fields: &str) -> Self {
        self.hash("queue", "flows", fields)
    }

    /// A message; its mark comes last.
    pub fn message(self, number: &str, event: u8, mark: &str) -> Self {
        self.hash("state", &format!("={number}"), &format!("event {event}, mark {mark}"))
    }

    /// A message that a node is done, with its result.
    pub fn done(self, number: &str, mark: &str, result: &str) -> Self {
        self.hash(
            "state",
            &format!("={number}"),
            &format!("event 2, mark {mark}, result_size {}", result.len()),
        )
        .hash("body", &format!("={number}"), result)
    }

    /// A flow with its plan that was put in then and lives, of version 30 and token 7.
    pub fn flow(self, id: &str, created: &str, fields: &str) -> Self {
        let all =
            format!("flow_version 30, flow_token 7, flow_created {created}, flow_summary sum, {fields}");
        self.flow_with("g", "n", "s", id, &all).live_since(id, created)
    }

    /// One that has ended.
    pub fn ended_flow(self, id: &str, ended: &str, fields: &str) -> Self {
        let all = format!(
            "flow_version 30, flow_token 7, flow_created 5, flow_ended {ended}, flow_summary sum, {fields}"
        );
        self.flow_with("g", "n", "s", id, &all).zset("flow-times", id, ended, None)
    }

    /// A draft of token 7.
    pub fn draft(self, id: &str, created: &str, fields: &str) -> Self {
        let all = format!("flow_version 30, flow_token 7, flow_created {created}, is_draft 1, {fields}");
        self.flow_head(id, &all).live_since(id, created)
    }

    pub fn flow_with(self, graph: &str, names: &str, states: &str, id: &str, fields: &str) -> Self {
        self.flow_head(id, fields)
            .hash("flows", &format!("+{id}"), graph)
            .hash("flows", &format!("={id}"), names)
            .hash("flows", &format!("\u{3}{id}"), states)
    }

    /// Later fields count.
    pub fn flow_head(self, id: &str, fields: &str) -> Self {
        let text = crate::queue_state::of_flow(&[fields]);
        self.hash("flows", id, &text)
    }

    pub fn live_since(self, id: &str, created: &str) -> Self {
        let score = match created.strip_suffix('}') {
            Some(holder) => {
                let (name, shift) = match holder.find(['+', '-']) {
                    Some(at) => (&holder[..at], holder[at..].parse::<i64>().unwrap()),
                    None => (holder, 0),
                };
                format!("{name}+{}}}", shift + i64::try_from(BASE).unwrap())
            }
            None => (created.parse::<u64>().unwrap() + BASE).to_string(),
        };
        self.zset("flow-times", id, &score, None)
    }

    /// A plain node of the flow f with the body `b`.
    pub fn node(self, number: u32, name: &str, fields: &str) -> Self {
        let fields = crate::queue_state::of_node(&[
            &format!("node_name {name}, node_options {OPTIONS}, node_size 1"),
            fields,
        ]);
        self.hash("flow-nodes", &format!("f+{number}"), &fields).hash(
            "flow-nodes",
            &format!("f\u{3}{number}"),
            "b",
        )
    }

    /// The body of a node that has one, if it is another.
    pub fn node_body(self, number: u32, body: &str) -> Self {
        self.hash("flow-nodes", &format!("f\u{3}{number}"), body)
    }

    /// A node without a body.
    pub fn empty_node(self, number: u32, name: &str) -> Self {
        let fields = crate::queue_state::of_node(&[&format!("node_name {name}, node_options {OPTIONS}")]);
        self.hash("flow-nodes", &format!("f+{number}"), &fields)
    }

    pub fn node_result(self, number: u32, result: &str) -> Self {
        self.hash("flow-nodes", &format!("f={number}"), result)
    }

    /// The last number that is known of a queue.
    pub fn source(self, name: &str, number: &str) -> Self {
        self.hash("flows", &format!("\u{4}{name}"), number)
    }

    /// No flow lives: what is left of others ends by itself.
    pub fn no_live_flow(mut self) -> Self {
        for key in ["q:flows", "q:flow-nodes", "q:flow-times"] {
            self.0.entry(key.to_owned()).and_modify(|(_, ttl): &mut (Content, _)| *ttl = Some(FLOW_AGE));
        }
        self
    }
}
