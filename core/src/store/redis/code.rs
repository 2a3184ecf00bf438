//! Numbers that scripts and Rust have in common: codes of replies, states, verdicts, positions in records.

use crate::protocol::{HeldAs, Place, TaskState};

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $number:literal $name:literal,)+) => {
        /// The first element of every script's reply; of a batch, also the outcome of each item.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $code = $number,)+
        }

        impl Code {
            /// Every code with its name in the scripts.
            pub const ALL: &[(&'static str, Self)] = &[$(($name, Self::$code),)+];
        }
    };
}

codes! {
    /// acquire, acquire_all
    Granted = 1 "GRANTED",
    /// acquire
    Waiting = 2 "WAITING",
    /// acquire, acquire_all
    Busy = 3 "BUSY",
    /// acquire, acquire_all
    Ended = 4 "ENDED",
    /// extend, extend_claim
    Extended = 5 "EXTENDED",
    /// extend, release, resume, extend_claim, give_back; of a settlement
    Gone = 6 "GONE",
    /// release
    Released = 7 "RELEASED",
    /// leave, abandon
    Left = 8 "LEFT",
    /// resume
    Resumed = 9 "RESUMED",
    /// holder
    Held = 10 "HELD",
    /// holder, break_lease
    Free = 11 "FREE",
    /// break_lease
    Broken = 12 "BROKEN",
    /// enqueue, settle, settle_and_claim: one outcome per item follows
    Outcomes = 13 "OUTCOMES",
    /// enqueue, claim, settle_and_claim: a later call of the slot was carried out before
    Superseded = 14 "SUPERSEDED",
    /// of a task of an enqueue
    Added = 15 "ADDED",
    /// of a task of an enqueue
    Kept = 16 "KEPT",
    /// of a task of an enqueue
    Replaced = 17 "REPLACED",
    /// of a task of an enqueue
    Successor = 18 "SUCCESSOR",
    /// of a task of an enqueue
    Throttled = 19 "THROTTLED",
    /// of a task of an enqueue
    Full = 20 "FULL",
    /// claim, settle_and_claim: tasks
    Given = 21 "GIVEN",
    /// claim, settle_and_claim
    Empty = 22 "EMPTY",
    /// claim, settle_and_claim, pop
    Paused = 23 "PAUSED",
    /// of a settlement
    Done = 24 "DONE",
    /// of a settlement
    DoneLate = 25 "DONE_LATE",
    /// of a settlement
    DoneDead = 26 "DONE_DEAD",
    /// of a settlement
    DoneLateDead = 27 "DONE_LATE_DEAD",
    /// of a settlement; extend_claim
    Stale = 28 "STALE",
    /// extend_claim
    Expired = 29 "EXPIRED",
    /// pop, peek, get, list: tasks
    Tasks = 30 "TASKS",
    /// get, remove, reschedule
    Absent = 31 "ABSENT",
    /// remove
    Removed = 32 "REMOVED",
    /// remove
    OtherVersion = 33 "OTHER_VERSION",
    /// reschedule
    Moved = 34 "MOVED",
    /// reschedule: it is claimed
    Running = 35 "RUNNING",
    /// reschedule: it is dead
    Buried = 36 "BURIED",
    /// purge: how many tasks
    Counted = 37 "COUNTED",
    /// stats
    Counts = 38 "COUNTS",
    /// pause, configure
    Set = 39 "SET",
    /// permits_acquire: the semaphore has another number of permits
    OtherLimit = 40 "OTHER_LIMIT",
    /// permits_downgrade
    Downgraded = 41 "DOWNGRADED",
    /// waiters
    InLine = 42 "IN_LINE",
    /// cached_acquire: the value
    Cached = 43 "CACHED",
    /// store_value
    Stored = 44 "STORED",
    /// invalidate
    Invalidated = 45 "INVALIDATED",
    /// permits_upgrade
    Upgraded = 46 "UPGRADED",
    /// kick, remove_dead: how many, and where to go on
    Swept = 47 "SWEPT",
    /// consumers
    Consumers = 48 "CONSUMERS",
    /// of a task of an enqueue
    Skipped = 49 "SKIPPED",
    /// claim, settle_and_claim: what they return otherwise follows
    SchedulesDue = 50 "SCHEDULES_DUE",
    /// claim, settle_and_claim: the same, behind that
    FlowsDue = 60 "FLOWS_DUE",
    /// put_schedules: how many were removed, and one outcome per schedule
    Put = 51 "PUT",
    /// put_schedules: there is a list of a later generation
    Older = 52 "OLDER",
    /// list_schedules
    Schedules = 53 "SCHEDULES_FOUND",
    /// of a schedule of a fire
    Fired = 54 "FIRED",
    /// extend_claim: the run is to end
    CancelledRun = 55 "CANCELLED_RUN",
    /// result
    ResultKept = 56 "RESULT_KEPT",
    /// events
    EventsFound = 57 "EVENTS_FOUND",
    /// events: the queue keeps none
    EventsOff = 58 "EVENTS_OFF",
    /// take: now
    Taken = 64 "TAKEN",
    /// take: it begins later
    Reserved = 65 "RESERVED",
    /// take: nothing was changed
    Refused = 66 "REFUSED",
    /// give_back; it may also be gone
    GivenBack = 67 "GIVEN_BACK",
    /// list_keys
    KeysFound = 59 "KEY_PAGE",
    /// put_flow: one of this id is there
    Exists = 61 "FLOW_EXISTS",
    /// get_flow, list_flows
    FlowsFound = 62 "FLOWS_FOUND",
    /// read_nodes, lost_nodes
    NodesFound = 63 "NODES_FOUND",
    /// read_outbox
    OutboxFound = 68 "OUTBOX_FOUND",
}

