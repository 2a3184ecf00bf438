//! Working an outbox off: read, plan, pass news on, step, see to the nodes of other queues; until nothing is left or it is enough
//! for once.
//!
//! A step is done whole or not at all. News for other queues is passed on before it, since with it the news is gone; twice is as
//! once. Nodes of other queues are put there after it, by whoever has stepped: what is not noted is not done. If that one dies
//! in between, whoever looks for the flow's tasks puts them there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{QueueName, TaskId};
use crate::engine::flow::graph::Graph;
use crate::engine::flow::plan::Plan;
use crate::protocol::{
    CallId, Cancel, Enqueue, FlowNow, FlowStep, LostNodes, Message, NODES_BATCH, NewTask, OutboxReply,
    PostMessages, QueueReply, QueueVerb, ReadNodes, ReadOutbox, StepFlows,
};

/// So many steps at most: whoever steps has also something else to do.
const STEPS_MOST: u32 = 16;
/// So many other queues at most, whose outboxes come after the first one's: it may be that nobody claims from those.
const QUEUES_MOST: u32 = 16;
/// Messages of one step at most.
const MESSAGES_MOST: u32 = 256;

/// See the module's documentation. It asks for one request after the other.
#[derive(Debug)]
pub struct Rounds {
    /// Whose outbox it is.
    pub(super) queue: QueueName,
    left: u32,
    /// What comes before the step, or after it, the last one first.
    pub(super) todo: Vec<Todo>,
    /// What comes after the step, if it is done.
    after: Vec<Todo>,
    step: Option<StepFlows>,
    /// Whether the outbox has more, or will have.
    has_more: bool,
    /// A flow whose tasks are to be looked for, when the outbox is worked off.
    walk: Option<TaskId>,
    /// Queues whose outboxes come after this one's.
    later: Vec<QueueName>,
    queues_left: u32,
    has_moved: bool,
    is_over: bool,
}

#[derive(Debug)]
pub(super) enum Todo {
    /// Messages for the queue that a flow is in.
    Post(QueueName, PostMessages),
    /// Nodes of other queues.
    Read {
        nodes: ReadNodes,
        purpose: Purpose,
        retries: u32,
    },
    Put {
        queue: QueueName,
        tasks: Vec<NewTask>,
        retries: u32,
        /// They may have been there before.
        again: bool,
    },
    Cancel(QueueName, TaskId),
    /// The flow whose tasks are looked for.
    Look(TaskId),
    Find {
        queue: QueueName,
        nodes: LostNodes,
        retries: u32,
        /// They may not have been put there yet.
        puts: bool,
    },
}

/// What nodes of other queues are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Put,
    PutAgain,
    Cancel,
}

impl Rounds {
    /// Works off what the queue's outbox has.
    pub fn new(queue: QueueName) -> Self {
        Self::of(queue, STEPS_MOST)
    }

    /// The same, by somebody who has tasks to work on.
    pub fn brief(queue: QueueName) -> Self {
        Self::of(queue, 1)
    }

    fn of(queue: QueueName, left: u32) -> Self {
        Self {
            queue,
            left,
            todo: Vec::new(),
            after: Vec::new(),
            step: None,
            has_more: false,
            walk: None,
            later: Vec::new(),
            queues_left: QUEUES_MOST,
            has_moved: false,
            is_over: false,
        }
    }

    /// The next request, and to which queue; `None` at the end. An enqueue takes the slot's next number.
    pub fn request(&self, slot: &mut CallId) -> Option<(QueueName, QueueVerb)> {
        if self.is_over {
            return None;
        }
        let queue = self.queue.clone();
        Some(match (self.todo.last(), &self.step) {
            (Some(Todo::Post(home, post)), _) => (home.clone(), QueueVerb::PostMessages(post.clone())),
            (Some(Todo::Read { nodes, .. }), _) => (queue, QueueVerb::ReadNodes(nodes.clone())),
            (Some(Todo::Put { queue: other, tasks, .. }), _) => {
                slot.number += 1;
                let tasks = tasks.as_slice().into();
                let enqueue = Enqueue { call: *slot, timeout: Duration::ZERO, tasks };
                (other.clone(), QueueVerb::Enqueue(enqueue))
            }
            (Some(Todo::Cancel(other, id)), _) => {
                (other.clone(), QueueVerb::Cancel(Cancel { id: id.clone() }))
            }
            (Some(Todo::Look(flow)), _) => (queue, QueueVerb::GetFlow(flow.clone())),
            (Some(Todo::Find { queue, nodes, .. }), _) => {
                (queue.clone(), QueueVerb::LostNodes(nodes.clone()))
            }
            (None, Some(step)) => (queue, QueueVerb::StepFlows(step.clone())),
            (None, None) => (queue, QueueVerb::ReadOutbox(ReadOutbox { max: MESSAGES_MOST })),
        })
    }

    /// The answer to it. One of another kind ends it.
    pub fn replied(&mut self, reply: QueueReply) {
        match (self.todo.pop(), reply) {
            (None, QueueReply::ReadOutbox(reply)) => self.read(reply),
            (None, QueueReply::StepFlows(done)) => self.stepped(done),
            (Some(Todo::Post(home, _)), QueueReply::PostMessages) => {
                if !self.later.contains(&home) {
                    self.later.push(home);
                }
            }
            (Some(Todo::Read { nodes, purpose, retries }), QueueReply::ReadNodes(reply)) => {
                self.read_nodes(nodes, purpose, retries, reply);
            }
            (Some(Todo::Put { queue, tasks, retries, again }), QueueReply::Enqueue(outcomes)) => {
                self.put(queue, &tasks, retries, again, &outcomes);
            }
            (Some(Todo::Cancel(..)), QueueReply::Cancel(_)) => {}
            (Some(Todo::Look(_)), QueueReply::GetFlow(flow)) => {
                if let Some(flow) = flow {
                    self.look_for(&flow);
                }
            }
            (Some(Todo::Find { nodes, retries, puts, .. }), QueueReply::LostNodes(lost)) => {
                self.found(&nodes, retries, puts, &lost);
            }
            _ => self.is_over = true,
        }
        self.go_on();
    }

