//! One request, sent until it is answered.

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::engine::{Call, Jitter, LEAST_PATIENCE, Machine, RESEND_AFTER, Step, Subject};
use crate::protocol::{Failure, FailureKind, Reply, Request};

/// The answer to a request, with what is needed to judge it.
#[derive(Debug)]
pub struct Answer {
    /// The store's reply.
    pub reply: Reply,
    /// When the first of the copies was sent.
    pub first_sent: Moment,
    /// When the sending it answers was sent.
    pub sent: Moment,
    /// When it came.
    pub received: Moment,
    /// How many copies of the request may have been carried out, with the one that this answers. What was never sent,
    /// or refused, is none.
    pub copies: u32,
}

/// One sending.
#[derive(Debug)]
struct Sending {
    at: Moment,
    /// It was never sent in fact, or refused.
    did_nothing: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct CallMachine {
    request: Request,
    /// May be sent more than once.
    repeatable: bool,
    give_up: Moment,
    jitter: Jitter,
    sent: Vec<Sending>,
    in_flight: bool,
    next_at: Moment,
    failures: u32,
    last_failure: Option<Failure>,
    outcome: Option<Result<Answer, Error>>,
    /// What to send if nobody waits for the answer any more.
    cleanup: Vec<Request>,
}

impl CallMachine {
    /// Sends `request` until it is answered or `give_up` has come.
    pub fn new(request: Request, now: Moment, give_up: Moment, jitter: Jitter) -> Self {
        Self {
            request,
            repeatable: true,
            give_up,
            jitter,
            sent: Vec::new(),
            in_flight: false,
            next_at: now,
            failures: 0,
            last_failure: None,
            outcome: None,
            cleanup: Vec::new(),
        }
    }

    /// Never sends again what may have been carried out: a repetition would do more.
    pub fn once(mut self) -> Self {
        self.repeatable = false;
        self
    }

    /// Sends this, too, if the call is abandoned before it was answered.
    pub fn or_else(mut self, cleanup: Request) -> Self {
        self.cleanup.push(cleanup);
        self
    }

    /// The first sending, of a call that has sent nothing yet.
    pub(crate) fn first(&mut self, now: Moment) -> Option<Call> {
        if !self.sent.is_empty() {
            return None;
        }
        match self.step(now) {
            Step::Send(call) => Some(call),
            _ => None,
        }
    }

    /// Until when the answer to a sending is awaited: of what cannot be sent again, to the end.
    fn patience(&self, sent: Moment) -> Moment {
        let last = self.give_up.max(sent + LEAST_PATIENCE);
        if self.repeatable { last.min(sent + RESEND_AFTER) } else { last }
    }

    /// Those sendings that may have been carried out.
    fn copies(&self) -> impl Iterator<Item = &Sending> {
        self.sent.iter().filter(|sending| !sending.did_nothing)
    }

    /// Whether it may have been carried out.
    pub(crate) fn may_be_done(&self) -> bool {
        self.copies().next().is_some()
    }

    fn fail(&mut self) {
        let failure = self
            .last_failure
            .take()
            .unwrap_or_else(|| Failure::new(FailureKind::Lost, "the store did not answer"));
        let leaves_no_doubt = self.request.reads() || self.request.is_taken_back();
        let is_passing = matches!(failure.kind, FailureKind::Final(ErrorKind::StoreUnavailable));
        let is_in_doubt = self.copies().next().is_some() && (failure.is_retryable() || is_passing);
        let error = if is_in_doubt && !leaves_no_doubt {
            let message = format!("it may or may not have been carried out: {}", failure.message);
            Error::new(ErrorKind::Indeterminate, message)
        } else {
            failure.into()
        };
        self.outcome = Some(Err(error.during(self.request.verb(), self.request.name())));
    }
}

impl Machine for CallMachine {
    fn gives_back(&self) -> bool {
        matches!(self.request, Request::Release(_))
    }

    type Output = Answer;

    fn subject(&self) -> Subject<'_> {
        Subject { verb: self.request.verb(), name: self.request.name(), kind: self.request.kind() }
    }

