//! One queue as docs/DESIGN.md describes it, in as little code as will do: maps and sorting, no I/O, no
//! efficiency. Here is what it holds, and the helpers that every verb is made of, by the names that they have
//! in the text; see `verbs` and `looks` for the rest.

use std::collections::BTreeMap;

use crate::keys::Keys;
use crate::terms::{Cause, Dead, Id, LEASE_ENDED, Live, Millis, Mutant, Number, Place, Task, Tie, Verdict};

#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) now: Millis,
    pub(super) tie: Tie,
    mutant: Option<Mutant>,
    pub(crate) live: BTreeMap<Id, Live>,
    pub(crate) dead: Vec<Dead>,
    pub(super) windows: BTreeMap<Id, Millis>,
    number: Number,
    sequence: u64,
    pub(super) serial: u64,
    pub(crate) keys: Keys,
    pub(crate) paused: bool,
    pub(crate) max_len: Option<usize>,
    pub(crate) dead_max: usize,
    pub(crate) enqueued: u64,
    pub(crate) acked: u64,
    pub(crate) retried: u64,
    pub(crate) died: u64,
}

impl Queue {
    pub(crate) fn new(now: Millis, tie: Tie, mutant: Option<Mutant>) -> Self {
        Self {
            now,
            tie,
            mutant,
            live: BTreeMap::new(),
            dead: Vec::new(),
            windows: BTreeMap::new(),
            number: 0,
            sequence: 0,
            serial: 0,
            keys: Keys::default(),
            paused: false,
            max_len: None,
            dead_max: 10_000,
            enqueued: 0,
            acked: 0,
            retried: 0,
            died: 0,
        }
    }

    pub(super) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub(super) fn next_number(&mut self) -> Number {
        self.number += 1;
        self.number
    }

    pub(super) fn put(&mut self, id: Id, main: Task, successor: Option<Task>) {
        self.put_in(id, main, successor, None);
    }

    /// A task that is due comes into its place in line if it has one, otherwise to the end of its priority's.
    pub(super) fn put_in(&mut self, id: Id, main: Task, successor: Option<Task>, place: Option<Place>) {
        let is_due = main.due <= self.now;
        let place = match place {
            // What ran leaves its run, and comes into line if its key lets it.
            Some(Place::Ready(turn)) if is_due && self.keys.runs(id) => {
                self.keys.leave(id);
                self.enter(id, &main, turn)
            }
            Some(place) if is_due => place,
            _ => {
                self.keys.leave(id);
                if is_due {
                    let turn = self.next_turn(main.priority);
                    self.enter(id, &main, turn)
                } else {
                    Place::Scheduled
                }
            }
        };
        self.live.insert(id, Live { main, place, successor });
    }

    /// The end of the line of this priority.
    pub(super) fn next_turn(&mut self, priority: u8) -> u64 {
        self.sequence += 1;
        let priority = if self.is(Mutant::NoPriorities) { 0 } else { priority };
        u64::from(u8::MAX - priority) << 45 | self.sequence
    }

    /// Where a task stands that takes the place of one that waits: there, if both are due, of one priority, and of one key.
    pub(super) fn stays(&self, before: &Task, place: Place, task: &mut Task) -> Option<Place> {
        let due = before.due <= self.now && task.due <= self.now;
        if !due
            || before.priority != task.priority
            || before.key != task.key
            || self.is(Mutant::UpdateLosesPlace)
        {
            return None;
        }
        task.due = before.due;
        Some(place)
    }

    /// No enqueue brings a retry forward of its back-off.
    pub(super) fn hold_back(&self, task: &mut Task, backoff: Millis) {
        if backoff > self.now && !self.is(Mutant::BackoffErased) {
            (task.backoff, task.due) = (backoff, task.due.max(backoff));
        }
    }

