//! What happens at the store, and what mutants make of it.

use stanchion::protocol::{
    ClaimReply, Configure, Due, Get, List, NewTask, OnDuplicate, Receipt, Remove, Reschedule, Settle,
    Settled, Settlement, TaskRecord, TaskState, Verdict,
};

use super::ledger::{Performed, is_ack};
use super::*;

impl World<'_> {
    /// The store carries out a request of this life of the client, and everything is checked.
    pub(super) fn perform(&mut self, client: usize, life: u32, request: &Request) -> Played<Reply> {
        let Request::Queue(QueueRequest { queue: name, verb }) = request else {
            return Err("only queues".into());
        };
        let queue = self.queues.iter().position(|queue| queue == name).unwrap();
        let most = self.ledger.max_len.get(&queue).copied();
        let most = most.filter(|_| matches!(verb, QueueVerb::Enqueue(_)));
        let before = most.map(|_| self.live(client, queue)).transpose()?;
        let drops = matches!(verb, QueueVerb::RemoveDead(_));
        let dead = if drops { self.dead(client, queue)? } else { Vec::new() };
        let reply = self.mutated_store(client, queue, verb)?;
        if let (Some(most), Some(before)) = (most, before) {
            let live = self.live(client, queue)?;
            if live > most.max(before) {
                return Err(format!("V4: {live} ids live after an enqueue, and {most} may"));
            }
        }
        if let QueueReply::RemoveDead(swept) = &reply {
            self.ledger.dropped(queue, swept.count, dead, &self.dead(client, queue)?)?;
        }
        let now = self.time();
        let step = Performed {
            now: self.scene.now,
            wall_ms: now.wall / 1_000,
            queue,
            by: (client, life),
            verb,
            reply: &reply,
        };
        self.ledger.performed(&step)?;
        let as_modelled = self.models[queue].perform(now, verb, &reply);
        if !self.mutant.is_some_and(Mutant::is_for_the_ledger) {
            as_modelled?;
        }
        for receipt in std::mem::take(&mut self.models[queue].ended) {
            self.ledger.lease_ended(queue, receipt, |client| self.scene.processes[client].life)?;
        }
        self.calm.performed(self.scene.now, verb);
        self.note_unseen();
        self.count(&reply);
        Ok(Reply::Queue(reply))
    }

    fn count(&mut self, reply: &QueueReply) {
        self.tally.store_steps += 1;
        if let QueueReply::Settle(settled) | QueueReply::SettleAndClaim(settled, _) = reply {
            for settled in settled {
                let Settled::Done { late, dead } = *settled else { continue };
                self.tally.late += u64::from(late);
                self.tally.deaths += u64::from(dead);
            }
        }
    }

    fn store(&self, client: usize, queue: usize, verb: &QueueVerb) -> Played<QueueReply> {
        match self.stores.perform(client, &self.queue_request(queue, verb.clone()))? {
            Reply::Queue(reply) => Ok(reply),
            other => Err(format!("a queue answered {other:?}")),
        }
    }

    fn mutated_store(&mut self, client: usize, queue: usize, verb: &QueueVerb) -> Played<QueueReply> {
        let Some(mutant) = self.mutant else { return self.store(client, queue, verb) };
        let mut verb = verb.clone();
        match (mutant, &mut verb) {
            (Mutant::LeaseEndUncounted, QueueVerb::Claim(_)) => self.put_back_ended(client, queue)?,
            (Mutant::PromotesEarly, QueueVerb::Claim(_)) => self.hurry(client, queue)?,
            (Mutant::HotIdLosesItsTurn | Mutant::BackoffErased, QueueVerb::Enqueue(enqueue)) => {
                for task in &*enqueue.tasks {
                    self.displace(client, queue, task, mutant)?;
                }
            }
            (Mutant::PutBackCounts, QueueVerb::Settle(settle)) => count_put_backs(settle),
            (Mutant::PassesMaxLen, QueueVerb::Enqueue(_)) => {
                self.limit(client, queue, None)?;
                let reply = self.store(client, queue, &verb)?;
                self.limit(client, queue, self.ledger.max_len.get(&queue).copied())?;
                return Ok(reply);
            }
            (Mutant::AbandonIgnored, QueueVerb::Abandon(_)) => return Ok(QueueReply::Abandon),
            (Mutant::CopyClaimsMore, QueueVerb::Claim(claim)) => {
                let copies = self.copies.entry(claim.call).or_default();
                claim.call.slot += 1_000 * *copies;
                *copies += 1;
            }
            (Mutant::LateSettleRefused, QueueVerb::Settle(settle)) => {
                let Settlement { id, receipt, .. } = &settle.items[0];
                let task = self.look_at(client, queue, id)?;
                if task.is_some_and(|task| task.receipt == *receipt && task.state == TaskState::Ready) {
                    return Ok(QueueReply::Settle(vec![Settled::Stale; settle.items.len()]));
                }
            }
            _ => {}
        }
        let mut reply = self.store(client, queue, &verb)?;
        match (mutant, &verb, &mut reply) {
            (Mutant::StaleAckAccepted, QueueVerb::Settle(settle), QueueReply::Settle(settled)) => {
                self.ack_anyway(client, queue, &settle.items[0], &mut settled[0])?;
            }
            (Mutant::SuccessorLost | Mutant::AckEndsWindow, QueueVerb::Settle(settle), _)
                if is_ack(&settle.items[0].verdict) =>
            {
                let id = settle.items[0].id.clone();
                if mutant == Mutant::SuccessorLost || self.look_at(client, queue, &id)?.is_none() {
                    self.store(client, queue, &QueueVerb::Remove(Remove { id, version: None }))?;
                }
            }
            (Mutant::BodiesSwapped, _, QueueReply::Claim(ClaimReply::Claimed(tasks))) if tasks.len() > 1 => {
                let first = tasks[0].body.clone();
                tasks[0].body = std::mem::replace(&mut tasks[1].body, first);
            }
            _ => {}
        }
        Ok(reply)
    }

    /// How many ids live.
    fn live(&self, client: usize, queue: usize) -> Played<u64> {
        match self.store(client, queue, &QueueVerb::Stats)? {
            QueueReply::Stats(stats) => Ok(stats.scheduled + stats.ready + stats.claimed),
            other => Err(format!("stats answered {other:?}")),
        }
    }

    fn dead(&self, client: usize, queue: usize) -> Played<Vec<TaskRecord>> {
        match self.store(client, queue, &every_dead())? {
            QueueReply::List(page) => Ok(page.tasks),
            other => Err(format!("list answered {other:?}")),
        }
    }

    /// Changes how many ids may live behind everybody's back.
    fn limit(&self, client: usize, queue: usize, most: Option<u64>) -> Played {
        let configure = Configure { max_len: Some(most), ..Configure::default() };
        self.store(client, queue, &QueueVerb::Configure(configure)).map(drop)
    }

    fn look_at(&self, client: usize, queue: usize, id: &TaskId) -> Played<Option<TaskRecord>> {
        match self.store(client, queue, &QueueVerb::Get(Get { id: id.clone() }))? {
            QueueReply::Get(task) => Ok(task.map(|task| *task)),
            other => Err(format!("{other:?}")),
        }
    }

    fn settle_quietly(&self, client: usize, queue: usize, item: Settlement) -> Played {
        self.store(client, queue, &QueueVerb::Settle(Settle { items: [item].into() })).map(drop)
    }

    fn put_back_ended(&self, client: usize, queue: usize) -> Played {
        for id in &self.ids {
            let task = self.look_at(client, queue, id)?;
            if let Some(task) =
                task.filter(|task| task.state == TaskState::Ready && task.receipt > Receipt::NONE)
            {
                let item = Settlement { id: id.clone(), receipt: task.receipt, verdict: Verdict::PUT_BACK };
                self.settle_quietly(client, queue, item)?;
            }
        }
        Ok(())
    }

    fn hurry(&self, client: usize, queue: usize) -> Played {
        for id in &self.ids {
            let task = self.look_at(client, queue, id)?;
            let soon = self.time().wall / 1_000 + 500;
            if task.is_some_and(|task| task.state == TaskState::Scheduled && task.due < soon) {
                let verb = QueueVerb::Reschedule(Reschedule { id: id.clone(), due: Due::Now });
                self.store(client, queue, &verb)?;
            }
        }
        Ok(())
    }

    /// A task that is about to be replaced is taken out of line, or its back-off is over.
    fn displace(&self, client: usize, queue: usize, task: &NewTask, mutant: Mutant) -> Played {
        let Some(found) = self.look_at(client, queue, &task.id)? else { return Ok(()) };
        let is_asked = matches!(task.on_duplicate, OnDuplicate::Replace | OnDuplicate::Debounce { .. });
        let due = match (mutant, found.state) {
            (Mutant::HotIdLosesItsTurn, TaskState::Ready) => Due::In(Duration::from_millis(1)),
            (Mutant::BackoffErased, TaskState::Scheduled) => Due::At(found.due),
            _ => return Ok(()),
        };
        if is_asked && found.receipt == Receipt::NONE {
            let verb = QueueVerb::Reschedule(Reschedule { id: task.id.clone(), due });
            self.store(client, queue, &verb)?;
        }
        Ok(())
    }

    fn ack_anyway(&self, client: usize, queue: usize, item: &Settlement, settled: &mut Settled) -> Played {
        let task = self.look_at(client, queue, &item.id)?.filter(|task| task.state != TaskState::Dead);
        if let (Settled::Stale, true, Some(task)) = (*settled, is_ack(&item.verdict), task)
            && task.receipt > Receipt::NONE
        {
            self.settle_quietly(client, queue, Settlement { receipt: task.receipt, ..item.clone() })?;
            *settled = Settled::Done { late: false, dead: false };
        }
        Ok(())
    }
}

fn count_put_backs(settle: &mut Settle) {
    let counted = |item: &Settlement| match item.verdict {
        Verdict::PutBack { .. } => {
            let verdict = Verdict::Nack { delay: Duration::ZERO, reason: "".into() };
            Settlement { verdict, ..item.clone() }
        }
        _ => item.clone(),
    };
    settle.items = settle.items.iter().map(counted).collect();
}

/// All dead tasks of a queue: there are not more of them in a schedule than in a page.
pub(super) fn every_dead() -> QueueVerb {
    let state = TaskState::Dead;
    QueueVerb::List(List { state, prefix: "".into(), bodies: true, from: None, max: 1_000 })
}
