//! Calls of the users: driven, finished, cancelled.

use stanchion::engine::Machine;
use stanchion::engine::claim::Claimed;
use stanchion::engine::settle::judge_settled;
use stanchion::protocol::{EnqueueOutcome, Failure, FailureKind, Outcome as Accepted, Settled, Verdict};
use stanchion::{Error, ErrorKind};

use super::client::{Asked, Outcome};
use super::ledger::same_kind;
use super::*;

impl World<'_> {
    /// Does what the machine of a running call asks.
    pub(super) fn step(&mut self, client: usize, id: u64) -> Played {
        let ops = &mut self.clients[client].ops;
        let Some(index) = ops.iter().position(|op| op.id == id) else { return Ok(()) };
        let mut op = ops.remove(index);
        loop {
            match op.kind.step(self.scene.now) {
                Asked::Send(number, request, until) => {
                    self.tally.resent += u64::from(number > 1 && !matches!(op.kind, OpKind::Claim { .. }));
                    let request = self.noted(&mut op.kind, number, request);
                    op.awaited.push((number, until));
                    self.scene.send(client, Route::Op(id), number, request);
                    self.scene.wake_at(client, until);
                    break;
                }
                Asked::Listen => match &mut op.kind {
                    OpKind::Claim { machine, .. } => machine.listening(),
                    OpKind::Result { machine, .. } => machine.listening(),
                    OpKind::Events { machine, .. } => machine.listening(),
                    _ => {}
                },
                Asked::Wait(until) => {
                    let relies_on_hints =
                        self.mutant == Some(Mutant::NeverPolls) && matches!(op.kind, OpKind::Claim { .. });
                    if !relies_on_hints || !op.awaited.is_empty() {
                        self.scene.wake_at(client, until);
                    }
                    break;
                }
                Asked::Done(outcome) => {
                    self.clean_up_after(client, &mut op);
                    let pause = self.scene.between(0, 200);
                    self.scene.act_after(client, if self.scene.calm { Duration::ZERO } else { pause });
                    return self.finish(client, op, outcome);
                }
            }
        }
        self.clients[client].ops.push(op);
        Ok(())
    }

    /// Notes what is sent, and lets mutants change it.
    fn noted(&mut self, kind: &mut OpKind, number: u32, mut request: Request) -> Request {
        let Request::Queue(QueueRequest { verb, .. }) = &mut request else { return request };
        match (kind, verb) {
            (OpKind::Claim { last, .. }, QueueVerb::Claim(claim) | QueueVerb::SettleAndClaim(_, claim)) => {
                self.tally.resent += u64::from(*last == claim.call);
                *last = claim.call;
            }
            (OpKind::Enqueue { .. }, QueueVerb::Enqueue(enqueue))
                if self.mutant == Some(Mutant::RetryIsNewCall) =>
            {
                enqueue.call.slot += 1_000 * (number - 1);
            }
            _ => {}
        }
        request
    }

    fn clean_up_after(&mut self, client: usize, op: &mut Op) {
        while let Some(request) = op.kind.abandon() {
            self.scene.run_errand(client, request);
        }
    }

    fn finish(&mut self, client: usize, op: Op, outcome: Outcome) -> Played {
        match (op.kind, outcome) {
            (OpKind::Enqueue { call, bodies, .. }, Outcome::Answered(result)) => {
                self.clients[client].slots.give_back(call);
                self.enqueued(&bodies, result.map(|answer| answer.reply))?;
                self.produced(client, &bodies)
            }
            (OpKind::Claim { machine, lease, renews, settles, last, .. }, Outcome::Claimed(result)) => {
                match machine.free_slot() {
                    Some(slot) => self.clients[client].slots.give_back(slot),
                    None if self.mutant == Some(Mutant::ReusesSlot) => {
                        self.clients[client].slots.give_back(last);
                    }
                    None => {}
                }
                match result {
                    Ok(claimed) => self.claimed(client, claimed, lease, renews, settles),
                    Err(_) => {
                        settles.into_iter().for_each(|(held, verdict)| self.unsettled(client, held, verdict));
                        Ok(())
                    }
                }
            }
            (OpKind::Settle { held, verdict, .. }, Outcome::Answered(Ok(answer))) => match answer.reply {
                Reply::Queue(QueueReply::Settle(settled)) => {
                    self.judge(&held, &verdict, settled[0], answer.copies > 1)
                }
                other => Err(format!("a settle was answered by {other:?}")),
            },
            (OpKind::Settle { held, verdict, .. }, Outcome::Answered(Err(_))) => {
                self.unsettled(client, held, verdict);
                Ok(())
            }
            (OpKind::Result { id, .. }, Outcome::Result(result)) => self.calm.heard(&id, result),
            (OpKind::Events { queue, .. }, Outcome::Events(result)) => self.watched(client, queue, result),
            _ => Ok(()),
        }
    }

    fn enqueued(&mut self, bodies: &[Body], result: Result<Reply, Error>) -> Played {
        match result {
            Ok(Reply::Queue(QueueReply::Enqueue(outcomes))) => {
                for (body, outcome) in bodies.iter().zip(outcomes) {
                    if let EnqueueOutcome::Accepted {
                        outcome: Accepted::Added | Accepted::Replaced | Accepted::Successor,
                        ..
                    } = outcome
                        && !self.ledger.knows(*body)
                    {
                        return Err(format!("Q1: {body:?} was acknowledged and not accepted"));
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => {
                self.refused.extend(bodies.iter().filter(|body| !body.is_common()));
            }
            _ => {}
        }
        Ok(())
    }

    fn claimed(
        &mut self,
        client: usize,
        claimed: Claimed,
        lease: Duration,
        renews: bool,
        settles: Vec<(Held, Verdict)>,
    ) -> Played {
        if claimed.settled.len() != settles.len() {
            return Err(format!("{} settlements, {} outcomes", settles.len(), claimed.settled.len()));
        }
        for ((held, verdict), settled) in settles.iter().zip(&claimed.settled) {
            self.judge(held, verdict, *settled, false)?;
        }
        claimed.tasks.into_iter().try_for_each(|one| self.begin_work(client, one, lease, renews))
    }

    /// A worker hears what became of its verdict.
    fn judge(&mut self, held: &Held, verdict: &Verdict, settled: Settled, resent: bool) -> Played {
        let same_before = held.sent.iter().all(|sent| same_kind(sent, verdict));
        let resent = same_before && (resent || !held.sent.is_empty());
        let now = self.scene.now;
        let judged = judge_settled(settled, resent, now, held.state.deadline());
        self.tally.stale += u64::from(judged.is_err());
        self.ledger.judged(now, held.queue, held.task.receipt, verdict, &judged, resent)
    }

    /// No answer came: the worker tries again, mostly, and sometimes says something else.
    fn unsettled(&mut self, client: usize, mut held: Held, verdict: Verdict) {
        if held.sent.len() >= 2 || self.scene.once_in(4) {
            return;
        }
        held.verdict = Some(if self.scene.once_in(6) { Verdict::Ack } else { verdict.clone() });
        held.sent.push(verdict);
        held.ends = self.scene.now + self.scene.between(0, 500);
        self.scene.wake_at(client, held.ends);
        self.clients[client].tasks.push(held);
    }

    pub(super) fn wake(&mut self, client: usize) -> Played {
        let ids: Vec<u64> = self.clients[client].ops.iter().map(|op| op.id).collect();
        for id in ids {
            self.give_up_on_replies(client, id);
            self.step(client, id)?;
        }
        self.care_for_tasks(client)?;
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
            Route::Renewal(id) => self.renewed(client, id, number, &result),
            Route::Errand(id) => {
                self.scene.errand_answered(client, id, &result);
                Ok(())
            }
        }
    }

    pub(super) fn hinted(&mut self, client: usize, id: u64) -> Played {
        let drops_late_replies = self.scene.processes[client].drops_late_replies;
        let Some(op) = self.clients[client].ops.iter_mut().find(|op| op.id == id) else { return Ok(()) };
        match &mut op.kind {
            OpKind::Claim { machine, .. } => machine.hint(),
            OpKind::Result { machine, .. } => machine.hint(),
            OpKind::Events { machine, .. } => machine.hint(),
            _ => return Ok(()),
        }
        if op.awaited.is_empty() || !drops_late_replies {
            return self.step(client, id);
        }
        Ok(())
    }

    pub(super) fn cancel(&mut self, client: usize) -> Played {
        let count = self.clients[client].ops.len();
        if count > 0 {
            let index = self.scene.rng.usize(0..count);
            self.cancel_op(client, index);
        }
        let pause = self.scene.between(0, 500);
        self.scene.act_after(client, pause);
        Ok(())
    }

    /// The call is dropped: what it left behind is cleaned up, its slot is not used again.
    pub(super) fn cancel_op(&mut self, client: usize, index: usize) {
        let mut op = self.clients[client].ops.remove(index);
        if self.mutant == Some(Mutant::CancelForgets) {
            return;
        }
        if let (Some(Mutant::ReusesSlot), OpKind::Claim { last, .. }) = (self.mutant, &op.kind) {
            self.clients[client].slots.give_back(*last);
        }
        self.clean_up_after(client, &mut op);
    }
}
