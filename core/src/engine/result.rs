//! Asking what became of a task, with waiting: it is asked again when a hint says that the task has ended, and now and then,
//! since hints may be lost.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::name::{QueueName, TaskId};
use crate::engine::{Call, Jitter, LEAST_PATIENCE, Machine, RESEND_AFTER, Step, Subject};
use crate::protocol::{
    Failure, FailureKind, QueueReply, QueueRequest, QueueVerb, Reply, Request, ResultOf, ResultReply,
    Version, Waiter,
};

/// The pause before the next question; it doubles with each.
const POLL_FIRST: Duration = Duration::from_secs(1);
/// The longest one: what a lost hint may cost. Shorter than a waiter lives that does not ask.
const POLL_MOST: Duration = Duration::from_secs(5);
/// How much a pause is drawn shorter at most, in parts of itself.
const POLL_JITTER: u32 = 8;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ResultParams {
    /// Of which queue.
    pub queue: QueueName,
    /// Which task.
    pub id: TaskId,
    /// Of that enqueue or a later one.
    pub version: Version,
    /// How long to wait for its end; zero only asks.
    pub wait: Duration,
    /// How long a mere question may take when the store is slow.
    pub timeout: Duration,
    /// Who to hint.
    pub waiter: Waiter,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct ResultMachine {
    params: ResultParams,
    jitter: Jitter,
    give_up: Moment,
    sendings: u32,
    /// When the question on its way was sent.
    in_flight: Option<Moment>,
    next_at: Moment,
    hinted: bool,
    can_register: bool,
    wants_channel: bool,
    polls: u32,
    failures: u32,
    last_failure: Option<Failure>,
    outcome: Option<Result<ResultReply, Failure>>,
}

impl ResultMachine {
    /// A machine that has sent nothing yet. `listening`: whether the channel of hints is open already.
    pub fn new(params: ResultParams, now: Moment, listening: bool, jitter: Jitter) -> Self {
        let patience = if params.wait.is_zero() { params.timeout } else { params.wait };
        Self {
            params,
            jitter,
            give_up: now + patience,
            sendings: 0,
            in_flight: None,
            next_at: now,
            hinted: false,
            can_register: listening,
            wants_channel: false,
            polls: 0,
            failures: 0,
            last_failure: None,
            outcome: None,
        }
    }

    fn only_asks(&self) -> bool {
        self.params.wait.is_zero()
    }

    fn patience(&self, sent: Moment) -> Moment {
        (sent + RESEND_AFTER).min(self.give_up.max(sent + LEAST_PATIENCE))
    }

    fn ask(&mut self, now: Moment) -> Step<ResultReply> {
        self.hinted = false;
        self.sendings += 1;
        self.in_flight = Some(now);
        let registers = !self.only_asks() && self.can_register;
        let ResultParams { queue, id, version, waiter, .. } = &self.params;
        let verb = QueueVerb::Result(ResultOf {
            id: id.clone(),
            version: *version,
            waiter: registers.then_some(*waiter),
        });
        let request = Request::Queue(QueueRequest { queue: queue.clone(), verb });
        Step::Send(Call { number: self.sendings, request, until: self.patience(now) })
    }

    fn pending(&mut self, now: Moment) {
        if self.only_asks() {
            self.outcome = Some(Ok(ResultReply::Pending));
        } else if self.can_register {
            let most = POLL_FIRST.saturating_mul(1 << self.polls.min(3)).min(POLL_MOST);
            self.polls += 1;
            self.next_at = now + self.jitter.between(most - most / POLL_JITTER, most);
        } else {
            // Asked again, this time to be hinted.
            self.wants_channel = true;
            self.next_at = now;
        }
    }
}

impl Machine for ResultMachine {
    type Output = ResultReply;

    fn subject(&self) -> Subject<'_> {
        Subject { verb: "result", name: self.params.queue.as_str(), kind: "queue" }
    }

    fn told(outcome: &ResultReply) -> &'static str {
        match outcome {
            ResultReply::Done { .. } => "done",
            ResultReply::Pending => "pending",
            ResultReply::Dead { .. } => "dead",
            ResultReply::Gone => "gone",
        }
    }

    fn step(&mut self, now: Moment) -> Step<ResultReply> {
        if let Some(outcome) = self.outcome.take() {
            return Step::Done(outcome.map_err(|failure| {
                let Subject { verb, name, .. } = self.subject();
                Error::from(failure).during(verb, name)
            }));
        }
        if let Some(sent) = self.in_flight {
            let until = self.patience(sent);
            if now < until {
                return Step::Wait { until, hints: false };
            }
            self.in_flight = None;
            let silence = || Failure::new(FailureKind::Lost, "the store did not answer");
            self.last_failure.get_or_insert_with(silence);
        }
        if now >= self.give_up && self.sendings > 0 {
            self.outcome = Some(self.last_failure.take().map_or(Ok(ResultReply::Pending), Err));
            return self.step(now);
        }
        if self.wants_channel {
            return Step::Listen;
        }
        // A hint means that the task has ended, not that a store which failed works again.
        if now >= self.next_at || (self.hinted && self.last_failure.is_none()) {
            return self.ask(now);
        }
        Step::Wait { until: self.next_at.min(self.give_up), hints: true }
    }

    fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        if self.outcome.is_some() {
            return;
        }
        if number == self.sendings {
            self.in_flight = None;
        }
        match result {
            Ok(Reply::Queue(QueueReply::Result(reply))) => {
                (self.failures, self.last_failure) = (0, None);
                match reply {
                    ResultReply::Pending if number == self.sendings => self.pending(now),
                    ResultReply::Pending => {}
                    reply => self.outcome = Some(Ok(reply)),
                }
            }
            Ok(_) => {
                let kind = FailureKind::Final(crate::base::error::ErrorKind::Corrupt);
                self.outcome = Some(Err(Failure::new(kind, "unexpected reply type")));
            }
            Err(failure) if failure.is_retryable() => {
                self.next_at = now + self.jitter.backoff(self.failures);
                self.failures += 1;
                self.last_failure = Some(failure);
            }
            Err(failure) => self.outcome = Some(Err(failure)),
        }
    }

    fn hint(&mut self) {
        self.hinted = true;
    }

    fn listening(&mut self) {
        self.wants_channel = false;
        self.can_register = true;
    }

    /// A waiter that asks no more is forgotten by the store.
    fn abandon(&mut self) -> Option<Request> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::base::name::Prefixes;
    use crate::protocol::ClientId;

    const WAITER: Waiter = Waiter { client: ClientId(1), seq: 9 };

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn machine(wait_ms: u64, listening: bool) -> ResultMachine {
        let params = ResultParams {
            queue: Prefixes::parse("Lock:", "Queue:").unwrap().queue_name("q").unwrap(),
            id: TaskId::parse("t").unwrap(),
            version: Version::new(7),
            wait: Duration::from_millis(wait_ms),
            timeout: Duration::from_secs(5),
            waiter: WAITER,
        };
        ResultMachine::new(params, at(0), listening, Jitter::seeded(1))
    }

    fn asked(machine: &mut ResultMachine, now: Moment) -> (u32, ResultOf) {
        match machine.step(now) {
            Step::Send(Call { number, request: Request::Queue(request), .. }) => match request.verb {
                QueueVerb::Result(asked) => (number, asked),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn answer(reply: ResultReply) -> Result<Reply, Failure> {
        Ok(Reply::Queue(QueueReply::Result(reply)))
    }

    fn lost() -> Result<Reply, Failure> {
        Err(Failure::new(FailureKind::Lost, "no answer"))
    }

    fn waits_until(machine: &mut ResultMachine, now: Moment) -> Moment {
        match machine.step(now) {
            Step::Wait { until, hints: true } => until,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_only_asks_is_never_registered() {
        let mut machine = machine(0, true);
        let (number, asked) = asked(&mut machine, at(0));
        assert_eq!((asked.version, asked.waiter), (Version::new(7), None));
        machine.reply(at(1), number, answer(ResultReply::Pending));
        assert!(matches!(machine.step(at(1)), Step::Done(Ok(ResultReply::Pending))));
    }

    #[test]
    fn who_waits_listens_first_and_asks_again_when_hinted() {
        let mut machine = machine(60_000, false);
        let (number, first) = asked(&mut machine, at(0));
        assert_eq!(first.waiter, None);
        machine.reply(at(1), number, answer(ResultReply::Pending));
        assert!(matches!(machine.step(at(1)), Step::Listen));
        machine.listening();
        let (number, second) = asked(&mut machine, at(2));
        assert_eq!(second.waiter, Some(WAITER));
        machine.reply(at(3), number, answer(ResultReply::Pending));
        assert!(waits_until(&mut machine, at(3)) > at(800));
        machine.hint();
        let (number, _) = asked(&mut machine, at(50));
        let done = ResultReply::Done { version: Version::new(8), result: (*b"r").into() };
        machine.reply(at(51), number, answer(done.clone()));
        assert!(matches!(machine.step(at(51)), Step::Done(Ok(reply)) if reply == done));
    }

    #[test]
    fn a_lost_hint_costs_a_pause_which_is_shorter_than_a_waiter_lives() {
        let mut machine = machine(600_000, true);
        let mut now = at(0);
        for _ in 0..10 {
            let (number, _) = asked(&mut machine, now);
            machine.reply(now, number, answer(ResultReply::Pending));
            let until = waits_until(&mut machine, now);
            assert!(until.since(now) <= POLL_MOST && POLL_MOST < crate::protocol::IDLE_LIVE);
            now = until;
        }
        assert!(now > at(30_000), "it asks ever more seldom");
    }

    #[test]
    fn a_wait_that_is_over_says_that_it_is_pending_and_that_the_store_fails_if_it_does() {
        let mut pending = machine(3_000, true);
        let (number, _) = asked(&mut pending, at(0));
        pending.reply(at(1), number, answer(ResultReply::Pending));
        assert!(matches!(pending.step(at(3_000)), Step::Done(Ok(ResultReply::Pending))));

        let mut failing = machine(3_000, true);
        let (number, _) = asked(&mut failing, at(0));
        failing.reply(at(1), number, lost());
        failing.hint();
        assert!(waits_until(&mut failing, at(1)) > at(1), "it backs off");
        let Step::Done(Err(error)) = failing.step(at(3_000)) else { panic!("it has ended") };
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    }

    #[test]
    fn an_unanswered_question_is_sent_again_and_a_late_answer_still_counts() {
        let mut machine = machine(60_000, true);
        let (first, _) = asked(&mut machine, at(0));
        assert!(matches!(machine.step(at(10)), Step::Wait { hints: false, .. }));
        let (second, _) = asked(&mut machine, at(1_000));
        machine.reply(at(1_001), first, answer(ResultReply::Pending));
        assert!(
            matches!(machine.step(at(1_002)), Step::Wait { hints: false, .. }),
            "the second is on its way"
        );
        machine.reply(at(1_003), first, answer(ResultReply::Gone));
        machine.reply(at(1_004), second, answer(ResultReply::Pending));
        assert!(matches!(machine.step(at(1_005)), Step::Done(Ok(ResultReply::Gone))));
    }
}
