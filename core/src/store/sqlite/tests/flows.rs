//! Flows as SQLite keeps them, and the outbox that says how their tasks ended.

use std::sync::Arc;
use std::time::Duration;

use super::queue::*;
use super::{SECOND, prefixes, soon};
use crate::protocol::*;
use crate::store::Store;

mod claims;
mod keeping;
mod marks;
mod messages;
mod steps;
mod views;

/// The mark of a node of a flow of this queue.
fn mark(flow: &str, node: u32) -> NodeOf {
    NodeOf { flow: id(flow), node, home: None }
}

fn node_task(name: &str) -> NewTask {
    NewTask { node: Some(mark("f", 7)), ..task(name) }
}

fn node(name: &str) -> NewNode {
    NewNode {
        name: name.into(),
        queue: None,
        due: Due::Now,
        priority: 128,
        max_attempts: 3,
        expires: None,
        key: None,
        body: name.as_bytes().into(),
    }
}

fn plan() -> FlowPlan {
    FlowPlan {
        graph: b"G"[..].into(),
        names: b"N"[..].into(),
        states: b"S"[..].into(),
        summary: "sum".into(),
    }
}

/// All of a flow of these nodes.
fn flow_of(name: &str, nodes: &[&str]) -> PutFlow {
    let nodes: Vec<_> = nodes.iter().map(|name| node(name)).collect();
    PutFlow { id: id(name), token: 1, first: 0, nodes: nodes.into(), plan: Some(plan()), adds_to: None }
}

/// What the counts of a queue's row say is there.
const COUNTS: [(&str, &str); 4] = [
    ("flows", "SELECT count(*) FROM flow WHERE flow.queue = queue.id AND state = 1"),
    ("flows_ended", "SELECT count(*) FROM flow WHERE flow.queue = queue.id AND state = 2"),
    ("flows_dropped", "SELECT count(*) FROM flow WHERE flow.queue = queue.id AND state = 3"),
    ("messages", "SELECT count(*) FROM outbox WHERE outbox.queue = queue.id"),
];

impl Queue {
    fn ask_flows(&self, verb: QueueVerb) -> QueueReply {
        let reply = self.ask(verb);
        for (column, rows) in COUNTS {
            let wrong = format!("SELECT count(*) FROM queue WHERE key >= ' ' AND {column} <> ({rows})");
            assert_eq!(self.store.count(&wrong), 0, "{wrong}");
        }
        let gaps =
            "SELECT count(*) FROM queue WHERE key >= ' ' AND messages > 0 AND last_message - messages + 1 <>
          (SELECT min(number) FROM outbox WHERE outbox.queue = queue.id)";
        assert_eq!(self.store.count(gaps), 0);
        reply
    }

