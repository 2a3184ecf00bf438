//! Verbs about flows: tasks that wait for others. See *Flows* in docs/DESIGN.md.
//!
//! What a flow does next is the engine's to say; stores keep it, and note how the tasks that are nodes of flows ended.

use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{QueueName, TaskId, TaskKey};
use crate::protocol::{Due, Place, Version, WallMillis};

/// Which node of which flow a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOf {
    /// The flow's id.
    pub flow: TaskId,
    /// Counts its nodes from zero.
    pub node: u32,
    /// The name of the queue that the flow is in; `None`: the task's own.
    pub home: Option<Arc<str>>,
}

impl NodeOf {
    /// As text: the number, the flow, and perhaps the home in a line of its own.
    pub(crate) fn text(&self) -> String {
        let Self { flow, node, home } = self;
        match home {
            None => format!("{node} {}", flow.as_str()),
            Some(home) => format!("{node} {}\n{home}", flow.as_str()),
        }
    }

    /// What [`NodeOf::text`] wrote; `None` if it is nothing of the kind.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (node, rest) = text.split_once(' ')?;
        let (flow, home) = rest.split_once('\n').map_or((rest, None), |(flow, home)| (flow, Some(home)));
        Some(Self {
            flow: TaskId::stored(flow.as_bytes()),
            node: node.parse().ok()?,
            home: home.map(Into::into),
        })
    }
}

/// A node to be kept until it is put into its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// Unique in the flow. The task's id is the flow's, a slash, and this.
    pub name: Arc<str>,
    /// The name of its queue, if that is not the flow's.
    pub queue: Option<Arc<str>>,
    /// When it may be delivered: [`Due::In`] counts from when it is put into its queue.
    pub due: Due,
    /// Higher ones first.
    pub priority: u8,
    /// After so many deliveries that ended without an ack it is dead.
    pub max_attempts: u32,
    /// Not delivered later than so long after it was put into its queue.
    pub expires: Option<Duration>,
    /// Whose limits it has, if anybody's.
    pub key: Option<TaskKey>,
    /// Payload and headers.
    pub body: Arc<[u8]>,
}

/// What the engine knows of a flow; stores do not look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// What each node waits for.
    pub graph: Arc<[u8]>,
    /// What each node is called, and its queue.
    pub names: Arc<[u8]>,
    /// What each node is doing.
    pub states: Arc<[u8]>,
    /// How many nodes are in which state, for lists.
    pub summary: Arc<str>,
}

/// Add a flow, or nodes to one. A flow of many nodes comes in parts, of which the last one has the plan: with that it begins.
#[derive(Clone, Debug)]
pub struct PutFlow {
    /// The flow's id.
    pub id: TaskId,
    /// The same in each part and each repetition, and another one in every other call.
    pub token: u64,
    /// The number of the first of these nodes.
    pub first: u32,
    /// In order.
    pub nodes: Arc<[NewNode]>,
    /// With the last part.
    pub plan: Option<FlowPlan>,
    /// The version of the flow that the nodes are added to; `None` if this is a new one. Then there is one part.
    pub adds_to: Option<Version>,
}

/// The answer to [`PutFlow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutFlowReply {
    /// It is there: the parts so far, or all of it.
    Put,
    /// There is one of this id already: nothing was changed.
    Exists,
    /// The queue is at its limit: nothing was changed.
    Full,
    /// The flow to add to has changed since; or parts of another one of this id are coming: nothing was changed.
    Stale,
    /// The flow to add to is not there, or has ended; or earlier parts are not there: nothing was changed.
    Absent,
}

/// What happened to a node or a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// The flow begins, or has got more nodes: of no node.
    Begin,
    /// The node's task was acked.
    Done,
    /// It is dead.
    Dead,
    /// It was cancelled, removed or popped away.
    Cancelled,
    /// It was not found.
    Lost,
    /// The flow is to be cancelled: of no node.
    Cancel,
    /// What did not succeed in the flow is to be tried again: of no node.
    Retry,
    /// It has come into its queue, which is another than the flow's.
    Placed,
}

impl NodeEvent {
    /// As stores write it.
    pub(crate) const ALL: [(&'static str, u8, Self); 8] = [
        ("NODE_BEGIN", 1, Self::Begin),
        ("NODE_DONE", 2, Self::Done),
        ("NODE_DEAD", 3, Self::Dead),
        ("NODE_CANCELLED", 4, Self::Cancelled),
        ("NODE_LOST", 5, Self::Lost),
        ("FLOW_CANCEL", 6, Self::Cancel),
        ("FLOW_RETRY", 7, Self::Retry),
        ("NODE_PLACED", 8, Self::Placed),
    ];

    pub(crate) fn number(self) -> u8 {
        Self::ALL.iter().find(|row| row.2 == self).map_or(0, |row| row.1)
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == number).map(|row| row.2)
    }
}

