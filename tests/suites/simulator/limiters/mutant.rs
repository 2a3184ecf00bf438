//! Deliberate bugs.

/// A deliberate bug: the ledger must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A wait counts from when the request was sent.
    CountsFromSending,
    /// A wait counts twice.
    WaitsTooLong,
    /// What was used is given back as well.
    GivesBackWhatIsUsed,
    /// All calls have one token.
    SharesTokens,
    /// The store gives back what was reserved last, whosever it is.
    GivesBackAnothers,
    /// Who is refused goes on.
    IgnoresRefusal,
    /// The store gives out a place a second time.
    StoreForgets,
}

impl Mutant {
    pub const ALL: [Self; 7] = [
        Self::CountsFromSending,
        Self::WaitsTooLong,
        Self::GivesBackWhatIsUsed,
        Self::SharesTokens,
        Self::GivesBackAnothers,
        Self::IgnoresRefusal,
        Self::StoreForgets,
    ];
}
