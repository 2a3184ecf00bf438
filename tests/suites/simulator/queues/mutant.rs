//! Deliberate bugs: the checkers must notice each.

/// A deliberate bug. Each is put in where the bug would be in the real code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// An enqueue that is sent again has another call id.
    RetryIsNewCall,
    /// A slot is used again although a call in it was given up unanswered.
    ReusesSlot,
    /// A claim's deadline counts from when the reply came.
    DeadlineFromReply,
    /// The owner of a claim does not look at the deadline.
    IgnoresDeadline,
    /// A claim that is cancelled leaves what it may have taken.
    CancelForgets,
    /// A waiter relies on hints alone.
    NeverPolls,
    /// The store accepts an ack with an older receipt.
    StaleAckAccepted,
    /// An attempt does not count if its lease ended.
    LeaseEndUncounted,
    /// A task that is put back has lost an attempt.
    PutBackCounts,
    /// A task is promoted before it is due.
    PromotesEarly,
    /// The end of a run takes its successor along.
    SuccessorLost,
    /// An ack ends the throttle window.
    AckEndsWindow,
    /// The store does nothing on abandon.
    AbandonIgnored,
    /// A settlement after the end of the lease is refused.
    LateSettleRefused,
    /// A copy of a claim gets other tasks.
    CopyClaimsMore,
    /// Nobody is woken.
    NobodyWoken,
    /// Nobody who waits for a result is told of the end.
    AskersNotTold,
    /// Nobody who waits for events is told of one.
    WatchersNotTold,
    /// A delivery begins with a body of another task.
    BodiesSwapped,
    /// A task in line that is replaced or debounced comes to its end.
    HotIdLosesItsTurn,
    /// An enqueue brings a retry forward of its back-off.
    BackoffErased,
    /// A full queue takes new ids.
    PassesMaxLen,
}

impl Mutant {
    pub const ALL: [Self; 22] = [
        Self::RetryIsNewCall,
        Self::ReusesSlot,
        Self::DeadlineFromReply,
        Self::IgnoresDeadline,
        Self::CancelForgets,
        Self::NeverPolls,
        Self::StaleAckAccepted,
        Self::LeaseEndUncounted,
        Self::PutBackCounts,
        Self::PromotesEarly,
        Self::SuccessorLost,
        Self::AckEndsWindow,
        Self::AbandonIgnored,
        Self::LateSettleRefused,
        Self::CopyClaimsMore,
        Self::NobodyWoken,
        Self::AskersNotTold,
        Self::WatchersNotTold,
        Self::BodiesSwapped,
        Self::HotIdLosesItsTurn,
        Self::BackoffErased,
        Self::PassesMaxLen,
    ];

    /// Whether the model is not asked: what it says would be noticed first.
    pub fn is_for_the_ledger(self) -> bool {
        matches!(self, Self::HotIdLosesItsTurn | Self::BackoffErased | Self::PassesMaxLen)
    }
}
