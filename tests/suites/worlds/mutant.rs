//! Deliberate bugs: the walk must find each.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Several locks are taken in turn, and nobody looks at the earlier ones when the last is granted.
    EarlierLocksUnseen,
    /// Sendings that never left count as ones that may have been carried out.
    UnsentCounts,
    /// An enqueue that replaces a ready task moves it to the end of the line.
    ReplaceLosesPlace,
    /// A failure does not begin a new burst: an enqueue with debounce brings the retry forward.
    BurstOutlivesFailure,
    /// A worker hears of a loss when the handler returns, and does not look whether it runs an id already.
    HungHandlerUnseen,
}

impl Mutant {
    pub const ALL: [Self; 5] = [
        Self::EarlierLocksUnseen,
        Self::UnsentCounts,
        Self::ReplaceLosesPlace,
        Self::BurstOutlivesFailure,
        Self::HungHandlerUnseen,
    ];
}
