//! What the doctor finds about a store, and which promise depends on it.

/// Whether something is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// The promise holds.
    Good,
    /// The promise holds with a limit.
    Warning,
    /// The promise does not hold.
    Bad,
    /// It could not be found out.
    Unknown,
}

impl Health {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Bad => "bad",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that the doctor looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at: a stable name such as `memory`.
    pub what: &'static str,
    /// What was found, in words.
    pub found: String,
    /// The promise that depends on it.
    pub promise: &'static str,
    /// Whether it holds here.
    pub health: Health,
    /// What to do, unless all is well.
    pub advice: Option<String>,
}

impl Finding {
    pub(crate) fn good(what: &'static str, promise: &'static str, found: impl Into<String>) -> Self {
        Self { what, found: found.into(), promise, health: Health::Good, advice: None }
    }

    /// The same, less well.
    pub(crate) fn but(self, health: Health, advice: impl Into<String>) -> Self {
        Self { health, advice: Some(advice.into()), ..self }
    }
}
