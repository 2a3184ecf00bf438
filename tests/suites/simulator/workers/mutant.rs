//! Deliberate bugs: the checks must notice each.

/// A deliberate bug. Each is put in where the bug would be in the real code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The worker begins an id that it still runs.
    RunsAnIdTwice,
    /// A loss is seen only when the handler ends.
    LossUnseen,
    /// What a stop has ended counts as an attempt.
    StopCounts,
    /// Handlers are not told of the stop.
    StopUntold,
    /// What was left behind goes to others at once.
    LeftBehindAtOnce,
    /// What a handler says after its timeout is sent.
    SettlesAfterItsTimeout,
    /// A handler that has ended in time fails by its timeout, because the store does not answer.
    TimesOutAfterItsEnd,
}

impl Mutant {
    pub const ALL: [Self; 7] = [
        Self::RunsAnIdTwice,
        Self::LossUnseen,
        Self::StopCounts,
        Self::StopUntold,
        Self::LeftBehindAtOnce,
        Self::SettlesAfterItsTimeout,
        Self::TimesOutAfterItsEnd,
    ];
}
