//! What both faces of a worker share: settings, events, and what a handler's end means.

use std::any::Any;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use crate::base::contained::contained;
use crate::base::error::{Error, ErrorKind};
use crate::base::name::TaskId;
use crate::engine::Jitter;
use crate::engine::loss::LossReason;
use crate::engine::schedule::FiredSchedule;
use crate::engine::worker::{Event, Finished, HandlerEnd, Job, WorkerMachine, WorkerTerms};
use crate::protocol::{self, Receipt, Settled};
use crate::queue::claim_calls::{Batch, Verdict};
use crate::queue::delivery::{Delivery, Retry};
use crate::queue::queue_options::{ClaimOptions, checked_count};
use crate::session::options::{DEFAULT_MAX_HOLD, DEFAULT_TTL, MAX_TTL};

/// How long handlers may go on after a worker was stopped, by default: with the 2 s that follow, it ends before
/// container platforms kill it, after 30 s.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(25);
/// How long a delivery of an id that the worker still runs is kept at most.
const PARKED: Duration = Duration::from_secs(1);
/// From so many hands on, claims may be on their way beside each other: shares of fewer would be small.
const SHARED: usize = 16;
/// How long a handler may take to end after it was asked to.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(2);

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
        /// The handler's error.
        reason: &'a str,
    },
    /// The task is dead: it failed for the last time, or was buried.
    Dead {
        /// The task.
        id: &'a str,
        /// Counts deliveries from one.
        attempt: u32,
        /// The handler's error, or the reason of the bury.
        reason: &'a str,
    },
    /// The claim was lost, or its verdict came too late: another may work on the task now.
    Lost {
        /// The task.
        id: &'a str,
        /// Counts deliveries from one.
        attempt: u32,
    },
    /// The claim was lost, or the worker stops; its handler was asked to end 2 s ago, and goes on. A thread cannot be
    /// stopped from outside: until the handler returns, it takes up one of the worker's `concurrency`, and the worker
    /// leaves this id to others.
    Stuck {
        /// The task.
        id: &'a str,
        /// Counts deliveries from one.
        attempt: u32,
        /// How many more handlers can run. With none, this worker does nothing any more.
        free: usize,
    },
    /// Slots of a schedule were past when somebody worked on the queue again, and as the schedule says some of them got no task.
    SlotsMissed {
        /// The schedule's id.
        schedule: &'a str,
        /// How many were not fired; 1,000 at most each time that somebody looks.
        missed: u64,
        /// How many were fired all the same.
        fired: u64,
        /// How late the last of these was.
        late: Duration,
    },
    /// All tasks that were taken are settled, and there are no more for now.
    Empty,
    /// The store could not be reached, or refused something, and the worker goes on; an error that ends it is returned by
    /// `run` instead. Reported once; then `StoreBack`.
    StoreFailed {
        /// What happened.
        error: &'a Error,
    },
    /// The store answers again.
    StoreBack {
        /// How long after `StoreFailed`.
        after: Duration,
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
    pub(crate) timeout: Option<Duration>,
    pub(crate) until_empty: bool,
    pub(crate) grace: Duration,
    pub(crate) patience: Duration,
    pub(crate) hook: Option<Hook>,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            concurrency: 1,
            lease: DEFAULT_TTL,
            max_run: DEFAULT_MAX_HOLD,
            timeout: None,
            until_empty: false,
            grace: DEFAULT_GRACE,
            patience: DEFAULT_PATIENCE,
            hook: None,
        }
    }
}

impl WorkerSettings {
    /// Fails for options that no claim takes.
    pub(crate) fn check(&self) -> Result<(), Error> {
        checked_count("concurrency", self.concurrency)?;
        if self.grace > MAX_TTL {
            return Err(Error::invalid("grace is over 365 days"));
        }
        self.claim(1, Duration::ZERO).plan().map(drop)
    }

