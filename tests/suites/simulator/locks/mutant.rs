//! Deliberate bugs: the checker must notice each.

/// A deliberate bug. Each is put in where the bug would be in the real code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The deadline counts from when the reply came, not from when the call was sent.
    DeadlineFromReply,
    /// A hint is taken for a grant.
    HintIsGrant,
    /// A release deletes the key without looking whose it is.
    BlindRelease,
    /// A token that left is not remembered as ended.
    NoTombstone,
    /// Two grants may have the same fence.
    CoarseFence,
    /// A renewal's answer that comes after the deadline revives the lease.
    LateReplyRevives,
    /// The owner does not look at the deadline.
    IgnoresDeadline,
    /// A waiter relies on hints alone.
    NeverPolls,
    /// Every poll is a new call: the waiter loses its place in line.
    PollLosesPlace,
    /// The owner goes on although a renewal was refused.
    IgnoresRefusal,
    /// The store counts every holder of a semaphore as one.
    IgnoresWeight,
    /// A waiter that died counts as live for good.
    DeadWaiterLives,
    /// What was never sent counts as an earlier copy of a release.
    CountsUnsent,
    /// Of several locks, those that are taken are not looked at again.
    ForgetsEarlierLocks,
    /// A sleeper relies on its timer, which stands still while the machine sleeps.
    LongNaps,
    /// A downgrade does not say which fence it takes permits from.
    BlindDowngrades,
}

impl Mutant {
    pub const ALL: [Self; 16] = [
        Self::DeadlineFromReply,
        Self::HintIsGrant,
        Self::BlindRelease,
        Self::NoTombstone,
        Self::CoarseFence,
        Self::LateReplyRevives,
        Self::IgnoresDeadline,
        Self::NeverPolls,
        Self::PollLosesPlace,
        Self::IgnoresRefusal,
        Self::IgnoresWeight,
        Self::DeadWaiterLives,
        Self::CountsUnsent,
        Self::ForgetsEarlierLocks,
        Self::LongNaps,
        Self::BlindDowngrades,
    ];
}
