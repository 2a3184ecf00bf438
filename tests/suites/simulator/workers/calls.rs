//! The worker's calls: what its driver does.

use std::mem;

use stanchion::engine::call::{Answer, CallMachine};
use stanchion::engine::claim::{ClaimMachine, ClaimParams, Claimed};
use stanchion::engine::lease::Status;
use stanchion::engine::settle::Earlier;
use stanchion::engine::{Machine, Step};
use stanchion::protocol::{Failure, FailureKind, Settle, Settled, Settlement, Verdict};
use stanchion::wake::Place;
use stanchion::{Error, ErrorKind, LossReason};

use super::worker::SimJob;
use super::*;
use crate::scene::Route;

const TIMEOUT: Duration = Duration::from_secs(3);

type Verdicts = Vec<(SimJob, Verdict)>;
/// Verdicts that are sent, each with what was sent of its claim before.
type Sent = Vec<(SimJob, Verdict, Earlier)>;

/// A call in progress.
pub struct Op {
    pub id: u64,
    pub kind: OpKind,
    settles: Sent,
    awaited: Vec<(u32, Moment)>,
}

pub enum OpKind {
    Claim(Box<ClaimMachine>, Place),
    Settle(Box<CallMachine>),
}

enum Asked {
    Send(u32, Request, Moment),
    Listen,
    Wait(Moment),
    Claimed(Result<Claimed, Error>),
    Settled(Result<Answer, Error>),
}

impl OpKind {
    pub fn takes_hint(&self) -> bool {
        matches!(self, Self::Claim(_, place) if place.take_hint())
    }

    fn step(&mut self, now: Moment) -> Asked {
        fn asked<T>(step: Step<T>, done: impl FnOnce(Result<T, Error>) -> Asked) -> Asked {
            match step {
                Step::Send(call) => Asked::Send(call.number, call.request, call.until),
                Step::Listen => Asked::Listen,
                Step::Wait { until, .. } => Asked::Wait(until),
                Step::Done(result) => done(result),
            }
        }
        match self {
            Self::Claim(machine, _) => asked(machine.step(now), Asked::Claimed),
            Self::Settle(machine) => asked(machine.step(now), Asked::Settled),
        }
    }

    fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        match self {
            Self::Claim(machine, _) => machine.reply(now, number, result),
            Self::Settle(machine) => machine.reply(now, number, result),
        }
    }

    fn abandon(&mut self) -> Option<Request> {
        match self {
            Self::Claim(machine, _) => machine.abandon(),
            Self::Settle(machine) => machine.abandon(),
        }
    }
}

fn settle_of(settles: &Sent) -> Settle {
    let settlement = |(job, verdict, _): &(SimJob, Verdict, Earlier)| Settlement {
        id: job.0.task.id.clone(),
        receipt: job.0.task.receipt,
        verdict: verdict.clone(),
    };
    Settle { items: settles.iter().map(settlement).collect() }
}

