//! Claiming tasks, with waiting.
//!
//! The truth rule holds here too: a claim begins only by the reply to a request that was sent, and its
//! deadline counts from when that request was sent. A request whose reply is lost is sent again under the
//! same call id, and the store gives the same tasks again.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::base::name::QueueName;
use crate::engine::schedule::FiredSchedule;
use crate::engine::{Call, Jitter, LEAST_PATIENCE, Machine, RESEND_AFTER, Step, Subject, deadline, told_at};
use crate::protocol::{
    Abandon, CallId, Claim, ClaimReply, ClaimedTask, Failure, FailureKind, QueueReply, QueueRequest,
    QueueVerb, Reply, Request, Settle, Settled, Settlement, Verdict,
};

mod ending;
mod firing;
mod params;
mod stepping;
#[cfg(test)]
mod tests;

use ending::put_back;
use firing::Firing;
pub use params::{ClaimParams, Claimed, ClaimedOne};
use stepping::Stepping;

/// Longest pause of the first waiter in line: what a lost hint may cost. Each place further back waits as
/// much longer, so that many idle consumers ask little more than one does.
const POLL_FIRST: Duration = Duration::from_secs(1);
/// Longest pause of any waiter.
const POLL_MOST: Duration = Duration::from_secs(5);
/// How much a pause is drawn shorter at most, in parts of itself.
const POLL_JITTER: u32 = 8;
/// Waiters in line look at a due task one after the other, this far apart: the first one takes it.
const RANK_STEP: Duration = Duration::from_millis(3);
/// The shortest pause between two polls, also when the store replies "at once" and has nothing.
const POLL_FLOOR: Duration = Duration::from_millis(1);

/// See the module's documentation.
#[derive(Debug)]
pub struct ClaimMachine {
    order: ClaimParams,
    jitter: Jitter,
    started: Moment,
    give_up: Moment,
    sendings: u32,
    /// The call on its way, or to be sent again.
    open: Option<OpenCall>,
    in_flight: bool,
    /// The queue to ask next, and the earliest time that the ones asked in this round gave.
    at: usize,
    round_until: Option<Moment>,
    /// Whether `round_until` is when something becomes due, not just a pause.
    exact: bool,
    next_at: Moment,
    hinted: bool,
    /// Whether this round was begun by a hint: the store has chosen us, who were the first in line.
    chosen: bool,
    can_register: bool,
    wants_channel: bool,
    /// Queues in whose idle set our waiter is, or may be.
    registered: Vec<bool>,
    settled: Option<Vec<Settled>>,
    /// Tasks of the queue `at` whose leases were over when they came: the next call puts them back.
    late: Vec<ClaimedOne>,
    /// Whether a queue of the last round was paused.
    paused: bool,
    failures: u32,
    last_failure: Option<Failure>,
    /// Since when the store has not answered.
    failing_since: Option<Moment>,
    /// Schedules that are being fired, and those that were.
    firing: Option<Firing>,
    fired: Vec<(QueueName, FiredSchedule)>,
    /// Flows that are being stepped.
    stepping: Option<Stepping>,
    phase: Phase,
    /// Requests that clean up, to be sent by whoever is left.
    leftovers: Vec<Request>,
    /// A call of the slot was given up unanswered: it may still be carried out.
    spoiled: bool,
}

/// One call, perhaps sent several times.
#[derive(Debug)]
struct OpenCall {
    id: CallId,
    queue: usize,
    /// Its sendings and when they were sent, but for those that surely did nothing.
    sent: Vec<(u32, Moment)>,
    request: Request,
}

#[derive(Debug)]
enum Phase {
    Asking,
    /// Ending without tasks: leftovers are being sent, the newest under this number.
    Leaving(Option<(u32, Moment)>, Ending),
    Done(Option<Ending>),
    Clean,
}

#[derive(Debug)]
enum Ending {
    Tasks(Vec<ClaimedOne>),
    /// The flag: whether settlements may have been carried out although no reply came.
    Failed(Failure, bool),
}

impl ClaimMachine {
    /// A machine that has sent nothing yet. `listening`: whether the channel of hints is open already.
    pub fn new(order: ClaimParams, now: Moment, listening: bool, jitter: Jitter) -> Self {
        let patience = if order.wait.is_zero() { order.timeout } else { order.wait };
        Self {
            jitter,
            started: now,
            give_up: now + patience,
            sendings: 0,
            open: None,
            in_flight: false,
            at: 0,
            round_until: None,
            exact: false,
            next_at: now,
            hinted: false,
            chosen: false,
            can_register: listening,
            wants_channel: false,
            registered: vec![false; order.queues.len()],
            settled: None,
            late: Vec::new(),
            paused: false,
            failures: 0,
            last_failure: None,
            failing_since: None,
            firing: None,
            fired: Vec::new(),
            stepping: None,
            phase: Phase::Asking,
            leftovers: Vec::new(),
            spoiled: false,
            order,
        }
    }

