//! Acquiring a lock, with waiting.
//!
//! The truth rule: a lease begins only by the reply to a call that was sent, and its deadline counts from
//! when that call was sent. Hints only make the machine ask sooner.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::{BY_ANOTHER, Error, ErrorKind, brief};
use crate::base::name::LockKind;
use crate::engine::{Call, Jitter, LEAST_PATIENCE, Machine, RESEND_AFTER, Step, Subject, deadline, told_at};
use crate::protocol::{
    Acquire, AcquireReply, Failure, FailureKind, Fence, Leave, Obstacle, Reply, Request, further_pause,
};

mod params;
#[cfg(test)]
mod tests;

pub use params::{AcquireParams, Acquired, ForeignHolder, Grant, LockPlan};

/// Longest pause between two polls of a waiter near the head of its line; of others it is longer by [`further_pause`].
const POLL_MOST: Duration = Duration::from_millis(750);
/// How much a pause is drawn shorter at most, in parts of itself.
const POLL_JITTER: u32 = 3;
/// Even a holder about to expire is not asked about more often.
const POLL_FLOOR: Duration = Duration::from_millis(5);

/// See the module's documentation.
#[derive(Debug)]
pub struct AcquireMachine {
    order: AcquireParams,
    jitter: Jitter,
    started: Moment,
    give_up: Moment,
    /// Sendings without an answer so far, the newest last.
    open: Vec<Sending>,
    /// Whether the newest of them is still awaited.
    in_flight: bool,
    sendings: u32,
    next_at: Moment,
    hinted: bool,
    /// Whether the channel of hints is open, or will never be: only then may a call register.
    can_register: bool,
    wants_channel: bool,
    /// An entry or a grant of ours is, or was, in the store.
    has_traces: bool,
    failures: u32,
    /// When the first of the failures in a row was sent.
    failing_since: Option<Moment>,
    last_failure: Option<Failure>,
    foreign_holder: Option<ForeignHolder>,
    phase: Phase,
}

#[derive(Debug)]
struct Sending {
    number: u32,
    at: Moment,
}

#[derive(Debug)]
enum Phase {
    Asking,
    /// Ending without the lock: a leave is to be sent (`None`) or on its way.
    Leaving(Option<Sending>, Ending),
    Done(Option<Ending>),
    /// The lock is ours, or nothing was left behind.
    Clean,
}

#[derive(Debug)]
enum Ending {
    Granted(Grant),
    Busy,
    Cached { value: Vec<u8>, asked: Moment },
    TimedOut,
    Failed(Failure),
}

impl AcquireMachine {
    /// A machine that has sent nothing yet. `listening`: whether the channel of hints is open already.
    pub fn new(
        order: AcquireParams,
        now: Moment,
        listening: bool,
        foreign_holder: Option<ForeignHolder>,
        jitter: Jitter,
    ) -> Self {
        Self {
            jitter,
            started: now,
            give_up: now + order.plan.longest(),
            open: Vec::new(),
            in_flight: false,
            sendings: 0,
            next_at: now,
            hinted: false,
            can_register: listening,
            wants_channel: false,
            has_traces: false,
            failures: 0,
            failing_since: None,
            last_failure: None,
            foreign_holder,
            phase: Phase::Asking,
            order,
        }
    }

    /// What it was made of.
    pub(crate) fn order(&self) -> &AcquireParams {
        &self.order
    }

    /// The foreign value in the way, for the next call on the same name.
    pub fn foreign_holder(&self) -> Option<&ForeignHolder> {
        self.foreign_holder.as_ref()
    }

    fn only_tries(&self) -> bool {
        self.order.plan.only_tries()
    }

