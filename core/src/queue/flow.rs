//! Flows, as they are put into a queue.

use crate::engine::flow::Edge;
use crate::queue::task::Task;

/// Tasks of which some wait for others. A flow is put in whole, and then goes by itself: whoever claims from its queue puts
/// each task into its queue as soon as what it waits for has come about. Every flow ends: a task that can never run any more
/// is skipped, and so on down.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), stanchion::Error> {
/// use stanchion::{Client, Flow, Node, Task};
///
/// let queue = Client::open("memory:").await?.queue("imports");
/// let flow = Flow::batch("import:7", [Task::new("part-1"), Task::new("part-2")])
///     .then(Task::new("publish")) // when all have succeeded
///     .failed(Task::new("alarm")) // as soon as one fails
///     .finally(Task::new("clean-up")); // when all have ended
/// queue.enqueue_flow(flow).await?;
///
/// let any_shape = Flow::new("report:7")
///     .node(Task::new("fetch"))
///     .node(Node::new(Task::new("render")).after("fetch"))
///     .node(Node::new(Task::new("mail")).after("render").queue("mails"));
/// queue.enqueue_flow(any_shape).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a flow does nothing until it is enqueued"]
pub struct Flow {
    pub(crate) id: String,
    pub(crate) nodes: Vec<Node>,
}

impl Flow {
    /// A flow with this id, which a queue has once: without control characters and slashes, and with the longest id of its tasks and
    /// a slash 512 bytes at most. It has no nodes yet.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), nodes: Vec::new() }
    }

    /// All at the same time.
    pub fn batch(id: impl Into<String>, tasks: impl IntoIterator<Item = Task>) -> Self {
        Self { id: id.into(), nodes: tasks.into_iter().map(Node::new).collect() }
    }

    /// Each when the one before it has succeeded.
    pub fn chain(id: impl Into<String>, tasks: impl IntoIterator<Item = Task>) -> Self {
        let mut flow = Self::new(id);
        for task in tasks {
            let before = flow.nodes.last().map(|node| node.name().to_owned());
            let node = Node::new(task);
            flow.nodes.push(match before {
                Some(before) => node.after(before),
                None => node,
            });
        }
        flow
    }

    /// Adds a node: 10,000 at most, with 64 MiB of payloads in all; they name 100,000 others at most, and 100 wait for all.
    pub fn node(mut self, node: impl Into<Node>) -> Self {
        self.nodes.push(node.into());
        self
    }

    /// Adds a node that runs when all others have succeeded, also those that are added while the flow runs
    /// ([`Queue::add_to_flow`](crate::Queue::add_to_flow)). All others: but those that `then`, `failed` and `finally` add.
    pub fn then(self, node: impl Into<Node>) -> Self {
        self.after_all(node, Edge::Success)
    }

    /// Adds a node that runs as soon as one of the others has ended without success, once; see [`Flow::then`].
    pub fn failed(self, node: impl Into<Node>) -> Self {
        self.after_all(node, Edge::Failure)
    }

    /// Adds a node that runs when all others have ended, whatever came of them, also if the flow is cancelled; see [`Flow::then`].
    pub fn finally(self, node: impl Into<Node>) -> Self {
        self.after_all(node, Edge::End)
    }

    fn after_all(self, node: impl Into<Node>, edge: Edge) -> Self {
        self.node(Node { after_all: Some(edge), ..node.into() })
    }
}

/// A task of a flow, and what it waits for: all of it, where there is more than one. Its name is the id of its task, which no two
/// nodes of a flow have; in its queue the task has the id `FLOW/NAME`.
#[derive(Clone, Debug)]
#[must_use = "a node does nothing until its flow is enqueued"]
pub struct Node {
    pub(crate) task: Task,
    pub(crate) queue: Option<String>,
    pub(crate) after: Vec<(String, Edge)>,
    pub(crate) after_all: Option<Edge>,
}

impl From<Task> for Node {
    fn from(task: Task) -> Self {
        Self::new(task)
    }
}

impl Node {
    /// A node that waits for nothing. Its due counts from when it is put into its queue; the task's `on_duplicate` is not for nodes.
    pub fn new(task: Task) -> Self {
        Self { task: task.named(), queue: None, after: Vec::new(), after_all: None }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.task.id().unwrap_or_default()
    }

    /// Runs after this one has succeeded. If it ends otherwise, this one is skipped.
    pub fn after(self, node: impl Into<String>) -> Self {
        self.needs(node, Edge::Success)
    }

    /// Runs after this one has ended, whatever came of it.
    pub fn after_end(self, node: impl Into<String>) -> Self {
        self.needs(node, Edge::End)
    }

    /// Runs after this one has ended without success: it is dead, was cancelled or removed, or was skipped because of another. Of
    /// several, one is enough. If none of them comes to that, this one is not needed.
    pub fn after_failure(self, node: impl Into<String>) -> Self {
        self.needs(node, Edge::Failure)
    }

    fn needs(mut self, node: impl Into<String>, edge: Edge) -> Self {
        self.after.push((node.into(), edge));
        self
    }

    /// The task goes into this queue (default: the flow's), which has the same store and prefix. Its id there is the flow's, a slash,
    /// and its own: flows of two queues with one id must not send tasks with one id into the same third queue.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }
}