impl Code {
    /// The code with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.iter().map(|(_, code)| *code).find(|code| *code as i64 == number)
    }
}

/// Numbers in Lua are doubles: sums of two whole ones of so many bits are still exact.
pub(crate) const NUMBER_BITS: u32 = 52;

/// The parts of a queue's order that a [`Place`] is in.
pub(crate) const PARTS: [(&str, u8); 10] = [
    ("PART_INTAKE", Place::INTAKE),
    ("PART_SCHEDULED", Place::SCHEDULED),
    ("PART_READY", Place::READY),
    ("PART_CLAIMED", Place::CLAIMED),
    ("PART_FAILED", Place::FAILED),
    ("PART_EXPIRED", Place::EXPIRED),
    ("PART_HELD", Place::HELD),
    ("PART_LIMITED", Place::LIMITED),
    ("PART_FLOWS", Place::FLOWS),
    ("PART_FLOWS_ENDED", Place::FLOWS_ENDED),
];

/// The codes of holder.lua for how a lock is held.
pub(crate) const HELD_AS: [(&str, i64, HeldAs); 4] = [
    ("AS_LEASE", 1, HeldAs::Lease),
    ("AS_OFFER", 2, HeldAs::Offer),
    ("AS_COOLDOWN", 3, HeldAs::Cooldown),
    ("AS_FOREIGN", 4, HeldAs::Foreign),
];

/// The codes of the queue's scripts for a task's state.
pub(crate) const STATES: [(&str, i64, TaskState); 5] = [
    ("SCHEDULED", 1, TaskState::Scheduled),
    ("READY", 2, TaskState::Ready),
    ("CLAIMED", 3, TaskState::Claimed),
    ("DEAD", 4, TaskState::Dead),
    ("HELD_TASK", 5, TaskState::Held),
];

/// The places of what a queue that keeps events has of them, counted from one as Lua does: how many, the number of the last
/// one, and from where on those stand who wait for the next.
pub const WATCH_FIELDS: &[(&str, usize)] = &[("EVENTS_KEPT", 1), ("LAST_EVENT", 2), ("EVENT_WAITERS", 3)];

/// The places of what the record of a queue with an outbox, or with flows that live, has of them: the numbers of the oldest
/// message and of the last one (one less than that if there are none), when somebody has worked some off,
/// when the next flow's tasks are looked for, which one's that is, and how many live.
pub const OUTBOX_FIELDS: &[(&str, usize)] = &[
    ("FIRST_MESSAGE", 1),
    ("LAST_MESSAGE", 2),
    ("LAST_STEP", 3),
    ("WALK_AT", 4),
    ("WALK_RANK", 5),
    ("LIVE_FLOWS", 6),
];

/// The places of a packed message's fields; its result stands elsewhere.
pub const MESSAGE_FIELDS: &[(&str, usize)] =
    &[("MESSAGE_EVENT", 1), ("MESSAGE_MARK", 2), ("MESSAGE_RETRIES", 3), ("RESULT_SIZE", 4)];

/// How a task's last settled receipt was spent.
pub(crate) const VERDICTS: [(&str, i64); 7] = [
    ("ACK", 1),
    ("NACK", 2),
    ("BURY", 3),
    ("PUT_BACK", 4),
    // By the end of the lease that killed it.
    ("LEASE_END", 5),
    // By an enqueue that found its lease ended, or by a successor that took the retry's place.
    ("SUPPLANTED", 6),
    ("THROTTLE", 7),
];

