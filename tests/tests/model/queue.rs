//! One queue as docs/DESIGN.md describes it, in as little code as will do: maps and sorting, no I/O, no
//! efficiency. Here is what it holds, and the helpers that every verb is made of, by the names that they have
//! in the text; see `verbs` and `looks` for the rest.

use std::collections::BTreeMap;

use crate::terms::{Dead, Id, LEASE_ENDED, Live, Millis, Mutant, Number, Place, Task, Tie, Verdict};

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
        let place = if main.due <= self.now {
            self.sequence += 1;
            let priority = if self.is(Mutant::NoPriorities) { 0 } else { main.priority };
            Place::Ready(u64::from(u8::MAX - priority) << 45 | self.sequence)
        } else {
            Place::Scheduled
        };
        self.live.insert(id, Live { main, place, successor });
    }

    pub(super) fn succeed(&mut self, id: Id, main: &Task, successor: Option<Task>) {
        self.live.remove(id);
        if let Some(mut next) = successor {
            (next.settled, next.verdict) = (main.settled, main.verdict);
            (next.attempts, next.receipt, next.replaces) = (0, 0, false);
            self.put(id, next, None);
        }
    }

    /// A replacing successor takes the retry's place, and what was not settled is.
    pub(super) fn supplant(&mut self, id: Id, mut main: Task, successor: Option<Task>) {
        if main.receipt != 0 {
            let verdict = self.is(Mutant::ReplacedRunCounts).then_some(Verdict::Ack);
            (main.settled, main.verdict) = (main.receipt, verdict);
        }
        self.succeed(id, &main, successor);
    }

    pub(super) fn retry(&mut self, id: Id, mut main: Task, successor: Option<Task>, due: Millis) {
        let always = self.is(Mutant::EverySuccessorReplaces);
        if successor.as_ref().is_some_and(|successor| successor.replaces || always) {
            return self.succeed(id, &main, successor);
        }
        main.due = due;
        self.put(id, main, successor);
    }

    pub(super) fn die(&mut self, id: Id, main: Task, successor: Option<Task>, reason: &str, by_lease: bool) {
        let mut task = main.clone();
        if task.receipt == 0 {
            task.receipt = self.next_number();
        }
        task.reason = reason.into();
        self.died += 1;
        self.dead.push(Dead { id, died: self.now, by_lease, task });
        self.succeed(id, &main, successor);
    }

    /// At the end of a call in which something died, and of one that lowers the cap.
    pub(crate) fn trim_dead(&mut self) {
        self.dead.sort_by_key(|dead| (dead.died, dead.task.receipt));
        let excess = self.dead.len().saturating_sub(self.dead_max);
        self.dead.drain(..excess);
    }

    pub(super) fn is_held(&self, live: &Live) -> bool {
        matches!(live.place, Place::Claimed(ends) if ends > self.now)
    }

    pub(super) fn end_lease(&mut self, id: Id) {
        let Live { mut main, successor, .. } = self.live.remove(id).unwrap();
        self.retried += 1;
        if self.is(Mutant::LeaseEndSettles) {
            (main.settled, main.verdict) = (main.receipt, None);
        }
        if main.attempts >= main.max_attempts {
            self.die(id, main, successor, LEASE_ENDED, true);
        } else if successor.as_ref().is_some_and(|successor| successor.replaces) {
            self.supplant(id, main, successor);
        } else {
            main.reason = LEASE_ENDED.into();
            if self.is(Mutant::LeaseEndSettles) {
                main.receipt = 0;
            }
            self.put(id, main, successor);
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
    }
}
