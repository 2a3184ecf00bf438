//! The verbs of queues. All of them concern one queue; see docs/DESIGN.md for what each does to a task.

use std::sync::Arc;
use std::time::Duration;

use crate::name::{QueueName, TaskId};
use crate::verbs::{ClientId, Waiter};

/// The number of one delivery of a task; every delivery has a larger one.
pub type Receipt = u64;
/// A number that grows with every accepted enqueue of a task.
pub type Version = u64;
/// Wall time in milliseconds since 1970.
pub type WallMillis = u64;

/// A request about one queue.
#[derive(Clone, Debug)]
pub struct QueueRequest {
    /// Which queue.
    pub queue: QueueName,
    /// What about it.
    pub verb: QueueVerb,
}

/// What a queue may be asked.
#[derive(Clone, Debug)]
pub enum QueueVerb {
    /// Put tasks in.
    Enqueue(Enqueue),
    /// Take tasks under a lease, or wait for some.
    Claim(Claim),
    /// Say how claims ended.
    Settle(Settle),
    /// Both in one step: first the settlements, then the claim.
    SettleAndClaim(Settle, Claim),
    /// Prolong the lease of a claim.
    ExtendClaim(ExtendClaim),
    /// End a claim call that nobody waits for any more.
    Abandon(Abandon),
    /// Take tasks for good.
    Pop(Pop),
    /// The tasks that come next.
    Peek(Peek),
    /// One task.
    Get(Get),
    /// The tasks of one state.
    List(List),
    /// Drop a task.
    Remove(Remove),
    /// Give a waiting task another due time.
    Reschedule(Reschedule),
    /// Move dead tasks back to ready.
    Kick(Kick),
    /// How many tasks there are.
    Stats,
    /// Stop, or go on, giving out tasks.
    Pause(Pause),
    /// Drop every task; settings stay.
    Purge,
    /// Change settings.
    Configure(Configure),
}

/// The answer to a [`QueueRequest`], of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueReply {
    /// One outcome per task, in order.
    Enqueue(Vec<EnqueueOutcome>),
    /// What was claimed.
    Claim(ClaimReply),
    /// One outcome per settlement, in order.
    Settle(Vec<Settled>),
    /// Both.
    SettleAndClaim(Vec<Settled>, ClaimReply),
    /// What is left of the lease.
    ExtendClaim(ExtendClaimReply),
    /// Nobody is waited for any more.
    Abandon,
    /// What was taken; `None` if the queue is paused.
    Pop(Option<Vec<TaskRecord>>),
    /// What comes next.
    Peek(Vec<TaskRecord>),
    /// The task, if it is known.
    Get(Option<Box<TaskRecord>>),
    /// A page of tasks.
    List(ListReply),
    /// Whether it was dropped.
    Remove(Removed),
    /// Whether it was moved.
    Reschedule(RescheduleReply),
    /// How many were moved.
    Kick(u64),
    /// The counts.
    Stats(Box<QueueStats>),
    /// Done.
    Pause,
    /// How many were dropped: live ones, dead ones, and those of the intake.
    Purge(u64),
    /// Done.
    Configure,
    /// A later call with the same slot was carried out before: whether this one was is not known.
    Superseded,
}

/// Tells one call of a client from its repetition. A slot has one call in flight; its calls are numbered,
/// and the store keeps the reply to the last one, so that a repetition does nothing and hears the same.
/// As the sessions of NFS 4.1 (RFC 8881, section 2.10.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    /// Whose call it is.
    pub client: ClientId,
    /// Which of the client's slots.
    pub slot: u32,
    /// Counts the slot's calls from one.
    pub number: u64,
}

/// Put tasks in.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// Tells it from its repetition.
    pub call: CallId,
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

/// What an enqueue does if the id is in the queue already and not running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// The task that is there stays as it is.
    #[default]
    Keep,
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
        /// The task's version after it. Zero if throttled.
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
}

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
}

