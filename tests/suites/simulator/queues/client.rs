//! A simulated client of queues: what the session, a driver and the keeper do.

use std::time::Duration;

use stanchion::engine::ask::AskMachine;
use stanchion::engine::call::{Answer, CallMachine};
use stanchion::engine::claim::{ClaimMachine, Claimed};
use stanchion::engine::events::{Happenings, WhatHappens};
use stanchion::engine::lease::LeaseState;
use stanchion::engine::result::WhatBecame;
use stanchion::engine::{Machine, Step};
use stanchion::internals::{CallSlots, Moment};
use stanchion::name::TaskId;
use stanchion::protocol::{CallId, ClaimedTask, Failure, Reply, Request, ResultReply, Verdict};
use stanchion::wake::Place;

use super::Body;

/// What a client does at the moment.
pub struct SimClient {
    pub ops: Vec<Op>,
    pub tasks: Vec<Held>,
    pub slots: CallSlots,
}

/// A call of the user in progress.
pub struct Op {
    pub id: u64,
    pub kind: OpKind,
    /// Sendings whose reply is awaited, and until when.
    pub awaited: Vec<(u32, Moment)>,
}

#[allow(clippy::large_enum_variant, reason = "a client has two of them at most")]
pub enum OpKind {
    Enqueue {
        machine: CallMachine,
        call: CallId,
        bodies: Vec<Body>,
    },
    Claim {
        machine: Box<ClaimMachine>,
        place: Place,
        lease: Duration,
        renews: bool,
        /// What is settled in the same step.
        settles: Vec<(Held, Verdict)>,
        /// The last call that was sent.
        last: CallId,
    },
    Settle {
        machine: CallMachine,
        held: Held,
        verdict: Verdict,
    },
    Other {
        machine: CallMachine,
    },
    /// Somebody waits for what becomes of a task.
    Result {
        machine: AskMachine<WhatBecame>,
        place: Place,
        id: TaskId,
    },
    /// Somebody waits for events of a queue.
    Events {
        machine: AskMachine<WhatHappens>,
        place: Place,
        queue: usize,
    },
}

/// A claimed task in use.
pub struct Held {
    pub id: u64,
    pub queue: usize,
    pub task: ClaimedTask,
    pub state: LeaseState,
    /// When its worker is done with it, and what it says then; nothing if it dies over it.
    pub ends: Moment,
    pub verdict: Option<Verdict>,
    /// What was sent before without an answer.
    pub sent: Vec<Verdict>,
    /// The renewal on its way: its number, when it was sent, when it is given up.
    pub renewal: Option<(u32, Moment, Moment)>,
    pub renewals: u32,
}

/// A step of either machine.
pub enum Asked {
    Send(u32, Request, Moment),
    Listen,
    Wait(Moment),
    Done(Outcome),
}

pub enum Outcome {
    Claimed(Result<Claimed, stanchion::Error>),
    Answered(Result<Answer, stanchion::Error>),
    Result(Result<ResultReply, stanchion::Error>),
    Events(Result<Happenings, stanchion::Error>),
}

impl OpKind {
    pub fn step(&mut self, now: Moment) -> Asked {
        match self {
            Self::Claim { machine, .. } => Asked::of(machine.step(now), Outcome::Claimed),
            Self::Result { machine, .. } => Asked::of(machine.step(now), Outcome::Result),
            Self::Events { machine, .. } => Asked::of(machine.step(now), Outcome::Events),
            Self::Enqueue { machine, .. } | Self::Settle { machine, .. } | Self::Other { machine } => {
                Asked::of(machine.step(now), Outcome::Answered)
            }
        }
    }

    pub fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        match self {
            Self::Claim { machine, .. } => machine.reply(now, number, result),
            Self::Result { machine, .. } => machine.reply(now, number, result),
            Self::Events { machine, .. } => machine.reply(now, number, result),
            Self::Enqueue { machine, .. } | Self::Settle { machine, .. } | Self::Other { machine } => {
                machine.reply(now, number, result);
            }
        }
    }

    pub fn abandon(&mut self) -> Option<Request> {
        match self {
            Self::Claim { machine, .. } => machine.abandon(),
            Self::Result { machine, .. } => machine.abandon(),
            Self::Events { machine, .. } => machine.abandon(),
            Self::Enqueue { machine, .. } | Self::Settle { machine, .. } | Self::Other { machine } => {
                machine.abandon()
            }
        }
    }
}

impl Asked {
    fn of<T>(step: Step<T>, outcome: impl FnOnce(Result<T, stanchion::Error>) -> Outcome) -> Self {
        match step {
            Step::Send(call) => Self::Send(call.number, call.request, call.until),
            Step::Listen => Self::Listen,
            Step::Wait { until, .. } => Self::Wait(until),
            Step::Done(result) => Self::Done(outcome(result)),
        }
    }
}