    pub(super) fn succeed(&mut self, id: Id, main: &Task, successor: Option<Task>, place: Option<Place>) {
        self.live.remove(id);
        if successor.is_none() {
            self.keys.leave(id);
        }
        if let Some(mut next) = successor {
            (next.settled, next.verdict) = (main.settled, main.verdict);
            (next.replaces, next.debounced) = (false, false);
            self.put_in(id, next, None, place);
        }
    }

    /// A replacing successor takes the retry's place, and what was not settled is.
    pub(super) fn supplant(&mut self, id: Id, mut main: Task, mut next: Task, place: Option<Place>) {
        if main.receipt != 0 {
            let verdict = self.is(Mutant::ReplacedRunCounts).then_some(Verdict::Ack);
            (main.settled, main.verdict, main.receipt) = (main.receipt, verdict, 0);
        }
        if next.debounced && next.payload == main.payload {
            next.go_on(&main);
        }
        self.hold_back(&mut next, main.backoff);
        let place = place.filter(|_| next.priority == main.priority && next.key == main.key);
        self.succeed(id, &main, Some(next), place);
    }

    pub(super) fn retry(&mut self, id: Id, main: Task, successor: Option<Task>, place: Option<Place>) {
        let always = self.is(Mutant::EverySuccessorReplaces);
        match successor {
            Some(next) if next.replaces || always => self.supplant(id, main, next, place),
            successor => self.put_in(id, main, successor, place),
        }
    }

    pub(super) fn die(&mut self, id: Id, main: Task, successor: Option<Task>, reason: &str, cause: Cause) {
        let mut task = main.clone();
        if task.receipt == 0 {
            task.receipt = self.next_number();
        }
        task.reason = reason.into();
        self.died += 1;
        self.dead.push(Dead { id, died: self.now, cause, task });
        self.succeed(id, &main, successor, None);
    }

    /// At the end of a call.
    pub(crate) fn trim_dead(&mut self) {
        if self.is(Mutant::NoCaps) {
            return;
        }
        self.dead.sort_by_key(Dead::age);
        for expired in [false, true] {
            let all = self.is(Mutant::ExpiredPushesOut);
            let count = self.dead.iter().filter(|dead| all || dead.expired() == expired).count();
            let mut excess = count.saturating_sub(self.dead_max);
            self.dead.retain(|dead| {
                let goes = dead.expired() == expired && excess > 0;
                excess -= usize::from(goes);
                !goes
            });
        }
    }

    pub(super) fn is_held(&self, live: &Live) -> bool {
        matches!(live.place, Place::Claimed(ends) if ends > self.now)
    }

    pub(super) fn end_lease(&mut self, id: Id) {
        let Live { mut main, successor, place } = self.live.remove(id).unwrap();
        if self.is(Mutant::LeaseEndSettles) {
            (main.settled, main.verdict) = (main.receipt, None);
        }
        if main.attempts >= main.max_attempts {
            self.die(id, main, successor, LEASE_ENDED, Cause::LeaseEnded);
        } else {
            self.retried += 1;
            main.reason = LEASE_ENDED.into();
            if let Place::Claimed(ends) = place
                && !self.is(Mutant::FirstSurvivesFailure)
            {
                main.first = ends;
            }
            if self.is(Mutant::LeaseEndSettles) {
                main.receipt = 0;
            }
            self.retry(id, main, successor, None);
        }
    }

    /// An enqueue or reschedule comes: a lease that has ended is over, noticed or not.
    pub(super) fn notice(&mut self, id: Id) {
        let ended = |live: &Live| matches!(live.place, Place::Claimed(ends) if ends <= self.now);
        if self.live.get(id).is_some_and(ended) {
            self.end_lease(id);
        }
    }

    pub(super) fn promote(&mut self) {
        for id in self.ended_leases() {
            self.end_lease(id);
        }
        for id in self.scheduled(|due, now| due <= now) {
            let Live { main, successor, .. } = self.live.remove(id).unwrap();
            self.put(id, main, successor);
        }
        self.promote_keys();
        self.write_keys(0);
    }
}
