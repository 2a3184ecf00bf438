//! The verbs of queues. All of them concern one queue; see docs/DESIGN.md for what each does to a task.

mod claims;
mod dead;
mod enqueue;
mod events;
mod flows;
mod keys;
mod schedules;
mod settings;
mod tasks;

use crate::base::name::{QueueName, TaskId};
use crate::protocol::ClientId;

pub use claims::{
    Abandon, Claim, ClaimReply, ClaimedTask, ConsumerReply, ExtendClaim, ExtendClaimReply, Settle, Settled,
    Settlement, Verdict,
};
pub use dead::{DeadOnes, DiedBy, Sweep, Swept};
pub use enqueue::{Due, Enqueue, EnqueueOutcome, NewTask, OnDuplicate, Outcome};
pub use events::{EventRecord, Events, EventsReply, Happened};
pub use flows::{
    FlowNow, FlowPlan, FlowRecord, FlowStep, ListFlows, ListFlowsReply, LostNodes, Message, NewNode,
    NodeEvent, NodeOf, OutboxReply, PostMessages, PutFlow, PutFlowReply, ReadNodes, ReadNodesReply,
    ReadOutbox, StepFlows,
};
pub use keys::{Gate, KeyRecord, LimitKey, ListKeys, ListKeysReply, OwnLimits, Rate};
pub(crate) use schedules::NEVER;
pub use schedules::{
    Fire, FireSchedule, Fired, ListSchedules, ListSchedulesReply, Missed, NewSchedule, Overlap,
    PauseSchedule, PutSchedules, PutSchedulesReply, ScheduleOutcome, ScheduleOwner, ScheduleRecord,
};
pub use settings::{Configure, Pause, QueueSettings, QueueStats};
pub use tasks::{
    AttemptFailed, Cancel, Cancelled, Get, List, ListReply, Peek, Place, Pop, Remove, Removed, Reschedule,
    RescheduleReply, ResultOf, ResultReply, TaskRecord, TaskState,
};

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
    /// What became of a task.
    Result(ResultOf),
    /// The tasks of one state.
    List(List),
    /// Drop a task.
    Remove(Remove),
    /// End a task, also one that runs.
    Cancel(Cancel),
    /// Give a waiting task another due time.
    Reschedule(Reschedule),
    /// Move dead tasks back to ready, with attempts starting again, unless their ids live.
    Kick(Sweep),
    /// Drop dead tasks.
    RemoveDead(Sweep),
    /// How many tasks there are.
    Stats,
    /// Who waits for tasks, and who has some.
    Consumers,
    /// Stop, or go on, giving out tasks.
    Pause(Pause),
    /// Drop every task; settings stay.
    Purge,
    /// Change settings.
    Configure(Configure),
    /// What happened to tasks of late.
    Events(Events),
    /// Give a key limits of its own.
    LimitKey(LimitKey),
    /// Look at keys.
    ListKeys(ListKeys),
    /// Add schedules, or change them.
    PutSchedules(PutSchedules),
    /// Look at schedules.
    ListSchedules(ListSchedules),
    /// Give the slots of schedules their tasks.
    Fire(Fire),
    /// Pause a schedule, or let it go on.
    PauseSchedule(PauseSchedule),
    /// Drop a schedule; the tasks that it has made stay.
    RemoveSchedule(TaskId),
    /// Add a flow, or nodes to one.
    PutFlow(PutFlow),
    /// Look at what the outbox has.
    ReadOutbox(ReadOutbox),
    /// Work messages of the outbox off.
    StepFlows(StepFlows),
    /// Put messages into the outbox.
    PostMessages(PostMessages),
    /// One flow.
    GetFlow(TaskId),
    /// Look at flows.
    ListFlows(ListFlows),
    /// Look at nodes of a flow.
    ReadNodes(ReadNodes),
    /// Look for tasks that are nodes.
    LostNodes(LostNodes),
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
    /// Its result, or that there is none.
    Result(ResultReply),
    /// A page of tasks.
    List(ListReply),
    /// Whether it was dropped.
    Remove(Removed),
    /// What it was doing.
    Cancel(Cancelled),
    /// Whether it was moved.
    Reschedule(RescheduleReply),
    /// How many were moved.
    Kick(Swept),
    /// How many were dropped.
    RemoveDead(Swept),
    /// The counts.
    Stats(Box<QueueStats>),
    /// In order of what they call themselves.
    Consumers(Vec<ConsumerReply>),
    /// Done.
    Pause,
    /// How many were dropped: live ones, dead ones, and those of the intake.
    Purge(u64),
    /// Done.
    Configure,
    /// Some of it.
    Events(EventsReply),
    /// Whether there was room for one more that has its own.
    LimitKey(bool),
    /// Some of them.
    ListKeys(ListKeysReply),
    /// What became of each.
    PutSchedules(PutSchedulesReply),
    /// Some of them.
    ListSchedules(ListSchedulesReply),
    /// One outcome per schedule, in order.
    Fire(Vec<Fired>),
    /// Whether there is such a schedule.
    PauseSchedule(bool),
    /// Whether there was such a schedule.
    RemoveSchedule(bool),
    /// What became of it.
    PutFlow(PutFlowReply),
    /// Some of it.
    ReadOutbox(OutboxReply),
    /// Whether it was done.
    StepFlows(bool),
    /// Done.
    PostMessages,
    /// The flow with its plan, if it is known.
    GetFlow(Option<Box<FlowRecord>>),
    /// Some of them.
    ListFlows(ListFlowsReply),
    /// Some of them.
    ReadNodes(ReadNodesReply),
    /// Which of them are not there: places in the request. None if that cannot be said now.
    LostNodes(Vec<u32>),
    /// A later call with the same slot was carried out before: whether this one was is not known.
    Superseded,
}