    /// The slot's last number, if it may be used for other calls: none of its calls is unanswered.
    pub fn free_slot(&self) -> Option<CallId> {
        (self.open.is_none() && !self.spoiled).then_some(self.order.slot)
    }

    fn only_tries(&self) -> bool {
        self.order.wait.is_zero()
    }

    fn ask(&mut self, now: Moment) -> Step<Claimed> {
        if let Some(step) = self.fire(now) {
            return step;
        }
        if let Some(step) = self.step_flows(now) {
            return step;
        }
        if self.in_flight {
            match self.open.as_ref().and_then(|open| open.sent.last()) {
                Some((_, sent)) if now < self.patience(*sent) => {
                    return Step::Wait { until: self.patience(*sent), hints: false };
                }
                _ => self.in_flight = false,
            }
        }
        // A round that was begun is finished, as long as it goes on.
        let between_rounds = self.at == 0 || self.open.is_some() || !self.late.is_empty();
        if now >= self.give_up && self.sendings > 0 && between_rounds {
            match self.last_failure.take() {
                Some(failure) => self.fail(failure),
                None if self.open.is_some() => {
                    self.fail(Failure::new(FailureKind::Lost, "the store did not answer"));
                }
                None => self.end_with(Vec::new()),
            }
            return self.step(now);
        }
        if self.wants_channel {
            return Step::Listen;
        }
        // A hint means that there is something to claim, not that a store which failed works again.
        if now >= self.next_at || (self.hinted && self.open.is_none()) {
            return self.send(now);
        }
        Step::Wait { until: self.next_at.min(self.give_up), hints: true }
    }

    /// Until when the answer to a sending is awaited. A wait that ends meanwhile still takes the reply,
    /// since it may bring tasks.
    fn patience(&self, sent: Moment) -> Moment {
        let resend = sent + RESEND_AFTER;
        if self.only_tries() { resend.min(self.give_up.max(sent + LEAST_PATIENCE)) } else { resend }
    }

    fn send(&mut self, now: Moment) -> Step<Claimed> {
        self.sendings += 1;
        self.in_flight = true;
        let number = self.sendings;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(),
        };
        open.sent.push((number, now));
        let request = open.request.clone();
        self.open = Some(open);
        Step::Send(Call { number, request, until: self.patience(now) })
    }

    /// A new call to the queue whose turn it is.
    fn begin(&mut self) -> OpenCall {
        if self.at == 0 {
            // A hint that came before is answered by this round; one that comes later asks for another.
            self.chosen = std::mem::take(&mut self.hinted);
            self.paused = false;
            self.round_until = None;
        }
        let registers = !self.only_tries() && self.can_register;
        self.registered[self.at] |= registers;
        self.order.slot.number += 1;
        let id = self.order.slot;
        let claim = Claim {
            call: id,
            max: self.order.max,
            lease: self.order.lease,
            waiter: registers.then_some(self.order.waiter),
            consumer: Arc::clone(&self.order.consumer),
        };
        let verb = match &self.order.settle {
            _ if !self.late.is_empty() => QueueVerb::SettleAndClaim(put_back(&self.late), claim),
            Some(settle) if self.settled.is_none() && self.at == 0 => {
                QueueVerb::SettleAndClaim(settle.clone(), claim)
            }
            _ => QueueVerb::Claim(claim),
        };
        let request = Request::Queue(QueueRequest { queue: self.order.queues[self.at].clone(), verb });
        OpenCall { id, queue: self.at, sent: Vec::new(), request }
    }

    fn answered(&mut self, now: Moment, sent: Moment, queue: usize, reply: ClaimReply) {
        match reply {
            ClaimReply::Claimed(tasks) => self.claimed(now, sent, queue, tasks),
            ClaimReply::Empty { next_due, rank, slot } => {
                let told = told_at(sent, now, self.order.clock_stands);
                // By asking it has come to the end of the line; but nobody else was told when to look.
                let place = if self.chosen { 0 } else { rank };
                let next_due = next_due.map(|due| told + due.max(POLL_FLOOR) + RANK_STEP * place);
                self.found_nothing(now, next_due, rank);
                // After a slow answer the time counts from when it was asked for, and the slot may not be due by then.
                self.look_ahead(sent, slot.filter(|_| rank == 0 && told == now));
            }
            ClaimReply::Paused { rank } => {
                self.paused = true;
                self.found_nothing(now, None, rank);
            }
            ClaimReply::SchedulesDue(reply) => self.begin_firing(sent, queue, *reply),
            ClaimReply::FlowsDue(reply) => self.begin_stepping(sent, queue, *reply),
        }
    }

    fn claimed_ones(&self, sent: Moment, queue: usize, tasks: Vec<ClaimedTask>) -> Vec<ClaimedOne> {
        let name = &self.order.queues[queue];
        let claimed = |task: ClaimedTask| ClaimedOne {
            queue: name.clone(),
            deadline: deadline(sent, task.remaining),
            task,
        };
        tasks.into_iter().map(claimed).collect()
    }

    fn claimed(&mut self, now: Moment, sent: Moment, queue: usize, tasks: Vec<ClaimedTask>) {
        let tasks = self.claimed_ones(sent, queue, tasks);
        self.registered[queue] = false;
        if tasks.iter().all(|task| now < task.deadline) {
            self.end_with(tasks);
            return;
        }
        // Too late to be sure of them: they go back, and are asked for anew, both in one step. Otherwise the
        // end of their leases would count as a failed attempt.
        self.late = tasks;
        self.at = queue;
        self.next_at = now;
    }

    fn found_nothing(&mut self, now: Moment, next_due: Option<Moment>, rank: u32) {
        let most = POLL_FIRST.saturating_mul(rank.saturating_add(1)).min(POLL_MOST);
        let pause = self.jitter.between(most - most / POLL_JITTER, most);
        let due = next_due.filter(|due| *due < now + pause);
        let until = due.unwrap_or(now + pause);
        if self.round_until.is_none_or(|known| until < known) {
            self.round_until = Some(until);
            self.exact = due.is_some();
        }
        self.next_at = now;
        self.at += 1;
        if self.at < self.order.queues.len() {
            return;
        }
        self.at = 0;
        if self.only_tries() {
            self.end_with(Vec::new());
        } else if self.can_register {
            self.next_at = self.round_until.unwrap_or(now);
        } else {
            // Asked again, this time to be hinted.
            self.wants_channel = true;
        }
    }

    fn failed(&mut self, now: Moment, failure: Failure) {
        let since = *self.failing_since.get_or_insert(now);
        let patience_over = match self.only_tries() {
            true => {
                matches!(failure.kind, FailureKind::NotSent | FailureKind::Refused)
                    && now >= self.started + RESEND_AFTER
            }
            false => !self.order.patient && now >= since + self.order.timeout,
        };
        if !failure.is_retryable() || patience_over {
            return self.fail(failure);
        }
        self.next_at = now + self.jitter.backoff(self.failures);
        self.failures += 1;
        self.last_failure = Some(failure);
    }
}

