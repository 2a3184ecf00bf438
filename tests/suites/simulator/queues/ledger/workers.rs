//! What workers hear, and what is left in the end.

use std::collections::HashSet;

use stanchion::internals::Moment;
use stanchion::protocol::{ClaimedTask, Receipt, TaskRecord, Verdict};
use stanchion::{Error, ErrorKind};

use super::{Body, Delivery, LONG_LEASE, Ledger, Played, same_kind};

impl Ledger {
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
                && !self.removals.since(other.at.min(granted), queue, &task.id)
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
        judged: &Result<(), Error>,
        resent: bool,
    ) -> Played {
        let delivery = &self.deliveries[&(queue, receipt)];
        let same = |settled: &Verdict| same_kind(settled, verdict);
        let is_removed = self.removals.since(delivery.at, queue, &delivery.id);
        let deadline = delivery.heard.map_or(now, |(deadline, _)| deadline);
        match (judged, &delivery.settled) {
            (Ok(()), Some(settled)) if same(settled) => Ok(()),
            (Ok(()), None) if is_removed => Ok(()),
            (Ok(()), settled) => {
                Err(format!("Q4: {verdict:?} of {:?} was accepted, not {settled:?}", delivery.id))
            }
            (Err(error), _) if error.kind() == ErrorKind::Indeterminate && (now < deadline || !resent) => {
                Err(format!("Q4: {verdict:?} of {:?} was doubted without a reason", delivery.id))
            }
            (Err(error), _) if error.kind() == ErrorKind::Indeterminate => Ok(()),
            // A copy that the network made may have settled it: that one cannot know.
            (Err(_), None) if now < deadline && !is_removed => {
                Err(format!("Q4: {verdict:?} of {:?} was refused, in time", delivery.id))
            }
            (Err(_), Some(settled)) if resent && same(settled) => {
                Err(format!("Q4: {verdict:?} of {:?} was refused, though it was carried out", delivery.id))
            }
            (Err(_), _) => Ok(()),
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
            if early && !(task.reason.starts_with("expired") || task.reason == "buried") {
                return Err(format!(
                    "Q9: {:?} died after {} attempts: {}",
                    task.id, task.attempts, task.reason
                ));
            }
        }
        Ok(())
    }
}
