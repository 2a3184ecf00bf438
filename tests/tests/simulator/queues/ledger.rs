//! The invariants of queues, checked on what was sent, performed and heard; without the model.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use stanchion::internals::Moment;
use stanchion::name::TaskId;
use stanchion::verbs::{
    CallId, Claim, ClaimReply, ClaimedTask, Enqueue, EnqueueOutcome, ExtendClaimReply, OnDuplicate, Outcome,
    QueueReply, QueueVerb, Receipt, RemoveReply, RescheduleReply, Settled, Settlement, TaskRecord, Verdict,
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
    /// When a task was last removed, with or without others.
    removed: HashMap<(usize, TaskId), Moment>,
    purged: HashMap<usize, Moment>,
    calls: HashSet<(usize, CallId)>,
    pub heard: u64,
    pub redelivered: u64,
    pub unheard: u64,
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
                // What the call took is put back.
                let of_call = |delivery: &&mut Delivery| verb.call == Some(delivery.call);
                let deliveries = self.deliveries.values_mut().filter(of_call);
                deliveries.for_each(|delivery| delivery.ends = delivery.ends.min(step.now));
                Ok(())
            }
            (QueueVerb::Pop(_), QueueReply::Pop(Some(tasks))) => self.popped(step, tasks),
            (QueueVerb::Remove(verb), QueueReply::Remove(RemoveReply::Removed)) => {
                self.removed.insert((step.queue, verb.id.clone()), step.now);
                self.replace(step.queue, Some(&verb.id));
                Ok(())
            }
            (QueueVerb::Reschedule(verb), QueueReply::Reschedule(RescheduleReply::Moved(_))) => {
                let fates = self.bodies.values_mut().filter(|fate| fate.id == verb.id);
                fates.for_each(|fate| fate.not_before = 0);
                Ok(())
            }
            (QueueVerb::Purge, _) => {
                self.purged.insert(step.queue, step.now);
                self.replace(step.queue, None);
                Ok(())
            }
            _ => Ok(()),
        }
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
        for task in tasks {
            let key = (step.queue, task.receipt);
            let body = Body::read(&task.body);
            if self.deliveries.contains_key(&key) {
                // A copy of a reply.
                continue;
            }
            let what = format!("{:?} (attempt {})", task.id, task.attempt);
            self.check_delivery(step, &task.id, body, task.due, &what)?;
            if task.attempt == 0 || task.attempt > task.max_attempts {
                return Err(format!("Q9: {what} of {} attempts", task.max_attempts));
            }
            let of_task = self.of_task.entry((step.queue, task.id.clone())).or_default();
            for receipt in of_task.iter() {
                let other = &self.deliveries[&(step.queue, *receipt)];
                let since = other.at;
                if other.settled.is_none()
                    && step.now < other.ends
                    && !is_removed(&self.removed, &self.purged, step.queue, &task.id, since)
                {
                    return Err(format!("Q3: {what} was delivered while receipt {receipt} had its lease"));
                }
            }
            self.redelivered += u64::from(!of_task.is_empty());
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
        let Some(fate) = self.bodies.get(&body).filter(|fate| fate.id == *id && fate.queue == step.queue) else {
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

    /// A lease was found to have ended at the store.
    pub fn lease_ended(&mut self, queue: usize, receipt: Receipt, life: impl Fn(usize) -> u32) -> Played {
        let Some(delivery) = self.deliveries.get(&(queue, receipt)) else { return Ok(()) };
        let (client, of_life) = delivery.to;
        if delivery.heard.is_none() {
            self.unheard += 1;
            if delivery.lease >= LONG_LEASE && life(client) == of_life {
                return Err(format!("a claim of {:?} that nobody heard of burnt an attempt", delivery.id));
            }
        }
        Ok(())
    }

    /// A delivery began at its worker.
    pub fn began(&mut self, now: Moment, queue: usize, task: &ClaimedTask, deadline: Moment) -> Played {
        if now >= deadline {
            return Err(format!("a claim of {:?} was returned with its deadline passed", task.id));
        }
        let Some(own) = self.deliveries.get(&(queue, task.receipt)) else {
            return Err(format!("Q2: {:?} was never delivered under {}", task.id, task.receipt));
        };
        let granted = own.at;
        for receipt in &self.of_task[&(queue, task.id.clone())] {
            let other = &self.deliveries[&(queue, *receipt)];
            let Some((until, stopped)) = other.heard else { continue };
            let until = stopped.map_or(until, |stopped| stopped.min(until));
            if now < until
                && *receipt != task.receipt
                && !is_removed(&self.removed, &self.purged, queue, &task.id, other.at.min(granted))
            {
                return Err(format!("Q3: {:?} has two live claims", task.id));
            }
        }
        self.heard += 1;
        self.deliveries.entry((queue, task.receipt)).and_modify(|own| own.heard = Some((deadline, None)));
        Ok(())
    }

    /// A worker's deadline moved.
    pub fn prolonged(&mut self, queue: usize, receipt: Receipt, deadline: Moment) {
        if let Some(Delivery { heard: Some((until, _)), .. }) = self.deliveries.get_mut(&(queue, receipt)) {
            *until = deadline;
        }
    }

    /// A worker stopped: it settles, has lost the lease, or died.
    pub fn stopped(&mut self, now: Moment, queue: usize, receipt: Receipt) {
        if let Some(Delivery { heard: Some((_, stopped)), .. }) = self.deliveries.get_mut(&(queue, receipt)) {
            stopped.get_or_insert(now);
        }
    }

    /// A worker was told what became of its settlement.
    pub fn judged(
        &self,
        now: Moment,
        queue: usize,
        receipt: Receipt,
        verdict: &Verdict,
        accepted: bool,
        resent: bool,
    ) -> Played {
        let delivery = &self.deliveries[&(queue, receipt)];
        let same = |settled: &Verdict| std::mem::discriminant(settled) == std::mem::discriminant(verdict);
        let is_removed = is_removed(&self.removed, &self.purged, queue, &delivery.id, delivery.at);
        let deadline = delivery.heard.map_or(now, |(deadline, _)| deadline);
        match (accepted, &delivery.settled) {
            (true, Some(settled)) if same(settled) => Ok(()),
            (true, None) if is_removed => Ok(()),
            (true, settled) => {
                Err(format!("Q4: {verdict:?} of {:?} was accepted, not {settled:?}", delivery.id))
            }
            // A copy that the network made may have settled it: that one cannot know.
            (false, None) if now < deadline && !is_removed => {
                Err(format!("Q4: {verdict:?} of {:?} was refused, in time", delivery.id))
            }
            (false, Some(settled)) if now < deadline && resent && same(settled) => {
                Err(format!("Q4: {verdict:?} of {:?} was refused, though it was carried out", delivery.id))
            }
            (false, _) => Ok(()),
        }
    }

    /// Whether anything of this body was ever accepted.
    pub fn knows(&self, body: Body) -> bool {
        self.bodies.contains_key(&body)
    }

    /// Q1, Q9: when nothing lives any more, whatever was accepted was acked, is dead, or was replaced.
    pub fn settle_accounts(&self, queue: usize, dead: &[TaskRecord]) -> Played {
        let buried: HashSet<Body> = dead.iter().map(|task| Body::read(&task.body)).collect();
        for (body, fate) in self.bodies.iter().filter(|(_, fate)| fate.queue == queue) {
            if !(fate.acked || fate.replaced || buried.contains(body) || body.is_common()) {
                return Err(format!("Q1: {:?} ({body:?}) is neither acked nor dead nor pending", fate.id));
            }
            if fate.acked && buried.contains(body) && !body.is_common() {
                return Err(format!("Q1: {:?} ({body:?}) was acked and is dead", fate.id));
            }
        }
        for task in dead {
            let early = task.attempts != task.max_attempts;
            if early && !matches!(task.reason.as_str(), "expired" | "buried") {
                return Err(format!("Q9: {:?} died after {} attempts: {}", task.id, task.attempts, task.reason));
            }
        }
        Ok(())
    }
}

/// Whether the task was removed since then.
fn is_removed(
    removed: &HashMap<(usize, TaskId), Moment>,
    purged: &HashMap<usize, Moment>,
    queue: usize,
    id: &TaskId,
    since: Moment,
) -> bool {
    let times = [removed.get(&(queue, id.clone())), purged.get(&queue)];
    times.into_iter().flatten().any(|at| *at >= since)
}
