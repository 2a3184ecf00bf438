//! Asking something of a queue, with waiting: what has no answer yet is asked again when a hint says that there may be one,
//! and now and then, since hints may be lost.

use std::fmt;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::base::name::QueueName;
use crate::engine::{Call, Jitter, LEAST_PATIENCE, Machine, RESEND_AFTER, Step, Subject};
use crate::protocol::{Failure, FailureKind, QueueReply, QueueRequest, QueueVerb, Reply, Request, Waiter};

/// The pause before the next question; it doubles with each.
const POLL_FIRST: Duration = Duration::from_secs(1);
/// The longest one: what a lost hint may cost. Shorter than a waiter lives that does not ask.
const POLL_MOST: Duration = Duration::from_secs(5);
/// How much a pause is drawn shorter at most, in parts of itself.
const POLL_JITTER: u32 = 8;

/// What is asked.
pub trait Question: fmt::Debug {
    /// What there may be in the end.
    type Answer: fmt::Debug;

    /// The verb's name.
    const VERB: &'static str;

    /// The verb, by which the store may have somebody to hint.
    fn verb(&self, waiter: Option<Waiter>) -> QueueVerb;

    /// What a reply says, `None` within if there is nothing yet; `None` if it is of another verb.
    fn read(&mut self, reply: QueueReply) -> Option<Result<Option<Self::Answer>, Failure>>;

    /// What there is for who waits no longer.
    fn nothing(&self) -> Self::Answer;

    /// The stable name of an answer.
    fn told(answer: &Self::Answer) -> &'static str;
}

