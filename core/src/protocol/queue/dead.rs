//! Verbs about dead tasks.

use std::sync::Arc;
use std::time::Duration;

use crate::base::name::TaskId;
use crate::protocol::{Place, Receipt, WallMillis};

/// The dead tasks that a request is about. One request looks at a limited number of them; the next goes on.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Among which.
    pub among: DeadOnes,
    /// Only those whose reason begins with this text.
    pub reason: Arc<str>,
    /// Only those whose id begins with this text.
    pub prefix: Arc<str>,
    /// Only those that died then or before.
    pub until: DiedBy,
    /// At most so many.
    pub max: u32,
    /// `None` first, then what the last reply gave.
    pub from: Option<Place>,
}

impl Sweep {
    /// At most `max` of these, whatever they died of and when.
    pub fn new(among: DeadOnes, max: u32) -> Self {
        let (reason, prefix) = (Arc::from(""), Arc::from(""));
        Self { among, reason, prefix, until: DiedBy::Ago(Duration::ZERO), max, from: None }
    }
}

/// Among which dead tasks one looks.
#[derive(Clone, Debug)]
pub enum DeadOnes {
    /// The newest record of each id.
    Ids(Arc<[TaskId]>),
    /// The records with these receipts.
    Receipts(Arc<[Receipt]>),
    /// All, the oldest first: those that failed, then those that expired.
    Oldest,
}

/// When they died at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiedBy {
    /// So long ago.
    Ago(Duration),
    /// Then: what the first of several requests found.
    Then(WallMillis),
}

/// What a sweep did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// To how many.
    pub count: u64,
    /// When those died at the latest that it was about.
    pub until: WallMillis,
    /// Where to go on; `None` if nothing is left to look at.
    pub next: Option<Place>,
}
