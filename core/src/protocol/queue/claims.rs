//! Verbs about tasks under a lease.

use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{TaskId, TaskKey};
use crate::protocol::{CallId, NodeOf, Receipt, Version, Waiter, WallMillis};

/// Take tasks under a lease, or wait for some.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Tells it from its repetition.
    pub call: CallId,
    /// At most so many.
    pub max: u32,
    /// How long the store keeps each claim.
    pub lease: Duration,
    /// Who to hint when there is something to claim. `None` does not wait.
    pub waiter: Option<Waiter>,
    /// Who claims, as `consumers` shows it.
    pub consumer: Arc<str>,
}

/// The answer to [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimReply {
    /// Tasks; never none.
    Claimed(Vec<ClaimedTask>),
    /// There is nothing to claim.
    Empty {
        /// How long until something becomes due, a lease ends, or a schedule is to be fired, as far as known.
        next_due: Option<Duration>,
        /// How many waiting callers come before this one.
        rank: u32,
        /// When the slot is due, if that is a schedule.
        slot: Option<WallMillis>,
    },
    /// The queue is paused.
    Paused {
        /// How many waiting callers come before this one.
        rank: u32,
    },
    /// As within, and schedules are due: whoever hears of it fires them.
    SchedulesDue(Box<ClaimReply>),
    /// As within, and the outbox has messages, or a flow is to be looked after: whoever hears of it does so.
    FlowsDue(Box<ClaimReply>),
}

impl ClaimReply {
    /// The tasks that were claimed, if any were.
    pub fn tasks(&self) -> Option<&[ClaimedTask]> {
        match self {
            Self::Claimed(tasks) => Some(tasks),
            Self::SchedulesDue(reply) | Self::FlowsDue(reply) => reply.tasks(),
            Self::Empty { .. } | Self::Paused { .. } => None,
        }
    }

    /// The same, without the rest; none if none were.
    pub fn into_tasks(self) -> Vec<ClaimedTask> {
        match self {
            Self::Claimed(tasks) => tasks,
            Self::SchedulesDue(reply) | Self::FlowsDue(reply) => reply.into_tasks(),
            Self::Empty { .. } | Self::Paused { .. } => Vec::new(),
        }
    }
}

/// A task under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedTask {
    /// The task's id.
    pub id: TaskId,
    /// Payload and headers.
    pub body: Arc<[u8]>,
    /// Proves that the delivery is the caller's.
    pub receipt: Receipt,
    /// Counts deliveries from one.
    pub attempt: u32,
    /// After so many it is dead.
    pub max_attempts: u32,
    /// Of the task.
    pub version: Version,
    /// When it was due.
    pub due: WallMillis,
    /// Of the task.
    pub priority: u8,
    /// What is left of the lease.
    pub remaining: Duration,
    /// Of the task.
    pub key: Option<TaskKey>,
    /// What it is of a flow.
    pub node: Option<NodeOf>,
}

/// Say how claims ended.
#[derive(Clone, Debug)]
pub struct Settle {
    /// In this order.
    pub items: Arc<[Settlement]>,
}

/// How one claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The task's id.
    pub id: TaskId,
    /// Of the claim.
    pub receipt: Receipt,
    /// How.
    pub verdict: Verdict,
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done.
    Ack,
    /// Done, with a result.
    AckWith {
        /// What came of it.
        result: Arc<[u8]>,
        /// For how long it is kept.
        keep: Duration,
    },
    /// Not done; try again.
    Nack {
        /// Not before so long.
        delay: Duration,
        /// Why.
        reason: Box<str>,
    },
    /// Not done, and not to be tried again.
    Bury {
        /// Why.
        reason: Box<str>,
    },
    /// Not tried: the attempt does not count.
    PutBack {
        /// Not before so long; zero: at once, in its place in line.
        delay: Duration,
    },
    /// Not tried, as whoever it calls has had enough: put back, and nothing more of its key is given out for so long; without a
    /// key, nothing of the queue.
    Throttle {
        /// For how long.
        time: Duration,
    },
}

impl Verdict {
    /// Put back without a delay.
    pub const PUT_BACK: Self = Self::PutBack { delay: Duration::ZERO };

    /// How many bytes it brings, beside its name.
    pub fn size(&self) -> usize {
        match self {
            Self::AckWith { result, .. } => result.len(),
            Self::Nack { reason, .. } | Self::Bury { reason } => reason.len(),
            Self::Ack | Self::PutBack { .. } | Self::Throttle { .. } => 0,
        }
    }

    /// The name of the call that gives it.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            Self::Ack | Self::AckWith { .. } => "ack",
            Self::Nack { .. } => "nack",
            Self::Bury { .. } => "bury",
            Self::PutBack { .. } => "put_back",
            Self::Throttle { .. } => "throttle",
        }
    }
}

/// What became of one settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was accepted, or had been before.
    Done {
        /// The lease had ended, but nobody had taken the task since.
        late: bool,
        /// The task is dead now.
        dead: bool,
    },
    /// The receipt is not the task's last one, or was settled otherwise. Nothing was changed.
    Stale,
    /// There is no such task.
    Gone,
}

/// Prolong the lease of a claim; never shortens it.
#[derive(Clone, Debug)]
pub struct ExtendClaim {
    /// The task's id.
    pub id: TaskId,
    /// Of the claim.
    pub receipt: Receipt,
    /// At least this much from now.
    pub lease: Duration,
    /// How far the work has come, to be noted with the task; `None` leaves what is noted.
    pub progress: Option<Arc<[u8]>>,
}

/// The answer to [`ExtendClaim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendClaimReply {
    /// What is left of the lease now.
    Extended(Duration),
    /// The lease has ended; the task waits for its next delivery.
    Expired,
    /// The task was cancelled: its run is to end. The lease is as it was.
    Cancelled,
    /// The receipt is not the task's last one, or was settled.
    Stale,
    /// There is no such task.
    Gone,
}

/// End a claim call that nobody waits for: what it claimed goes back uncounted, a late copy of it claims
/// nothing, and a hint it was given passes on to the next waiter.
#[derive(Clone, Debug)]
pub struct Abandon {
    /// The call, if it may have been carried out unheard.
    pub call: Option<CallId>,
    /// The waiter, if it may have been registered.
    pub waiter: Option<Waiter>,
    /// Of the claim.
    pub consumer: Arc<str>,
}

/// Who works on a queue, in the answer to [`QueueVerb::Consumers`](crate::protocol::QueueVerb::Consumers).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerReply {
    /// The `consumer` of its claims.
    pub consumer: String,
    /// How many of its calls wait for a task.
    pub waiters: u64,
    /// How many tasks it has.
    pub claims: u64,
}