/// Who asks, and for how long.
#[derive(Clone, Debug)]
pub struct AskParams {
    /// Which queue is asked.
    pub queue: QueueName,
    /// How long to wait for an answer; zero only asks.
    pub wait: Duration,
    /// How long a mere question may take when the store is slow.
    pub timeout: Duration,
    /// Who to hint.
    pub waiter: Waiter,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct AskMachine<Q: Question> {
    question: Q,
    params: AskParams,
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
    outcome: Option<Result<Q::Answer, Failure>>,
}

impl<Q: Question> AskMachine<Q> {
    /// A machine that has sent nothing yet. `listening`: whether the channel of hints is open already.
    pub fn new(question: Q, params: AskParams, now: Moment, listening: bool, jitter: Jitter) -> Self {
        let patience = if params.wait.is_zero() { params.timeout } else { params.wait };
        Self {
            question,
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

    /// Until when the answer to a question is awaited. A wait that ends meanwhile still takes the answer: it may be shorter than
    /// the way to the store.
    fn patience(&self, sent: Moment) -> Moment {
        let resend = sent + RESEND_AFTER;
        if self.only_asks() { resend.min(self.give_up.max(sent + LEAST_PATIENCE)) } else { resend }
    }

    fn ask(&mut self, now: Moment) -> Step<Q::Answer> {
        self.hinted = false;
        self.sendings += 1;
        self.in_flight = Some(now);
        let registers = !self.only_asks() && self.can_register;
        let verb = self.question.verb(registers.then_some(self.params.waiter));
        let request = Request::Queue(QueueRequest { queue: self.params.queue.clone(), verb });
        Step::Send(Call { number: self.sendings, request, until: self.patience(now) })
    }

    fn pending(&mut self, now: Moment) {
        if self.only_asks() {
            self.outcome = Some(Ok(self.question.nothing()));
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

impl<Q: Question> Machine for AskMachine<Q> {
    type Output = Q::Answer;

    fn subject(&self) -> Subject<'_> {
        Subject { verb: Q::VERB, name: self.params.queue.as_str(), kind: "queue" }
    }

    fn told(outcome: &Q::Answer) -> &'static str {
        Q::told(outcome)
    }

    fn step(&mut self, now: Moment) -> Step<Q::Answer> {
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
            let nothing = || Ok(self.question.nothing());
            self.outcome = Some(self.last_failure.take().map_or_else(nothing, Err));
            return self.step(now);
        }
        if self.wants_channel {
            return Step::Listen;
        }
        // A hint means that there may be an answer, not that a store which failed works again.
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
            Ok(reply) => {
                (self.failures, self.last_failure) = (0, None);
                let read = match reply {
                    Reply::Queue(reply) => self.question.read(reply),
                    _ => None,
                };
                let corrupt =
                    || Failure::new(FailureKind::Final(ErrorKind::Corrupt), "unexpected reply type");
                match read.unwrap_or_else(|| Err(corrupt())) {
                    Ok(Some(answer)) => self.outcome = Some(Ok(answer)),
                    Ok(None) if number == self.sendings => self.pending(now),
                    Ok(None) => {}
                    Err(failure) => self.outcome = Some(Err(failure)),
                }
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
    use crate::base::name::{Prefixes, TaskId};
    use crate::engine::events::{Happenings, WhatHappens};
    use crate::engine::result::WhatBecame;
    use crate::protocol::{ClientId, EventRecord, EventsReply, Happened, ResultOf, ResultReply, Version};

    const WAITER: Waiter = Waiter { client: ClientId(1), seq: 9 };

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn asks<Q: Question>(question: Q, wait_ms: u64, listening: bool) -> AskMachine<Q> {
        let params = AskParams {
            queue: Prefixes::parse("Lock:", "Queue:").unwrap().queue_name("q").unwrap(),
            wait: Duration::from_millis(wait_ms),
            timeout: Duration::from_secs(5),
            waiter: WAITER,
        };
        AskMachine::new(question, params, at(0), listening, Jitter::seeded(1))
    }

    fn machine(wait_ms: u64, listening: bool) -> AskMachine<WhatBecame> {
        asks(WhatBecame { id: TaskId::parse("t").unwrap(), version: Version::new(7) }, wait_ms, listening)
    }

    fn asked(machine: &mut AskMachine<WhatBecame>, now: Moment) -> (u32, ResultOf) {
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

    fn waits_until<Q: Question>(machine: &mut AskMachine<Q>, now: Moment) -> Moment {
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
    fn a_wait_that_is_shorter_than_the_way_to_the_store_has_its_answer() {
        let mut slow = machine(1, true);
        let (number, _) = asked(&mut slow, at(0));
        assert!(matches!(slow.step(at(200)), Step::Wait { until, hints: false } if until == at(1_000)));
        slow.reply(at(300), number, answer(ResultReply::Pending));
        assert!(matches!(slow.step(at(300)), Step::Done(Ok(ResultReply::Pending))));

        let mut silent = machine(1, true);
        asked(&mut silent, at(0));
        let Step::Done(Err(error)) = silent.step(at(1_000)) else { panic!("it has ended") };
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

    fn asked_after(machine: &mut AskMachine<WhatHappens>, now: Moment) -> (u32, Option<u64>) {
        match machine.step(now) {
            Step::Send(Call { number, request: Request::Queue(request), .. }) => match request.verb {
                QueueVerb::Events(asked) => (number, asked.after),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn found(last: u64, numbers: &[u64]) -> Result<Reply, Failure> {
        let event = |number: &u64| EventRecord {
            number: *number,
            at: 1,
            what: Happened::Done,
            id: TaskId::parse("t").unwrap(),
            version: Version::new(1),
            attempt: 1,
            reason: "".into(),
        };
        let events = numbers.iter().map(event).collect();
        Ok(Reply::Queue(QueueReply::Events(EventsReply::Found { events, last })))
    }

    fn told(machine: &mut AskMachine<WhatHappens>, now: Moment) -> Happenings {
        match machine.step(now) {
            Step::Done(Ok(happenings)) => happenings,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_asks_for_events_from_now_on_is_told_of_what_comes_after_the_last() {
        let mut machine = asks(WhatHappens { after: None }, 60_000, true);
        let (number, after) = asked_after(&mut machine, at(0));
        assert_eq!(after, None);
        machine.reply(at(1), number, found(40, &[]));
        waits_until(&mut machine, at(1));
        machine.hint();
        let (number, after) = asked_after(&mut machine, at(2));
        assert_eq!(after, Some(40));
        machine.reply(at(3), number, found(42, &[41, 42]));
        let happenings = told(&mut machine, at(3));
        assert_eq!((happenings.events.len(), happenings.missed, happenings.cursor), (2, false, 42));
    }

    #[test]
    fn who_waits_in_vain_learns_where_to_go_on() {
        let mut machine = asks(WhatHappens { after: None }, 1_000, true);
        let (number, _) = asked_after(&mut machine, at(0));
        machine.reply(at(1), number, found(40, &[]));
        assert_eq!(
            told(&mut machine, at(1_000)),
            Happenings { events: Vec::new(), missed: false, cursor: 40 }
        );
    }

    #[test]
    fn a_gap_is_told_but_not_to_who_asks_from_the_oldest() {
        for (after, missed) in [(40, false), (39, true), (0, false), (90, true), (u64::MAX, true)] {
            let mut machine = asks(WhatHappens { after: Some(after) }, 0, true);
            let (number, _) = asked_after(&mut machine, at(0));
            machine.reply(at(1), number, found(42, &[41, 42]));
            assert_eq!(told(&mut machine, at(1)).missed, missed, "{after}");
        }
    }

    #[test]
    fn a_queue_that_keeps_no_events_is_an_error() {
        let mut machine = asks(WhatHappens { after: None }, 60_000, true);
        let (number, _) = asked_after(&mut machine, at(0));
        machine.reply(at(1), number, Ok(Reply::Queue(QueueReply::Events(EventsReply::Off))));
        let Step::Done(Err(error)) = machine.step(at(1)) else { panic!("it has ended") };
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
