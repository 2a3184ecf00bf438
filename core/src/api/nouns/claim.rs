//! The claim.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::face::{both, drive};
use crate::base::envelope::Headers;
use crate::base::error::Error;
use crate::base::name::TaskKey;
use crate::engine::loss::LossReason;
use crate::protocol::{Receipt, Version};
use crate::queue::claim_calls::Verdict;
use crate::queue::delivery::{Delivery, Retry};
use crate::queue::task::wall_time;
use crate::session::options::Extent;

/// A task that is ours until it is settled, or until its lease ends or is lost.
///
/// Dropping an unsettled claim counts as a failure: the task comes back after a pause. A process that dies
/// does not say so; then the task comes back when its lease ends.
#[must_use = "a claim that is dropped counts as failed"]
#[derive(Clone)]
pub struct Claim {
    delivery: Arc<Delivery>,
}

#[both]
impl Claim {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self { delivery: Arc::new(delivery) }
    }

    pub(crate) fn of(delivery: Arc<Delivery>) -> Self {
        Self { delivery }
    }

    pub(crate) fn delivery(&self) -> &Arc<Delivery> {
        &self.delivery
    }

    /// The task's id.
    pub fn id(&self) -> &str {
        self.delivery.task.id.as_str()
    }

    /// The queue's name.
    pub fn queue(&self) -> &str {
        self.delivery.queue.as_str()
    }

    /// The task's payload.
    pub fn payload(&self) -> &[u8] {
        self.delivery.payload()
    }

    /// What travels with it.
    pub fn headers(&self) -> &Headers {
        &self.delivery.headers
    }

    /// The task's kind, if it has one.
    pub fn kind(&self) -> Option<&str> {
        self.delivery.settings.kind.as_deref()
    }

    /// Counts deliveries from one.
    pub fn attempt(&self) -> u32 {
        self.delivery.task.attempt
    }

    /// After so many deliveries the task is dead.
    pub fn max_attempts(&self) -> u32 {
        self.delivery.task.max_attempts
    }

    /// The number of this delivery: larger than that of every earlier one of the task. Pass it along with
    /// writes ([`Receipt::get`] is the number), as a lock's fence.
    pub fn receipt(&self) -> Receipt {
        self.delivery.task.receipt
    }

    /// The task's version.
    pub fn version(&self) -> Version {
        self.delivery.task.version
    }

    /// The task's priority.
    pub fn priority(&self) -> u8 {
        self.delivery.task.priority
    }

    /// The task's key, if it has one.
    pub fn key(&self) -> Option<&str> {
        self.delivery.task.key.as_ref().map(TaskKey::as_str)
    }

    /// When the task was due.
    pub fn due(&self) -> SystemTime {
        wall_time(self.delivery.task.due)
    }

    /// How long the claim is surely ours from now on, without further renewal; zero if it is not.
    pub fn remaining(&self) -> Duration {
        self.delivery.kept.remaining()
    }

    /// Until when the claim is surely ours, without further renewal: now plus [`Claim::remaining`].
    pub fn deadline(&self) -> std::time::Instant {
        std::time::Instant::now() + self.remaining()
    }

    /// Whether the claim is ours now. Computed from the clock at the time of the call.
    pub fn is_valid(&self) -> bool {
        self.delivery.kept.is_valid()
    }

    /// Why the claim was lost, if it was.
    pub fn loss(&self) -> Option<LossReason> {
        self.delivery.kept.loss()
    }

    /// Done: the task leaves the queue. A second ack repeats the answer of the first, without I/O.
    ///
    /// # Errors
    /// `StaleReceipt` if the lease had ended and the task was delivered again or settled meanwhile (an ack
    /// that is merely late is accepted); `StoreUnavailable` or `Indeterminate` if the store did not answer.
    pub async fn ack(&self) -> Result<(), Error> {
        settle(Verdict::ack(&self.delivery)).await
    }

    /// Done, with a result (1 MiB at most), which [`Queue::result`](super::Queue::result) gives for as long as the task says
    /// ([`Task::keep_result`](crate::Task::keep_result); 1 h by default). Of a queue 10,000 results and 64 MiB are kept.
    ///
    /// # Errors
    /// As [`Claim::ack`], and `InvalidArgument` for a result that is too large: nothing is sent then.
    pub async fn ack_with(&self, result: &[u8]) -> Result<(), Error> {
        settle(Verdict::ack_with(&self.delivery, result)?).await
    }

    /// Notes how far the work has come (4 KiB at most), for [`Queue::get`](super::Queue::get) and listings to show until the
    /// run ends, and renews the lease.
    ///
    /// # Errors
    /// As [`Claim::extend`], and `InvalidArgument` for more bytes: nothing is sent then.
    pub async fn progress(&self, progress: &[u8]) -> Result<(), Error> {
        let wrong = |error| self.delivery.during("progress", error);
        let kept = &self.delivery.kept;
        let mut machine = self.delivery.progress(progress).map_err(wrong)?;
        let answer = drive(&kept.live, &mut machine, None, None).await?;
        kept.extended(Extent::AtLeast(self.delivery.lease()), answer).map_err(wrong)
    }

    /// Not done: the task is tried again, or is dead after its last attempt. The reason (1 KiB at most, the
    /// rest is cut off) is kept with it.
    ///
    /// # Errors
    /// As [`Claim::ack`], and `InvalidArgument` for a delay over 365 days.
    pub async fn nack(&self, retry: Retry, reason: &str) -> Result<(), Error> {
        settle(Verdict::nack(&self.delivery, retry, reason)?).await
    }

    /// Not done, and not to be tried again: the task is dead.
    ///
    /// # Errors
    /// As [`Claim::ack`].
    pub async fn bury(&self, reason: &str) -> Result<(), Error> {
        settle(Verdict::bury(&self.delivery, reason)).await
    }

    /// Not tried: the task goes back without counting an attempt. Without a delay it comes back to its place in
    /// line, so the next claim gets it again: a worker that cannot do it now says in how long. No enqueue of its
    /// id brings it forward of that.
    ///
    /// # Errors
    /// As [`Claim::ack`], and `InvalidArgument` for a delay over 365 days.
    pub async fn put_back(&self, delay: Duration) -> Result<(), Error> {
        settle(Verdict::put_back_after(&self.delivery, delay)?).await
    }

    /// Not tried, because whoever it calls has had enough (a 429, `Retry-After`): the task goes back to its place without counting
    /// an attempt, and nothing more of its key is given out for so long (0 to 365 days); if it has no key, nothing of the queue. A
    /// later throttle makes that longer, never shorter.
    ///
    /// # Errors
    /// As [`Claim::ack`], and `InvalidArgument` for a time over 365 days.
    pub async fn throttle(&self, time: Duration) -> Result<(), Error> {
        settle(Verdict::throttle(&self.delivery, time)?).await
    }

    /// Prolongs the lease to at least `lease` from now; never shortens it.
    ///
    /// # Errors
    /// `LeaseLost` or `LeaseExpired` if it has ended; `StoreUnavailable` or `Indeterminate` if the store did
    /// not answer, and then the lease goes on to its old deadline.
    pub async fn extend(&self, lease: Duration) -> Result<(), Error> {
        let kept = &self.delivery.kept;
        let wrong = |error| self.delivery.during("extend", error);
        let extent = Extent::AtLeast(lease);
        let mut machine = kept.extend(extent).map_err(wrong)?;
        let answer = drive(&kept.live, &mut machine, None, None).await?;
        kept.extended(extent, answer).map_err(wrong)
    }

    /// The verdict "done", to be settled together with others.
    pub fn acked(&self) -> Verdict {
        Verdict::ack(&self.delivery)
    }

    /// The verdict "done" with a result, to be settled together with others; see [`Claim::ack_with`].
    ///
    /// # Errors
    /// `InvalidArgument` for a result of more than 1 MiB.
    pub fn acked_with(&self, result: &[u8]) -> Result<Verdict, Error> {
        Verdict::ack_with(&self.delivery, result)
    }

    /// The verdict "try again", to be settled together with others.
    ///
    /// # Errors
    /// `InvalidArgument` for a delay over 365 days.
    pub fn nacked(&self, retry: Retry, reason: &str) -> Result<Verdict, Error> {
        Verdict::nack(&self.delivery, retry, reason)
    }

    /// The verdict "dead", to be settled together with others.
    pub fn buried(&self, reason: &str) -> Verdict {
        Verdict::bury(&self.delivery, reason)
    }

    /// The verdict "not tried", to be settled together with others; the delay as in [`Claim::put_back`].
    ///
    /// # Errors
    /// `InvalidArgument` for a delay over 365 days.
    pub fn returned(&self, delay: Duration) -> Result<Verdict, Error> {
        Verdict::put_back_after(&self.delivery, delay)
    }

    /// The verdict "not tried, and nothing more of its key for so long", to be settled together with others; see
    /// [`Claim::throttle`].
    ///
    /// # Errors
    /// `InvalidArgument` for a time over 365 days.
    pub fn throttled(&self, time: Duration) -> Result<Verdict, Error> {
        Verdict::throttle(&self.delivery, time)
    }
}

/// Settles one claim by itself.
#[both]
async fn settle(verdict: Verdict) -> Result<(), Error> {
    let Some((mut machine, earlier)) = verdict.settle()? else { return Ok(()) };
    let answer = drive(&verdict.delivery().kept.live, &mut machine, None, None).await;
    verdict.answered(earlier, answer)
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.delivery.fmt(f)
    }
}
