//! The invariants of queues, checked on what was sent, performed and heard; without the model.

mod workers;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use stanchion::internals::Moment;
use stanchion::name::TaskId;
use stanchion::verbs::{
    CallId, Claim, ClaimReply, ClaimedTask, Enqueue, EnqueueOutcome, ExtendClaimReply, OnDuplicate, Outcome,
    QueueReply, QueueVerb, Receipt, Removed, RescheduleReply, Settled, Settlement, TaskRecord, Verdict,
};

use super::Body;
use crate::scene::Played;

/// A claim whose answer was lost is put back before the end of such a lease, unless its client died.
const LONG_LEASE: Duration = Duration::from_secs(15);

/// What happened so far, in all queues of a schedule.
#[derive(Default)]
pub struct Ledger {
    bodies: HashMap<Body, Fate>,
    deliveries: HashMap<(usize, Receipt), Delivery>,
    /// The deliveries of each task.
    of_task: HashMap<(usize, TaskId), Vec<Receipt>>,
    removals: Removals,
    calls: HashSet<(usize, CallId)>,
    pub heard: u64,
    pub redelivered: u64,
    pub unheard: u64,
}

/// When a task was last removed, and when all of a queue were.
#[derive(Default)]
struct Removals {
    one: HashMap<(usize, TaskId), Moment>,
    all: HashMap<usize, Moment>,
}

impl Removals {
    /// Whether the task was removed since then.
    fn since(&self, since: Moment, queue: usize, id: &TaskId) -> bool {
        let times = [self.one.get(&(queue, id.clone())), self.all.get(&queue)];
        times.into_iter().flatten().any(|at| *at >= since)
    }
}

/// What became of a task that was accepted.
struct Fate {
    queue: usize,
    id: TaskId,
    acked: bool,
    dead: bool,
    /// Another enqueue, or a remove, may have taken its place.
    replaced: bool,
    not_before: u64,
}

/// A task in somebody's hands.
struct Delivery {
    id: TaskId,
    body: Body,
    to: (usize, u32),
    call: CallId,
    at: Moment,
    lease: Duration,
    /// When its lease ends at the store.
    ends: Moment,
    settled: Option<Verdict>,
    /// As its worker sees it: until when it is valid, and when the worker stopped.
    heard: Option<(Moment, Option<Moment>)>,
}

/// One step at the store.
pub struct Performed<'a> {
    pub now: Moment,
    pub wall_ms: u64,
    pub queue: usize,
    /// The client and its life.
    pub by: (usize, u32),
    pub verb: &'a QueueVerb,
    pub reply: &'a QueueReply,
}

