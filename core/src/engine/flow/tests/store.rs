//! Queues in memory, as strict as the real ones: what is not as a request says is an error here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::base::name::{Prefixes, QueueName, TaskId};
use crate::engine::flow::graph::{Graph, NodeName, write_names};
use crate::engine::flow::plan::{NodeState, Plan};
use crate::protocol::{
    Cancelled, Due, EnqueueOutcome, FlowNow, FlowPlan, FlowRecord, Message, NewNode, NewTask, NodeEvent,
    NodeOf, OnDuplicate, OutboxReply, Outcome, QueueReply, QueueVerb, ReadNodesReply, Version,
};

pub(super) fn queue(name: &str) -> QueueName {
    Prefixes::parse("Lock:", "Queue:").unwrap().queue_name(name).unwrap()
}

pub(super) fn id(text: &str) -> TaskId {
    TaskId::stored(text.as_bytes())
}

struct Flow {
    version: u64,
    graph: Vec<u8>,
    names: Vec<NodeName>,
    states: Vec<u8>,
    ended: bool,
}

#[derive(Default)]
struct Queue {
    outbox: VecDeque<Message>,
    last: u64,
    flows: BTreeMap<TaskId, Flow>,
    tasks: BTreeMap<TaskId, NodeOf>,
    windows: BTreeSet<TaskId>,
    sources: BTreeMap<String, u64>,
}

#[derive(Default)]
pub(super) struct Store {
    queues: BTreeMap<String, Queue>,
    /// How often each node was put.
    pub(super) puts: BTreeMap<(TaskId, u32), u32>,
    pub(super) walk: bool,
    most: u32,
    /// No queue is in the place of this one, and the place is taken.
    pub(super) taken: Option<&'static str>,
}

impl Store {
    /// One that tells so many messages at once.
    pub(super) fn telling(most: u32) -> Self {
        Self { most, ..Self::default() }
    }

    /// A flow whose nodes are called by their numbers; those elsewhere are in the queue `b`.
    pub(super) fn begin(&mut self, flow: &TaskId, graph: &Graph) {
        let name = |(number, node): (usize, &crate::engine::flow::NodeGraph)| {
            NodeName(number.to_string(), node.elsewhere.then(|| "b".to_owned()))
        };
        let names = graph.nodes.iter().enumerate().map(name).collect();
        let states = Plan::new(graph.nodes.len()).write();
        let kept = Flow { version: 1, graph: graph.write(), names, states, ended: false };
        self.queue("a").flows.insert(flow.clone(), kept);
        self.post("a", flow, 0, NodeEvent::Begin);
    }

    fn queue(&mut self, name: &str) -> &mut Queue {
        self.queues.entry(name.to_owned()).or_default()
    }

    pub(super) fn post(&mut self, name: &str, flow: &TaskId, node: u32, event: NodeEvent) {
        let of = NodeOf { flow: flow.clone(), node, home: (name != "a").then(|| "a".into()) };
        self.queue(name).post(event, of, 0);
    }

    pub(super) fn plan(&mut self, flow: &TaskId) -> Plan {
        Plan::read(&self.queue("a").flows[flow].states).unwrap()
    }

    pub(super) fn has_ended(&mut self, flow: &TaskId) -> bool {
        self.queue("a").flows[flow].ended
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.queues.values().all(|queue| queue.outbox.is_empty())
    }

    /// The tasks that live, with their queues.
    pub(super) fn tasks(&self) -> Vec<(String, TaskId, u32)> {
        let of = |(name, queue): (&String, &Queue)| {
            queue.tasks.iter().map(|(id, of)| (name.clone(), id.clone(), of.node)).collect::<Vec<_>>()
        };
        self.queues.iter().flat_map(of).collect()
    }

    /// A task ends; `None`: nobody notes how.
    pub(super) fn end(&mut self, name: &str, task: &TaskId, event: Option<NodeEvent>) {
        let of = self.queue(name).tasks.remove(task).unwrap();
        if let Some(event) = event {
            self.queue(name).post(event, of, 0);
        }
    }

    /// Whether the store refuses this for good.
    pub(super) fn refuses(&self, queue: &QueueName) -> bool {
        self.taken == Some(queue.as_str())
    }

