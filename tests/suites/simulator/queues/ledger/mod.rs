//! The invariants of queues (`docs/FAULTS.md`), checked on what was sent, performed and heard; without the model.

mod turns;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stanchion::internals::Moment;
use stanchion::name::TaskId;
use stanchion::protocol::{
    CallId, Cancelled, Claim, ClaimReply, ClaimedTask, Configure, Enqueue, EnqueueOutcome, ExtendClaimReply,
    OnDuplicate, Outcome, QueueReply, QueueVerb, Receipt, Removed, RescheduleReply, Settled, Settlement,
    TaskRecord, Verdict,
};

use super::{Body, Played};

/// A claim whose answer was lost is put back before the end of such a lease, unless its client died.
const LONG_LEASE: Duration = Duration::from_secs(15);

/// What happened so far, in all queues of a schedule.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    bodies: BTreeMap<Body, Fate>,
    deliveries: BTreeMap<(usize, Receipt), Delivery>,
    /// The deliveries of each task.
    of_task: BTreeMap<(usize, TaskId), Vec<Receipt>>,
    removals: Removals,
    /// When a running task was last cancelled.
    cancelled: BTreeMap<(usize, TaskId), Moment>,
    /// Enqueues by queue, client, slot and number.
    calls: BTreeSet<(usize, u64, u32, u64)>,
    turns: turns::Turns,
    /// When an enqueue last found its task there and kept it.
    kept: BTreeMap<(usize, TaskId), Moment>,
    /// How many ids may live.
    pub max_len: BTreeMap<usize, u64>,
    pub heard: u64,
    pub redelivered: u64,
    pub unheard: u64,
}

/// When a task was last removed, and when all of a queue were.
#[derive(Clone, Debug, Default)]
struct Removals {
    one: BTreeMap<(usize, TaskId), Moment>,
    all: BTreeMap<usize, Moment>,
}

impl Removals {
    /// Whether the task was removed since then.
    fn since(&self, since: Moment, queue: usize, id: &TaskId) -> bool {
        let times = [self.one.get(&(queue, id.clone())), self.all.get(&queue)];
        times.into_iter().flatten().any(|at| *at >= since)
    }
}

/// What became of a task that was accepted.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
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
                self.turns.removed(step.queue, Some(&verb.id));
                self.removals.one.insert((step.queue, verb.id.clone()), step.now);
                self.replace(step.queue, Some(&verb.id));
                Ok(())
            }
            (
                QueueVerb::Cancel(verb),
                QueueReply::Cancel(cancelled @ (Cancelled::Removed | Cancelled::Running)),
            ) => {
                // Of one that runs its successor is gone, and with it the burst.
                self.turns.removed(step.queue, Some(&verb.id));
                if *cancelled == Cancelled::Removed {
                    self.removals.one.insert((step.queue, verb.id.clone()), step.now);
                } else {
                    self.cancelled.insert((step.queue, verb.id.clone()), step.now);
                }
                self.replace(step.queue, Some(&verb.id));
                Ok(())
            }
            (QueueVerb::Reschedule(verb), QueueReply::Reschedule(reply @ RescheduleReply::Moved(_))) => {
                self.turns.rescheduled(step.queue, &verb.id, *reply, step.wall_ms);
                self.rescheduled(&verb.id);
                Ok(())
            }
            (QueueVerb::Configure(Configure { max_len: Some(most), .. }), _) => {
                self.max_len.remove(&step.queue);
                self.max_len.extend(most.map(|most| (step.queue, most)));
                Ok(())
            }
            (QueueVerb::Kick(_), QueueReply::Kick(swept)) if swept.count > 0 => {
                self.turns.kicked(step.queue, step.wall_ms);
                Ok(())
            }
            (QueueVerb::Purge, _) => {
                self.turns.removed(step.queue, None);
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
        let call = verb.call;
        if !self.calls.insert((step.queue, call.client.0, call.slot, call.number)) {
            return Ok(());
        }
        for (task, outcome) in verb.tasks.iter().zip(outcomes) {
            self.turns.enqueued(step.queue, task, *outcome, step.wall_ms)?;
            let EnqueueOutcome::Accepted { outcome, .. } = outcome else { continue };
            if *outcome == Outcome::Kept {
                self.kept.insert((step.queue, task.id.clone()), step.now);
            }
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

    /// Dead tasks were dropped: these were dead before it, and those afterwards.
    pub fn dropped(
        &mut self,
        queue: usize,
        count: u64,
        before: Vec<TaskRecord>,
        after: &[TaskRecord],
    ) -> Played {
        let is_left = |task: &TaskRecord| after.iter().any(|left| left.receipt == task.receipt);
        let gone: Vec<_> = before.into_iter().filter(|task| !is_left(task)).collect();
        if gone.len() as u64 != count {
            return Err(format!("Q1: {} dead tasks of queue {queue} are gone, not {count}", gone.len()));
        }
        for task in gone {
            self.bodies.entry(Body::read(&task.body)).and_modify(|fate| fate.replaced = true);
        }
        Ok(())
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
            self.turns.delivered(step.queue, &task.id, task.priority, step.wall_ms)?;
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
            self.turns.delivered(step.queue, &task.id, task.priority, step.wall_ms)?;
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
            // Whatever it ends with, it does not come back, and holds nothing back that comes after it.
            let was_cancelled = |at: &Moment| *at >= delivery.at;
            let is_over =
                *dead || self.cancelled.get(&(step.queue, item.id.clone())).is_some_and(was_cancelled);
            self.turns.settled(step.queue, &item.id, &item.verdict, is_over, step.wall_ms);
            let Some(fate) = self.bodies.get_mut(&delivery.body) else { continue };
            let is_asked_again = |kept: &Moment| *kept >= delivery.ends;
            if is_ack(&item.verdict)
                && self.kept.get(&(step.queue, item.id.clone())).is_some_and(is_asked_again)
            {
                // It may be yet to be done.
                fate.replaced = true;
            } else {
                fate.acked |= is_ack(&item.verdict);
            }
            fate.dead |= dead;
            if let (Verdict::Nack { delay, .. } | Verdict::PutBack { delay }, false) =
                (&item.verdict, is_over)
            {
                fate.not_before = step.wall_ms + u64::try_from(delay.as_millis()).unwrap();
            }
        }
    }
}

/// With a result or without.
pub fn is_ack(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Ack | Verdict::AckWith { .. })
}

/// Whether the store takes them for the same.
pub fn same_kind(one: &Verdict, other: &Verdict) -> bool {
    is_ack(one) && is_ack(other) || std::mem::discriminant(one) == std::mem::discriminant(other)
}
