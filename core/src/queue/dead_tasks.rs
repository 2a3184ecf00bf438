//! A selection of dead tasks.

use std::collections::HashSet;
use std::time::Duration;

use crate::base::error::Error;
use crate::base::name::TaskId;
use crate::engine::sweep::SweepMachine;
use crate::protocol::{DeadOnes, DiedBy, Receipt, Sweep};

/// Which dead tasks to move back to ready, or to remove.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), stanchion::Error> {
/// use std::time::Duration;
/// use stanchion::{Client, DeadTasks};
///
/// let queue = Client::open("memory:").await?.queue("emails");
/// // Retry what failed while the mail server was down.
/// queue.kick(DeadTasks::all().reason("connection refused")).await?;
/// // Drop what died more than a month ago.
/// queue.remove_dead(DeadTasks::all().older_than(Duration::from_secs(30 * 86_400))).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it only says which"]
pub struct DeadTasks {
    among: Among,
    reason: String,
    prefix: String,
    older_than: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Among {
    Ids(Vec<String>),
    Receipts(Vec<Receipt>),
    Oldest(u64),
}

impl DeadTasks {
    fn among(among: Among) -> Self {
        Self { among, reason: String::new(), prefix: String::new(), older_than: Duration::ZERO }
    }

    /// The newest dead record of each of these ids.
    pub fn ids(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::among(Among::Ids(ids.into_iter().map(Into::into).collect()))
    }

    /// The records with these receipts (see [`TaskInfo::receipt`](crate::TaskInfo)): an id that died more than once has
    /// several.
    pub fn receipts(receipts: impl IntoIterator<Item = Receipt>) -> Self {
        Self::among(Among::Receipts(receipts.into_iter().collect()))
    }

    /// So many of the oldest, at least 1: first those that failed, then those that expired.
    pub fn oldest(count: u64) -> Self {
        Self::among(Among::Oldest(count))
    }

    /// All that are dead when the call begins.
    pub fn all() -> Self {
        Self::oldest(u64::MAX)
    }

    /// Only those whose reason begins with this text.
    pub fn reason(mut self, prefix: impl Into<String>) -> Self {
        self.reason = prefix.into();
        self
    }

    /// Only those whose id begins with this text.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Only those that died this long ago or earlier.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = age;
        self
    }

    /// Checks everything. No I/O.
    pub(crate) fn checked(&self) -> Result<SweepMachine, Error> {
        let (among, most) = match &self.among {
            Among::Oldest(0) => return Err(Error::invalid("count is 0; it must be at least 1")),
            Among::Oldest(count) => (DeadOnes::Oldest, *count),
            Among::Receipts(receipts) => (DeadOnes::Receipts(receipts.as_slice().into()), u64::MAX),
            Among::Ids(ids) => {
                let ids: Result<Vec<TaskId>, Error> = ids.iter().map(|id| TaskId::parse(id)).collect();
                // LockTarget again in a later step, an id would mean its next older record.
                let (mut ids, mut known) = (ids?, HashSet::new());
                ids.retain(|id| known.insert(id.clone()));
                (DeadOnes::Ids(ids.into()), u64::MAX)
            }
        };
        let sweep = Sweep {
            reason: self.reason.as_str().into(),
            prefix: self.prefix.as_str().into(),
            until: DiedBy::Ago(self.older_than),
            ..Sweep::new(among, 0)
        };
        Ok(SweepMachine::new(sweep, most))
    }
}
