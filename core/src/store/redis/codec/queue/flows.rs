//! Requests and replies about flows.

use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;

use crate::base::name::{TaskId, TaskKey};
use crate::protocol::{
    Due, FlowNow, FlowPlan, FlowRecord, FlowStep, ListFlows, ListFlowsReply, LostNodes, Message, NewNode,
    NodeEvent, NodeOf, OutboxReply, PostMessages, PutFlow, PutFlowReply, QueueReply, QueueVerb, ReadNodes,
    ReadNodesReply, StepFlows, Version,
};
use crate::store::redis::code::{Code, flow_field, node_field};
use crate::store::redis::codec::queue::reply::{Fields, Items};
use crate::store::redis::codec::queue::{encode_place, encoded, millis, text};

/// Flows of one page at most.
const PAGE: u32 = 100;

pub(super) fn encode_put(command: &mut Cmd, put: &PutFlow) {
    let PutFlow { id, token, first, nodes, plan, adds_to } = put;
    command.arg(id.as_str()).arg(token.to_string()).arg(*first).arg(text(adds_to.map(Version::get)));
    match plan {
        Some(FlowPlan { graph, names, states, summary }) => {
            command.arg(1).arg(&**graph).arg(&**names).arg(&**states).arg(&**summary)
        }
        None => command.arg(0).arg("").arg("").arg("").arg(""),
    };
    for node in &**nodes {
        command.arg(&*node.name).arg(node.queue.as_deref().unwrap_or_default());
        command.arg(options(node)).arg(&*node.body);
    }
}

/// What the node's task gets, as enqueue_task.lua reads it.
fn options(node: &NewNode) -> String {
    let NewNode { due, priority, max_attempts, expires, key, .. } = node;
    let (kind, due) = encoded(*due);
    let expires = expires.map_or(0, |expires| millis(expires).max(1));
    let mut options = format!("{kind}{due} {priority} {max_attempts} {expires} k0");
    if let Some(key) = key {
        options.extend([" ", key.as_str()]);
    }
    options
}

pub(super) fn encode_step(command: &mut Cmd, step: &StepFlows) {
    command.arg(step.first).arg(step.through);
    for flow in &*step.flows {
        let FlowStep { id, version, states, summary, ended, puts, cancels, goes_on } = flow;
        command.arg(id.as_str()).arg(version.get()).arg(u8::from(*ended)).arg(u8::from(*goes_on));
        command.arg(&**states).arg(&**summary).arg(puts.len()).arg(cancels.len());
        command.arg(puts).arg(cancels);
    }
}

pub(super) fn encode_post(command: &mut Cmd, post: &PostMessages) {
    command.arg(post.source.as_deref().unwrap_or_default());
    for message in &*post.messages {
        let Message { number, event, of, retries, result } = message;
        let here = NodeOf { home: None, ..of.clone() };
        command.arg(*number).arg(event.number()).arg(here.text()).arg(*retries);
        command.arg(result.as_ref().map_or_else(Vec::new, |result| [b"r", &**result].concat()));
    }
}

pub(super) fn encode_list(command: &mut Cmd, list: &ListFlows) {
    command.arg(list.max.clamp(1, PAGE));
    encode_place(command, list.from.as_ref());
}

pub(super) fn encode_read(command: &mut Cmd, read: &ReadNodes) {
    command.arg(read.flow.as_str()).arg(u8::from(read.results)).arg(&*read.nodes);
}

pub(super) fn encode_lost(command: &mut Cmd, lost: &LostNodes) {
    for (id, node) in &*lost.nodes {
        command.arg(id.as_str()).arg(node.text());
    }
}

