//! Verbs that put tasks in.

use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{TaskId, TaskKey};
use crate::protocol::{CallId, NodeOf, Version, WallMillis};

/// Put tasks in.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// Tells it from its repetition.
    pub call: CallId,
    /// For how long it may be repeated.
    pub timeout: Duration,
    /// In this order.
    pub tasks: Arc<[NewTask]>,
}

/// A task to enqueue.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Its de-duplication key.
    pub id: TaskId,
    /// Payload and headers, as one value that stores do not look into.
    pub body: Arc<[u8]>,
    /// When it may be delivered.
    pub due: Due,
    /// Higher ones first.
    pub priority: u8,
    /// After so many deliveries that ended without an ack it is dead.
    pub max_attempts: u32,
    /// Not delivered later than so long after it was accepted.
    pub expires: Option<Duration>,
    /// What to do if the id is in the queue already.
    pub on_duplicate: OnDuplicate,
    /// Whose limits it has, if anybody's.
    pub key: Option<TaskKey>,
    /// What it is of a flow. It comes in although the queue is at its limit, and one that is there becomes the node.
    pub node: Option<NodeOf>,
}

/// When a task may be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At once.
    Now,
    /// So long after the store has accepted it.
    In(Duration),
    /// At this wall time.
    At(WallMillis),
}

/// What an enqueue does if the id is in the queue already. If it is running, the new task comes after it, but for `Skip`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// The task that is there stays as it is.
    #[default]
    Keep,
    /// As `Keep`, but if the id is running nothing comes after it. That run may have begun before what this enqueue is about.
    Skip,
    /// The new task takes its place, attempts start again.
    Replace,
    /// As `Replace`, but the due time moves on with every enqueue, until `max_wait` after the first.
    Debounce {
        /// Counts from when the pending task was first accepted.
        max_wait: Duration,
    },
    /// At most one enqueue of the id is accepted per window, whatever became of the task; otherwise as `Keep`.
    Throttle {
        /// Counts from the last accepted enqueue.
        window: Duration,
    },
}

/// What became of one task of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// It is in the queue now.
    Accepted {
        /// How.
        outcome: Outcome,
        /// The task's version after it. [`Version::NONE`] if throttled.
        version: Version,
        /// When the task is due. Zero if throttled.
        due: WallMillis,
    },
    /// The queue is at its limit; the task was not accepted.
    Full,
}

/// How an enqueue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// A new task.
    Added,
    /// The id was pending and stays as it is.
    Kept,
    /// The id was pending and has been replaced.
    Replaced,
    /// The id is running: this task comes after it.
    Successor,
    /// Within the throttle window: nothing was changed.
    Throttled,
    /// The id is running, and the policy is [`OnDuplicate::Skip`]: nothing was changed.
    Skipped,
}

impl Outcome {
    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Kept => "kept",
            Self::Replaced => "replaced",
            Self::Successor => "successor",
            Self::Throttled => "throttled",
            Self::Skipped => "skipped",
        }
    }
}
