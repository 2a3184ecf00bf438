//! Claimed tasks in use: renewed, lost, settled, or dropped.

use stanchion::engine::claim::ClaimedOne;
use stanchion::engine::lease::{LeaseState, LeaseTerms, Need};
use stanchion::engine::leased::{Leased, TaskLease};
use stanchion::protocol::{Failure, FailureKind, Settle, Verdict};

use super::acts::settlement;
use super::*;

impl World<'_> {
    pub(super) fn begin_work(
        &mut self,
        client: usize,
        one: ClaimedOne,
        lease: Duration,
        renews: bool,
    ) -> Played {
        let ClaimedOne { queue: name, task, deadline } = one;
        let now = self.scene.now;
        let queue = self.queues.iter().position(|queue| *queue == name).unwrap();
        let deadline = match self.mutant {
            Some(Mutant::DeadlineFromReply) => now + task.remaining,
            Some(Mutant::IgnoresDeadline) => deadline + lease * 4,
            _ => deadline,
        };
        self.ledger.began(now, queue, &task, deadline)?;
        self.calm.delivered(Body::read(&task.body));
        let leased = TaskLease { queue: name, id: task.id.clone(), receipt: task.receipt };
        let hold_until = renews.then_some(now + lease * 3);
        let terms =
            LeaseTerms { leased: Leased::Task(leased), ttl: lease, deadline, hold_until, timeout: None };
        let most_ms = if self.long_leases { 3_000 } else { 2 * u64::try_from(lease.as_millis()).unwrap() };
        let work = if self.scene.calm { self.scene.between(1, 20) } else { self.scene.between(0, most_ms) };
        let held = Held {
            id: self.scene.processes[client].next_id(),
            queue,
            task,
            state: LeaseState::new(terms, now),
            ends: now + work,
            verdict: self.plan(),
            sent: Vec::new(),
            renewal: None,
            renewals: 0,
        };
        self.scene.wake_at(client, held.state.due());
        self.scene.wake_at(client, held.ends);
        self.clients[client].tasks.push(held);
        Ok(())
    }

    /// What a worker will say in the end; nothing if it forgets the task.
    fn plan(&mut self) -> Option<Verdict> {
        if self.scene.calm {
            let result = self.next_body().bytes();
            return Some(Verdict::AckWith { result, keep: Duration::from_secs(600) });
        }
        match self.scene.rng.u32(0..20) {
            0..8 => Some(Verdict::Ack),
            8..11 => {
                let result = self.next_body().bytes();
                Some(Verdict::AckWith { result, keep: self.scene.between(100, 9_000) })
            }
            11..15 => Some(Verdict::Nack { delay: self.scene.between(0, 1_000), reason: "failed".into() }),
            15 => Some(Verdict::Bury { reason: "buried".into() }),
            16 => Some(Verdict::PUT_BACK),
            17 => Some(Verdict::PutBack { delay: self.scene.between(0, 1_000) }),
            _ => None,
        }
    }

    /// As the keeper and the workers do.
    pub(super) fn care_for_tasks(&mut self, client: usize) -> Played {
        let ids: Vec<u64> = self.clients[client].tasks.iter().map(|held| held.id).collect();
        ids.into_iter().try_for_each(|id| self.care_for_task(client, id))
    }

    fn care_for_task(&mut self, client: usize, id: u64) -> Played {
        let now = self.scene.now;
        let tasks = &mut self.clients[client].tasks;
        let Some(index) = tasks.iter().position(|held| held.id == id) else { return Ok(()) };
        if now >= tasks[index].ends {
            let held = tasks.remove(index);
            return self.end_work(client, held);
        }
        let held = &mut tasks[index];
        if let Some((_, sent, until)) = held.renewal {
            if now < until {
                // A loss is announced even while a renewal is on its way.
                let deadline = held.state.deadline();
                if now < deadline {
                    self.scene.wake_at(client, deadline);
                } else {
                    let need = held.state.need(now);
                    self.follow(client, id, need);
                }
                return Ok(());
            }
            held.renewal = None;
            let need = held.state.extended(now, sent, &Err(Failure::new(FailureKind::Lost, "no answer")));
            self.follow(client, id, need);
            return Ok(());
        }
        let need = held.state.need(now);
        self.follow(client, id, need);
        Ok(())
    }

    fn follow(&mut self, client: usize, id: u64, need: Need) {
        let now = self.scene.now;
        let Some(held) = self.clients[client].tasks.iter_mut().find(|held| held.id == id) else { return };
        match need {
            Need::Nothing(until) => self.scene.wake_at(client, until),
            Need::Renew(request) => {
                let until = now + Duration::from_secs(1);
                held.renewals += 1;
                held.renewal = Some((held.renewals, now, until));
                let (number, deadline) = (held.renewals, held.state.deadline());
                self.scene.wake_at(client, until.min(deadline));
                self.scene.send(client, Route::Renewal(id), number, request);
            }
            Need::Announce(_) => {
                // Its worker goes on, and may settle late.
                self.tally.losses += 1;
                self.ledger.stopped(now, held.queue, held.task.receipt);
            }
            Need::Forget => {}
        }
    }

    pub(super) fn renewed(
        &mut self,
        client: usize,
        id: u64,
        number: u32,
        result: &Result<Reply, Failure>,
    ) -> Played {
        let now = self.scene.now;
        let Some(held) = self.clients[client].tasks.iter_mut().find(|held| held.id == id) else {
            return Ok(());
        };
        let Some((_, sent, _)) = held.renewal.filter(|(awaited, ..)| *awaited == number) else {
            return Ok(());
        };
        held.renewal = None;
        let need = held.state.extended(now, sent, result);
        let (queue, receipt, deadline) = (held.queue, held.task.receipt, held.state.deadline());
        self.ledger.prolonged(queue, receipt, deadline);
        self.follow(client, id, need);
        Ok(())
    }

    fn end_work(&mut self, client: usize, held: Held) -> Played {
        match held.verdict.clone() {
            // The claim is dropped: what the session does then is an errand.
            Some(verdict @ Verdict::Nack { .. }) if held.sent.is_empty() && self.scene.once_in(3) => {
                self.ledger.stopped(self.scene.now, held.queue, held.task.receipt);
                let items = [settlement(&held, &verdict)].into();
                let request = self.queue_request(held.queue, QueueVerb::Settle(Settle { items }));
                self.scene.run_errand(client, request);
                Ok(())
            }
            Some(verdict) => self.settle(client, held, verdict),
            None => {
                self.ledger.stopped(self.scene.now, held.queue, held.task.receipt);
                Ok(())
            }
        }
    }

    /// A running worker knows of a loss no later than the deadline.
    pub(super) fn check_losses(&self) -> Played {
        for (client, process) in self.clients.iter().zip(&self.scene.processes) {
            for held in &client.tasks {
                let believes = held.state.status(self.scene.now) == stanchion::engine::lease::Status::Held;
                if believes && process.frozen_until < self.scene.now && held.state.deadline() < self.scene.now
                {
                    return Err("the deadline of a claim has passed and its worker does not know".into());
                }
            }
        }
        Ok(())
    }
}
