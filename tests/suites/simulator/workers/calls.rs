//! The worker's calls: what its driver does.

use std::mem;

use stanchion::engine::call::CallMachine;
use stanchion::engine::claim::{ClaimMachine, ClaimParams, Claimed};
use stanchion::engine::{Machine, Step};
use stanchion::protocol::{Failure, FailureKind, Settle, Settled, Settlement, Verdict};
use stanchion::wake::Place;
use stanchion::{Error, ErrorKind};

use super::worker::SimJob;
use super::*;
use crate::scene::Route;

const TIMEOUT: Duration = Duration::from_secs(3);

type Verdicts = Vec<(SimJob, Verdict)>;

/// A call in progress.
pub struct Op {
    pub id: u64,
    pub kind: OpKind,
    settles: Verdicts,
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
    Settled(Result<Reply, Error>),
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
            Self::Settle(machine) => {
                asked(machine.step(now), |answer| Asked::Settled(answer.map(|answer| answer.reply)))
            }
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

impl World<'_> {
    pub(super) fn claim(&mut self, client: usize, max: usize, wait: Duration, settles: Verdicts) -> Played {
        let settle = self.sent(&settles)?;
        let place = self.stores.enter(client);
        let order = ClaimParams {
            queues: vec![self.queue.clone()],
            max: u32::try_from(max).unwrap(),
            lease: self.workers[client].lease,
            wait,
            timeout: TIMEOUT,
            patient: false,
            settle: (!settles.is_empty()).then_some(settle),
            waiter: place.waiter(),
            consumer: format!("{client} host ").into(),
            clock_stands: false,
            slot: self.workers[client].slots.take(),
        };
        let machine = Box::new(ClaimMachine::new(order, self.scene.now, true, self.scene.jitter()));
        self.start(client, OpKind::Claim(machine, place), settles)
    }

    pub(super) fn settle(&mut self, client: usize, settles: Verdicts) -> Played {
        let settle = self.sent(&settles)?;
        let request = self.queue_request(QueueVerb::Settle(settle));
        let now = self.scene.now;
        let machine = Box::new(CallMachine::new(request, now, now + TIMEOUT, self.scene.jitter()));
        self.start(client, OpKind::Settle(machine), settles)
    }

    /// From now on the verdicts count, not the leases.
    fn sent(&mut self, settles: &Verdicts) -> Played<Settle> {
        for (job, verdict) in settles {
            if job.0.signalled.get() && matches!(verdict, Verdict::Nack { .. }) {
                return Err(format!("a stop burnt an attempt of {job:?}"));
            }
            self.tally.put_back += u64::from(matches!(verdict, Verdict::PutBack { .. }));
            job.0.state.borrow_mut().end();
        }
        let settlement = |(job, verdict): &(SimJob, Verdict)| Settlement {
            id: job.0.task.id.clone(),
            receipt: job.0.task.receipt,
            verdict: verdict.clone(),
        };
        Ok(Settle { items: settles.iter().map(settlement).collect() })
    }

    fn start(&mut self, client: usize, kind: OpKind, settles: Verdicts) -> Played {
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
                self.check_settled(&claimed.settled, &op.settles)?;
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

    fn settled(&mut self, client: usize, op: Op, result: Result<Reply, Error>) -> Played {
        let failure = match result {
            Ok(Reply::Queue(QueueReply::Settle(settled))) => {
                self.check_settled(&settled, &op.settles)?;
                None
            }
            Ok(other) => return Err(format!("a settle was answered by {other:?}")),
            Err(error) => Some(self.again(op.settles, &error)),
        };
        self.workers[client].machine.settled(self.scene.now, failure);
        self.scene.wake_at(client, self.scene.now);
        Ok(())
    }

    fn check_settled(&self, settled: &[Settled], settles: &Verdicts) -> Played {
        if settled.len() != settles.len() {
            return Err(format!("{} settlements, {} outcomes", settles.len(), settled.len()));
        }
        Ok(())
    }

    /// What may still be settled, as far as the worker knows.
    fn again(&self, settles: Verdicts, error: &Error) -> (Verdicts, bool) {
        let may_pass = matches!(error.kind(), ErrorKind::StoreUnavailable | ErrorKind::Indeterminate);
        let now = self.scene.now;
        let lives = |(job, _): &(SimJob, Verdict)| now < job.0.state.borrow().deadline();
        (settles.into_iter().filter(lives).collect(), may_pass)
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
