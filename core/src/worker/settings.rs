//! What both faces of a worker share: settings, events, and what a handler's end means.

use std::any::Any;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use crate::claim_calls::Verdict;
use crate::delivery::{Delivery, Retry};
use crate::error::{Error, ErrorKind};
use crate::options::{DEFAULT_MAX_HOLD, DEFAULT_TTL};
use crate::queue_options::{ClaimOptions, checked_count};
use crate::verbs::{self, Settled};
use crate::worker::IDLE_WAIT;

/// How often a worker that ends when the queue is empty looks whether it is.
const EMPTY_LOOK: Duration = Duration::from_millis(200);

/// Something that happened to a task, or to the worker.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum WorkerEvent<'a> {
    /// A handler begins.
    Started {
        /// The task.
        id: &'a str,
        /// Counts deliveries from one.
        attempt: u32,
    },
    /// The task is done, and the store knows it.
    Completed {
        /// The task.
        id: &'a str,
        /// Counts deliveries from one.
        attempt: u32,
    },
    /// The handler failed; the task will be tried again, unless `Dead` follows.
    Failed {
        /// The task.
        id: &'a str,
        /// Counts deliveries from one.
        attempt: u32,
        /// What the handler said.
        reason: &'a str,
    },
    /// The task is dead: it failed for the last time, or was buried.
    Dead {
        /// The task.
        id: &'a str,
        /// Counts deliveries from one.
        attempt: u32,
        /// What the handler said.
        reason: &'a str,
    },
    /// The claim was lost, or its verdict came too late: another may work on the task now.
    Lost {
        /// The task.
        id: &'a str,
        /// Counts deliveries from one.
        attempt: u32,
    },
    /// All tasks that were taken are settled, and there are no more for now.
    Drained,
    /// The store could not be reached, or refused something. The worker goes on if that can pass.
    StoreFailed {
        /// What happened.
        error: &'a Error,
    },
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Tasks acked.
    pub completed: u64,
    /// Attempts that failed, those that killed the task included.
    pub failed: u64,
    /// Tasks that died.
    pub dead: u64,
    /// Claims that were lost.
    pub lost: u64,
}

impl AddAssign for WorkerReport {
    fn add_assign(&mut self, other: Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.dead += other.dead;
        self.lost += other.lost;
    }
}

type Hook = Arc<dyn Fn(WorkerEvent<'_>) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct WorkerSettings {
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) max_run: Duration,
    pub(crate) until_empty: bool,
    pub(crate) hook: Option<Hook>,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self { concurrency: 1, lease: DEFAULT_TTL, max_run: DEFAULT_MAX_HOLD, until_empty: false, hook: None }
    }
}

impl WorkerSettings {
    /// Fails for options that no claim takes.
    pub(crate) fn check(&self) -> Result<(), Error> {
        checked_count("concurrency", self.concurrency)?;
        self.claim(1).plan().map(drop)
    }

    pub(crate) fn claim(&self, max: usize) -> ClaimOptions {
        ClaimOptions::new().max(max).lease(self.lease).renew(true).max_run(self.max_run)
    }

    pub(crate) fn idle_wait(&self) -> Duration {
        if self.until_empty { EMPTY_LOOK } else { IDLE_WAIT }
    }

    pub(crate) fn tell(&self, event: &WorkerEvent<'_>) {
        if let Some(hook) = &self.hook {
            hook(*event);
        }
    }

    /// Counts a claim that needs no verdict; gives back one that does.
    pub(crate) fn finish(&self, report: &mut WorkerReport, finished: Finished) -> Option<Verdict> {
        match finished {
            Finished::Verdict(verdict) => Some(verdict),
            Finished::Settled(verdict) => {
                let dead = matches!(verdict.verdict(), verbs::Verdict::Bury { .. });
                self.count(report, &verdict, &Ok(Settled::Done { late: false, dead }));
                None
            }
            Finished::Lost(delivery) => {
                report.lost += 1;
                self.tell(&WorkerEvent::Lost {
                    id: delivery.task.id.as_str(),
                    attempt: delivery.task.attempt,
                });
                None
            }
        }
    }

    /// Counts what became of a verdict, and tells of it.
    pub(crate) fn count(
        &self,
        report: &mut WorkerReport,
        verdict: &Verdict,
        result: &Result<Settled, Error>,
    ) {
        let (id, attempt) = (verdict.delivery().task.id.as_str(), verdict.delivery().task.attempt);
        let Ok(settled) = result else {
            report.lost += 1;
            return self.tell(&WorkerEvent::Lost { id, attempt });
        };
        let reason = match verdict.verdict() {
            verbs::Verdict::Ack => {
                report.completed += 1;
                return self.tell(&WorkerEvent::Completed { id, attempt });
            }
            verbs::Verdict::PutBack => return,
            verbs::Verdict::Nack { reason, .. } | verbs::Verdict::Bury { reason } => &**reason,
        };
        report.failed += 1;
        self.tell(&WorkerEvent::Failed { id, attempt, reason });
        if matches!(settled, Settled::Done { dead: true, .. }) {
            report.dead += 1;
            self.tell(&WorkerEvent::Dead { id, attempt, reason });
        }
    }
}

impl fmt::Debug for WorkerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSettings")
            .field("concurrency", &self.concurrency)
            .field("lease", &self.lease)
            .field("max_run", &self.max_run)
            .field("until_empty", &self.until_empty)
            .finish_non_exhaustive()
    }
}

/// How a handler ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Returned,
    Failed(String),
    /// The claim was lost meanwhile.
    Lost,
    /// Not by its own doing.
    Interrupted,
}

impl Ending {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Failed(_) => "failed",
            Self::Lost => "lost",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What a handler's end means for its claim.
pub(crate) enum Finished {
    /// To be settled.
    Verdict(Verdict),
    /// Settled by the handler itself.
    Settled(Verdict),
    /// Too late: another may have the task. Dropped, it counts as failed.
    Lost(Arc<Delivery>),
}

impl Finished {
    pub(crate) fn of(delivery: &Arc<Delivery>, ending: &Ending) -> Self {
        if let Some(verdict) = delivery.accepted() {
            return Self::Settled(Verdict::accepted(delivery, verdict));
        }
        let verdict = match ending {
            Ending::Returned => Ok(Verdict::ack(delivery)),
            Ending::Failed(reason) => Verdict::nack(delivery, Retry::Backoff, reason),
            Ending::Interrupted => Ok(Verdict::put_back(delivery)),
            Ending::Lost => return Self::Lost(Arc::clone(delivery)),
        };
        verdict.map_or_else(|_| Self::Lost(Arc::clone(delivery)), Self::Verdict)
    }
}

/// What a panic says.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("no message"))
}

impl Error {
    /// Whether a worker may try the same settlements again: they are safe to repeat.
    pub(crate) fn is_retryable_settle(&self) -> bool {
        matches!(self.kind(), ErrorKind::StoreUnavailable | ErrorKind::Indeterminate)
    }
}