/// A line of a queue's outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// In the outbox: each one larger than all before, also those of another life of the queue.
    pub number: u64,
    /// What happened.
    pub event: NodeEvent,
    /// To which node; of no node: zero.
    pub of: NodeOf,
    /// Of [`NodeEvent::Lost`] and [`NodeEvent::Placed`]: how often the flow had been tried again then. Otherwise zero.
    pub retries: u32,
    /// Of [`NodeEvent::Done`]: what came of it, if it said so. Told only of nodes whose flow is in another queue.
    pub result: Option<Arc<[u8]>>,
}

/// Look at what the queue's outbox has, and at the flows that it is about.
#[derive(Clone, Copy, Debug)]
pub struct ReadOutbox {
    /// At most so many messages.
    pub max: u32,
}

/// The answer to [`ReadOutbox`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxReply {
    /// The oldest ones, without a gap.
    pub messages: Vec<Message>,
    /// Whether there are more.
    pub has_more: bool,
    /// The flows of this queue that they are about, as far as they are there.
    pub flows: Vec<FlowNow>,
    /// A flow whose tasks are to be looked for, now and then.
    pub walk: Option<TaskId>,
}

/// A flow as it is stepped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowNow {
    /// Its id.
    pub id: TaskId,
    /// Counts its changes.
    pub version: Version,
    /// What each node waits for.
    pub graph: Arc<[u8]>,
    /// What each node is doing.
    pub states: Arc<[u8]>,
}

/// Work messages off: all of it, or, if any of them or of the flows is not as it was read, nothing.
#[derive(Clone, Debug)]
pub struct StepFlows {
    /// The number of the oldest message.
    pub first: u64,
    /// That of the last one that is worked off; one less than the first if none is.
    pub through: u64,
    /// What the flows do.
    pub flows: Arc<[FlowStep]>,
}

/// What a flow does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStep {
    /// Its id.
    pub id: TaskId,
    /// As it was read.
    pub version: Version,
    /// What each node is doing from now on.
    pub states: Arc<[u8]>,
    /// How many are doing what, for lists.
    pub summary: Arc<str>,
    /// Whether it has ended with this.
    pub ended: bool,
    /// Nodes of this queue that are put into it.
    pub puts: Vec<u32>,
    /// Nodes of this queue whose tasks are cancelled.
    pub cancels: Vec<u32>,
    /// Whether there is more to do for it: a message comes in that says so.
    pub goes_on: bool,
}

/// Put messages into the outbox of the queue that the flows are in.
#[derive(Clone, Debug)]
pub struct PostMessages {
    /// The name of the queue whose outbox they are from: those that came before are left out. `None`: they are from none.
    pub source: Option<Arc<str>>,
    /// In the order of their numbers, which are those of the source; their `home` is `None`.
    pub messages: Arc<[Message]>,
}

/// The flows of a queue, the latest first: those that have not ended, then the others.
#[derive(Clone, Debug)]
pub struct ListFlows {
    /// `None` first, then what the last page gave.
    pub from: Option<Place>,
    /// At most so many.
    pub max: u32,
}

/// The answer to [`ListFlows`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFlowsReply {
    /// Without plans.
    pub flows: Vec<FlowRecord>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Place>,
}

/// A flow as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Its id.
    pub id: TaskId,
    /// Counts its changes.
    pub version: Version,
    /// When it was put in.
    pub created: WallMillis,
    /// When it ended; zero if it has not.
    pub ended: WallMillis,
    /// How many nodes are doing what.
    pub summary: Arc<str>,
    /// The plan, if it was asked for; its summary is the one above.
    pub plan: Option<FlowPlan>,
}

/// Look at nodes of a flow.
#[derive(Clone, Debug)]
pub struct ReadNodes {
    /// The flow's id.
    pub flow: TaskId,
    /// Which.
    pub nodes: Arc<[u32]>,
    /// Whether their results are asked for, or they themselves.
    pub results: bool,
}

/// The answer to [`ReadNodes`]: for the first ones that were asked for, as many as there is room for, but always one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadNodesReply {
    /// `None`: there is none, or none any more.
    Nodes(Vec<Option<NewNode>>),
    /// `None`: there is none, or none any more.
    Results(Vec<Option<Arc<[u8]>>>),
}

/// Look for tasks that are nodes.
#[derive(Clone, Debug)]
pub struct LostNodes {
    /// Their ids, and what they are.
    pub nodes: Arc<[(TaskId, NodeOf)]>,
}

impl NewNode {
    /// The id of its task.
    pub fn task_id(flow: &TaskId, name: &str) -> TaskId {
        TaskId::stored(format!("{}/{name}", flow.as_str()).as_bytes())
    }
}

impl Message {
    /// The queue whose flow it is about, beside the one it is in.
    pub fn home(&self, queue: &QueueName) -> Option<QueueName> {
        self.of.home.as_ref().map(|home| queue.sibling(home))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for home in [None, Some("mails {7}".into())] {
            let mark = NodeOf { flow: TaskId::stored(b"a b/c"), node: 7, home };
            assert_eq!(NodeOf::parse(&mark.text()), Some(mark));
        }
        assert_eq!(NodeOf::parse("x a"), None);
        assert_eq!(NodeOf::parse("7"), None);
    }
}
