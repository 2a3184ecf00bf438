//! Taking of a limiter: one request, and then a wait for what it has reserved.
//!
//! The store says how long after its answer a reservation begins; here that counts from when the answer came, and a little
//! more, so that nobody begins before the store's time. Nobody asks again, and nobody is told: the time is certain.

use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::engine::call::{Answer, CallMachine};
use crate::engine::{Jitter, Machine, Step, Subject};
use crate::protocol::{Failure, GiveBack, Reply, Request, Take, TakeReply};

/// Of a wait so much is added to it: two clocks that are both being corrected differ by no more than a thousandth.
const DRIFT: u32 = 1_000;

/// How a take ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeEnd {
    /// It may go on; whether it has waited.
    Allowed {
        /// By a reservation that began later.
        waited: bool,
    },
    /// Nothing was taken. So long after the answer a try would succeed, if nobody else took any meanwhile.
    RetryAfter(Duration),
}

/// See the module's documentation.
#[derive(Debug)]
pub struct TakeMachine {
    call: CallMachine,
    /// What is sent if the reservation is not used.
    give_back: Option<GiveBack>,
    /// Whether the clock stands still until a test moves it: it may have been moved for the last time while the answer was
    /// on its way, and is the store's own.
    clock_stands: bool,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Asking,
    Waiting(Moment),
    /// It was allowed, or nothing was taken.
    Over,
}

impl TakeMachine {
    /// Asks until it is answered or `give_up` has come; then it waits for as long as it was told.
    pub fn new(take: Take, now: Moment, give_up: Moment, clock_stands: bool, jitter: Jitter) -> Self {
        let Take { name, rule, count, token, .. } = &take;
        let give_back =
            token.clone().map(|token| GiveBack { name: name.clone(), rule: *rule, count: *count, token });
        let call = CallMachine::new(Request::Take(take), now, give_up, jitter);
        Self { call, give_back, clock_stands, phase: Phase::Asking }
    }

    fn answered(&mut self, answer: &Answer, now: Moment) -> Step<TakeEnd> {
        match answer.reply {
            Reply::Take(TakeReply::Taken(begins)) if begins.is_zero() => {
                self.end(TakeEnd::Allowed { waited: false })
            }
            Reply::Take(TakeReply::Taken(begins)) => {
                self.phase = Phase::Waiting(if self.clock_stands {
                    answer.sent + begins
                } else {
                    answer.received + begins + begins / DRIFT
                });
                self.step(now)
            }
            Reply::Take(TakeReply::Refused(retry_after)) => self.end(TakeEnd::RetryAfter(retry_after)),
            _ => {
                let Subject { verb, name, .. } = self.subject();
                Step::Done(Err(Error::unexpected_reply().during(verb, name)))
            }
        }
    }

    fn end(&mut self, end: TakeEnd) -> Step<TakeEnd> {
        self.phase = Phase::Over;
        Step::Done(Ok(end))
    }
}

impl Machine for TakeMachine {
    type Output = TakeEnd;