    pub(crate) fn claim(&self, max: usize, wait: Duration) -> ClaimOptions {
        let options = ClaimOptions::new().max(max).lease(self.lease).renew(true).max_run(self.max_run);
        let options = self.timeout.into_iter().fold(options, ClaimOptions::timeout);
        options.wait(wait).impatient()
    }

    /// For a driver that can have so many claims on their way at once.
    pub(crate) fn machine(&self, claims: usize) -> WorkerMachine<Arc<Delivery>> {
        let Self { concurrency, lease, until_empty, grace, patience, .. } = *self;
        let parked = (lease / 4).min(PARKED);
        let claims = if concurrency < SHARED { 1 } else { claims };
        let terms = WorkerTerms { concurrency, claims, parked, until_empty, grace, patience };
        WorkerMachine::new(terms, Jitter::random())
    }

    pub(crate) fn tell(&self, event: &WorkerEvent<'_>) {
        if let Some(hook) = &self.hook {
            // What it does is not the worker's business, nor the task's.
            contained("hook", || hook(*event));
        }
    }

    /// Passes an event of a worker's machine to the hook. It is counted by [`tally`].
    pub(crate) fn happened(&self, event: &Event<Arc<Delivery>>) {
        let task = |delivery: &Arc<Delivery>| (delivery.task.id.clone(), delivery.task.attempt);
        match event {
            Event::Started(delivery) => {
                let (id, attempt) = task(delivery);
                self.tell(&WorkerEvent::Started { id: id.as_str(), attempt });
            }
            Event::Lost(delivery) => {
                let (id, attempt) = task(delivery);
                self.tell(&WorkerEvent::Lost { id: id.as_str(), attempt });
            }
            Event::Stuck(delivery, free) => {
                let (id, attempt) = task(delivery);
                self.tell(&WorkerEvent::Stuck { id: id.as_str(), attempt, free: *free });
            }
            Event::Settled(verdict) => self.became(verdict, &Ok(as_settled(verdict))),
            Event::Empty => self.tell(&WorkerEvent::Empty),
            Event::StoreBack(after) => self.tell(&WorkerEvent::StoreBack { after: *after }),
        }
    }

    /// Counts what became of a batch, which has come back with this error if any. Answers the verdicts that may still
    /// be settled, and whether the error may pass.
    pub(crate) fn record(
        &self,
        report: &mut WorkerReport,
        batch: Batch,
        error: Option<&Error>,
    ) -> (Vec<Verdict>, bool) {
        for FiredSchedule { id, missed, tasks, late, .. } in batch.fired.iter().filter(|one| one.missed > 0) {
            self.tell(&WorkerEvent::SlotsMissed {
                schedule: id,
                missed: *missed,
                fired: *tasks,
                late: *late,
            });
        }
        let may_pass = error.is_none_or(Error::is_retryable_settle);
        let mut again = Vec::new();
        for (verdict, result) in batch.results() {
            match result {
                Err(_) if error.is_some() && may_pass && !verdict.is_over() => again.push(verdict),
                result => self.count(report, &verdict, &result),
            }
        }
        (again, may_pass)
    }

    /// Tells that the store has failed.
    pub(crate) fn store_failed(&self, error: &Error) {
        self.tell(&WorkerEvent::StoreFailed { error });
    }

    /// Counts the result of a verdict, and reports it.
    fn count(&self, report: &mut WorkerReport, verdict: &Verdict, result: &Result<Settled, Error>) {
        *report += tallied(verdict, result);
        self.became(verdict, result);
    }

