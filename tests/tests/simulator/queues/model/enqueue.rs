//! enqueue

use stanchion::verbs::{Enqueue, EnqueueOutcome, NewTask, OnDuplicate, Outcome, QueueReply};

use super::{Ended, Heard, Live, Model, Place, Stored, Task};

impl Model {
    pub(super) fn enqueue(&mut self, verb: &Enqueue) -> QueueReply {
        match self.hear(verb.call) {
            Heard::Repeated(stored) => return QueueReply::Enqueue(stored.outcomes),
            Heard::Abandoned | Heard::Superseded => return QueueReply::Superseded,
            Heard::New => {}
        }
        let outcomes: Vec<_> = verb.tasks.iter().map(|new| self.enqueue_one(new)).collect();
        self.remember(verb.call, Some(Stored { outcomes: outcomes.clone(), ..Stored::default() }));
        QueueReply::Enqueue(outcomes)
    }

    fn enqueue_one(&mut self, new: &NewTask) -> EnqueueOutcome {
        let throttle = match new.on_duplicate {
            OnDuplicate::Throttle { window } => Some(self.after(window)),
            _ => None,
        };
        if throttle.is_some() && self.windows.get(&new.id).is_some_and(|ends| *ends > self.now.ms()) {
            return EnqueueOutcome::Accepted { outcome: Outcome::Throttled, version: 0, due: 0 };
        }
        let is_full = self.max_len.is_some_and(|max| self.live.len() as u64 >= max);
        let (outcome, version, due) = match self.live.remove(&new.id) {
            None if is_full => return EnqueueOutcome::Full,
            None => {
                let main = self.fresh(new, self.now.ms());
                let accepted = (Outcome::Added, main.version, main.due);
                self.put(&new.id, Live { main, successor: None });
                accepted
            }
            Some(Live { main, successor: Some(old) }) => self.onto_successor(new, main, old),
            Some(Live { main, successor: None }) if main.receipt != 0 => {
                let successor = Task { replaces: replaces(new), ..self.fresh(new, self.now.ms()) };
                let accepted = (Outcome::Successor, successor.version, successor.due);
                self.park(new, main, successor);
                accepted
            }
            Some(Live { main, successor: None }) => self.onto_pending(new, main),
        };
        if let Some(ends) = throttle {
            self.windows.insert(new.id.clone(), ends);
        }
        self.counts.enqueued += 1;
        EnqueueOutcome::Accepted { outcome, version, due }
    }

    fn onto_successor(&mut self, new: &NewTask, main: Task, mut old: Task) -> (Outcome, u64, u64) {
        if !replaces(new) {
            old.version = self.next_number();
            let accepted = (Outcome::Kept, old.version, old.due);
            self.live.insert(new.id.clone(), Live { main, successor: Some(old) });
            return accepted;
        }
        let successor = Task { replaces: true, ..self.revised(new, &old) };
        let accepted = (Outcome::Replaced, successor.version, successor.due);
        self.park(new, main, successor);
        accepted
    }

    fn onto_pending(&mut self, new: &NewTask, mut old: Task) -> (Outcome, u64, u64) {
        if !replaces(new) {
            old.version = self.next_number();
            let accepted = (Outcome::Kept, old.version, old.due);
            self.live.insert(new.id.clone(), Live { main: old, successor: None });
            return accepted;
        }
        let mut main = self.revised(new, &old);
        if matches!(new.on_duplicate, OnDuplicate::Debounce { .. }) && old.body == new.body {
            main.attempts = old.attempts.min(main.max_attempts - 1);
        }
        let accepted = (Outcome::Replaced, main.version, main.due);
        self.put(&new.id, Live { main, successor: None });
        accepted
    }

    /// Parks a successor; it takes the place of a retry that waits already, if it replaces.
    fn park(&mut self, new: &NewTask, mut main: Task, successor: Task) {
        let takes_place = replaces(new) && !main.is_held(self.now.boot);
        if takes_place {
            if main.receipt != 0 {
                main.spend(Ended::Otherwise);
            }
            self.succeed(&new.id, Live { main, successor: Some(successor) });
        } else {
            self.live.insert(new.id.clone(), Live { main, successor: Some(successor) });
        }
    }

    fn fresh(&mut self, new: &NewTask, first: u64) -> Task {
        let due = self.due(new.due);
        let due = match new.on_duplicate {
            OnDuplicate::Debounce { max_wait } => due.min(first + (self.after(max_wait) - self.now.ms())),
            _ => due,
        };
        Task {
            serial: self.next_serial(),
            place: Place::Parked,
            version: self.next_number(),
            due,
            priority: new.priority,
            attempts: 0,
            max_attempts: new.max_attempts,
            first,
            expires: new.expires.map_or(0, |expires| self.after(expires)),
            receipt: 0,
            settled: (0, Ended::Otherwise),
            replaces: false,
            reason: String::new(),
            body: new.body.clone(),
        }
    }

    /// Everything is new but the order of acceptance, what was settled, and for debounce when it began.
    fn revised(&mut self, new: &NewTask, old: &Task) -> Task {
        let first = match new.on_duplicate {
            OnDuplicate::Debounce { .. } => old.first,
            _ => self.now.ms(),
        };
        Task { serial: old.serial, settled: old.settled, ..self.fresh(new, first) }
    }
}

fn replaces(new: &NewTask) -> bool {
    matches!(new.on_duplicate, OnDuplicate::Replace | OnDuplicate::Debounce { .. })
}
