//! A claimed task, from the claim to its verdict. Both `Claim` types wrap it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::base::envelope::{self, Headers};
use crate::base::error::{Error, ErrorKind};
use crate::base::name::QueueName;
use crate::base::wake::locked;
use crate::engine::Jitter;
use crate::engine::call::{Answer, CallMachine};
use crate::engine::claim::ClaimedOne;
use crate::engine::lease::{LeaseTerms, Timeout};
use crate::engine::leased::{Leased, TaskLease};
use crate::engine::loss::LossReason;
use crate::engine::settle::{Earlier, Settling};
use crate::protocol::{
    ClaimedTask, MAX_PROGRESS, MAX_RESULT, QueueReply, QueueRequest, QueueVerb, Reply, Request, Settle,
    Settled, Settlement, Verdict, WallMillis,
};
use crate::queue::queue_options::ClaimPlan;
use crate::queue::task_settings::{DEFAULT_KEEP_RESULT, TaskSettings};
use crate::session::Live;
use crate::session::lease_cell::Account;
use crate::session::metrics::{Ended, QueueMeters};
use crate::session::options::{Extent, MAX_TTL};
use crate::session::tracked_lease::TrackedLease;

/// Longest reason of a nack or bury that is kept; the rest is cut off.
const MAX_REASON: usize = 1_024;
/// The reason of a task whose run took longer than its timeout.
const TIMEOUT: &str = "timeout";
/// The reason of a task whose claim was dropped unsettled.
const DROPPED: &str = "dropped without a verdict";

/// When a task is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// As the task's own back-off says ([`Task::backoff`](crate::Task::backoff)). If it has none: n⁴ seconds after the n-th attempt, 7 h at most, less up to half of it by chance: 1 s, 16 s,
    /// 81 s, 4 min, 10 min, 22 min, 40 min, 1.1 h, 1.8 h, 2.8 h, 4.1 h, 5.8 h, then 7 h each. The 19 pauses of a task
    /// with 20 attempts are 33 to 66 hours together, two days on average.
    Backoff,
    /// After this time.
    After(Duration),
}

pub(crate) struct Delivery {
    pub(crate) kept: TrackedLease,
    pub(crate) queue: QueueName,
    pub(crate) task: ClaimedTask,
    pub(crate) headers: Headers,
    pub(crate) settings: TaskSettings,
    payload_start: usize,
    settling: Mutex<Settling>,
    meters: Arc<QueueMeters>,
}

impl Delivery {
    /// Has the keeper renew a claim, and announce its loss.
    pub(crate) fn start(live: &Arc<Live>, plan: &ClaimPlan, one: ClaimedOne) -> Self {
        let meters = live.meters.queue(one.queue.as_str());
        meters.claimed.inc();
        meters.late(lateness(live.clock.wall_micros(), one.task.due));
        let ClaimedOne { queue, task, deadline } = one;
        let (payload_start, mut headers) = envelope::decode(&task.body);
        let settings = TaskSettings::take(&mut headers);
        let lease = TaskLease { queue: queue.clone(), id: task.id.clone(), receipt: task.receipt };
        let now = live.clock.now();
        let timeout = settings.timeout.or(plan.timeout).map(|timeout| {
            let delay = settings.pause(task.attempt, &mut Jitter::random());
            let request = lease.clone().settled(Verdict::Nack { delay, reason: TIMEOUT.into() });
            Timeout { at: now + timeout, request }
        });
        let terms = LeaseTerms {
            leased: Leased::Task(lease),
            ttl: plan.lease,
            deadline,
            hold_until: plan.max_run.map(|max_run| now + max_run),
            timeout,
        };
        let kept = TrackedLease::start(live, terms, Account::Task(Arc::clone(&meters)));
        Self { kept, queue, task, headers, settings, payload_start, settling: Mutex::default(), meters }
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.task.body[self.payload_start..]
    }