impl Items<'_> {
    /// The reply to a verb about flows.
    pub(super) fn of_flows(&mut self, verb: &QueueVerb, code: Code) -> Option<QueueReply> {
        Some(match (verb, code) {
            (QueueVerb::PutFlow(_), code) => QueueReply::PutFlow(put(code)?),
            (QueueVerb::ReadOutbox(_), Code::OutboxFound) => QueueReply::ReadOutbox(self.outbox()?),
            (QueueVerb::StepFlows(_), Code::Done) => QueueReply::StepFlows(true),
            (QueueVerb::StepFlows(_), Code::Stale) => QueueReply::StepFlows(false),
            (QueueVerb::PostMessages(_), Code::Set) => QueueReply::PostMessages,
            (QueueVerb::GetFlow(_), Code::Absent) => QueueReply::GetFlow(None),
            (QueueVerb::GetFlow(id), Code::FlowsFound) => {
                let mut flow = self.flow(id.clone())?;
                let (graph, names, states) = (self.blob()?, self.blob()?, self.blob()?);
                flow.plan = Some(FlowPlan { graph, names, states, summary: flow.summary.clone() });
                QueueReply::GetFlow(Some(Box::new(flow)))
            }
            (QueueVerb::ListFlows(_), Code::FlowsFound) => {
                let (next, mut flows) = (self.place()?, Vec::new());
                while !self.is_empty() {
                    let id = TaskId::stored(self.bytes()?);
                    flows.push(self.flow(id)?);
                }
                QueueReply::ListFlows(ListFlowsReply { flows, next })
            }
            (QueueVerb::ReadNodes(read), Code::NodesFound) => QueueReply::ReadNodes(self.nodes(read)?),
            (QueueVerb::LostNodes(lost), Code::NodesFound) => {
                let mut places = Vec::new();
                while !self.is_empty() {
                    places.push(self.small().filter(|place| (*place as usize) < lost.nodes.len())?);
                }
                QueueReply::LostNodes(places)
            }
            _ => return None,
        })
    }

    fn small(&mut self) -> Option<u32> {
        self.int()?.try_into().ok()
    }

    fn blob(&mut self) -> Option<Arc<[u8]>> {
        self.bytes().map(Arc::from)
    }

    fn outbox(&mut self) -> Option<OutboxReply> {
        let (has_more, walk, count) = (self.int()? == 1, self.bytes()?, self.size()?);
        let mut reply = OutboxReply {
            messages: Vec::new(),
            has_more,
            flows: Vec::new(),
            walk: (!walk.is_empty()).then(|| TaskId::stored(walk)),
        };
        for _ in 0..count {
            reply.messages.push(self.message()?);
        }
        while !self.is_empty() {
            let (id, version) = (TaskId::stored(self.bytes()?), self.version()?);
            reply.flows.push(FlowNow { id, version, graph: self.blob()?, states: self.blob()? });
        }
        Some(reply)
    }

    fn message(&mut self) -> Option<Message> {
        let number = self.number()?;
        let event = NodeEvent::from_number(self.int()?.try_into().ok()?)?;
        Some(Message {
            number,
            event,
            of: NodeOf::parse(&String::from_utf8_lossy(self.bytes()?))?,
            retries: self.small()?,
            result: self.maybe_bytes()?.map(Arc::from),
        })
    }

    /// Without its plan.
    fn flow(&mut self, id: TaskId) -> Option<FlowRecord> {
        let flow = Fields::read(self.bytes()?)?;
        Some(FlowRecord {
            id,
            version: Version::new(flow.number(flow_field::FLOW_VERSION)?),
            created: flow.number(flow_field::FLOW_CREATED)?,
            ended: flow.number(flow_field::FLOW_ENDED)?,
            summary: flow.text(flow_field::FLOW_SUMMARY)?.into(),
            plan: None,
        })
    }

    /// Not more than were asked for, and not none.
    fn nodes(&mut self, read: &ReadNodes) -> Option<ReadNodesReply> {
        let (mut nodes, mut results) = (Vec::new(), Vec::new());
        while !self.is_empty() {
            match self.maybe_bytes()? {
                found if read.results => results.push(found.map(Arc::from)),
                Some(packed) => nodes.push(Some(node(packed, self.blob()?)?)),
                None => nodes.push(None),
            }
        }
        let count = nodes.len() + results.len();
        if count > read.nodes.len() || (count == 0 && !read.nodes.is_empty()) {
            return None;
        }
        Some(if read.results { ReadNodesReply::Results(results) } else { ReadNodesReply::Nodes(nodes) })
    }
}

fn put(code: Code) -> Option<PutFlowReply> {
    Some(match code {
        Code::Put => PutFlowReply::Put,
        Code::Exists => PutFlowReply::Exists,
        Code::Full => PutFlowReply::Full,
        Code::Stale => PutFlowReply::Stale,
        Code::Absent => PutFlowReply::Absent,
        _ => return None,
    })
}

/// As put_flow.lua packs it, with what [`options`] wrote.
fn node(packed: &[u8], body: Arc<[u8]>) -> Option<NewNode> {
    let node = Fields::read(packed)?;
    let options = node.text(node_field::NODE_OPTIONS)?;
    let mut options = options.splitn(6, ' ');
    let (kind, due) = options.next()?.split_at_checked(1)?;
    let due: u64 = due.parse().ok()?;
    Some(NewNode {
        name: node.text(node_field::NODE_NAME)?.into(),
        queue: Some(node.text(node_field::NODE_QUEUE)?).filter(|queue| !queue.is_empty()).map(Into::into),
        due: match kind {
            "i" if due == 0 => Due::Now,
            "i" => Due::In(Duration::from_millis(due)),
            _ => Due::At(due),
        },
        priority: options.next()?.parse().ok()?,
        max_attempts: options.next()?.parse().ok()?,
        expires: Some(options.next()?.parse().ok()?).filter(|time| *time > 0).map(Duration::from_millis),
        // After the policy.
        key: options.nth(1).map(|key| TaskKey::stored(key.as_bytes())),
        body,
    })
}
