//! enqueue

use stanchion::protocol::{
    Enqueue, EnqueueOutcome, EventRecord, Happened, NewTask, OnDuplicate, Outcome, QueueReply, Receipt,
    Version,
};

use super::{Ended, Follows, Heard, Live, Model, Place, Stored, Task};

impl Model {
    pub(super) fn enqueue(&mut self, verb: &Enqueue) -> QueueReply {
        match self.hear(verb.call) {
            Heard::Repeated(stored) => return QueueReply::Enqueue(stored.outcomes),
            Heard::Abandoned | Heard::Superseded => return QueueReply::Superseded,
            Heard::New => {}
        }
        if self.max_len.is_some_and(|most| self.live.len() + verb.tasks.len() > most as usize) {
            self.make_room();
        }
        let outcomes: Vec<_> = verb.tasks.iter().map(|new| self.enqueue_one(new)).collect();
        self.remember(verb.call, Some(Stored { outcomes: outcomes.clone(), ..Stored::default() }));
        QueueReply::Enqueue(outcomes)
    }

    /// What has expired counts no longer: first those in line, then those that wait for their due.
    fn make_room(&mut self) {
        let place = |live: &Live| match live.main.place {
            Place::Ready(turn) => Some((0, turn, 0, 0)),
            Place::Scheduled => Some((1, (0, 0), live.main.due, live.main.serial)),
            _ => None,
        };
        let mut first: Vec<_> =
            self.live.iter().filter_map(|(id, live)| Some((place(live)?, id.clone()))).collect();
        first.sort();
        for (_, id) in first {
            self.expire(&id);
        }
    }

    fn enqueue_one(&mut self, new: &NewTask) -> EnqueueOutcome {
        let throttle = match new.on_duplicate {
            OnDuplicate::Throttle { window } => Some(self.after(window)),
            _ => None,
        };
        if throttle.is_some() && self.windows.get(&new.id).is_some_and(|ends| *ends > self.now.ms()) {
            return EnqueueOutcome::Accepted { outcome: Outcome::Throttled, version: Version::NONE, due: 0 };
        }
        self.notice(&new.id);
        let is_full = self.max_len.is_some_and(|max| self.live.len() as u64 >= max);
        let (outcome, version, due) = match self.live.remove(&new.id) {
            None if is_full => return EnqueueOutcome::Full,
            None => {
                let main = self.fresh(new, self.now.ms());
                let accepted = (Outcome::Added, main.version, main.due);
                self.put(&new.id, Live { main, successor: None }, None);
                accepted
            }
            Some(Live { main, successor: Some(old) }) => self.onto_successor(new, main, old),
            Some(live)
                if live.successor.is_none()
                    && live.main.is_held(self.now.boot)
                    && new.on_duplicate == OnDuplicate::Skip =>
            {
                let (version, due) = (live.main.version, live.main.due);
                self.live.insert(new.id.clone(), live);
                return EnqueueOutcome::Accepted { outcome: Outcome::Skipped, version, due };
            }
            Some(Live { main, successor: None }) if main.is_held(self.now.boot) => {
                let successor = Task { follows: follows(new), ..self.fresh(new, self.now.ms()) };
                let accepted = (Outcome::Successor, successor.version, successor.due);
                self.live.insert(new.id.clone(), Live { main, successor: Some(successor) });
                accepted
            }
            Some(Live { main, successor: None }) => self.onto_pending(new, main),
        };
        if let Some(ends) = throttle {
            self.windows.insert(new.id.clone(), ends);
        }
        self.counts.enqueued += 1;
        if matches!(outcome, Outcome::Added | Outcome::Replaced | Outcome::Successor) {
            self.note(EventRecord {
                number: 0,
                at: self.now.ms(),
                what: Happened::Added,
                id: new.id.clone(),
                version,
                attempt: 0,
                reason: "".into(),
            });
        }
        EnqueueOutcome::Accepted { outcome, version, due }
    }

    fn onto_successor(&mut self, new: &NewTask, main: Task, mut old: Task) -> (Outcome, Version, u64) {
        if !replaces(new) {
            old.version = self.next_version();
            let accepted = (Outcome::Kept, old.version, old.due);
            self.live.insert(new.id.clone(), Live { main, successor: Some(old) });
            return accepted;
        }
        let mut successor = Task { follows: follows(new), ..self.revised(new, &old) };
        if main.is_held(self.now.boot) {
            let accepted = (Outcome::Replaced, successor.version, successor.due);
            self.live.insert(new.id.clone(), Live { main, successor: Some(successor) });
            return accepted;
        }
        // It takes the place of a retry that waits already.
        successor.hold_back(main.backoff, self.now);
        let place = self.stays(&main, &mut successor);
        let accepted = (Outcome::Replaced, successor.version, successor.due);
        self.supplant(&new.id, Live { main, successor: Some(successor) }, place);
        accepted
    }

    fn onto_pending(&mut self, new: &NewTask, mut old: Task) -> (Outcome, Version, u64) {
        if !replaces(new) {
            old.version = self.next_version();
            let accepted = (Outcome::Kept, old.version, old.due);
            self.live.insert(new.id.clone(), Live { main: old, successor: None });
            return accepted;
        }
        if old.receipt != Receipt::NONE {
            // Its lease has ended, and no settlement counts any more.
            old.spend(Ended::Otherwise);
        }
        let mut main = self.revised(new, &old);
        if follows(new) == Follows::Debounced && old.body == new.body {
            main.go_on(&old);
        }
        main.hold_back(old.backoff, self.now);
        let place = self.stays(&old, &mut main);
        let accepted = (Outcome::Replaced, main.version, main.due);
        self.put(&new.id, Live { main, successor: None }, place);
        accepted
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
            version: self.next_version(),
            due,
            priority: new.priority,
            attempts: 0,
            max_attempts: new.max_attempts,
            first,
            expires: new.expires.map_or(0, |expires| self.after(expires)),
            receipt: Receipt::NONE,
            settled: (Receipt::NONE, Ended::Otherwise),
            follows: Follows::Run,
            reason: String::new(),
            consumer: String::new(),
            body: new.body.clone(),
            backoff: 0,
            turn: (0, 0),
            failures: Vec::new(),
            cancelled: false,
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

fn follows(new: &NewTask) -> Follows {
    match new.on_duplicate {
        OnDuplicate::Replace => Follows::Retry,
        OnDuplicate::Debounce { .. } => Follows::Debounced,
        _ => Follows::Run,
    }
}

fn replaces(new: &NewTask) -> bool {
    follows(new) != Follows::Run
}