    /// The verdict of a task that is done, with what came of it.
    pub(crate) fn ack_with(&self, result: &[u8]) -> Result<Verdict, Error> {
        if result.len() > MAX_RESULT {
            let message = format!("the result has more than {MAX_RESULT} bytes ({})", result.len());
            return Err(self.during("ack", Error::invalid(message)));
        }
        let keep = self.settings.keep_result.unwrap_or(DEFAULT_KEEP_RESULT);
        Ok(Verdict::AckWith { result: result.into(), keep })
    }

    /// The verdict of a failed attempt.
    pub(crate) fn nack(&self, retry: Retry, reason: &str) -> Result<Verdict, Error> {
        let delay = match retry {
            Retry::Backoff => self.settings.pause(self.task.attempt, &mut Jitter::random()),
            Retry::After(delay) if delay <= MAX_TTL => delay,
            Retry::After(_) => return Err(self.during("nack", Error::invalid("the delay is over 365 days"))),
        };
        Ok(Verdict::Nack { delay, reason: shortened(reason) })
    }

    /// The verdict on a task that was not tried.
    pub(crate) fn put_back(&self, delay: Duration) -> Result<Verdict, Error> {
        if delay > MAX_TTL {
            return Err(self.during("put_back", Error::invalid("the delay is over 365 days")));
        }
        Ok(Verdict::PutBack { delay })
    }

    /// The verdict on a task that was not tried, since whoever it calls has had enough.
    pub(crate) fn throttle(&self, time: Duration) -> Result<Verdict, Error> {
        if time > MAX_TTL {
            return Err(self.during("throttle", Error::invalid("the time is over 365 days")));
        }
        Ok(Verdict::Throttle { time })
    }

    /// The verdict on a task that will never succeed.
    pub(crate) fn bury(reason: &str) -> Verdict {
        Verdict::Bury { reason: shortened(reason) }
    }

    /// The settlement to send, and what [`Delivery::settled`] has to know; `None` if this verdict was accepted
    /// before.
    pub(crate) fn settlement(&self, verdict: &Verdict) -> Result<Option<(Settlement, Earlier)>, Error> {
        self.kept.live.check_generation().map_err(|error| self.during(verdict.operation(), error))?;
        let sent = locked(&self.settling).send(verdict, self.kept.loss());
        let Some(earlier) = sent.map_err(|error| self.during(verdict.operation(), error))? else {
            return Ok(None);
        };
        // From now on the verdict counts, not the lease.
        self.kept.end(Ended::Settled);
        let (id, receipt) = (self.task.id.clone(), self.task.receipt);
        Ok(Some((Settlement { id, receipt, verdict: verdict.clone() }, earlier)))
    }

    /// A single settlement as a machine.
    pub(crate) fn settle(&self, settlement: Settlement) -> CallMachine {
        let verb = QueueVerb::Settle(Settle { items: Arc::new([settlement]) });
        self.kept.live.call(Request::Queue(QueueRequest { queue: self.queue.clone(), verb }))
    }

    /// The verdict that was accepted, if one was.
    pub(crate) fn accepted(&self) -> Option<Verdict> {
        locked(&self.settling).accepted().cloned()
    }

    /// Applies the reply to [`Delivery::settle`].
    pub(crate) fn answered(
        &self,
        verdict: &Verdict,
        earlier: Earlier,
        answer: Result<Answer, Error>,
    ) -> Result<(), Error> {
        let answer = answer
            .inspect_err(|error| self.failed(earlier, error))
            .map_err(|error| self.during(verdict.operation(), error))?;
        match &answer.reply {
            Reply::Queue(QueueReply::Settle(settled)) if settled.len() == 1 => {
                self.settled(verdict, settled[0], earlier, answer.copies > 1)
            }
            _ => Err(Error::unexpected_reply()),
        }
    }