    /// The store will never do it, whoever asks: in the place of another queue is what is none. That is over, and the rest goes on.
    pub fn refused(&mut self) {
        match self.todo.pop() {
            Some(Todo::Put { tasks, .. }) => self.put_nowhere(&tasks),
            Some(Todo::Post(..) | Todo::Cancel(..) | Todo::Find { .. }) => {}
            _ => self.is_over = true,
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        if self.todo.is_empty() && self.step.is_none() && !self.has_more {
            self.next_queue();
        }
    }

    /// Ends without an answer: somebody else goes on with it.
    pub fn give_up(&mut self) {
        self.is_over = true;
    }

    /// Whether flows have moved on by this.
    pub fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// Whether the answer to an enqueue is awaited.
    pub(crate) fn enqueues(&self) -> bool {
        matches!(self.todo.last(), Some(Todo::Put { .. }))
    }

    /// After the outbox a flow that is to be looked after, then the next outbox.
    fn next_queue(&mut self) {
        if let Some(flow) = self.walk.take() {
            self.todo.push(Todo::Look(flow));
        } else if self.queues_left > 0
            && let Some(queue) = self.later.pop()
        {
            // It gets a step in any case, also from somebody who has none left.
            (self.queue, self.has_more) = (queue, true);
            self.queues_left -= 1;
        } else {
            self.is_over = true;
        }
    }

    fn read(&mut self, reply: OutboxReply) {
        let OutboxReply { messages, has_more, flows, walk } = reply;
        (self.has_more, self.walk) = (has_more, walk);
        let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
            self.has_more = false;
            return;
        };
        let (first, through) = (first.number, last.number);
        let planned: Option<Vec<_>> = flows.into_iter().map(Planned::read).collect();
        // A newer version has written it, and one of that goes on with it.
        let Some(mut planned) = planned else { return self.give_up() };
        let mut posts: BTreeMap<Arc<str>, Vec<Message>> = BTreeMap::new();
        for message in messages {
            match message.of.home.clone() {
                Some(home) => posts.entry(home).or_default().push(message),
                None => planned.iter_mut().for_each(|flow| flow.apply(&message)),
            }
        }
        for (home, messages) in posts {
            self.post(&home, messages);
        }
        let mut budget = NODES_BATCH;
        let steps = planned.into_iter().map(|flow| self.plan(flow, &mut budget)).collect();
        self.step = Some(StepFlows { first, through, flows: steps });
    }

    fn post(&mut self, home: &str, mut messages: Vec<Message>) {
        messages.iter_mut().for_each(|message| message.of.home = None);
        let source = Some(self.queue.as_str().into());
        let post = PostMessages { source, messages: messages.into() };
        self.todo.push(Todo::Post(self.queue.sibling(home), post));
    }

    fn plan(&mut self, flow: Planned, budget: &mut usize) -> FlowStep {
        let Planned { id, version, graph, mut plan } = flow;
        let effects = plan.settle(&graph, budget);
        self.has_more |= effects.has_more || !effects.cancels.is_empty();
        let is_elsewhere = |node: &u32| graph.nodes.get(*node as usize).is_some_and(|node| node.elsewhere);
        let mut own = |nodes: Vec<u32>, purpose| {
            let (elsewhere, own): (Vec<u32>, Vec<u32>) = nodes.into_iter().partition(is_elsewhere);
            if !elsewhere.is_empty() {
                let nodes = ReadNodes { flow: id.clone(), nodes: elsewhere.into(), results: false };
                self.after.push(Todo::Read { nodes, purpose, retries: plan.retries() });
            }
            own
        };
        let (puts, cancels) = (own(effects.puts, Purpose::Put), own(effects.cancels, Purpose::Cancel));
        FlowStep {
            version,
            states: plan.write().into(),
            summary: plan.summary().into(),
            ended: plan.state() != crate::engine::flow::FlowState::Running,
            puts,
            cancels,
            goes_on: effects.has_more,
            id,
        }
    }

    fn stepped(&mut self, done: bool) {
        let step = self.step.take();
        let mut after = std::mem::take(&mut self.after);
        if !done {
            // Somebody else has come first, and goes on.
            self.has_more = false;
            return;
        }
        self.todo.append(&mut after);
        self.has_moved |= step.is_some_and(|step| !step.flows.is_empty());
        self.left = self.left.saturating_sub(1);
        self.has_more &= self.left > 0;
    }
}

/// A flow between what it was and what it will be.
struct Planned {
    id: TaskId,
    version: crate::protocol::Version,
    graph: Graph,
    plan: Plan,
}

impl Planned {
    fn read(flow: FlowNow) -> Option<Self> {
        let (graph, mut plan) = (Graph::read(&flow.graph)?, Plan::read(&flow.states)?);
        plan.grow(graph.nodes.len());
        Some(Self { id: flow.id, version: flow.version, graph, plan })
    }

    fn apply(&mut self, message: &Message) {
        if message.of.flow == self.id {
            self.plan.apply(&self.graph, message.event, message.of.node, message.retries);
        }
    }
}
