//! What must come true while tasks keep coming, watched from outside: which tasks are in line and what is delivered,
//! not how turns and dues are made.
//!
//! V1: a task in line is delivered after those that were ahead of it when it came there, and whatever has a higher
//! priority; nothing that is enqueued, replaced, debounced or rescheduled meanwhile comes before it. V2: a debounced
//! task is due at most max_wait after the first of its burst; a failure begins a new burst, and no enqueue brings a
//! retry forward of its back-off. V4: the dead of each kind are no more than may be, and a full queue takes no new ids.
//! (V5, that nothing without an end outlives the record that finds it, is about keys and rows: `system` looks for it.)

use std::collections::{BTreeMap, BTreeSet};

use crate::keys::Key;
use crate::queue::Queue;
use crate::terms::{Id, Live, Millis, New, Outcome, Place, Policy, Task, Verdict};

/// A task in line.
#[derive(Clone, Debug)]
struct Waiting {
    serial: u64,
    priority: u8,
    key: Option<Key>,
    ahead: BTreeSet<Id>,
    /// Those of them that were delivered; one that is put back is ahead again.
    passed: BTreeSet<Id>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    line: BTreeMap<Id, Waiting>,
    /// The first debounce since the last delivery.
    burst: BTreeMap<Id, Millis>,
    /// The last failure of a task that nobody has asked for since it was delivered.
    failed: BTreeMap<Id, Millis>,
    /// Until when a verdict keeps a task back.
    held: BTreeMap<Id, Millis>,
    /// Which tasks these are, as the last step left them.
    serials: BTreeMap<Id, u64>,
    /// Ids whose task was replaced in this step: another serial is still kept back.
    replaced: BTreeSet<Id>,
    /// What was seen that must not be.
    pub(crate) violation: Option<String>,
}

impl Watch {
    fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// The line as it stands after a step.
    pub(crate) fn line(&mut self, queue: &Queue) {
        self.leave(queue);
        let in_line = queue.line();
        let before: BTreeSet<Id> = self.line.keys().copied().collect();
        for (place, id) in in_line.iter().enumerate().filter(|(_, id)| !before.contains(**id)) {
            let (main, ahead) = (&queue.live[id].main, in_line[..place].iter().copied().collect());
            let waiting = Waiting {
                serial: main.serial,
                priority: main.priority,
                key: main.key,
                ahead,
                passed: BTreeSet::new(),
            };
            self.line.insert(id, waiting);
        }
        self.keep_back(queue);
        self.burst.retain(|id, _| queue.live.contains_key(id));
        self.failed.retain(|id, _| queue.live.contains_key(id));
    }

    /// A task that died while it was kept back leaves its id to its successor, which is not.
    fn keep_back(&mut self, queue: &Queue) {
        let replaced = std::mem::take(&mut self.replaced);
        let serials = std::mem::take(&mut self.serials);
        self.held.retain(|id, _| {
            let Some(live) = queue.live.get(id) else { return false };
            let before = serials.get(id).is_none_or(|serial| *serial == live.main.serial);
            before || replaced.contains(id)
        });
        let serial = |id: &Id| Some((*id, queue.live.get(id)?.main.serial));
        self.serials = self.held.keys().filter_map(serial).collect();
    }

    /// What a queue may hold, after a step that found `live` ids.
    pub(crate) fn caps(&mut self, queue: &Queue, live: usize) {
        for expired in [false, true] {
            let dead = queue.dead.iter().filter(|dead| dead.expired() == expired).count();
            if dead > queue.dead_max {
                self.violated(format!("V4: {dead} are dead, and {} may be", queue.dead_max));
            }
        }
        if queue.max_len.is_some_and(|most| queue.live.len() > most.max(live)) {
            self.violated(format!("V4: {} ids live, and {:?} may", queue.live.len(), queue.max_len));
        }
    }

    /// Those that are no longer in line, or are others now.
    fn leave(&mut self, queue: &Queue) {
        self.line.retain(|id, waiting| {
            queue.live.get(id).is_some_and(|Live { main, place, .. }| {
                let same = main.serial == waiting.serial
                    && main.priority == waiting.priority
                    && main.key == waiting.key;
                same && matches!(place, Place::Ready(_))
            })
        });
    }

    /// These were delivered, in this order.
    pub(crate) fn delivered(&mut self, queue: &Queue, tasks: &[(Id, Task)]) {
        // Some may have expired on the way.
        self.leave(queue);
        let now = queue.now;
        for &(id, Task { priority, .. }) in tasks {
            let mut passed = Vec::new();
            for (other, waiting) in &mut self.line {
                if waiting.ahead.remove(id) {
                    waiting.passed.insert(id);
                } else if priority <= waiting.priority && !waiting.passed.contains(id) {
                    passed.push(*other);
                }
            }
            for other in passed {
                self.violated(format!("V1: {id} was delivered before {other}, which was in line before it"));
            }
            if let Some(until) = self.held.remove(id).filter(|until| *until > now) {
                self.violated(format!("V2: {id} was delivered at {now}, and is kept back until {until}"));
            }
            self.burst.remove(id);
            self.failed.insert(id, 0);
        }
    }

    /// A verdict was accepted.
    pub(crate) fn settled(&mut self, now: Millis, id: Id, verdict: Verdict, is_retry: bool) {
        self.held.remove(id);
        self.serials.remove(id);
        let keeps_place = matches!(verdict, Verdict::PutBack(0) | Verdict::Throttle(_));
        if !keeps_place {
            for waiting in self.line.values_mut() {
                waiting.passed.remove(id);
            }
        }
        match verdict {
            Verdict::Nack(delay) if is_retry => {
                // Late, it may be of a task that is in line already.
                self.line.remove(id);
                self.held.insert(id, now + delay);
                self.failed.entry(id).and_modify(|failed| *failed = now);
            }
            Verdict::PutBack(0) | Verdict::Throttle(_) => {
                // As if it had not been delivered: it stood before all that have come since.
                for waiting in self.line.values_mut() {
                    waiting.passed.remove(id);
                    waiting.ahead.insert(id);
                }
            }
            Verdict::PutBack(delay) => {
                self.held.insert(id, now + delay);
            }
            _ => {}
        }
    }

    /// Somebody says when it is due, whatever was before.
    pub(crate) fn rescheduled(&mut self, id: Id) {
        self.held.remove(id);
    }

    /// An enqueue was accepted.
    pub(crate) fn enqueued(&mut self, now: Millis, new: &New, outcome: Outcome, due: Millis) {
        let failed = self.failed.remove(new.id).filter(|failed| *failed > 0);
        match outcome {
            Outcome::Added => {
                self.burst.remove(new.id);
                self.held.remove(new.id);
            }
            Outcome::Replaced => _ = self.replaced.insert(new.id),
            _ => {}
        }
        if new.policy == Policy::Replace {
            // Everything is new.
            self.burst.remove(new.id);
        }
        let Policy::Debounce(max_wait) = new.policy else { return };
        let first = *self.burst.entry(new.id).or_insert(now);
        let held = self.held.get(new.id).copied().unwrap_or(0);
        if due > (first + max_wait).max(held).max(now) {
            self.violated(format!("V2: {} is due at {due}, {max_wait} after {first}", new.id));
        }
        if let Some(failed) = failed
            && outcome == Outcome::Replaced
            && failed + max_wait > now
            && due < new.due.min(failed + max_wait)
            && new.due > now
        {
            self.violated(format!(
                "V2: {} failed at {failed}, and {max_wait} is due at {due} already",
                new.id
            ));
        }
    }
}