    /// Tells what became of a verdict.
    fn became(&self, verdict: &Verdict, result: &Result<Settled, Error>) {
        let (id, attempt) = (verdict.delivery().task.id.as_str(), verdict.delivery().task.attempt);
        let Ok(settled) = result else {
            return self.tell(&WorkerEvent::Lost { id, attempt });
        };
        let reason = match verdict.verdict() {
            protocol::Verdict::Ack | protocol::Verdict::AckWith { .. } => {
                return self.tell(&WorkerEvent::Completed { id, attempt });
            }
            protocol::Verdict::PutBack { .. } | protocol::Verdict::Throttle { .. } => return,
            protocol::Verdict::Nack { reason, .. } | protocol::Verdict::Bury { reason } => &**reason,
        };
        self.tell(&WorkerEvent::Failed { id, attempt, reason });
        if matches!(settled, Settled::Done { dead: true, .. }) {
            self.tell(&WorkerEvent::Dead { id, attempt, reason });
        }
    }
}

/// What an event of a worker's machine adds to the report.
pub(crate) fn tally(event: &Event<Arc<Delivery>>) -> WorkerReport {
    match event {
        Event::Lost(_) => WorkerReport { lost: 1, ..WorkerReport::default() },
        Event::Settled(verdict) => tallied(verdict, &Ok(as_settled(verdict))),
        Event::Started(_) | Event::Stuck(..) | Event::Empty | Event::StoreBack(_) => WorkerReport::default(),
    }
}

/// What a verdict that the handler itself has settled became.
fn as_settled(verdict: &Verdict) -> Settled {
    Settled::Done { late: false, dead: matches!(verdict.verdict(), protocol::Verdict::Bury { .. }) }
}

/// What a verdict and what became of it add to the report.
fn tallied(verdict: &Verdict, result: &Result<Settled, Error>) -> WorkerReport {
    let mut report = WorkerReport::default();
    match (result, verdict.verdict()) {
        (Err(_), _) => report.lost += 1,
        (Ok(_), protocol::Verdict::Ack | protocol::Verdict::AckWith { .. }) => report.completed += 1,
        (Ok(_), protocol::Verdict::PutBack { .. } | protocol::Verdict::Throttle { .. }) => {}
        (Ok(settled), protocol::Verdict::Nack { .. } | protocol::Verdict::Bury { .. }) => {
            report.failed += 1;
            report.dead += u64::from(matches!(settled, Settled::Done { dead: true, .. }));
        }
    }
    report
}

impl fmt::Debug for WorkerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSettings")
            .field("concurrency", &self.concurrency)
            .field("lease", &self.lease)
            .field("max_run", &self.max_run)
            .field("timeout", &self.timeout)
            .field("until_empty", &self.until_empty)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

impl Job for Arc<Delivery> {
    type Verdict = Verdict;

    fn id(&self) -> &TaskId {
        &self.task.id
    }

    fn receipt(&self) -> Receipt {
        self.task.receipt
    }

    fn size(verdict: &Verdict) -> usize {
        verdict.verdict().size()
    }

    fn is_lost(&self) -> bool {
        self.kept.loss().is_some_and(|reason| reason != LossReason::Stopped)
    }

    fn conclude(&self, ending: &HandlerEnd) -> Finished<Verdict> {
        if let Some(verdict) = self.accepted() {
            return Finished::Settled(Verdict::accepted(self, verdict));
        }
        self.kept.owner_ended();
        let verdict = match ending {
            HandlerEnd::Returned => Ok(Verdict::ack(self)),
            HandlerEnd::Failed(reason) => Verdict::nack(self, Retry::Backoff, reason),
            HandlerEnd::Interrupted => Ok(Verdict::put_back(self)),
            // Its handler may still be at work: nobody is to have it while its claim would have been valid.
            HandlerEnd::LeftBehind => Verdict::put_back_after(self, self.expire()),
            // What is not acked ends with it.
            HandlerEnd::Lost if self.kept.loss() == Some(LossReason::Cancelled) => {
                Ok(Verdict::put_back(self))
            }
            HandlerEnd::Lost => return Finished::Lost,
        };
        verdict.map_or(Finished::Lost, Finished::Verdict)
    }
}

/// The message of a panic.
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