    fn ask(&mut self, now: Moment) -> Step<Acquired> {
        if self.in_flight {
            match self.open.last() {
                Some(sending) if now < self.patience(sending.at) => {
                    return Step::Wait { until: self.patience(sending.at), hints: false };
                }
                _ => self.in_flight = false,
            }
        }
        if now >= self.give_up && self.sendings > 0 {
            let ending = match self.last_failure.take() {
                Some(failure) => Ending::Failed(failure),
                None if self.unanswered_last() => {
                    Ending::Failed(Failure::new(FailureKind::Lost, "the store did not answer"))
                }
                None => Ending::TimedOut,
            };
            return self.end(ending, now);
        }
        if self.wants_channel {
            return Step::Listen;
        }
        if self.hinted || now >= self.next_at {
            return self.send(now);
        }
        Step::Wait { until: self.next_at.min(self.give_up), hints: true }
    }

    /// Whether the newest sending has no answer.
    fn unanswered_last(&self) -> bool {
        self.open.last().is_some_and(|sending| sending.number == self.sendings)
    }

    fn send(&mut self, now: Moment) -> Step<Acquired> {
        self.hinted = false;
        self.sendings += 1;
        self.in_flight = true;
        self.open.push(Sending { number: self.sendings, at: now });
        let registers = !self.only_tries() && self.can_register;
        self.has_traces |= registers;
        let AcquireParams { plan, token, min_fence, waiter } = &self.order;
        let request = Request::Acquire(Acquire {
            name: plan.name.clone(),
            permits: plan.permits,
            token: token.clone(),
            ttl: plan.ttl,
            min_fence: *min_fence,
            waiter: registers.then_some(*waiter),
            patience: plan.fail_fast.then(|| self.give_up.since(now)),
            owner: Arc::clone(&plan.owner),
            adopt: self.ripe(now).map(|foreign_holder| foreign_holder.digest.clone()),
            early: plan.early,
            looks: self.looks(),
        });
        Step::Send(Call { number: self.sendings, request, until: self.patience(now) })
    }

    /// Whether to look for a fresh value first: a caller that waits knows that there was none a moment ago, and a store that
    /// did not answer in time may be too far away for two round trips.
    fn looks(&self) -> bool {
        self.only_tries() && self.sendings == 1 && self.order.plan.name.kind() == LockKind::Cached
    }

    /// Until when the answer to a sending is awaited. A try has no more than its timeout; a wait that ends
    /// meanwhile still takes the reply, since it may be the grant.
    fn patience(&self, sent: Moment) -> Moment {
        let resend = sent + RESEND_AFTER;
        if self.only_tries() { resend.min(self.give_up.max(sent + LEAST_PATIENCE)) } else { resend }
    }

    /// The foreign value in the way, if it was there long enough to be taken over.
    fn ripe(&self, now: Moment) -> Option<&ForeignHolder> {
        let grace = self.order.plan.adopt_after?;
        self.foreign_holder.as_ref().filter(|foreign_holder| now >= foreign_holder.since + grace)
    }

    fn granted(&mut self, now: Moment, sent: Moment, fence: Fence, ttl: Duration) {
        let deadline = deadline(sent, ttl);
        if now < deadline {
            let grant = Grant { fence, deadline, resent: !self.open.is_empty() };
            self.phase = Phase::Done(Some(Ending::Granted(grant)));
        } else {
            // Too late to be sure of: ask again. K holds our token, so this prolongs the lease.
            self.next_at = now;
            self.has_traces = true;
        }
    }

    fn obstructed(&mut self, now: Moment, sent: Moment, obstacle: Obstacle, registered: bool) {
        self.note_sighting(now, &obstacle);
        if self.only_tries() {
            self.end_with(Ending::Busy);
        } else if registered {
            let further = further_pause(obstacle.rank);
            let most = POLL_MOST + further;
            let pause = self.jitter.between(most - most / POLL_JITTER, most);
            // Those far back do not all ask when a lease may end, but do if the lock is free already.
            let free_at = obstacle.remaining.filter(|left| further.is_zero() || left.is_zero());
            let told = told_at(sent, now, self.order.plan.clock_stands);
            let free_at = free_at.map(|left| told + left.max(POLL_FLOOR));
            self.next_at = free_at.map_or(now + pause, |free_at| free_at.min(now + pause));
            if let (Some(foreign_holder), Some(grace)) = (&self.foreign_holder, self.order.plan.adopt_after) {
                self.next_at = self.next_at.min((foreign_holder.since + grace).max(now + POLL_FLOOR));
            }
        } else if self.order.plan.fail_fast && self.hopeless(now, &obstacle) {
            self.end_with(Ending::TimedOut);
        } else {
            self.wants_channel = !self.can_register;
            self.next_at = now;
        }
    }