    fn subject(&self) -> Subject<'_> {
        self.call.subject()
    }

    fn told(outcome: &TakeEnd) -> &'static str {
        match outcome {
            TakeEnd::Allowed { .. } => "allowed",
            TakeEnd::RetryAfter(_) => "refused",
        }
    }

    fn step(&mut self, now: Moment) -> Step<TakeEnd> {
        match self.phase {
            Phase::Waiting(until) if now < until => Step::Wait { until, hints: false },
            Phase::Waiting(_) => self.end(TakeEnd::Allowed { waited: true }),
            Phase::Asking | Phase::Over => match self.call.step(now) {
                Step::Done(Ok(answer)) => self.answered(&answer, now),
                Step::Done(Err(error)) => Step::Done(Err(error)),
                Step::Send(call) => Step::Send(call),
                Step::Listen => Step::Listen,
                Step::Wait { until, hints } => Step::Wait { until, hints },
            },
        }
    }

    fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        self.call.reply(now, number, result);
    }

    /// What was reserved and not used is given back. It may be too late: then it stays unused.
    fn abandon(&mut self) -> Option<Request> {
        let is_open = !matches!(std::mem::replace(&mut self.phase, Phase::Over), Phase::Over);
        let give_back = self.give_back.take().filter(|_| is_open && self.call.may_be_done());
        give_back.map(Request::GiveBack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::base::name::Prefixes;
    use crate::base::token::Token;
    use crate::engine::RESEND_AFTER;
    use crate::protocol::{FailureKind, LimitKind, Rule};

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn machine(wait_ms: u64, clock_stands: bool) -> TakeMachine {
        let take = Take {
            name: Prefixes::parse("Lock:", "Queue:").unwrap().limiter_name("api").unwrap(),
            rule: Rule { kind: LimitKind::Gcra, most: 1, per: 1_000_000, burst: 3 },
            count: 2,
            wait_most: Duration::from_millis(wait_ms),
            token: (wait_ms > 0).then(|| Token::from_bits(7)),
        };
        TakeMachine::new(take, at(0), at(5_000), clock_stands, Jitter::seeded(1))
    }

    fn sent(machine: &mut TakeMachine, now: Moment) -> u32 {
        match machine.step(now) {
            Step::Send(call) => call.number,
            other => panic!("expected a request, got {other:?}"),
        }
    }

    fn answered(machine: &mut TakeMachine, sent_at: u64, received: u64, reply: TakeReply) {
        let number = sent(machine, at(sent_at));
        machine.reply(at(received), number, Ok(Reply::Take(reply)));
    }

    fn taken(millis: u64) -> TakeReply {
        TakeReply::Taken(Duration::from_millis(millis))
    }

    fn waits_until(machine: &mut TakeMachine, now: Moment) -> Moment {
        match machine.step(now) {
            Step::Wait { until, hints: false } => until,
            other => panic!("expected a wait, got {other:?}"),
        }
    }

    fn done(machine: &mut TakeMachine, now: Moment) -> Result<TakeEnd, Error> {
        match machine.step(now) {
            Step::Done(outcome) => outcome,
            other => panic!("expected the end, got {other:?}"),
        }
    }

    fn lost() -> Result<Reply, Failure> {
        Err(Failure::new(FailureKind::Lost, "no answer"))
    }

    #[test]
    fn what_is_allowed_at_once_is_over_and_leaves_nothing() {
        let mut machine = machine(1_000, false);
        answered(&mut machine, 0, 3, taken(0));
        assert_eq!(done(&mut machine, at(3)).unwrap(), TakeEnd::Allowed { waited: false });
        assert!(machine.abandon().is_none());
    }

    #[test]
    fn a_reservation_begins_after_its_time_counted_from_the_answer() {
        let mut machine = machine(60_000, false);
        answered(&mut machine, 0, 900, taken(2_000));
        let begins = at(900) + Duration::from_millis(2_002);
        assert_eq!(waits_until(&mut machine, at(900)), begins);
        assert_eq!(waits_until(&mut machine, begins - Duration::from_nanos(1)), begins);
        assert_eq!(done(&mut machine, begins).unwrap(), TakeEnd::Allowed { waited: true });
        assert!(machine.abandon().is_none());
    }

    #[test]
    fn on_a_clock_that_stands_it_begins_exactly() {
        let mut machine = machine(60_000, true);
        answered(&mut machine, 10, 20, taken(2_000));
        assert_eq!(waits_until(&mut machine, at(20)), at(2_010));
    }

    #[test]
    fn who_would_wait_for_too_long_is_told_at_once_for_how_long() {
        let mut machine = machine(1_000, false);
        answered(&mut machine, 0, 1, TakeReply::Refused(Duration::from_micros(1_000_001)));
        let end = done(&mut machine, at(1)).unwrap();
        assert_eq!(end, TakeEnd::RetryAfter(Duration::from_micros(1_000_001)));
        assert!(machine.abandon().is_none());
    }

    #[test]
    fn a_wait_that_is_given_up_gives_its_reservation_back_once() {
        let mut machine = machine(60_000, false);
        answered(&mut machine, 0, 1, taken(2_000));
        waits_until(&mut machine, at(1));
        let Some(Request::GiveBack(back)) = machine.abandon() else { panic!("nothing is given back") };
        assert_eq!((back.token, back.count), (Token::from_bits(7), 2));
        assert!(machine.abandon().is_none());
    }

    #[test]
    fn what_may_have_been_reserved_is_given_back_when_no_answer_comes() {
        let mut machine = machine(60_000, false);
        assert!(machine.abandon().is_none(), "nothing was sent");
        let mut machine = self::machine(60_000, false);
        sent(&mut machine, at(0));
        assert_eq!(sent(&mut machine, at(0) + RESEND_AFTER), 2);
        machine.reply(at(1_010), 1, lost());
        machine.reply(at(1_010), 2, lost());
        let error = done(&mut machine, at(5_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Indeterminate);
        assert!(matches!(machine.abandon(), Some(Request::GiveBack(_))));
    }

    #[test]
    fn a_try_has_nothing_to_give_back() {
        let mut machine = machine(0, false);
        sent(&mut machine, at(0));
        assert!(machine.abandon().is_none());
    }

    #[test]
    fn the_reply_of_another_verb_is_an_error() {
        let mut machine = machine(0, false);
        let number = sent(&mut machine, at(0));
        machine.reply(at(1), number, Ok(Reply::GiveBack(true)));
        assert_eq!(done(&mut machine, at(1)).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
