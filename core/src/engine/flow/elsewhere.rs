//! Nodes of other queues: put there, cancelled there, and looked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{QueueName, TaskId};
use crate::engine::flow::graph::{NodeName, read_names};
use crate::engine::flow::plan::Plan;
use crate::engine::flow::rounds::{Purpose, Rounds, Todo};
use crate::protocol::{
    EnqueueOutcome, FlowRecord, LostNodes, Message, NODES_BATCH, NewNode, NewTask, NodeEvent, NodeOf,
    OnDuplicate, Outcome, PostMessages, ReadNodes, ReadNodesReply,
};

/// For so long a node that was put into another queue is not put there again, whatever became of it: much longer than
/// whoever puts it may take from reading the outbox to the step.
const PUT_ONCE: Duration = Duration::from_secs(3600);

impl Rounds {
    /// Puts nodes into other queues, or cancels them there.
    pub(super) fn read_nodes(
        &mut self,
        asked: ReadNodes,
        purpose: Purpose,
        retries: u32,
        reply: ReadNodesReply,
    ) {
        let ReadNodesReply::Nodes(nodes) = reply else { return self.give_up() };
        if nodes.is_empty() {
            return self.give_up();
        }
        let (now, rest) = asked.nodes.split_at(nodes.len().min(asked.nodes.len()));
        if !rest.is_empty() {
            let nodes = ReadNodes { nodes: rest.into(), ..asked.clone() };
            self.todo.push(Todo::Read { nodes, purpose, retries });
        }
        let mut puts: BTreeMap<Arc<str>, Vec<NewTask>> = BTreeMap::new();
        for (number, node) in now.iter().zip(nodes) {
            let Some(node) = node else { continue };
            let Some(queue) = node.queue.clone() else { continue };
            if purpose == Purpose::Cancel {
                let id = NewNode::task_id(&asked.flow, &node.name);
                self.todo.push(Todo::Cancel(self.queue.sibling(&queue), id));
            } else {
                let home = Some(self.queue.as_str().into());
                let of = NodeOf { flow: asked.flow.clone(), node: *number, home };
                puts.entry(queue).or_default().push(task(node, of, retries));
            }
        }
        let again = purpose == Purpose::PutAgain;
        for (queue, tasks) in puts {
            self.todo.push(Todo::Put { queue: self.queue.sibling(&queue), tasks, retries, again });
        }
    }

    /// They have come there. Those that had been put there before are looked for once more: it may have been a moment ago.
    pub(super) fn put(
        &mut self,
        queue: QueueName,
        tasks: &[NewTask],
        retries: u32,
        again: bool,
        outcomes: &[EnqueueOutcome],
    ) {
        let had_been_put = |outcome: &EnqueueOutcome| {
            matches!(outcome, EnqueueOutcome::Accepted { outcome: Outcome::Throttled, .. })
        };
        let (before, now): (Vec<_>, Vec<_>) =
            tasks.iter().zip(outcomes).partition(|(_, outcome)| again && had_been_put(outcome));
        let nodes: Vec<(TaskId, NodeOf)> =
            before.iter().filter_map(|(task, _)| Some((task.id.clone(), task.node.clone()?))).collect();
        self.tell(NodeEvent::Placed, retries, now.iter().filter_map(|(task, _)| task.node.as_ref()));
        if !nodes.is_empty() {
            let nodes = LostNodes { nodes: nodes.into() };
            self.todo.push(Todo::Find { queue, nodes, retries, puts: false });
        }
    }

    /// Asks for the tasks of nodes that are in queues, as far as the flow knows.
    pub(super) fn look_for(&mut self, flow: &FlowRecord) {
        let Some(kept) = &flow.plan else { return };
        let (Some(plan), Some(names)) = (Plan::read(&kept.states), read_names(&kept.names)) else { return };
        let in_queues: Vec<usize> = (0..names.len().min(plan.nodes().len()))
            .filter(|node| plan.nodes()[*node].is_in_queue())
            .collect();
        // If there are more than one request asks for, others are asked for each time: a version is drawn from a clock.
        let begin = (flow.version.get() as usize).checked_rem(in_queues.len()).unwrap_or_default();
        let mut asked: BTreeMap<_, Vec<(TaskId, NodeOf)>> = BTreeMap::new();
        for node in in_queues.iter().cycle().skip(begin).take(in_queues.len().min(NODES_BATCH)) {
            let NodeName(name, queue) = &names[*node];
            let home = queue.as_ref().map(|_| self.queue.as_str().into());
            let of = NodeOf { flow: flow.id.clone(), node: *node as u32, home };
            let puts = plan.is_on_the_way(*node);
            asked.entry((queue.as_deref(), puts)).or_default().push((NewNode::task_id(&flow.id, name), of));
        }
        for ((queue, puts), nodes) in asked {
            let queue = queue.map_or_else(|| self.queue.clone(), |queue| self.queue.sibling(queue));
            let nodes = LostNodes { nodes: nodes.into() };
            self.todo.push(Todo::Find { queue, nodes, retries: plan.retries(), puts });
        }
    }

    /// What is not there may not have been put there: whoever was to do that has died.
    pub(super) fn found(&mut self, nodes: &LostNodes, retries: u32, puts: bool, lost: &[u32]) {
        let lost: Vec<&NodeOf> =
            lost.iter().filter_map(|place| Some(&nodes.nodes.get(*place as usize)?.1)).collect();
        match lost.first() {
            Some(first) if puts => {
                let nodes = lost.iter().map(|of| of.node).collect();
                let nodes = ReadNodes { flow: first.flow.clone(), nodes, results: false };
                self.todo.push(Todo::Read { nodes, purpose: Purpose::PutAgain, retries });
            }
            _ => self.tell(NodeEvent::Lost, retries, lost.into_iter()),
        }
    }

    /// These are in no queue, and never will be.
    pub(super) fn put_nowhere(&mut self, tasks: &[NewTask]) {
        self.tell(NodeEvent::Cancelled, 0, tasks.iter().filter_map(|task| task.node.as_ref()));
    }

    /// To the outbox of the queue that the flows are in.
    pub(super) fn tell<'n>(
        &mut self,
        event: NodeEvent,
        retries: u32,
        nodes: impl Iterator<Item = &'n NodeOf>,
    ) {
        let message = |of: &NodeOf| {
            let of = NodeOf { home: None, ..of.clone() };
            Message { number: 0, event, of, retries, result: None }
        };
        let messages: Vec<Message> = nodes.map(message).collect();
        if !messages.is_empty() {
            let post = PostMessages { source: None, messages: messages.into() };
            self.todo.push(Todo::Post(self.queue.clone(), post));
        }
    }
}

/// A node's task in another queue than the flow's.
fn task(node: NewNode, of: NodeOf, retries: u32) -> NewTask {
    let NewNode { name, due, priority, max_attempts, expires, key, body, .. } = node;
    // One that is tried again has been put there before.
    let on_duplicate =
        if retries == 0 { OnDuplicate::Throttle { window: PUT_ONCE } } else { OnDuplicate::Keep };
    let id = NewNode::task_id(&of.flow, &name);
    NewTask { id, body, due, priority, max_attempts, expires, on_duplicate, key, node: Some(of) }
}