/// Makes a call idempotent. A slot has one call in flight; its calls are numbered,
/// and the store keeps the reply to the last one, so that a repetition does nothing and gets the same reply.
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
            Self::Result(_) => "result",
            Self::List(_) => "list",
            Self::Remove(_) => "remove",
            Self::Cancel(_) => "cancel",
            Self::Reschedule(_) => "reschedule",
            Self::Kick(_) => "kick",
            Self::RemoveDead(_) => "remove_dead",
            Self::Stats => "stats",
            Self::Consumers => "consumers",
            Self::Pause(_) => "pause",
            Self::Purge => "purge",
            Self::Configure(_) => "configure",
            Self::Events(_) => "events",
            Self::LimitKey(_) => "limit_key",
            Self::ListKeys(_) => "list_keys",
            Self::PutSchedules(_) => "put_schedules",
            Self::ListSchedules(_) => "list_schedules",
            Self::Fire(_) => "fire",
            Self::PauseSchedule(_) => "pause_schedule",
            Self::RemoveSchedule(_) => "remove_schedule",
            Self::PutFlow(_) => "put_flow",
            Self::ReadOutbox(_) => "read_outbox",
            Self::StepFlows(_) => "step_flows",
            Self::PostMessages(_) => "post_messages",
            Self::GetFlow(_) => "get_flow",
            Self::ListFlows(_) => "list_flows",
            Self::ReadNodes(_) => "read_nodes",
            Self::LostNodes(_) => "lost_nodes",
        }
    }

    /// Whether it only looks.
    pub fn reads(&self) -> bool {
        matches!(
            self,
            Self::Peek(_)
                | Self::Get(_)
                | Self::List(_)
                | Self::Stats
                | Self::Consumers
                | Self::ListSchedules(_)
                | Self::ListKeys(_)
                | Self::GetFlow(_)
                | Self::ListFlows(_)
                | Self::ReadNodes(_)
                | Self::LostNodes(_)
        )
    }
}
