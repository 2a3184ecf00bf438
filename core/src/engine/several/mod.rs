//! Acquiring several locks: in one step if the store can and all are free, else one after the other in the order of
//! their names, so that nobody waits for one who waits for him.
//!
//! What is taken already is prolonged while the rest is waited for, and once more before all are handed out: then each
//! is valid, and has nearly its whole ttl left. If one is lost meanwhile, all are given back, and the acquire begins anew
//! as long as its wait lasts.

use std::sync::Arc;

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::base::token::Token;
use crate::engine::acquire::{AcquireMachine, AcquireParams, Acquired, ForeignHolder, Grant, LockPlan};
use crate::engine::call::{Answer, CallMachine};
use crate::engine::lease::{LeaseState, LeaseTerms, Need, Status};
use crate::engine::leased::{Leased, LockLease};
use crate::engine::{Call, Jitter, LEAST_PATIENCE, Machine, RESEND_AFTER, Step, Subject, deadline};
use crate::protocol::{AcquireAll, AcquireAllReply, Failure, FailureKind, Reply, Request};

mod ending;
mod params;
#[cfg(test)]
mod tests;

pub use params::{Several, SeveralParams};

/// What was taken, or prolonged, so much of its ttl ago is prolonged once more before it is handed out.
const STALE_AFTER: u32 = 10;

/// See the module's documentation.
#[derive(Debug)]
pub struct SeveralMachine {
    order: SeveralParams,
    jitter: Jitter,
    give_up: Moment,
    listening: bool,
    /// Each has a token of its own: what an earlier one left behind may be ended at any time.
    tries: u32,
    taken: Vec<Taken>,
    stage: Stage,
    sendings: u32,
    /// Whose reply each sending brings, until it has come.
    routes: Vec<(u32, Route)>,
    /// Of our own requests, the one that is on its way.
    in_flight: Option<(u32, Moment)>,
    /// Requests that give back what nobody wants any more.
    cleanups: Vec<Request>,
    last_failure: Option<Failure>,
}

/// A lock that is ours already.
#[derive(Debug)]
struct Taken {
    lock: LockLease,
    lease: LeaseState,
    /// Whether it may be handed out as it is.
    is_fresh: bool,
}

#[derive(Debug)]
enum Stage {
    /// All in one step.
    Together(CallMachine),
    /// The next of them; those before it are taken.
    Turn(AcquireMachine),
    /// All are taken, and prolonged before they are handed out.
    Refreshing,
    /// What was taken is given back.
    Leaving(Then),
    Done(Option<Ending>),
    Clean,
}

#[derive(Debug)]
enum Then {
    Again,
    End(Ending),
}

/// The order in which several locks are taken: that of their names, so that two callers never wait for each other. Names
/// that come twice count once.
pub(crate) fn in_order<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    names
}

#[derive(Debug)]
enum Ending {
    Taken,
    Busy,
    Failed(Error),
}

/// What a reply is about. Those of an earlier try concern nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// Of the machine of that many taken locks, its sending of this number.
    Stage {
        tries: u32,
        taken: usize,
        number: u32,
    },
    /// The extension of a taken lock.
    Lease {
        tries: u32,
        index: usize,
        sent: Moment,
    },
    Farewell,
}

impl SeveralMachine {
    /// A machine that has sent nothing yet. `listening`: whether the channel of hints is open already.
    pub fn new(order: SeveralParams, now: Moment, listening: bool, jitter: Jitter) -> Self {
        let mut machine = Self {
            jitter,
            give_up: now + order.plan().longest(),
            listening,
            tries: 0,
            taken: Vec::new(),
            stage: Stage::Clean,
            sendings: 0,
            routes: Vec::new(),
            in_flight: None,
            cleanups: Vec::new(),
            last_failure: None,
            order,
        };
        if machine.order.in_one_step {
            machine.try_together(now);
        } else {
            machine.begin(now);
        }
        machine
    }

    /// The foreign values in the way, for the next calls on the same names.
    pub fn foreign_holders(&self) -> impl Iterator<Item = &Option<ForeignHolder>> {
        self.order.foreign_holders.iter()
    }

    fn token(&self) -> Token {
        self.order.locks[0].token.of_try(self.tries)
    }

    fn try_together(&mut self, now: Moment) {
        let plan = self.order.plan();
        let request = Request::AcquireAll(AcquireAll {
            locks: self.order.locks.iter().map(|lock| (lock.plan.name.clone(), lock.min_fence)).collect(),
            token: self.token(),
            ttl: plan.ttl,
            owner: Arc::clone(&plan.owner),
        });
        // A wait that ends meanwhile still takes the reply.
        let patience = if plan.only_tries() { plan.timeout } else { plan.wait.max(RESEND_AFTER) };
        let machine = CallMachine::new(request, now, now + patience, self.jitter.split());
        self.stage = Stage::Together(self.leaves().into_iter().fold(machine, CallMachine::or_else));
    }

    /// Takes the first in turn.
    fn begin(&mut self, now: Moment) {
        self.tries += 1;
        self.last_failure = None;
        self.next_turn(now);
    }