impl Machine for ClaimMachine {
    type Output = Claimed;

    fn subject(&self) -> Subject<'_> {
        let verb = if self.order.settle.is_some() { "settle_and_claim" } else { "claim" };
        Subject { verb, name: self.order.queues.first().map_or("", |queue| queue.as_str()), kind: "queue" }
    }

    fn told(outcome: &Claimed) -> &'static str {
        if outcome.tasks.is_empty() { "empty" } else { "claimed" }
    }

    fn step(&mut self, now: Moment) -> Step<Claimed> {
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
        if let Phase::Leaving(sending, _) = &mut self.phase {
            if sending.is_some_and(|(sent, _)| sent == number) {
                *sending = None;
                match result {
                    Ok(_) => drop(self.leftovers.pop()),
                    Err(_) => self.leave_the_rest(),
                }
            }
            return;
        }
        if let Some(firing) = self.firing_of(number) {
            return firing.replied(result);
        }
        if let Some(stepping) = self.stepping_of(number) {
            return stepping.replied(result);
        }
        let Some(open) = &mut self.open else { return };
        let Some(index) = open.sent.iter().position(|(sending, _)| *sending == number) else { return };
        let (queue, (_, sent)) = (open.queue, open.sent[index]);
        self.in_flight &= index + 1 != open.sent.len();
        if matches!(&result, Err(failure) if !failure.may_be_done()) {
            open.sent.remove(index);
        }
        let result = match result {
            Ok(Reply::Queue(QueueReply::Claim(reply))) => Ok(reply),
            Ok(Reply::Queue(QueueReply::SettleAndClaim(settled, reply))) => {
                if self.late.is_empty() {
                    self.settled = Some(settled);
                }
                Ok(reply)
            }
            Ok(_) => Err(Failure::new(
                FailureKind::Final(ErrorKind::Corrupt),
                "the store says that this call was followed by another already",
            )),
            Err(failure) => Err(failure),
        };
        match result {
            Ok(reply) => {
                self.open = None;
                self.in_flight = false;
                self.failures = 0;
                self.last_failure = None;
                self.failing_since = None;
                self.late.clear();
                self.answered(now, sent, queue, reply);
            }
            Err(failure) => self.failed(now, failure),
        }
    }

    fn hint(&mut self) {
        self.hinted = true;
    }

    fn listening(&mut self) {
        self.wants_channel = false;
        self.can_register = true;
    }

    fn is_exact(&self) -> bool {
        self.exact
    }

    fn abandon(&mut self) -> Option<Request> {
        if let Phase::Done(Some(Ending::Tasks(tasks))) = &self.phase {
            // Nobody took them.
            self.late.clone_from(tasks);
        }
        self.give_up_firing();
        self.give_up_stepping();
        if !matches!(self.phase, Phase::Clean) {
            self.clean_up();
            self.phase = Phase::Clean;
        }
        self.leftovers.pop()
    }
}
