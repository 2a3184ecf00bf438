//! V1 and V2: that a task gets its turn, whatever is asked meanwhile, and what debounces and back-offs promise.

use std::collections::BTreeMap;
use std::time::Duration;

use stanchion::name::TaskId;
use stanchion::protocol::{EnqueueOutcome, NewTask, OnDuplicate, Outcome, RescheduleReply, Verdict};

use super::Played;

/// A queue, and a task's id.
type Key = (usize, TaskId);

#[derive(Clone, Debug)]
struct Waiting {
    /// In which step it came.
    came: u64,
    priority: u8,
    /// Until when it may be delivered.
    expires: u64,
}

/// What is known of the tasks from what was asked and answered, in one order for all queues.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    steps: u64,
    /// Tasks that came into line by their enqueue, and have not left it since.
    line: BTreeMap<Key, Waiting>,
    /// Until when a verdict keeps a task back.
    held: BTreeMap<Key, u64>,
    /// The earliest time at which a task of the id expires: what is delivered after it may be another one.
    expiries: BTreeMap<Key, u64>,
    /// The first debounce since the last delivery.
    bursts: BTreeMap<Key, u64>,
}

impl Turns {
    /// An item of an enqueue was carried out.
    pub fn enqueued(&mut self, queue: usize, task: &NewTask, outcome: EnqueueOutcome, now: u64) -> Played {
        let EnqueueOutcome::Accepted { outcome, due, .. } = outcome else { return Ok(()) };
        let key = (queue, task.id.clone());
        let expires = task.expires.map_or(u64::MAX, |expires| now + millis(expires));
        self.steps += 1;
        match outcome {
            Outcome::Added => {
                self.forget(&key);
                if due <= now {
                    let waiting = Waiting { came: self.steps, priority: task.priority, expires };
                    self.line.insert(key.clone(), waiting);
                }
            }
            // It is in line as before, unless it said otherwise.
            Outcome::Replaced => match self.line.get_mut(&key) {
                Some(waiting) if due <= now && waiting.priority == task.priority => waiting.expires = expires,
                _ => drop(self.line.remove(&key)),
            },
            Outcome::Throttled | Outcome::Skipped => return Ok(()),
            _ => {}
        }
        self.expiries
            .entry(key.clone())
            .and_modify(|known| *known = (*known).min(expires))
            .or_insert(expires);
        if task.on_duplicate == OnDuplicate::Replace {
            // Everything is new.
            self.bursts.remove(&key);
        }
        if let OnDuplicate::Debounce { max_wait } = task.on_duplicate {
            let first = *self.bursts.entry(key.clone()).or_insert(now);
            let held = self.held.get(&key).copied().unwrap_or(0);
            if due > (first + millis(max_wait)).max(held).max(now) {
                return Err(format!("V2: {:?} is due {max_wait:?} after the first of its burst", task.id));
            }
        }
        Ok(())
    }

    /// A task was delivered.
    pub fn delivered(&mut self, queue: usize, id: &TaskId, priority: u8, now: u64) -> Played {
        let key = (queue, id.clone());
        if let Some(Waiting { came, .. }) = self.line.remove(&key) {
            let was_before =
                |other: &Waiting| other.came < came && other.priority >= priority && other.expires > now;
            if let Some(((_, other), _)) =
                self.line.iter().find(|(key, other)| key.0 == queue && was_before(other))
            {
                return Err(format!(
                    "V1: {id:?} was delivered before {other:?}, which was in line before it"
                ));
            }
        }
        self.bursts.remove(&key);
        // A retry that expired is dead, and its successor another task.
        let expired = self.expiries.get(&key).is_some_and(|expires| *expires <= now);
        match self.held.remove(&key) {
            Some(until) if until > now && !expired => {
                Err(format!("V2: {id:?} was delivered before its back-off was over"))
            }
            _ => Ok(()),
        }
    }

    /// The first settlement of a delivery.
    pub fn settled(&mut self, queue: usize, id: &TaskId, verdict: &Verdict, dead: bool, now: u64) {
        let key = (queue, id.clone());
        self.line.remove(&key);
        match verdict {
            Verdict::Nack { delay, .. } | Verdict::PutBack { delay } if !dead => {
                self.held.insert(key, now + millis(*delay));
            }
            _ => {}
        }
    }

    pub fn rescheduled(&mut self, queue: usize, id: &TaskId, reply: RescheduleReply, now: u64) {
        let RescheduleReply::Moved(due) = reply else { return };
        let key = (queue, id.clone());
        self.held.remove(&key);
        if due > now {
            self.line.remove(&key);
        }
    }

    /// Some that were dead are back. What died before it was delivered had expired, and begins a new burst.
    pub fn kicked(&mut self, queue: usize, now: u64) {
        let may_live = |key: &Key| self.expiries.get(key).is_none_or(|expires| *expires > now);
        self.bursts.retain(|key, _| key.0 != queue || may_live(key));
    }

    /// The task is gone; all are without an id.
    pub fn removed(&mut self, queue: usize, id: Option<&TaskId>) {
        match id {
            Some(id) => self.forget(&(queue, id.clone())),
            None => {
                self.line.retain(|key, _| key.0 != queue);
                self.held.retain(|key, _| key.0 != queue);
                self.expiries.retain(|key, _| key.0 != queue);
                self.bursts.retain(|key, _| key.0 != queue);
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        self.line.remove(key);
        self.held.remove(key);
        self.expiries.remove(key);
        self.bursts.remove(key);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap()
}