    fn next_turn(&mut self, now: Moment) {
        let index = self.taken.len();
        let left = self.give_up.since(now);
        let AcquireParams { plan, min_fence, waiter, .. } = &self.order.locks[index];
        let order = AcquireParams {
            plan: LockPlan { timeout: left.min(plan.timeout), ..plan.within(left) },
            token: self.token(),
            min_fence: *min_fence,
            waiter: *waiter,
        };
        let foreign_holder = self.order.foreign_holders[index].clone();
        self.stage =
            Stage::Turn(AcquireMachine::new(order, now, self.listening, foreign_holder, self.jitter.split()));
    }

    /// Takes what is next, and keeps what is taken.
    fn take(&mut self, now: Moment) -> Step<Several> {
        if self.taken.iter().any(|taken| taken.lease.status(now) != Status::Held) {
            return self.begin_anew(now);
        }
        // First of all: with a short ttl and a slow store nothing else would ever be done than to prolong.
        let (until, hints) = match &mut self.stage {
            Stage::Together(machine) => match machine.step(now) {
                Step::Send(call) => return self.pass_on(call),
                Step::Done(answer) => return self.answered(now, answer),
                Step::Listen => return Step::Listen,
                Step::Wait { until, hints } => (until, hints),
            },
            Stage::Turn(machine) => match machine.step(now) {
                Step::Send(call) => return self.pass_on(call),
                Step::Done(result) => return self.turned(now, result),
                Step::Listen => return Step::Listen,
                Step::Wait { until, hints } => (until, hints),
            },
            _ if self.taken.iter().all(|taken| taken.is_fresh) => return self.end(now, Ending::Taken),
            _ => (Moment::FAR, false),
        };
        if let Some(until) = self.awaited_until(now) {
            return Step::Wait { until, hints: false };
        }
        self.prolong(now).unwrap_or_else(|| Step::Wait { until: until.min(self.due()), hints })
    }

    fn pass_on(&mut self, call: Call) -> Step<Several> {
        let (tries, taken) = (self.tries, self.taken.len());
        self.send(Route::Stage { tries, taken, number: call.number }, call.request, call.until)
    }

    fn send(&mut self, route: Route, request: Request, until: Moment) -> Step<Several> {
        self.sendings += 1;
        self.routes.push((self.sendings, route));
        Step::Send(Call { number: self.sendings, request, until })
    }

    /// Until when an answer to a request of our own is awaited; `None` if none is.
    fn awaited_until(&mut self, now: Moment) -> Option<Moment> {
        let (number, sent) = self.in_flight?;
        let until = self.patience(sent);
        if now < until {
            return Some(until);
        }
        self.reply(now, number, Err(Failure::new(FailureKind::Lost, "the store did not answer")));
        None
    }

    /// A try has no more than its timeout; a wait that ends meanwhile still takes the reply.
    fn patience(&self, sent: Moment) -> Moment {
        let resend = sent + RESEND_AFTER;
        if self.order.plan().only_tries() {
            resend.min(self.give_up.max(sent + LEAST_PATIENCE))
        } else {
            resend
        }
    }

    /// When the next of the taken locks is to be prolonged.
    fn due(&self) -> Moment {
        self.pressing().map(|taken| taken.lease.due()).min().unwrap_or(Moment::FAR)
    }

    /// Those that are prolonged now: in the end each once.
    fn pressing(&self) -> impl Iterator<Item = &Taken> {
        let is_over = matches!(self.stage, Stage::Refreshing);
        self.taken.iter().filter(move |taken| !(is_over && taken.is_fresh))
    }

    fn prolong(&mut self, now: Moment) -> Option<Step<Several>> {
        let due = self.due();
        let is_over = matches!(self.stage, Stage::Refreshing);
        let index = (0..self.taken.len()).find(|index| {
            let taken = &self.taken[*index];
            !(is_over && taken.is_fresh) && taken.lease.due() == due
        })?;
        let Need::Renew(request) = self.taken[index].lease.need(now) else { return None };
        let route = Route::Lease { tries: self.tries, index, sent: now };
        let step = self.send(route, request, self.patience(now));
        self.in_flight = Some((self.sendings, now));
        Some(step)
    }

    /// Takes in what came of the attempt to take all in one step.
    fn answered(&mut self, now: Moment, answer: Result<Answer, Error>) -> Step<Several> {
        let answer = match answer {
            Ok(answer) => answer,
            // What may have been taken is given back by others: the store is silent, or refuses.
            Err(error) => {
                self.collect();
                return self.end(now, Ending::Failed(error));
            }
        };
        match answer.reply {
            Reply::AcquireAll(AcquireAllReply::Granted(fences)) if fences.len() == self.order.locks.len() => {
                let deadline = deadline(answer.sent, self.order.plan().ttl);
                let resent = answer.copies > 1;
                for fence in fences {
                    self.took(now, &Grant { fence, deadline, resent });
                }
                self.stage = Stage::Refreshing;
                self.take(now)
            }
            Reply::AcquireAll(AcquireAllReply::Busy) => {
                if answer.copies > 1 {
                    // Another copy may have taken them, or may yet.
                    self.cleanups = self.leaves();
                }
                self.give_back(now, Then::Again)
            }
            _ => {
                let error =
                    Error::new(ErrorKind::Corrupt, "the store reports that this call has already ended");
                self.end(now, Ending::Failed(error.during("acquire", self.order.plan().name.as_str())))
            }
        }
    }