    fn hopeless(&self, now: Moment, obstacle: &Obstacle) -> bool {
        obstacle.remaining.is_none_or(|remaining| remaining > self.give_up.since(now))
    }

    fn note_sighting(&mut self, now: Moment, obstacle: &Obstacle) {
        match &obstacle.unexpiring {
            None => self.foreign_holder = None,
            Some(digest) => {
                if self.foreign_holder.as_ref().is_none_or(|foreign_holder| foreign_holder.digest != *digest)
                {
                    self.foreign_holder = Some(ForeignHolder { digest: digest.clone(), since: now });
                }
            }
        }
    }

    fn failed(&mut self, now: Moment, sent: Moment, failure: Failure) {
        let since = *self.failing_since.get_or_insert(sent);
        let patience_over = (self.only_tries()
            && matches!(failure.kind, FailureKind::NotSent | FailureKind::Refused)
            && now >= self.started + RESEND_AFTER)
            || (self.order.plan.can_do_without && now >= since + RESEND_AFTER);
        if !failure.is_retryable() || patience_over {
            return self.end_with(Ending::Failed(failure));
        }
        // A lost reply has cost its time already: ask again at once, but not in a tight loop.
        self.next_at = now + self.jitter.backoff(self.failures);
        self.failures += 1;
        self.last_failure = Some(failure);
    }

    fn end_with(&mut self, ending: Ending) {
        // A store that does not answer would not answer a leave either: that is left to others.
        let silent = matches!(&ending, Ending::Failed(failure) if failure.is_retryable());
        self.phase = if self.may_have_left_traces() && !silent {
            Phase::Leaving(None, ending)
        } else {
            Phase::Done(Some(ending))
        };
    }

    fn end(&mut self, ending: Ending, now: Moment) -> Step<Acquired> {
        self.end_with(ending);
        self.step(now)
    }

    /// Whether an entry or a grant of ours may be in the store, or may still get there.
    fn may_have_left_traces(&self) -> bool {
        self.has_traces || !self.open.is_empty()
    }

    fn leave(&mut self, now: Moment) -> Step<Acquired> {
        let Phase::Leaving(sending, _) = &mut self.phase else {
            return Step::Wait { until: now, hints: false };
        };
        match sending {
            None => {
                self.sendings += 1;
                *sending = Some(Sending { number: self.sendings, at: now });
                let request = self.cleanup();
                Step::Send(Call { number: self.sendings, request, until: now + RESEND_AFTER })
            }
            Some(sending) if now < sending.at + RESEND_AFTER => {
                Step::Wait { until: sending.at + RESEND_AFTER, hints: false }
            }
            Some(_) => {
                // Others will go on trying: see `abandon`.
                self.left(false);
                self.step(now)
            }
        }
    }

    fn left(&mut self, surely: bool) {
        if let Phase::Leaving(_, ending) = std::mem::replace(&mut self.phase, Phase::Clean) {
            self.has_traces &= !surely;
            if surely {
                self.open.clear();
            }
            self.phase = Phase::Done(Some(ending));
        }
    }

    fn cleanup(&self) -> Request {
        Request::Leave(Leave {
            name: self.order.plan.name.clone(),
            token: self.order.token.clone(),
            foreign_share: self.order.plan.foreign_share,
        })
    }

    fn outcome(&mut self, ending: Ending) -> Result<Acquired, Error> {
        let LockPlan { name, wait, fail_fast, .. } = &self.order.plan;
        let result = match ending {
            Ending::Granted(grant) => {
                self.phase = Phase::Clean;
                Ok(Acquired::Granted(grant))
            }
            Ending::Busy => Ok(Acquired::Busy),
            Ending::Cached { value, asked } => Ok(Acquired::Cached { value, asked }),
            Ending::TimedOut => Err(Error::new(
                ErrorKind::LockTimeout,
                if name.kind() == LockKind::Cached {
                    format!("the value is being computed by another; waited {}", brief(*wait))
                } else if *fail_fast {
                    format!("the lock is {BY_ANOTHER}; a wait of {} does not suffice", brief(*wait))
                } else {
                    format!("the lock is {BY_ANOTHER}; waited {}", brief(*wait))
                },
            )),
            Ending::Failed(failure) => Err(failure.into()),
        };
        result.map_err(|error| error.during("acquire", name.as_str()))
    }
}