macro_rules! fields {
    ($module:ident $names:ident $(#[$doc:meta])* { $($field:ident = $place:literal,)+ }) => {
        $(#[$doc])*
        pub mod $module {
            $(#[allow(missing_docs, reason = "docs/DESIGN.md tells of each field")]
            pub const $field: usize = $place;)+
        }

        /// The same with their names in the scripts.
        pub const $names: &[(&str, usize)] = &[$((stringify!($field), $place),)+];
    };
}

fields! {
    field TASK_FIELDS
    /// The places of a packed task's fields, counted from one as Lua does. Those from 14 on are only there if need be,
    /// without a gap; up to 17 they have one name in a live task, others in a successor and in a dead record.
    {
        VERSION = 1,
        DUE = 2,
        PRIORITY = 3,
        ATTEMPTS = 4,
        MAX_ATTEMPTS = 5,
        FIRST = 6,
        EXPIRES = 7,
        RECEIPT = 8,
        SETTLED = 9,
        VERDICT = 10,
        REASON = 11,
        SIZE = 12,
        BODY = 13,
        BACKOFF = 14,
        TURN = 15,
        CONSUMER = 16,
        HAS_SUCCESSOR = 17,
        KEY = 18,
        HISTORY = 19,
        CANCELLED = 20,
        PROGRESS = 21,
        ASKED = 22,
        NODE = 23,
        REPLACES = 15,
        DIED_AT = 14,
        ID = 15,
        NAMELESS = 17,
    }
}

fields! {
    schedule_field SCHEDULE_FIELDS
    /// The places of a packed schedule's fields.
    {
        SERIAL = 1,
        TIMING = 2,
        MISSED = 3,
        OVERLAP = 4,
        IS_PAUSED = 5,
        CURSOR = 6,
        FRESH = 7,
        NEXT = 8,
        OWNER = 9,
        TASKS_MADE = 10,
        SLOTS_SKIPPED = 11,
        SLOTS_MISSED = 12,
        LAST_TASK = 13,
        TASK_OPTIONS = 14,
        BODY_SIZE = 15,
    }
}

fields! {
    limit_field LIMIT_FIELDS
    /// The places of what a queue lets go and run at most; 0 where there is no limit.
    {
        MAX_RUNNING = 1,
        RATE_COUNT = 2,
        RATE_PER = 3,
        RATE_BURST = 4,
        RATE_TAT = 5,
        HELD_UNTIL = 6,
        KEY_CONCURRENCY = 7,
        KEY_COUNT = 8,
        KEY_PER = 9,
        KEY_BURST = 10,
        OWN_SET = 11,
        KEY_SWEEP = 12,
        COUNTS_RUNS = 13,
        ALIKE = 14,
    }
}

fields! {
    flow_field FLOW_FIELDS
    /// The places of a packed flow's fields. The token is a text: it may be larger than what a double can tell.
    {
        FLOW_VERSION = 1,
        FLOW_TOKEN = 2,
        FLOW_CREATED = 3,
        FLOW_ENDED = 4,
        NODE_COUNT = 5,
        RESULT_BYTES = 6,
        IS_DRAFT = 7,
        FLOW_SUMMARY = 8,
    }
}

fields! {
    node_field NODE_FIELDS
    /// The places of a packed node's fields; its body stands elsewhere.
    {
        NODE_NAME = 1,
        NODE_QUEUE = 2,
        NODE_OPTIONS = 3,
        NODE_SIZE = 4,
    }
}

fields! {
    key_field KEY_FIELDS
    /// The places of a key's record; behind them stand the priorities of its tasks that are in line.
    {
        KEY_RUNNING = 1,
        KEY_HELD = 2,
        KEY_TAT = 3,
        KEY_UNTIL = 4,
        KEY_WAITING = 5,
        KEY_FIXED = 5,
    }
}

fields! {
    own_field OWN_FIELDS
    /// The places of what a key is allowed.
    {
        OWN_CONCURRENCY = 1,
        OWN_COUNT = 2,
        OWN_PER = 3,
        OWN_BURST = 4,
        OWN_WEIGHT = 5,
    }
}

/// What a time is added to in KEY_WAITS if the key has nothing to wait for: its record says nothing from then on.
pub(crate) const FORGET_BASE: u64 = 1 << 51;

/// What the time at which a flow was put in is added to in FLOW_TIMES until it has ended: so those that ended first come
/// first, and all that have ended before the others.
pub const FLOW_BASE: u64 = 1 << 51;

/// Flows that one step drops at most.
pub(crate) const FLOWS_TRIM: u32 = 10;