/// The answer to [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimReply {
    /// Tasks; never none.
    Claimed(Vec<ClaimedTask>),
    /// There is nothing to claim.
    Empty {
        /// How long until something becomes due or a lease ends, as far as known.
        next_due: Option<Duration>,
        /// How many waiting callers come before this one.
        rank: u32,
    },
    /// The queue is paused.
    Paused {
        /// How many waiting callers come before this one.
        rank: u32,
    },
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
    PutBack,
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
}

/// The answer to [`ExtendClaim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendClaimReply {
    /// What is left of the lease now.
    Extended(Duration),
    /// The lease has ended; the task waits for its next delivery.
    Expired,
    /// The receipt is not the task's last one, or was settled.
    Stale,
    /// There is no such task.
    Gone,
}

/// End a claim call that nobody waits for: what it claimed goes back uncounted, a late copy of it claims
/// nothing, and a hint it was given passes on to the next waiter.
#[derive(Clone, Copy, Debug)]
pub struct Abandon {
    /// The call, if it may have been carried out unheard.
    pub call: Option<CallId>,
    /// The waiter, if it may have been registered.
    pub waiter: Option<Waiter>,
}

/// Take tasks for good.
#[derive(Clone, Copy, Debug)]
pub struct Pop {
    /// At most so many.
    pub max: u32,
}

/// The tasks that come next: what is due, in the order in which it would be claimed.
#[derive(Clone, Copy, Debug)]
pub struct Peek {
    /// At most so many.
    pub max: u32,
}

/// One task: the live one, else its newest dead record.
#[derive(Clone, Debug)]
pub struct Get {
    /// Which.
    pub id: TaskId,
}

/// The tasks of one state, a page at a time.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Which state.
    pub state: TaskState,
    /// Zero first, then what the last page gave.
    pub cursor: u64,
    /// At most so many.
    pub max: u32,
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListReply {
    /// In the state's order: by due time, by turn, by end of lease, newest dead first.
    pub tasks: Vec<TaskRecord>,
    /// Where the next page begins, if there may be one.
    pub next: Option<u64>,
}

/// Where a task is. A live task is in exactly one of the first three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// Due later.
    Scheduled,
    /// Due now.
    Ready,
    /// Given to a worker.
    Claimed,
    /// Given up; kept for a while.
    Dead,
}

/// A task as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its id.
    pub id: TaskId,
    /// Where it is.
    pub state: TaskState,
    /// Payload and headers.
    pub body: Arc<[u8]>,
    /// Of the last accepted enqueue; zero if it was never enqueued (it came by the intake and is still there).
    pub version: Version,
    /// When it is or was due.
    pub due: WallMillis,
    /// Higher ones first.
    pub priority: u8,
    /// Deliveries so far.
    pub attempts: u32,
    /// After so many it is dead.
    pub max_attempts: u32,
    /// Not delivered after this; zero if it does not expire.
    pub expires: WallMillis,
    /// Of the delivery that is not settled; of a dead task, its record's key. Zero if there is none.
    pub receipt: Receipt,
    /// What is left of the lease, if it is claimed.
    pub remaining: Duration,
    /// The reason of the last nack or bury, or why it is dead; empty if there was none.
    pub reason: String,
    /// When it died; zero if it lives.
    pub died: WallMillis,
    /// When the task that waits for the end of this run is due; `None` if there is none.
    pub successor_due: Option<WallMillis>,
}

/// Drop a task: its run, its successor, its intake entry and its throttle window. Dead records stay.
#[derive(Clone, Debug)]
pub struct Remove {
    /// Which.
    pub id: TaskId,
    /// Only if this is still its version (a successor's, if there is one).
    pub version: Option<Version>,
}

/// The answer to [`Remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removed {
    /// It is gone.
    Removed,
    /// There was none.
    Absent,
    /// It has another version; nothing was changed.
    OtherVersion(Version),
}