    fn put_flow(&self, flow: PutFlow) -> PutFlowReply {
        match self.ask_flows(QueueVerb::PutFlow(flow)) {
            QueueReply::PutFlow(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Puts a flow of one part in.
    fn begin(&self, name: &str, nodes: &[&str]) {
        assert_eq!(self.put_flow(flow_of(name, nodes)), PutFlowReply::Put);
    }

    fn read(&self, max: u32) -> OutboxReply {
        match self.ask_flows(QueueVerb::ReadOutbox(ReadOutbox { max })) {
            QueueReply::ReadOutbox(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Events and marks of the messages, in order.
    fn outbox(&self) -> String {
        let word = |message: &Message| {
            let home = message.of.home.as_ref().map(|home| format!("@{home}")).unwrap_or_default();
            format!("{:?} {} {}{home}", message.event, message.of.flow.as_str(), message.of.node)
        };
        self.read(u32::MAX).messages.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    fn step(&self, step: StepFlows) -> bool {
        match self.ask_flows(QueueVerb::StepFlows(step)) {
            QueueReply::StepFlows(done) => done,
            other => panic!("{other:?}"),
        }
    }

    /// Works all messages off, and does this with a flow.
    fn step_all(&self, name: &str, change: impl FnOnce(&mut FlowStep)) {
        let mut flow = self.step_of(name);
        change(&mut flow);
        assert!(self.step(self.whole(vec![flow])));
    }

    /// A step of a flow as it is now.
    fn step_of(&self, name: &str) -> FlowStep {
        FlowStep {
            id: id(name),
            version: self.flow(name).unwrap().version,
            states: b"s2"[..].into(),
            summary: "sum 2".into(),
            ended: false,
            puts: Vec::new(),
            cancels: Vec::new(),
            goes_on: false,
        }
    }

    /// A step that works all messages off.
    fn whole(&self, flows: Vec<FlowStep>) -> StepFlows {
        let messages = self.read(u32::MAX).messages;
        let number = |message: Option<&Message>| message.map_or(0, |message| message.number);
        StepFlows { first: number(messages.first()), through: number(messages.last()), flows: flows.into() }
    }

    fn drain(&self) {
        assert!(self.step(self.whole(Vec::new())));
    }

    fn post(&self, source: Option<&str>, messages: Vec<Message>) {
        let post = PostMessages { source: source.map(Into::into), messages: messages.into() };
        assert_eq!(self.ask_flows(QueueVerb::PostMessages(post)), QueueReply::PostMessages);
    }

    fn flow(&self, name: &str) -> Option<Box<FlowRecord>> {
        match self.ask_flows(QueueVerb::GetFlow(id(name))) {
            QueueReply::GetFlow(flow) => flow,
            other => panic!("{other:?}"),
        }
    }

    fn list_flows(&self, from: Option<Place>, max: u32) -> (String, Option<Place>) {
        match self.ask_flows(QueueVerb::ListFlows(ListFlows { from, max })) {
            QueueReply::ListFlows(ListFlowsReply { flows, next }) => {
                assert!(flows.iter().all(|flow| flow.plan.is_none()));
                (flows.iter().map(|flow| flow.id.as_str()).collect::<Vec<_>>().join(" "), next)
            }
            other => panic!("{other:?}"),
        }
    }

    fn read_nodes(&self, flow: &str, nodes: Vec<u32>) -> Vec<Option<NewNode>> {
        let read = ReadNodes { flow: id(flow), nodes: nodes.into(), results: false };
        match self.ask_flows(QueueVerb::ReadNodes(read)) {
            QueueReply::ReadNodes(ReadNodesReply::Nodes(nodes)) => nodes,
            other => panic!("{other:?}"),
        }
    }

    fn results(&self, flow: &str, nodes: Vec<u32>) -> Vec<Option<Arc<[u8]>>> {
        let read = ReadNodes { flow: id(flow), nodes: nodes.into(), results: true };
        match self.ask_flows(QueueVerb::ReadNodes(read)) {
            QueueReply::ReadNodes(ReadNodesReply::Results(results)) => results,
            other => panic!("{other:?}"),
        }
    }

    fn lost(&self, nodes: &[(&str, NodeOf)]) -> Vec<u32> {
        let nodes: Vec<_> = nodes.iter().map(|(name, of)| (id(name), of.clone())).collect();
        match self.ask_flows(QueueVerb::LostNodes(LostNodes { nodes: nodes.into() })) {
            QueueReply::LostNodes(lost) => lost,
            other => panic!("{other:?}"),
        }
    }

    /// Acks the next task, which must be this one.
    fn ack(&self, name: &str) {
        let receipt = self.take_any(name);
        assert_eq!(self.settle(name, receipt, Verdict::Ack), DONE);
    }

    /// Claims one task whatever else is told of.
    fn take_any(&self, name: &str) -> Receipt {
        let reply = self.ask_claim(self.claim_of(1));
        let tasks = reply.tasks().unwrap_or_else(|| panic!("{reply:?}"));
        assert_eq!(tasks[0].id.as_str(), name);
        tasks[0].receipt
    }
}

fn with_result(result: &[u8]) -> Verdict {
    Verdict::AckWith { result: result.into(), keep: SECOND }
}