impl Ledger {
    /// The store has carried out a request.
    pub fn performed(&mut self, step: &Performed<'_>) -> Played {
        match (step.verb, step.reply) {
            (QueueVerb::Enqueue(verb), QueueReply::Enqueue(outcomes)) => self.enqueued(step, verb, outcomes),
            (QueueVerb::Claim(verb), QueueReply::Claim(reply)) => self.claimed(step, verb, reply),
            (QueueVerb::Settle(verb), QueueReply::Settle(settled)) => {
                self.settled(step, &verb.items, settled);
                Ok(())
            }
            (QueueVerb::SettleAndClaim(settle, claim), QueueReply::SettleAndClaim(settled, reply)) => {
                self.settled(step, &settle.items, settled);
                self.claimed(step, claim, reply)
            }
            (QueueVerb::ExtendClaim(verb), QueueReply::ExtendClaim(ExtendClaimReply::Extended(left))) => {
                if let Some(delivery) = self.deliveries.get_mut(&(step.queue, verb.receipt)) {
                    delivery.ends = step.now + *left;
                }
                Ok(())
            }
            (QueueVerb::Abandon(verb), _) => {
                self.abandoned(step.now, verb.call);
                Ok(())
            }
            (QueueVerb::Pop(_), QueueReply::Pop(Some(tasks))) => self.popped(step, tasks),
            (QueueVerb::Remove(verb), QueueReply::Remove(Removed::Removed)) => {
                self.removals.one.insert((step.queue, verb.id.clone()), step.now);
                self.replace(step.queue, Some(&verb.id));
                Ok(())
            }
            (QueueVerb::Reschedule(verb), QueueReply::Reschedule(RescheduleReply::Moved(_))) => {
                self.rescheduled(&verb.id);
                Ok(())
            }
            (QueueVerb::Purge, _) => {
                self.removals.all.insert(step.queue, step.now);
                self.replace(step.queue, None);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What the call took is put back.
    fn abandoned(&mut self, now: Moment, call: Option<CallId>) {
        let deliveries = self.deliveries.values_mut().filter(|delivery| call == Some(delivery.call));
        deliveries.for_each(|delivery| delivery.ends = delivery.ends.min(now));
    }

    fn rescheduled(&mut self, id: &TaskId) {
        let fates = self.bodies.values_mut().filter(|fate| fate.id == *id);
        fates.for_each(|fate| fate.not_before = 0);
    }

    fn enqueued(&mut self, step: &Performed<'_>, verb: &Enqueue, outcomes: &[EnqueueOutcome]) -> Played {
        if !self.calls.insert((step.queue, verb.call)) {
            return Ok(());
        }
        for (task, outcome) in verb.tasks.iter().zip(outcomes) {
            let EnqueueOutcome::Accepted { outcome, .. } = outcome else { continue };
            if !matches!(outcome, Outcome::Added | Outcome::Replaced | Outcome::Successor) {
                continue;
            }
            if matches!(task.on_duplicate, OnDuplicate::Replace | OnDuplicate::Debounce { .. }) {
                self.replace(step.queue, Some(&task.id));
            }
            let fate = Fate {
                queue: step.queue,
                id: task.id.clone(),
                acked: false,
                dead: false,
                replaced: false,
                not_before: 0,
            };
            let body = Body::read(&task.body);
            if self.bodies.insert(body, fate).is_some() && !body.is_common() {
                return Err(format!("Q1: an enqueue of {:?} was carried out twice", task.id));
            }
        }
        Ok(())
    }

    /// Whatever was accepted for this id so far, or for all, may be gone.
    fn replace(&mut self, queue: usize, id: Option<&TaskId>) {
        let fates = self.bodies.values_mut().filter(|fate| fate.queue == queue);
        fates.filter(|fate| id.is_none_or(|id| fate.id == *id)).for_each(|fate| fate.replaced = true);
    }

    fn claimed(&mut self, step: &Performed<'_>, verb: &Claim, reply: &ClaimReply) -> Played {
        let ClaimReply::Claimed(tasks) = reply else { return Ok(()) };
        // Not those that were given before: they are in a copy of that reply.
        let new = |task: &&ClaimedTask| !self.deliveries.contains_key(&(step.queue, task.receipt));
        let new: Vec<&ClaimedTask> = tasks.iter().filter(new).collect();
        for task in new {
            let key = (step.queue, task.receipt);
            let body = Body::read(&task.body);
            let what = format!("{:?} (attempt {})", task.id, task.attempt);
            self.check_delivery(step, &task.id, body, task.due, &what)?;
            if task.attempt == 0 || task.attempt > task.max_attempts {
                return Err(format!("Q9: {what} of {} attempts", task.max_attempts));
            }
            let of_task = self.of_task.entry((step.queue, task.id.clone())).or_default();
            for receipt in of_task.iter() {
                let other = &self.deliveries[&(step.queue, *receipt)];
                if other.settled.is_none()
                    && step.now < other.ends
                    && !self.removals.since(other.at, step.queue, &task.id)
                {
                    return Err(format!("Q3: {what} was delivered while receipt {receipt} had its lease"));
                }
            }
            self.redelivered += u64::from(task.attempt > 1);
            of_task.push(task.receipt);
            let delivery = Delivery {
                id: task.id.clone(),
                body,
                to: step.by,
                call: verb.call,
                at: step.now,
                lease: verb.lease,
                ends: step.now + verb.lease,
                settled: None,
                heard: None,
            };
            self.deliveries.insert(key, delivery);
        }
        Ok(())
    }

    fn check_delivery(&self, step: &Performed<'_>, id: &TaskId, body: Body, due: u64, what: &str) -> Played {
        let Some(fate) = self.bodies.get(&body).filter(|fate| fate.id == *id && fate.queue == step.queue)
        else {
            return Err(format!("Q2: {what} has the body {body:?}, which nobody enqueued for it"));
        };
        if fate.acked && !body.is_common() {
            return Err(format!("Q1: {what} was delivered after it was acked"));
        }
        if due > step.wall_ms || (fate.not_before > step.wall_ms && !body.is_common()) {
            return Err(format!("Q6: {what} was delivered before it was due"));
        }
        Ok(())
    }

    fn popped(&mut self, step: &Performed<'_>, tasks: &[TaskRecord]) -> Played {
        for task in tasks {
            let body = Body::read(&task.body);
            self.check_delivery(step, &task.id, body, task.due, &format!("{:?} (popped)", task.id))?;
            if let Some(fate) = self.bodies.get_mut(&body) {
                fate.acked = true;
            }
        }
        Ok(())
    }

    fn settled(&mut self, step: &Performed<'_>, items: &[Settlement], settled: &[Settled]) {
        for (item, settled) in items.iter().zip(settled) {
            let Settled::Done { dead, .. } = settled else { continue };
            let Some(delivery) = self.deliveries.get_mut(&(step.queue, item.receipt)) else { continue };
            if delivery.settled.is_some() {
                continue;
            }
            delivery.settled = Some(item.verdict.clone());
            let Some(fate) = self.bodies.get_mut(&delivery.body) else { continue };
            fate.acked |= item.verdict == Verdict::Ack;
            fate.dead |= dead;
            if let (Verdict::Nack { delay, .. }, false) = (&item.verdict, dead) {
                fate.not_before = step.wall_ms + u64::try_from(delay.as_millis()).unwrap();
            }
        }
    }
}