/// Give a waiting task another due time.
#[derive(Clone, Debug)]
pub struct Reschedule {
    /// Which.
    pub id: TaskId,
    /// The new time.
    pub due: Due,
}

/// The answer to [`Reschedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RescheduleReply {
    /// It is due then.
    Moved(WallMillis),
    /// There is no such task.
    Absent,
    /// It is claimed: nothing was changed.
    Claimed,
    /// It is dead: nothing was changed. Kick it instead.
    Dead,
}

/// Which dead tasks go back to ready, with attempts starting again.
#[derive(Clone, Debug)]
pub enum Kick {
    /// The newest dead record of each id, unless the id lives.
    Ids(Arc<[TaskId]>),
    /// So many of the oldest whose ids do not live.
    Count(u32),
}

/// How many tasks there are, and what happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Due later, those of the intake included.
    pub scheduled: u64,
    /// Due now, those of the intake included.
    pub ready: u64,
    /// Claimed, lease not ended.
    pub claimed: u64,
    /// Dead records.
    pub dead: u64,
    /// Tasks that wait for the end of a run of the same id.
    pub successors: u64,
    /// Whether it gives out no tasks.
    pub paused: bool,
    /// How long until the next task becomes due or lease ends; zero if something is due now.
    pub next_due: Option<Duration>,
    /// Since the queue was made or its record forgotten: enqueues accepted.
    pub enqueued: u64,
    /// Acks accepted, pops included.
    pub acked: u64,
    /// Deliveries that ended otherwise: nacks, ends of leases.
    pub retried: u64,
    /// Tasks that died.
    pub died: u64,
    /// The settings.
    pub settings: Settings,
}

/// Stop, or go on, giving out tasks. Settling and extending work meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// Which of both.
    pub paused: bool,
}

/// Settings that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Live tasks at most; new ids are refused beyond it. `None`: no limit.
    pub max_len: Option<u64>,
    /// Dead records at most; the oldest go first.
    pub dead_max: u64,
    /// Dead records are dropped after so long.
    pub dead_age: Duration,
    /// Bytes of payloads in dead records at most; the oldest go first.
    pub dead_bytes: u64,
    /// Whether plain ZADDs to the queue's key are taken in (Redis only).
    pub intake: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_len: None,
            dead_max: crate::store::DEAD_MAX,
            dead_age: crate::store::DEAD_AGE,
            dead_bytes: crate::store::DEAD_BYTES,
            intake: true,
        }
    }
}

/// Settings to change; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configure {
    /// See [`Settings::max_len`]; `Some(None)` takes the limit away.
    pub max_len: Option<Option<u64>>,
    /// See [`Settings::dead_max`].
    pub dead_max: Option<u64>,
    /// See [`Settings::dead_age`].
    pub dead_age: Option<Duration>,
    /// See [`Settings::dead_bytes`].
    pub dead_bytes: Option<u64>,
    /// See [`Settings::intake`].
    pub intake: Option<bool>,
}

impl QueueVerb {
    /// The verb's name, as in the Lua file and the SQLite transaction.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Enqueue(_) => "enqueue",
            Self::Claim(_) => "claim",
            Self::Settle(_) => "settle",
            Self::SettleAndClaim(..) => "settle_and_claim",
            Self::ExtendClaim(_) => "extend_claim",
            Self::Abandon(_) => "abandon",
            Self::Pop(_) => "pop",
            Self::Peek(_) => "peek",
            Self::Get(_) => "get",
            Self::List(_) => "list",
            Self::Remove(_) => "remove",
            Self::Reschedule(_) => "reschedule",
            Self::Kick(_) => "kick",
            Self::Stats => "stats",
            Self::Pause(_) => "pause",
            Self::Purge => "purge",
            Self::Configure(_) => "configure",
        }
    }

    /// Whether it only looks.
    pub fn reads(&self) -> bool {
        matches!(self, Self::Peek(_) | Self::Get(_) | Self::List(_) | Self::Stats)
    }
}