impl World<'_> {
    pub(super) fn claim(&mut self, client: usize, max: usize, wait: Duration, settles: Verdicts) -> Played {
        let settles = self.sent(settles)?;
        let place = self.stores.enter(client);
        let order = ClaimParams {
            queues: vec![self.queue.clone()],
            max: u32::try_from(max).unwrap(),
            lease: self.workers[client].lease,
            wait,
            timeout: TIMEOUT,
            patient: false,
            settle: (!settles.is_empty()).then(|| settle_of(&settles)),
            waiter: place.waiter(),
            consumer: format!("{client} host ").into(),
            clock_stands: false,
            slot: self.workers[client].slots.take(),
        };
        let machine = Box::new(ClaimMachine::new(order, self.scene.now, true, self.scene.jitter()));
        self.start(client, OpKind::Claim(machine, place), settles)
    }

    pub(super) fn settle(&mut self, client: usize, settles: Verdicts) -> Played {
        let settles = self.sent(settles)?;
        if settles.is_empty() {
            self.workers[client].machine.settled(self.scene.now, None);
            self.scene.wake_at(client, self.scene.now);
            return Ok(());
        }
        let request = self.queue_request(QueueVerb::Settle(settle_of(&settles)));
        let now = self.scene.now;
        let machine = Box::new(CallMachine::new(request, now, now + TIMEOUT, self.scene.jitter()));
        self.start(client, OpKind::Settle(machine), settles)
    }

    /// From now on the verdicts count, not the leases. Some come too late to be sent.
    fn sent(&mut self, settles: Verdicts) -> Played<Sent> {
        let mut sent = Vec::with_capacity(settles.len());
        for (job, verdict) in settles {
            if job.0.signalled.get() && matches!(verdict, Verdict::Nack { .. }) {
                return Err(format!("a stop burnt an attempt of {job:?}"));
            }
            self.tally.put_back += u64::from(matches!(verdict, Verdict::PutBack { .. }));
            let loss = match job.status() {
                Status::Lost(LossReason::TimedOut) if self.mutant == Some(Mutant::SettlesAfterItsTimeout) => {
                    None
                }
                Status::Lost(reason) => Some(reason),
                Status::Held | Status::Ended => None,
            };
            let earlier = job.0.settling.borrow_mut().send(&verdict, loss);
            match earlier {
                Ok(Some(earlier)) => {
                    job.0.state.borrow_mut().end();
                    sent.push((job, verdict, earlier));
                }
                Ok(None) => return Err(format!("{job:?} is settled by {verdict:?} a second time")),
                Err(_) if job.0.in_time.get() => {
                    return Err(format!("{job:?} had ended in time, and its {verdict:?} is not sent"));
                }
                Err(_) => self.tally.too_late += 1,
            }
        }
        Ok(sent)
    }

    fn start(&mut self, client: usize, kind: OpKind, settles: Sent) -> Played {
        let id = self.scene.processes[client].next_id();
        self.workers[client].ops.push(Op { id, kind, settles, awaited: Vec::new() });
        self.step(client, id)
    }

    fn step(&mut self, client: usize, id: u64) -> Played {
        let ops = &mut self.workers[client].ops;
        let Some(index) = ops.iter().position(|op| op.id == id) else { return Ok(()) };
        let mut op = ops.remove(index);
        loop {
            match op.kind.step(self.scene.now) {
                Asked::Send(number, request, until) => {
                    op.awaited.push((number, until));
                    self.scene.send(client, Route::Op(id), number, request);
                    self.scene.wake_at(client, until);
                    break;
                }
                Asked::Listen => {
                    if let OpKind::Claim(machine, _) = &mut op.kind {
                        machine.listening();
                    }
                }
                Asked::Wait(until) => {
                    self.scene.wake_at(client, until);
                    break;
                }
                Asked::Claimed(result) => {
                    self.clean_up_after(client, &mut op);
                    return self.claimed(client, op, result);
                }
                Asked::Settled(result) => {
                    self.clean_up_after(client, &mut op);
                    return self.settled(client, op, result);
                }
            }
        }
        self.workers[client].ops.push(op);
        Ok(())
    }

    fn clean_up_after(&mut self, client: usize, op: &mut Op) {
        while let Some(request) = op.kind.abandon() {
            self.scene.run_errand(client, request);
        }
        if let OpKind::Claim(machine, _) = &op.kind
            && let Some(slot) = machine.free_slot()
        {
            self.workers[client].slots.give_back(slot);
        }
    }

    fn claimed(&mut self, client: usize, op: Op, result: Result<Claimed, Error>) -> Played {
        match result {
            Ok(claimed) => {
                let jobs = claimed.tasks.into_iter().map(|one| self.keep(client, one)).collect();
                self.take_in(&claimed.settled, &op.settles, false)?;
                self.workers[client].machine.claimed(self.scene.now, jobs);
            }
            Err(error) => {
                let (again, may_pass) = self.again(op.settles, &error);
                self.workers[client].machine.claim_failed(self.scene.now, again, may_pass);
            }
        }
        self.scene.wake_at(client, self.scene.now);
        Ok(())
    }

    fn settled(&mut self, client: usize, op: Op, result: Result<Answer, Error>) -> Played {
        let failure = match result {
            Ok(Answer { reply: Reply::Queue(QueueReply::Settle(settled)), copies, .. }) => {
                self.take_in(&settled, &op.settles, copies > 1)?;
                None
            }
            Ok(other) => return Err(format!("a settle was answered by {other:?}")),
            Err(error) => Some(self.again(op.settles, &error)),
        };
        self.workers[client].machine.settled(self.scene.now, failure);
        self.scene.wake_at(client, self.scene.now);
        Ok(())
    }

    fn take_in(&mut self, settled: &[Settled], settles: &Sent, resent: bool) -> Played {
        if settled.len() != settles.len() {
            return Err(format!("{} settlements, {} outcomes", settles.len(), settled.len()));
        }
        let now = self.scene.now;
        for ((job, verdict, earlier), settled) in settles.iter().zip(settled) {
            let deadline = job.0.state.borrow().deadline();
            let judged =
                job.0.settling.borrow_mut().settled(verdict, (*settled, *earlier, resent), now, deadline);
            if judged.is_ok() && job.0.timed_out.get() {
                return Err(format!("{job:?} has failed by its timeout, and {verdict:?} was accepted"));
            }
        }
        Ok(())
    }

    /// What may still be settled, as far as the worker knows.
    fn again(&self, settles: Sent, error: &Error) -> (Verdicts, bool) {
        let may_pass = matches!(error.kind(), ErrorKind::StoreUnavailable | ErrorKind::Indeterminate);
        let now = self.scene.now;
        let lives = |(job, verdict, earlier): (SimJob, Verdict, Earlier)| {
            job.0.settling.borrow_mut().failed(earlier, error);
            let lives = now < job.0.state.borrow().deadline();
            lives.then_some((job, verdict))
        };
        (settles.into_iter().filter_map(lives).collect(), may_pass)
    }

    pub(super) fn abandon_claim(&mut self, client: usize) {
        let is_claim = |op: &mut Op| matches!(op.kind, OpKind::Claim(..));
        for mut op in self.workers[client].ops.extract_if(.., is_claim).collect::<Vec<_>>() {
            self.clean_up_after(client, &mut op);
        }
    }

    pub(super) fn wake(&mut self, client: usize) -> Played {
        let ids: Vec<u64> = self.workers[client].ops.iter().map(|op| op.id).collect();
        for id in ids {
            self.give_up_on_replies(client, id);
            self.step(client, id)?;
        }
        self.scene.care_for_errands(client);
        if self.workers[client].is_out {
            return Ok(());
        }
        self.care_for_leases(client);
        self.work(client)
    }

    fn give_up_on_replies(&mut self, client: usize, id: u64) {
        let now = self.scene.now;
        let Some(op) = self.workers[client].ops.iter_mut().find(|op| op.id == id) else { return };
        if !self.scene.processes[client].drops_late_replies {
            return;
        }
        for (number, until) in mem::take(&mut op.awaited) {
            if until <= now {
                op.kind.reply(now, number, Err(Failure::new(FailureKind::Lost, "no answer")));
            } else {
                op.awaited.push((number, until));
            }
        }
    }

    pub(super) fn deliver(
        &mut self,
        client: usize,
        route: Route,
        number: u32,
        result: Result<Reply, Failure>,
    ) -> Played {
        match route {
            Route::Op(id) => {
                let drops_late_replies = self.scene.processes[client].drops_late_replies;
                let Some(op) = self.workers[client].ops.iter_mut().find(|op| op.id == id) else {
                    return Ok(());
                };
                let index = op.awaited.iter().position(|(awaited, _)| *awaited == number);
                if index.is_none() && drops_late_replies {
                    return Ok(());
                }
                index.map(|index| op.awaited.remove(index));
                op.kind.reply(self.scene.now, number, result);
                self.step(client, id)
            }
            Route::Renewal(id) => {
                self.renewed(client, id, number, &result);
                self.wake(client)
            }
            Route::Errand(id) => {
                self.scene.errand_answered(client, id, &result);
                Ok(())
            }
        }
    }

    pub(super) fn hinted(&mut self, client: usize, id: u64) -> Played {
        let drops_late_replies = self.scene.processes[client].drops_late_replies;
        let Some(op) = self.workers[client].ops.iter_mut().find(|op| op.id == id) else { return Ok(()) };
        if let OpKind::Claim(machine, _) = &mut op.kind {
            machine.hint();
            if op.awaited.is_empty() || !drops_late_replies {
                return self.step(client, id);
            }
        }
        Ok(())
    }
}
