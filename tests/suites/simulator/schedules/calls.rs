//! Calls of the users: driven, finished, cancelled.

use stanchion::engine::claim::Claimed;
use stanchion::engine::{Machine, Step};
use stanchion::protocol::{Failure, FailureKind};

use super::*;
use crate::scene::Route;

/// A step of either machine.
enum Asked {
    Send(u32, Request, Moment),
    Listen,
    Wait(Moment),
    Done(Option<Claimed>),
}

impl Asked {
    fn of<T>(step: Step<T>, claimed: impl FnOnce(T) -> Option<Claimed>) -> Self {
        match step {
            Step::Send(call) => Self::Send(call.number, call.request, call.until),
            Step::Listen => Self::Listen,
            Step::Wait { until, .. } => Self::Wait(until),
            Step::Done(result) => Self::Done(result.ok().and_then(claimed)),
        }
    }
}

impl OpKind {
    fn step(&mut self, now: Moment) -> Asked {
        match self {
            Self::Claim { machine, .. } => Asked::of(machine.step(now), Some),
            Self::Call(machine) => Asked::of(machine.step(now), |_| None),
        }
    }

    fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>) {
        match self {
            Self::Claim { machine, .. } => machine.reply(now, number, result),
            Self::Call(machine) => machine.reply(now, number, result),
        }
    }

    fn abandon(&mut self) -> Option<Request> {
        match self {
            Self::Claim { machine, .. } => machine.abandon(),
            Self::Call(machine) => machine.abandon(),
        }
    }
}

impl World<'_> {
    /// Does what the machine of a running call asks.
    pub(super) fn step(&mut self, client: usize, id: u64) -> Played {
        let ops = &mut self.clients[client].ops;
        let Some(index) = ops.iter().position(|op| op.id == id) else { return Ok(()) };
        let mut op = ops.remove(index);
        loop {
            match op.kind.step(self.scene.now) {
                Asked::Send(number, request, until) => {
                    self.note(&mut op.kind, &request);
                    op.awaited.push((number, until));
                    self.scene.send(client, Route::Op(id), number, request);
                    self.scene.wake_at(client, until);
                    break;
                }
                Asked::Listen => {
                    if let OpKind::Claim { machine, .. } = &mut op.kind {
                        machine.listening();
                    }
                }
                Asked::Wait(until) => {
                    self.scene.wake_at(client, until);
                    break;
                }
                Asked::Done(claimed) => return self.finish(client, op, claimed),
            }
        }
        self.clients[client].ops.push(op);
        Ok(())
    }

    fn note(&self, kind: &mut OpKind, request: &Request) {
        let Request::Queue(QueueRequest { verb: QueueVerb::Claim(claim), .. }) = request else { return };
        if let OpKind::Claim { last, .. } = kind {
            *last = claim.call;
        }
    }

    fn finish(&mut self, client: usize, mut op: Op, claimed: Option<Claimed>) -> Played {
        self.clean_up_after(client, &mut op);
        if let OpKind::Claim { machine, .. } = &op.kind
            && let Some(slot) = machine.free_slot()
        {
            self.clients[client].slots.give_back(slot);
        }
        let pause = if self.scene.calm { Duration::ZERO } else { self.scene.between(0, 200) };
        self.scene.act_after(client, pause);
        match claimed {
            Some(claimed) => self.settle(client, claimed.tasks.into_iter().map(|one| one.task).collect()),
            None => Ok(()),
        }
    }

    fn clean_up_after(&mut self, client: usize, op: &mut Op) {
        while let Some(request) = op.kind.abandon() {
            self.scene.run_errand(client, request);
        }
    }

    pub(super) fn cancel_op(&mut self, client: usize, index: usize) {
        let mut op = self.clients[client].ops.remove(index);
        self.clean_up_after(client, &mut op);
    }

    pub(super) fn wake(&mut self, client: usize) -> Played {
        let ids: Vec<u64> = self.clients[client].ops.iter().map(|op| op.id).collect();
        for id in ids {
            self.give_up_on_replies(client, id);
            self.step(client, id)?;
        }
        self.scene.care_for_errands(client);
        Ok(())
    }

    /// As the drivers do: a reply that has not come in time counts as lost.
    fn give_up_on_replies(&mut self, client: usize, id: u64) {
        let now = self.scene.now;
        if !self.scene.processes[client].drops_late_replies {
            return;
        }
        let Some(op) = self.clients[client].ops.iter_mut().find(|op| op.id == id) else { return };
        while let Some(index) = op.awaited.iter().position(|(_, until)| *until <= now) {
            let (number, _) = op.awaited.remove(index);
            op.kind.reply(now, number, Err(Failure::new(FailureKind::Lost, "no answer")));
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
                let Some(op) = self.clients[client].ops.iter_mut().find(|op| op.id == id) else {
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
            Route::Renewal(_) => Ok(()),
            Route::Errand(id) => {
                self.scene.errand_answered(client, id, &result);
                Ok(())
            }
        }
    }

    pub(super) fn hinted(&mut self, client: usize, id: u64) -> Played {
        let Some(op) = self.clients[client].ops.iter_mut().find(|op| op.id == id) else { return Ok(()) };
        if let OpKind::Claim { machine, .. } = &mut op.kind {
            machine.hint();
            return self.step(client, id);
        }
        Ok(())
    }
}
