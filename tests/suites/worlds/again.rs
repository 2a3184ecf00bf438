//! Machines that can be copied: a copy is made anew, and told everything once more. So none of them has to be
//! made of parts that can be cloned.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use stanchion::engine::acquire::{AcquireMachine, Acquired};
use stanchion::engine::call::{Answer, CallMachine};
use stanchion::engine::claim::{ClaimMachine, Claimed};
use stanchion::engine::lease::{LeaseState, Need};
use stanchion::engine::several::{Several, SeveralMachine};
use stanchion::engine::{Machine, Step};
use stanchion::internals::Moment;
use stanchion::protocol::{Failure, Reply, Request};

/// What is told something, and answers.
pub trait Told {
    type Input: Clone;
    type Answer;

    fn tell(&mut self, input: &Self::Input) -> Self::Answer;
}

/// See the module's documentation.
pub struct Again<T: Told> {
    make: Rc<dyn Fn() -> T>,
    told: Vec<T::Input>,
    live: T,
}

impl<T: Told> Again<T> {
    pub fn new(make: impl Fn() -> T + 'static) -> Self {
        Self { live: make(), make: Rc::new(make), told: Vec::new() }
    }

    pub fn tell(&mut self, input: T::Input) -> T::Answer {
        let answer = self.live.tell(&input);
        self.told.push(input);
        answer
    }
}

impl<T: Told> std::ops::Deref for Again<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.live
    }
}

impl<T: Told> Clone for Again<T> {
    fn clone(&self) -> Self {
        let mut live = (self.make)();
        for input in &self.told {
            live.tell(input);
        }
        Self { make: Rc::clone(&self.make), told: self.told.clone(), live }
    }
}

impl<T: Told + fmt::Debug> fmt::Debug for Again<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.live.fmt(f)
    }
}

/// The machine of a call.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few of them")]
pub enum Engine {
    Acquire(AcquireMachine),
    Several(SeveralMachine),
    Call(CallMachine),
    Claim(ClaimMachine),
}

#[derive(Clone)]
pub enum Input {
    Step(Moment),
    Reply(Moment, u32, Result<Reply, Failure>),
    Hint,
    Listening,
    Abandon,
}

/// What a machine wants.
pub enum Asked {
    Nothing,
    Send(u32, Request, Moment),
    Listen,
    Wait(Moment),
    Done(Outcome),
    /// What somebody else has to send, if anything.
    Leftover(Option<Request>),
}

pub enum Outcome {
    Acquired(Result<Acquired, stanchion::Error>),
    Several(Result<Several, stanchion::Error>),
    Answered(Result<Answer, stanchion::Error>),
    Claimed(Result<Claimed, stanchion::Error>),
}

impl Told for Engine {
    type Input = Input;
    type Answer = Asked;

    fn tell(&mut self, input: &Input) -> Asked {
        match self {
            Self::Acquire(machine) => tell(machine, input, Outcome::Acquired),
            Self::Several(machine) => tell(machine, input, Outcome::Several),
            Self::Call(machine) => tell(machine, input, Outcome::Answered),
            Self::Claim(machine) => tell(machine, input, Outcome::Claimed),
        }
    }
}

fn tell<M: Machine>(
    machine: &mut M,
    input: &Input,
    outcome: impl FnOnce(Result<M::Output, stanchion::Error>) -> Outcome,
) -> Asked {
    match input {
        Input::Step(now) => {
            return match machine.step(*now) {
                Step::Send(call) => Asked::Send(call.number, call.request, call.until),
                Step::Listen => Asked::Listen,
                Step::Wait { until, .. } => Asked::Wait(until),
                Step::Done(result) => Asked::Done(outcome(result)),
            };
        }
        Input::Abandon => return Asked::Leftover(machine.abandon()),
        Input::Reply(now, number, result) => machine.reply(*now, *number, result.clone()),
        Input::Hint => machine.hint(),
        Input::Listening => machine.listening(),
    }
    Asked::Nothing
}

#[derive(Clone)]
pub enum Care {
    Need(Moment),
    /// An answer to an extension, and when that was sent.
    Extended(Moment, Moment, Result<Reply, Failure>),
    Extend(Duration),
    End,
}

pub enum Cared {
    Need(Need),
    Extend(Request),
    Ended,
}

impl Told for LeaseState {
    type Input = Care;
    type Answer = Cared;

    fn tell(&mut self, input: &Care) -> Cared {
        match input {
            Care::Need(now) => Cared::Need(self.need(*now)),
            Care::Extended(now, sent, result) => Cared::Need(self.extended(*now, *sent, result)),
            Care::Extend(ttl) => Cared::Extend(self.extend_request(*ttl)),
            Care::End => {
                self.end();
                Cared::Ended
            }
        }
    }
}
