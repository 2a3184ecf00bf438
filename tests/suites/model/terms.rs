//! The words of the model: what a queue is made of, and what is said about it.

use crate::keys::Key;

pub(crate) type Id = &'static str;
pub(crate) type Millis = u64;
/// A version or receipt, counted from one. A store's numbers are others, but in the same order.
pub(crate) type Number = u64;

pub(crate) const LEASE_ENDED: &str = "the lease ended";
pub(crate) const EXPIRED: &str = "expired";
pub(crate) const EXPIRED_AFTER: &str = "expired; before: ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Keep,
    Skip,
    Replace,
    Debounce(Millis),
    Throttle(Millis),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ack,
    Nack(Millis),
    Bury,
    /// After so long; at once, in its place, if that is zero.
    PutBack(Millis),
    /// At once, in its place; but nothing of its key, or of the queue, for so long.
    Throttle(Millis),
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
    Skipped,
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
    /// What runs gets a successor by skip, too.
    SkipHasSuccessor,
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
    /// What is put back comes to the end of the line.
    PutBackLosesPlace,
    /// A ready task that is replaced, debounced or rescheduled comes to the end of the line.
    UpdateLosesPlace,
    /// A task's burst of debounces goes on over a failure.
    FirstSurvivesFailure,
    /// An enqueue brings a retry forward of its back-off.
    BackoffErased,
    /// An enqueue takes a task that waits since its lease ended for a running one.
    EndedLeaseRuns,
    /// A task that has expired counts as live until its turn comes.
    ExpiredCountsAsLive,
    /// What expires pushes failures out.
    ExpiredPushesOut,
    /// Nothing dead goes.
    NoCaps,
    /// A full queue takes more.
    NoMaxLen,
    /// More of a key run than may.
    NoConcurrency,
    /// What is held stays held.
    NothingComesAfter,
    /// More run than may.
    NoMaxRunning,
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
    pub(crate) key: Option<Key>,
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
    /// Of a successor: it was asked for by debounce.
    pub(crate) debounced: bool,
    /// Until when no enqueue brings the retry forward.
    pub(crate) backoff: Millis,
    /// Where in line it stood when it was delivered.
    pub(crate) turn: u64,
    pub(crate) key: Option<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Scheduled,
    /// With its turn.
    Ready(u64),
    /// Until its lease ends.
    Claimed(Millis),
    /// By its key, with the turn that it would have in line.
    Held(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) main: Task,
    pub(crate) place: Place,
    pub(crate) successor: Option<Task>,
}

/// What a task died of. Those that expired are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    Failed,
    LeaseEnded,
    Expired,
}

#[derive(Clone, Debug)]
pub(crate) struct Dead {
    pub(crate) id: Id,
    pub(crate) died: Millis,
    pub(crate) cause: Cause,
    pub(crate) task: Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rescheduled {
    Moved(Millis),
    Absent,
    Claimed,
    Dead,
}

impl Dead {
    pub(crate) fn expired(&self) -> bool {
        self.cause == Cause::Expired
    }

    /// The oldest first; those that failed before those that expired.
    pub(crate) fn age(&self) -> (bool, Millis, Number) {
        (self.expired(), self.died, self.task.receipt)
    }
}