    /// Takes in what became of a settlement: `earlier` as [`Delivery::settlement`] gave it, `resent` if an
    /// earlier copy of its call may have been carried out.
    pub(crate) fn settled(
        &self,
        verdict: &Verdict,
        settled: Settled,
        earlier: Earlier,
        resent: bool,
    ) -> Result<(), Error> {
        let mut settling = locked(&self.settling);
        let accepted = settling.accepted().is_some();
        // As far as renewals have brought it.
        let deadline = locked(&self.kept.cell.state).deadline();
        let now = self.kept.live.clock.now();
        let judged = settling.settled(verdict, (settled, earlier, resent), now, deadline);
        match &judged {
            Ok(()) if !accepted => self.meters.settled(verdict),
            Err(error) if !accepted && error.kind() == ErrorKind::StaleReceipt => self.meters.stale.inc(),
            Ok(()) | Err(_) => {}
        }
        judged.map_err(|error| self.during(verdict.operation(), error))
    }

    /// Takes in that a settlement has no answer.
    pub(crate) fn failed(&self, earlier: Earlier, error: &Error) {
        locked(&self.settling).failed(earlier, error);
    }

    /// For a claim that is dropped unsettled: it counts as failed. Does nothing in a forked child: the claim is the
    /// parent's.
    pub(crate) fn let_go(&self) {
        let live = &self.kept.live;
        if live.is_inherited() {
            return live.leave_to_parent();
        }
        let was_open = matches!(*locked(&self.settling), Settling::Open);
        // Whoever drops it at its timeout may be faster than the keeper, which would have said so.
        let reason = if self.kept.loss() == Some(LossReason::TimedOut) { TIMEOUT } else { DROPPED };
        if self.kept.end(Ended::Dropped)
            && was_open
            && let Ok(verdict) = self.nack(Retry::Backoff, reason)
        {
            self.settle_later(verdict);
        }
    }

    /// Settles it in the background, unless a verdict was sent already.
    pub(crate) fn settle_unheard(&self, verdict: Verdict) {
        let was_open = matches!(*locked(&self.settling), Settling::Open);
        if !self.kept.live.is_inherited() && was_open && self.kept.end(Ended::Dropped) {
            self.settle_later(verdict);
        }
    }

    /// How long a renewal keeps it.
    pub(crate) fn lease(&self) -> Duration {
        locked(&self.kept.cell.state).ttl()
    }

    /// The renewal that notes how far the work has come.
    pub(crate) fn progress(&self, progress: &[u8]) -> Result<CallMachine, Error> {
        if progress.len() > MAX_PROGRESS {
            let message = format!("the progress has more than {MAX_PROGRESS} bytes ({})", progress.len());
            return Err(Error::invalid(message));
        }
        self.kept.extend_with(Extent::AtLeast(self.lease()), |request| {
            if let Request::Queue(QueueRequest { verb: QueueVerb::ExtendClaim(extend), .. }) = request {
                extend.progress = Some(progress.into());
            }
        })
    }

    /// Stops its renewal, and returns what is left of its lease.
    pub(crate) fn expire(&self) -> Duration {
        self.kept.end(Ended::Settled);
        locked(&self.kept.cell.state).deadline().since(self.kept.live.clock.now())
    }

    fn settle_later(&self, verdict: Verdict) {
        let (queue, id) = (self.queue.clone(), self.task.id.clone());
        let lease = TaskLease { queue, id, receipt: self.task.receipt };
        self.kept.live.keeper.clean_up(lease.settled(verdict));
    }

    pub(crate) fn during(&self, operation: &'static str, error: Error) -> Error {
        error.rather_during(operation, &format!("{}/{}", self.queue.as_str(), self.task.id.as_str()))
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ClaimedTask { id, attempt, receipt, .. } = &self.task;
        let queue = self.queue.as_str();
        write!(f, "Claim({queue:?}, {id:?}, attempt {attempt}, receipt {receipt})")
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// By how much a task that is claimed now is late; zero if its due time is ahead of this process's clock.
fn lateness(now_micros: u64, due: WallMillis) -> Duration {
    Duration::from_micros(now_micros).saturating_sub(Duration::from_millis(due))
}

fn shortened(reason: &str) -> Box<str> {
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].into()
}
