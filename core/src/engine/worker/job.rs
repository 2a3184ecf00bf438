//! A task in a worker's hands, and what its handler's end means.

use std::time::Duration;

use crate::base::name::TaskId;
use crate::protocol::Receipt;

/// A claimed task, as a worker's machine sees it.
pub trait Job: Clone {
    /// How it is settled in the store.
    type Verdict;

    /// The task.
    fn id(&self) -> &TaskId;

    /// The delivery.
    fn receipt(&self) -> Receipt;

    /// Whether it is known to be another's, or will be soon: its lease has ended.
    fn is_lost(&self) -> bool;

    /// How many bytes a verdict brings.
    fn size(verdict: &Self::Verdict) -> usize;

    /// What this end of its handler comes to.
    fn conclude(&self, ending: &HandlerEnd) -> Finished<Self::Verdict>;
}

/// How a handler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerEnd {
    /// The task is done.
    Returned,
    /// It was not done, for this reason.
    Failed(String),
    /// The claim was lost meanwhile.
    Lost,
    /// Not by its own doing, or not begun: the task goes back uncounted.
    Interrupted,
    /// The worker ends without it, and cannot stop it.
    LeftBehind,
}

impl HandlerEnd {
    /// The name of this end in traces.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Failed(_) => "failed",
            Self::Lost => "lost",
            Self::Interrupted => "interrupted",
            Self::LeftBehind => "left behind",
        }
    }
}

/// What a handler's end means for its claim.
#[derive(Debug)]
pub enum Finished<V> {
    /// To be settled.
    Verdict(V),
    /// Settled by the handler itself.
    Settled(V),
    /// Too late: another may have the task.
    Lost,
}

/// What a worker reports.
#[derive(Debug)]
pub enum Event<J: Job> {
    /// A handler begins.
    Started(J),
    /// The claim was lost.
    Lost(J),
    /// Its handler was asked to end, and goes on; so many others can still begin.
    Stuck(J, usize),
    /// A handler has settled its task by itself.
    Settled(J::Verdict),
    /// There is nothing to do for now.
    Empty,
    /// The store answers again, after so long.
    StoreBack(Duration),
}