    pub(super) fn perform(&mut self, queue: &QueueName, verb: &QueueVerb) -> QueueReply {
        let name = queue.as_str();
        match verb {
            QueueVerb::ReadOutbox(_) => {
                let (walk, most) = (std::mem::take(&mut self.walk), self.most);
                let queue = self.queue(name);
                let messages: Vec<Message> = queue.outbox.iter().take(most as usize).cloned().collect();
                let about = |flow: &&TaskId| {
                    messages.iter().any(|one| one.of.home.is_none() && one.of.flow == **flow)
                };
                let now = |id: &TaskId| {
                    let flow = &queue.flows[id];
                    let (graph, states) = (flow.graph.as_slice().into(), flow.states.as_slice().into());
                    FlowNow { id: id.clone(), version: Version::new(flow.version), graph, states }
                };
                QueueReply::ReadOutbox(OutboxReply {
                    has_more: messages.len() < queue.outbox.len(),
                    flows: queue.flows.keys().filter(about).map(now).collect(),
                    walk: queue.flows.keys().next().filter(|_| walk).cloned(),
                    messages,
                })
            }
            QueueVerb::StepFlows(step) => QueueReply::StepFlows(self.step(name, step)),
            QueueVerb::PostMessages(post) => {
                let queue = self.queue(name);
                for message in &*post.messages {
                    assert_eq!(message.of.home, None);
                    if let Some(source) = &post.source {
                        let known = queue.sources.entry(source.to_string()).or_default();
                        if message.number <= *known {
                            continue;
                        }
                        *known = message.number;
                    }
                    queue.post(message.event, message.of.clone(), message.retries);
                }
                QueueReply::PostMessages
            }
            QueueVerb::ReadNodes(read) => {
                let flow = &self.queue(name).flows[&read.flow];
                let node = |number: &u32| Some(new_node(&flow.names[*number as usize]));
                // Not all at once: whoever reads asks for the rest.
                QueueReply::ReadNodes(ReadNodesReply::Nodes(read.nodes.iter().take(2).map(node).collect()))
            }
            QueueVerb::Enqueue(enqueue) => {
                QueueReply::Enqueue(enqueue.tasks.iter().map(|task| self.enqueue(name, task)).collect())
            }
            QueueVerb::Cancel(cancel) => {
                self.cancel(name, &cancel.id);
                QueueReply::Cancel(Cancelled::Absent)
            }
            QueueVerb::GetFlow(id) => {
                let flow = &self.queue(name).flows[id];
                let plan = FlowPlan {
                    graph: [].into(),
                    names: write_names(&flow.names).into(),
                    states: flow.states.as_slice().into(),
                    summary: "".into(),
                };
                let version = Version::new(flow.version);
                let record = FlowRecord {
                    id: id.clone(),
                    version,
                    created: 0,
                    ended: 0,
                    summary: "".into(),
                    plan: Some(plan),
                };
                QueueReply::GetFlow(Some(Box::new(record)))
            }
            QueueVerb::LostNodes(lost) => {
                let queue = self.queue(name);
                let is_lost = |(task, of): &(TaskId, NodeOf)| {
                    !queue.tasks.contains_key(task) && !queue.outbox.iter().any(|message| message.of == *of)
                };
                let places =
                    (0..).zip(&*lost.nodes).filter(|(_, node)| is_lost(node)).map(|(place, _)| place);
                QueueReply::LostNodes(places.collect())
            }
            other => panic!("{other:?}"),
        }
    }

    fn step(&mut self, name: &str, step: &crate::protocol::StepFlows) -> bool {
        let queue = self.queue(name);
        if queue.outbox.front().map(|message| message.number) != Some(step.first)
            || !queue.outbox.iter().any(|message| message.number == step.through)
            || step
                .flows
                .iter()
                .any(|one| queue.flows.get(&one.id).is_none_or(|flow| flow.version != one.version.get()))
        {
            return false;
        }
        queue.outbox.retain(|message| message.number > step.through);
        for one in &*step.flows {
            let flow = self.queue(name).flows.get_mut(&one.id).unwrap();
            (flow.version, flow.states, flow.ended) = (flow.version + 1, one.states.to_vec(), one.ended);
            for node in &one.puts {
                let names = self.queue(name).flows[&one.id].names[*node as usize].clone();
                assert_eq!(names.1, None, "a node of another queue");
                let of = NodeOf { flow: one.id.clone(), node: *node, home: None };
                let is_new = self.put(name, NewNode::task_id(&one.id, &names.0), of);
                assert!(is_new, "its task is there");
            }
            for node in &one.cancels {
                let task = NewNode::task_id(&one.id, &node.to_string());
                self.cancel(name, &task);
            }
            if one.goes_on {
                self.post(name, &one.id, 0, NodeEvent::Begin);
            }
        }
        true
    }

    fn enqueue(&mut self, name: &str, task: &NewTask) -> EnqueueOutcome {
        let of = task.node.clone().unwrap();
        let state = self.plan(&of.flow).nodes()[of.node as usize];
        assert_ne!(state, NodeState::Waiting, "a node is put that nobody has noted");
        let is_free = match task.on_duplicate {
            OnDuplicate::Throttle { .. } => self.queue(name).windows.insert(task.id.clone()),
            _ => true,
        };
        let is_new = is_free && self.put(name, task.id.clone(), of);
        let outcome = match (is_free, is_new) {
            (false, _) => Outcome::Throttled,
            (true, false) => Outcome::Kept,
            (true, true) => Outcome::Added,
        };
        EnqueueOutcome::Accepted { outcome, version: Version::NONE, due: 0 }
    }

    fn put(&mut self, name: &str, task: TaskId, of: NodeOf) -> bool {
        let is_new = self.queue(name).tasks.insert(task, of.clone()).is_none();
        *self.puts.entry((of.flow, of.node)).or_default() += u32::from(is_new);
        is_new
    }

    fn cancel(&mut self, name: &str, task: &TaskId) {
        if self.queue(name).tasks.contains_key(task) {
            self.end(name, task, Some(NodeEvent::Cancelled));
        }
    }
}

impl Queue {
    fn post(&mut self, event: NodeEvent, of: NodeOf, retries: u32) {
        self.last += 1;
        self.outbox.push_back(Message { number: self.last, event, of, retries, result: None });
    }
}

fn new_node(NodeName(name, queue): &NodeName) -> NewNode {
    NewNode {
        name: name.as_str().into(),
        queue: queue.as_deref().map(Into::into),
        due: Due::Now,
        priority: 0,
        max_attempts: 1,
        expires: None,
        key: None,
        body: [].into(),
    }
}