impl Machine for AcquireMachine {
    type Output = Acquired;

    fn subject(&self) -> Subject<'_> {
        let name = &self.order.plan.name;
        Subject { verb: "acquire", name: name.as_str(), kind: name.kind().name() }
    }

    fn told(outcome: &Acquired) -> &'static str {
        match outcome {
            Acquired::Granted(_) => "granted",
            Acquired::Cached { .. } => "cached",
            Acquired::Busy => "busy",
        }
    }

    fn step(&mut self, now: Moment) -> Step<Acquired> {
        match &mut self.phase {
            Phase::Asking => self.ask(now),
            Phase::Leaving(..) => self.leave(now),
            Phase::Done(ending) => match ending.take() {
                Some(ending) => Step::Done(self.outcome(ending)),
                None => Step::Wait { until: Moment::FAR, hints: false },
            },
            Phase::Clean => Step::Wait { until: Moment::FAR, hints: false },
        }
    }

    fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        if let Phase::Leaving(Some(sending), _) = &self.phase
            && sending.number == number
        {
            return self.left(result.is_ok());
        }
        let Some(index) = self.open.iter().position(|sending| sending.number == number) else { return };
        if number == self.sendings {
            self.in_flight = false;
        }
        let sent = self.open[index].at;
        if !matches!(&result, Err(failure) if failure.may_be_done()) {
            self.open.remove(index);
        }
        if !matches!(self.phase, Phase::Asking) {
            return;
        }
        if result.is_ok() {
            self.failures = 0;
            self.failing_since = None;
            self.last_failure = None;
        }
        match result {
            Ok(Reply::Acquire(AcquireReply::Granted { fence, ttl })) => self.granted(now, sent, fence, ttl),
            Ok(Reply::Acquire(AcquireReply::Waiting(obstacle))) => self.obstructed(now, sent, obstacle, true),
            Ok(Reply::Acquire(AcquireReply::Busy(obstacle))) => {
                if self.has_traces && self.order.plan.fail_fast && self.can_register {
                    self.end_with(Ending::TimedOut);
                } else {
                    self.obstructed(now, sent, obstacle, false);
                }
            }
            Ok(Reply::Acquire(AcquireReply::Cached(value))) => {
                // It left the line. What earlier copies may still bring is cleaned up afterwards: see `abandon`.
                self.has_traces = false;
                self.phase = Phase::Done(Some(Ending::Cached { value, asked: sent }));
            }
            Ok(Reply::Acquire(AcquireReply::OtherLimit(limit))) => {
                self.end_with(Ending::Failed(Failure::new(
                    FailureKind::Final(ErrorKind::InvalidArgument),
                    format!("the semaphore is in use with {limit} permits; all its users must agree"),
                )));
            }
            Ok(_) => self.end_with(Ending::Failed(Failure::new(
                FailureKind::Final(ErrorKind::Corrupt),
                "the store reports that this call has already ended",
            ))),
            Err(failure) => self.failed(now, sent, failure),
        }
    }

    fn hint(&mut self) {
        self.hinted = true;
    }

    fn listening(&mut self) {
        self.wants_channel = false;
        self.can_register = true;
    }

    fn abandon(&mut self) -> Option<Request> {
        if matches!(self.phase, Phase::Clean) {
            return None;
        }
        // A grant that nobody took is given back; so is whatever an unanswered sending may bring.
        let granted = matches!(self.phase, Phase::Done(Some(Ending::Granted(_))));
        let traces = granted || self.may_have_left_traces();
        self.phase = Phase::Clean;
        traces.then(|| self.cleanup())
    }
}