    fn step(&mut self, now: Moment) -> Step<Answer> {
        if self.outcome.is_none()
            && self.in_flight
            && let Some(last) = self.sent.last()
        {
            let until = self.patience(last.at);
            if now < until {
                return Step::Wait { until, hints: false };
            }
            self.in_flight = false;
        }
        let is_spent = !self.repeatable && self.copies().next().is_some();
        let exhausted = !self.in_flight && !self.sent.is_empty() && (now >= self.give_up || is_spent);
        if self.outcome.is_none() && exhausted {
            self.fail();
        }
        if let Some(outcome) = self.outcome.take() {
            if outcome.is_ok() {
                self.cleanup.clear();
            }
            return Step::Done(outcome);
        }
        if now < self.next_at {
            return Step::Wait { until: self.next_at.min(self.give_up), hints: false };
        }
        self.sent.push(Sending { at: now, did_nothing: false });
        self.in_flight = true;
        let number = u32::try_from(self.sent.len()).unwrap_or(u32::MAX);
        Step::Send(Call { number, request: self.request.clone(), until: self.patience(now) })
    }

    fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        let sendings = u32::try_from(self.sent.len()).unwrap_or(u32::MAX);
        let Some(sending) = (number as usize).checked_sub(1).and_then(|index| self.sent.get_mut(index))
        else {
            return;
        };
        let sent = sending.at;
        sending.did_nothing = matches!(&result, Err(failure) if !failure.may_be_done());
        if self.outcome.is_some() {
            return;
        }
        if number == sendings {
            self.in_flight = false;
        }
        match result {
            Ok(reply) => {
                let first_sent = self.copies().next().map_or(sent, |first| first.at);
                let copies = u32::try_from(self.copies().count()).unwrap_or(u32::MAX);
                self.outcome = Some(Ok(Answer { reply, first_sent, sent, received: now, copies }));
            }
            Err(failure) => {
                let ends = !failure.is_retryable();
                self.last_failure = Some(failure);
                if ends {
                    self.fail();
                } else {
                    self.next_at = now + self.jitter.backoff(self.failures);
                    self.failures += 1;
                }
            }
        }
    }

    fn may_repeat(&self) -> bool {
        self.repeatable
    }

    fn abandon(&mut self) -> Option<Request> {
        self.cleanup.pop()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::name::Prefixes;
    use crate::base::token::Token;
    use crate::protocol::{BreakLease, Extend, ExtendReply, Leave};

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn name() -> crate::base::name::LockName {
        Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap()
    }

    fn extend() -> CallMachine {
        let request = Request::Extend(Extend::new(name(), Token::from_bits(1), Duration::from_secs(9)));
        CallMachine::new(request, at(0), at(3_000), Jitter::seeded(1))
    }

    fn extended() -> Result<Reply, Failure> {
        Ok(Reply::Extend(ExtendReply::Extended(Duration::from_secs(9))))
    }

    fn lost() -> Result<Reply, Failure> {
        Err(Failure::new(FailureKind::Lost, "no answer"))
    }

    fn sent(machine: &mut CallMachine, now: Moment) -> u32 {
        match machine.step(now) {
            Step::Send(call) => call.number,
            other => panic!("expected a request, got {other:?}"),
        }
    }

    fn done(machine: &mut CallMachine, now: Moment) -> Result<Answer, Error> {
        match machine.step(now) {
            Step::Done(outcome) => outcome,
            other => panic!("expected the outcome, got {other:?}"),
        }
    }

    #[test]
    fn an_answer_is_judged_by_its_own_sending() {
        let mut machine = extend();
        let first = sent(&mut machine, at(0));
        sent(&mut machine, at(1_000));
        machine.reply(at(1_200), first, extended());
        let answer = done(&mut machine, at(1_200)).unwrap();
        assert_eq!((answer.sent, answer.received, answer.copies), (at(0), at(1_200), 2));
    }

    #[test]
    fn what_was_never_sent_or_refused_is_no_earlier_copy() {
        for kind in [FailureKind::NotSent, FailureKind::Refused] {
            let mut machine = extend();
            let first = sent(&mut machine, at(0));
            machine.reply(at(0), first, Err(Failure::new(kind, "not now")));
            let second = sent(&mut machine, at(100));
            machine.reply(at(101), second, extended());
            let answer = done(&mut machine, at(101)).unwrap();
            assert_eq!((answer.first_sent, answer.sent, answer.copies), (at(100), at(100), 1), "{kind:?}");
        }
    }

    #[test]
    fn a_copy_without_an_answer_leaves_a_doubt_when_the_store_is_full_afterwards() {
        let mut machine = extend();
        let first = sent(&mut machine, at(0));
        machine.reply(at(1), first, lost());
        let second = sent(&mut machine, at(100));
        let full = Failure::new(FailureKind::Final(ErrorKind::StoreUnavailable), "out of memory");
        machine.reply(at(101), second, Err(full));
        assert_eq!(done(&mut machine, at(101)).unwrap_err().kind(), ErrorKind::Indeterminate);
    }

    #[test]
    fn what_may_have_been_carried_out_is_indeterminate() {
        let mut machine = extend();
        for second in 0..3 {
            sent(&mut machine, at(second * 1_000));
        }
        assert_eq!(done(&mut machine, at(3_000)).unwrap_err().kind(), ErrorKind::Indeterminate);
    }

    #[test]
    fn what_was_never_sent_is_unavailable() {
        let mut machine = extend();
        let mut now = at(0);
        while now < at(3_000) {
            let number = sent(&mut machine, now);
            machine.reply(now, number, Err(Failure::new(FailureKind::NotSent, "down")));
            match machine.step(now) {
                Step::Wait { until, .. } => now = until,
                other => panic!("expected a pause, got {other:?}"),
            }
        }
        assert_eq!(done(&mut machine, now).unwrap_err().kind(), ErrorKind::StoreUnavailable);
    }

    #[test]
    fn a_call_that_must_not_be_repeated_is_not() {
        let request = Request::BreakLease(BreakLease { name: name() });
        let mut machine = CallMachine::new(request, at(0), at(3_000), Jitter::seeded(1)).once();
        let number = sent(&mut machine, at(0));
        machine.reply(at(1), number, lost());
        assert_eq!(done(&mut machine, at(1)).unwrap_err().kind(), ErrorKind::Indeterminate);
    }

    /// Of 16 MiB, it may be on its way for longer than a request is left unanswered.
    #[test]
    fn an_answer_that_cannot_be_asked_for_again_is_awaited_for_the_whole_time() {
        let request = Request::BreakLease(BreakLease { name: name() });
        let mut machine = CallMachine::new(request, at(0), at(3_000), Jitter::seeded(1)).once();
        let number = sent(&mut machine, at(0));
        assert!(matches!(machine.step(at(2_999)), Step::Wait { until, hints: false } if until == at(3_000)));
        machine.reply(at(2_999), number, extended());
        assert_eq!(done(&mut machine, at(2_999)).unwrap().received, at(2_999));
    }

    #[test]
    fn it_may_be_sent_later_if_it_was_not_sent_at_all() {
        let request = Request::BreakLease(BreakLease { name: name() });
        let mut machine = CallMachine::new(request, at(0), at(3_000), Jitter::seeded(1)).once();
        let number = sent(&mut machine, at(0));
        machine.reply(at(1), number, Err(Failure::new(FailureKind::NotSent, "down")));
        assert_eq!(sent(&mut machine, at(100)), 2);
    }

    #[test]
    fn abandoned_or_failed_it_is_cleaned_up_after_answered_it_is_not() {
        let cleanup =
            || Request::Leave(Leave { name: name(), token: Token::from_bits(1), foreign_share: false });
        let mut answered = extend().or_else(cleanup());
        let number = sent(&mut answered, at(0));
        answered.reply(at(1), number, extended());
        done(&mut answered, at(1)).unwrap();
        assert!(answered.abandon().is_none());

        let mut dropped = extend().or_else(cleanup());
        sent(&mut dropped, at(0));
        assert!(matches!(dropped.abandon(), Some(Request::Leave(_))));

        let mut failed = extend().or_else(cleanup());
        for second in 0..3 {
            sent(&mut failed, at(second * 1_000));
        }
        done(&mut failed, at(3_000)).unwrap_err();
        assert!(matches!(failed.abandon(), Some(Request::Leave(_))));
    }
}
