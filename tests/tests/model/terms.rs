//! The words of the model: what a queue is made of, and what is said about it.

pub(crate) type Id = &'static str;
pub(crate) type Millis = u64;
/// A version or receipt, counted from one. A store's numbers are others, but in the same order.
pub(crate) type Number = u64;

pub(crate) const LEASE_ENDED: &str = "the lease ended";
pub(crate) const EXPIRED: &str = "expired";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Keep,
    Replace,
    Debounce(Millis),
    Throttle(Millis),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ack,
    Nack(Millis),
    Bury,
    PutBack,
}

impl Verdict {
    /// Whether a store takes one for the repetition of the other: it compares only how, not when or why.
    pub(crate) fn repeats(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Done,
    Stale,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Added,
    Kept,
    Replaced,
    Successor,
    Throttled,
    Full,
}

/// How those of equal time are ordered, which the contract leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    Id,
    Serial,
}

/// Deliberate mistakes, to show that each is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A kept task keeps its version.
    VersionStays,
    /// A put_back counts as an attempt.
    PutBackCounts,
    /// One attempt more than allowed.
    OneAttemptMore,
    /// A replaced run's late verdict is still accepted.
    ReplacedRunCounts,
    /// A keep successor takes the retry's place, too.
    EverySuccessorReplaces,
    /// Debounce counts max_wait from the last enqueue.
    DebounceForgetsFirst,
    /// An ack ends the throttle window.
    WindowEndsWithAck,
    /// Priorities are ignored.
    NoPriorities,
    /// The end of a lease settles the delivery.
    LeaseEndSettles,
    /// Full is judged for ids that live, too.
    FullForAll,
    /// What expires is delivered.
    NoExpiry,
    /// A late ack leaves a death by lease end alone.
    LateAckForgotten,
}

/// What is asked to be enqueued; `due` is absolute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(crate) id: Id,
    pub(crate) payload: u8,
    pub(crate) due: Millis,
    pub(crate) priority: u8,
    pub(crate) max_attempts: u32,
    pub(crate) expires: Option<Millis>,
    pub(crate) policy: Policy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) serial: u64,
    pub(crate) payload: u8,
    pub(crate) version: Number,
    pub(crate) due: Millis,
    pub(crate) priority: u8,
    pub(crate) attempts: u32,
    pub(crate) max_attempts: u32,
    pub(crate) first: Millis,
    pub(crate) expires: Option<Millis>,
    pub(crate) receipt: Number,
    pub(crate) settled: Number,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) reason: String,
    pub(crate) replaces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Scheduled,
    /// With its turn.
    Ready(u64),
    /// Until its lease ends.
    Claimed(Millis),
}

#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) main: Task,
    pub(crate) place: Place,
    pub(crate) successor: Option<Task>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dead {
    pub(crate) id: Id,
    pub(crate) died: Millis,
    pub(crate) by_lease: bool,
    pub(crate) task: Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rescheduled {
    Moved(Millis),
    Absent,
    Claimed,
    Dead,
}