    /// Takes in what came of one in its turn.
    fn turned(&mut self, now: Moment, result: Result<Acquired, Error>) -> Step<Several> {
        let index = self.taken.len();
        if let Stage::Turn(machine) = &self.stage {
            self.order.foreign_holders[index] = machine.foreign_holder().cloned();
        }
        match result {
            Ok(Acquired::Granted(grant)) => {
                self.took(now, &grant);
                if self.taken.len() < self.order.locks.len() {
                    self.next_turn(now);
                } else {
                    self.refresh(now);
                }
                self.take(now)
            }
            // Only the lock of a cached value answers with the value.
            Ok(Acquired::Busy | Acquired::Cached { .. }) => self.give_back(now, Then::End(Ending::Busy)),
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => {
                // It would not answer a release either: that is left to others.
                self.collect();
                self.end(now, Ending::Failed(error))
            }
            Err(error) => self.give_back(now, Then::End(Ending::Failed(error))),
        }
    }

    fn took(&mut self, now: Moment, grant: &Grant) {
        let token = self.token();
        let order = &mut self.order.locks[self.taken.len()];
        order.min_fence = order.min_fence.max(grant.fence.next());
        let lock = LockLease::granted(&order.plan, token, grant);
        let leased = Leased::Lock(lock.clone());
        let hold_until = Some(Moment::FAR);
        let terms =
            LeaseTerms { leased, ttl: order.plan.ttl, deadline: grant.deadline, hold_until, timeout: None };
        self.taken.push(Taken { lock, lease: LeaseState::new(terms, now), is_fresh: true });
    }

    /// Has those prolonged that have lost some of their time.
    fn refresh(&mut self, now: Moment) {
        for taken in &mut self.taken {
            let ttl = taken.lease.ttl();
            taken.is_fresh = taken.lease.deadline() + ttl / STALE_AFTER >= deadline(now, ttl);
            if !taken.is_fresh {
                taken.lease.renew_at(now);
            }
        }
        self.stage = Stage::Refreshing;
    }

    fn prolonged(&mut self, now: Moment, index: usize, sent: Moment, result: Result<Reply, Failure>) {
        let Some(taken) = self.taken.get_mut(index) else { return };
        let need = taken.lease.extended(now, sent, &result);
        taken.is_fresh |= result.is_ok() && matches!(need, Need::Nothing(_));
        self.last_failure = result.err();
    }
}

impl Machine for SeveralMachine {
    type Output = Several;

    fn subject(&self) -> Subject<'_> {
        let name = &self.order.locks[self.taken.len().min(self.order.locks.len() - 1)].plan.name;
        Subject { verb: "acquire", name: name.as_str(), kind: name.kind().name() }
    }

    fn told(outcome: &Several) -> &'static str {
        match outcome {
            Several::Granted { .. } => "granted",
            Several::Busy => "busy",
        }
    }

    fn step(&mut self, now: Moment) -> Step<Several> {
        match &mut self.stage {
            Stage::Together(_) | Stage::Turn(_) | Stage::Refreshing => self.take(now),
            Stage::Leaving(_) => self.leave(now),
            Stage::Done(ending) => match ending.take() {
                Some(ending) => Step::Done(self.outcome(ending)),
                None => Step::Wait { until: Moment::FAR, hints: false },
            },
            Stage::Clean => Step::Wait { until: Moment::FAR, hints: false },
        }
    }

    fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        let Some(index) = self.routes.iter().position(|(sending, _)| *sending == number) else { return };
        let (_, route) = self.routes.swap_remove(index);
        self.in_flight = self.in_flight.filter(|(sending, _)| *sending != number);
        match route {
            Route::Stage { tries, taken, number } if (tries, taken) == (self.tries, self.taken.len()) => {
                match &mut self.stage {
                    Stage::Together(machine) => machine.reply(now, number, result),
                    Stage::Turn(machine) => machine.reply(now, number, result),
                    _ => {}
                }
            }
            Route::Lease { tries, index, sent } if tries == self.tries => {
                self.prolonged(now, index, sent, result);
            }
            // Of something that is over.
            Route::Stage { .. } | Route::Lease { .. } => {}
            Route::Farewell => match result {
                Ok(_) => drop(self.cleanups.pop()),
                Err(failure) => self.last_failure = Some(failure),
            },
        }
    }

    fn hint(&mut self) {
        if let Stage::Turn(machine) = &mut self.stage {
            machine.hint();
        }
    }

    fn listening(&mut self) {
        self.listening = true;
        if let Stage::Turn(machine) = &mut self.stage {
            machine.listening();
        }
    }

    fn abandon(&mut self) -> Option<Request> {
        if !matches!(self.stage, Stage::Clean) {
            self.collect();
            self.stage = Stage::Clean;
        }
        self.cleanups.pop()
    }
}
