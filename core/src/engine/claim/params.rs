//! What a claim is asked for, and what it results in.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::name::QueueName;
use crate::engine::schedule::FiredSchedule;
use crate::protocol::{CallId, ClaimedTask, Settle, Settled, Waiter};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ClaimParams {
    /// Asked in this order; at least one.
    pub queues: Vec<QueueName>,
    /// At most so many tasks.
    pub max: u32,
    /// Life of each claim.
    pub lease: Duration,
    /// How long to wait for a task; zero only tries.
    pub wait: Duration,
    /// How long a try may take when the store is slow.
    pub timeout: Duration,
    /// A wait goes on for however long the store does not answer. Otherwise it fails after `timeout` of that.
    pub patient: bool,
    /// Claims of the first queue to settle in the same step.
    pub settle: Option<Settle>,
    /// Who to hint.
    pub waiter: Waiter,
    /// Who claims, as `consumers` shows it.
    pub consumer: Arc<str>,
    /// Whether the clock stands still until a test moves it.
    pub clock_stands: bool,
    /// The slot to use, with the number of its last call.
    pub slot: CallId,
}

/// How a claim ended.
#[derive(Debug)]
pub struct Claimed {
    /// The tasks; none if there were none in time. All of one queue.
    pub tasks: Vec<ClaimedOne>,
    /// What became of the settlements.
    pub settled: Vec<Settled>,
    /// Whether there were no tasks because a queue is paused.
    pub paused: bool,
    /// The schedules that were fired on the way, or left alone.
    pub fired: Vec<(QueueName, FiredSchedule)>,
}

/// A claimed task.
#[derive(Clone, Debug)]
pub struct ClaimedOne {
    /// Of which queue.
    pub queue: QueueName,
    /// The task.
    pub task: ClaimedTask,
    /// Until when it is surely ours.
    pub deadline: Moment,
}
