//! One queue as docs/DESIGN.md describes it, in as little code as will do. No I/O, no efficiency: maps and
//! sorting. Times are milliseconds.

use std::collections::BTreeMap;

pub(crate) type Id = &'static str;
pub(crate) type Millis = u64;
/// A version or receipt, counted from one. A store's numbers are others, but in the same order.
pub(crate) type Number = u64;

pub(crate) const LEASE_ENDED: &str = "the lease ended";
pub(crate) const EXPIRED: &str = "expired";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Keep,
    Replace,
    Debounce(Millis),
    Throttle(Millis),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ack,
    Nack(Millis),
    Bury,
    PutBack,
}

impl Verdict {
    /// Whether a store takes one for the repetition of the other: it compares only how, not when or why.
    pub(crate) fn repeats(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Done,
    Stale,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Added,
    Kept,
    Replaced,
    Successor,
    Throttled,
    Full,
}

/// How those of equal time are ordered, which the contract leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    Id,
    Serial,
}

/// Deliberate mistakes, to show that each is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A kept task keeps its version.
    VersionStays,
    /// A put_back counts as an attempt.
    PutBackCounts,
    /// One attempt more than allowed.
    OneAttemptMore,
    /// A replaced run's late verdict is still accepted.
    ReplacedRunCounts,
    /// A keep successor takes the retry's place, too.
    EverySuccessorReplaces,
    /// Debounce counts max_wait from the last enqueue.
    DebounceForgetsFirst,
    /// An ack ends the throttle window.
    WindowEndsWithAck,
    /// Priorities are ignored.
    NoPriorities,
    /// The end of a lease settles the delivery.
    LeaseEndSettles,
    /// Full is judged for ids that live, too.
    FullForAll,
    /// What expires is delivered.
    NoExpiry,
    /// A late ack leaves a death by lease end alone.
    LateAckForgotten,
}

/// What is asked to be enqueued; `due` is absolute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(crate) id: Id,
    pub(crate) payload: u8,
    pub(crate) due: Millis,
    pub(crate) priority: u8,
    pub(crate) max_attempts: u32,
    pub(crate) expires: Option<Millis>,
    pub(crate) policy: Policy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) serial: u64,
    pub(crate) payload: u8,
    pub(crate) version: Number,
    pub(crate) due: Millis,
    pub(crate) priority: u8,
    pub(crate) attempts: u32,
    pub(crate) max_attempts: u32,
    first: Millis,
    pub(crate) expires: Option<Millis>,
    pub(crate) receipt: Number,
    settled: Number,
    verdict: Option<Verdict>,
    pub(crate) reason: String,
    replaces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Scheduled,
    /// With its turn.
    Ready(u64),
    /// Until its lease ends.
    Claimed(Millis),
}

#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) main: Task,
    pub(crate) place: Place,
    pub(crate) successor: Option<Task>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dead {
    pub(crate) id: Id,
    pub(crate) died: Millis,
    by_lease: bool,
    pub(crate) task: Task,
}

#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) now: Millis,
    tie: Tie,
    mutant: Option<Mutant>,
    pub(crate) live: BTreeMap<Id, Live>,
    pub(crate) dead: Vec<Dead>,
    windows: BTreeMap<Id, Millis>,
    number: Number,
    sequence: u64,
    serial: u64,
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

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn next_number(&mut self) -> Number {
        self.number += 1;
        self.number
    }

    // The helpers, by the names they have in the text.

    fn put(&mut self, id: Id, main: Task, successor: Option<Task>) {
        let place = if main.due <= self.now {
            self.sequence += 1;
            let priority = if self.is(Mutant::NoPriorities) { 0 } else { main.priority };
            Place::Ready(u64::from(u8::MAX - priority) << 45 | self.sequence)
        } else {
            Place::Scheduled
        };
        self.live.insert(id, Live { main, place, successor });
    }

    fn succeed(&mut self, id: Id, main: &Task, successor: Option<Task>) {
        self.live.remove(id);
        if let Some(mut next) = successor {
            (next.settled, next.verdict) = (main.settled, main.verdict);
            (next.attempts, next.receipt, next.replaces) = (0, 0, false);
            self.put(id, next, None);
        }
    }

    /// A replacing successor takes the retry's place, and what was not settled is.
    fn supplant(&mut self, id: Id, mut main: Task, successor: Option<Task>) {
        if main.receipt != 0 {
            let verdict = self.is(Mutant::ReplacedRunCounts).then_some(Verdict::Ack);
            (main.settled, main.verdict) = (main.receipt, verdict);
        }
        self.succeed(id, &main, successor);
    }

    fn retry(&mut self, id: Id, mut main: Task, successor: Option<Task>, due: Millis) {
        let always = self.is(Mutant::EverySuccessorReplaces);
        if successor.as_ref().is_some_and(|successor| successor.replaces || always) {
            return self.succeed(id, &main, successor);
        }
        main.due = due;
        self.put(id, main, successor);
    }

    fn die(&mut self, id: Id, main: Task, successor: Option<Task>, reason: &str, by_lease: bool) {
        let mut task = main.clone();
        if task.receipt == 0 {
            task.receipt = self.next_number();
        }
        task.reason = reason.into();
        self.died += 1;
        self.dead.push(Dead { id, died: self.now, by_lease, task });
        self.succeed(id, &main, successor);
    }

    /// At the end of every verb.
    fn trim_dead(&mut self, before: u64) {
        if self.died != before {
            self.dead.sort_by_key(|dead| (dead.died, dead.task.receipt));
            let excess = self.dead.len().saturating_sub(self.dead_max);
            self.dead.drain(..excess);
        }
    }

    /// A lower cap holds at once.
    pub(crate) fn limit_dead(&mut self, most: usize) {
        self.dead_max = most;
        self.trim_dead(u64::MAX);
    }

    fn is_held(&self, live: &Live) -> bool {
        matches!(live.place, Place::Claimed(ends) if ends > self.now)
    }

    fn end_lease(&mut self, id: Id) {
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

    fn promote(&mut self) {
        for id in self.ended_leases() {
            self.end_lease(id);
        }
        for id in self.scheduled(|due, now| due <= now) {
            let Live { main, successor, .. } = self.live.remove(id).unwrap();
            self.put(id, main, successor);
        }
    }

    // What is where, in order.

    fn sorted(&self, key: impl Fn(&Live) -> Option<Millis>) -> Vec<Id> {
        let mut found: Vec<(Millis, Id, u64)> =
            (self.live.iter()).filter_map(|(id, live)| Some((key(live)?, *id, live.main.serial))).collect();
        match self.tie {
            Tie::Id => found.sort_by_key(|(time, id, _)| (*time, *id)),
            Tie::Serial => found.sort_by_key(|(time, _, serial)| (*time, *serial)),
        }
        found.into_iter().map(|(_, id, _)| id).collect()
    }

    pub(crate) fn line(&self) -> Vec<Id> {
        self.sorted(|live| match live.place {
            Place::Ready(turn) => Some(turn),
            _ => None,
        })
    }

    pub(crate) fn scheduled(&self, select: impl Fn(Millis, Millis) -> bool) -> Vec<Id> {
        let chosen = |live: &Live| live.place == Place::Scheduled && select(live.main.due, self.now);
        self.sorted(|live| chosen(live).then_some(live.main.due))
    }

    pub(crate) fn ended_leases(&self) -> Vec<Id> {
        self.sorted(|live| match live.place {
            Place::Claimed(ends) if ends <= self.now => Some(ends),
            _ => None,
        })
    }

    pub(crate) fn held(&self) -> Vec<Id> {
        self.sorted(|live| match live.place {
            Place::Claimed(ends) if ends > self.now => Some(ends),
            _ => None,
        })
    }

    /// What peek gives.
    pub(crate) fn ready(&self) -> Vec<Id> {
        [self.line(), self.scheduled(|due, now| due <= now), self.ended_leases()].concat()
    }

    pub(crate) fn newest_dead(&self, id: Id) -> Option<&Dead> {
        self.dead.iter().filter(|dead| dead.id == id).max_by_key(|dead| dead.task.receipt)
    }

    // The verbs.

    pub(crate) fn enqueue(&mut self, new: &New) -> (Outcome, Number, Millis) {
        if let Policy::Throttle(_) = new.policy
            && self.windows.get(new.id).is_some_and(|ends| *ends > self.now)
        {
            return (Outcome::Throttled, 0, 0);
        }
        let new_only = !self.is(Mutant::FullForAll);
        if !(new_only && self.live.contains_key(new.id))
            && self.max_len.is_some_and(|most| self.live.len() >= most)
        {
            return (Outcome::Full, 0, 0);
        }
        self.enqueued += 1;
        if let Policy::Throttle(window) = new.policy {
            self.windows.insert(new.id, self.now + window);
        }
        let version = self.next_number();
        let replaces = matches!(new.policy, Policy::Replace | Policy::Debounce(_));
        let Some(mut live) = self.live.remove(new.id) else {
            let task = self.fresh(new, version, None);
            let due = task.due;
            self.put(new.id, task, None);
            return (Outcome::Added, version, due);
        };
        let pending = live.main.receipt == 0 && live.successor.is_none();
        let stays = self.is(Mutant::VersionStays);
        let target = if pending { Some(&mut live.main) } else { live.successor.as_mut() };
        if let Some(target) = target
            && !replaces
        {
            if !stays {
                target.version = version;
            }
            let due = target.due;
            self.live.insert(new.id, live);
            return (Outcome::Kept, version, due);
        }
        if pending {
            let old = live.main;
            let mut task = self.fresh(new, version, Some(&old));
            (task.settled, task.verdict) = (old.settled, old.verdict);
            if matches!(new.policy, Policy::Debounce(_)) && old.payload == new.payload {
                // One is left in any case.
                task.attempts = old.attempts.min(task.max_attempts - 1);
            }
            let due = task.due;
            self.put(new.id, task, None);
            return (Outcome::Replaced, version, due);
        }
        let outcome = if live.successor.is_some() { Outcome::Replaced } else { Outcome::Successor };
        let mut task = self.fresh(new, version, live.successor.as_ref());
        task.replaces = replaces;
        let due = task.due;
        if replaces && !self.is_held(&live) {
            self.supplant(new.id, live.main, Some(task));
        } else {
            live.successor = Some(task);
            self.live.insert(new.id, live);
        }
        (outcome, version, due)
    }

    fn fresh(&mut self, new: &New, version: Number, before: Option<&Task>) -> Task {
        let mut task = Task {
            serial: before.map_or_else(
                || {
                    self.serial += 1;
                    self.serial
                },
                |before| before.serial,
            ),
            payload: new.payload,
            version,
            due: new.due,
            priority: new.priority,
            attempts: 0,
            max_attempts: new.max_attempts,
            first: self.now,
            expires: new.expires.map(|after| self.now + after),
            receipt: 0,
            settled: 0,
            verdict: None,
            reason: String::new(),
            replaces: false,
        };
        if let Policy::Debounce(max_wait) = new.policy {
            let before = before.filter(|_| !self.is(Mutant::DebounceForgetsFirst));
            task.first = before.map_or(self.now, |before| before.first);
            task.due = task.due.min(task.first + max_wait);
        }
        task
    }

    /// Takes from the line; `end` says what becomes of each.
    fn take(&mut self, max: usize, mut end: impl FnMut(&mut Self, Id, Live)) -> Vec<(Id, Task)> {
        let mut taken = Vec::new();
        if self.paused {
            return taken;
        }
        let before = self.died;
        self.promote();
        // As the line stands now: a successor that comes into it meanwhile is not taken.
        for id in self.line() {
            if taken.len() == max {
                break;
            }
            let mut live = self.live.remove(id).unwrap();
            let over = live.main.expires.is_some_and(|expires| expires <= self.now);
            if over && !self.is(Mutant::NoExpiry) {
                self.die(id, live.main, live.successor, EXPIRED, false);
                continue;
            }
            live.main.attempts += 1;
            live.main.receipt = self.next_number();
            taken.push((id, live.main.clone()));
            end(self, id, live);
        }
        self.trim_dead(before);
        taken
    }

    pub(crate) fn claim(&mut self, max: usize, lease: Millis) -> Vec<(Id, Task)> {
        self.take(max, |queue, id, live| {
            let place = Place::Claimed(queue.now + lease);
            queue.live.insert(id, Live { place, ..live });
        })
    }

    pub(crate) fn pop(&mut self, max: usize) -> Vec<(Id, Task)> {
        self.take(max, |queue, id, live| {
            let mut main = live.main;
            (main.settled, main.verdict) = (main.receipt, Some(Verdict::Ack));
            queue.acked += 1;
            queue.succeed(id, &main, live.successor);
        })
    }

    pub(crate) fn settle(&mut self, id: Id, receipt: Number, verdict: Verdict, reason: &str) -> Settled {
        let before = self.died;
        let settled = self.settle_one(id, receipt, verdict, reason);
        self.trim_dead(before);
        settled
    }

    fn settle_one(&mut self, id: Id, receipt: Number, verdict: Verdict, reason: &str) -> Settled {
        if self.live.get(id).is_some_and(|live| live.main.receipt == receipt) {
            let Live { mut main, successor, .. } = self.live.remove(id).unwrap();
            (main.settled, main.verdict) = (receipt, Some(verdict));
            match verdict {
                Verdict::Ack => {
                    self.acked += 1;
                    if self.is(Mutant::WindowEndsWithAck) {
                        self.windows.remove(id);
                    }
                    self.succeed(id, &main, successor);
                }
                Verdict::Nack(delay) => {
                    self.retried += 1;
                    let more = u32::from(self.is(Mutant::OneAttemptMore));
                    if main.attempts >= main.max_attempts + more {
                        self.die(id, main, successor, reason, false);
                    } else {
                        main.receipt = 0;
                        main.reason = reason.into();
                        let due = self.now + delay;
                        self.retry(id, main, successor, due);
                    }
                }
                Verdict::Bury => self.die(id, main, successor, reason, false),
                Verdict::PutBack => {
                    main.receipt = 0;
                    main.attempts -= u32::from(!self.is(Mutant::PutBackCounts));
                    let due = main.due;
                    self.retry(id, main, successor, due);
                }
            }
            return Settled::Done;
        }
        if let Some(live) = self.live.get(id)
            && live.main.settled == receipt
        {
            let same = live.main.verdict.is_some_and(|before| before.repeats(verdict));
            return if same { Settled::Done } else { Settled::Stale };
        }
        if let Some(at) = self.dead.iter().position(|dead| dead.id == id && dead.task.receipt == receipt) {
            let dead = &self.dead[at];
            if dead.by_lease {
                if verdict != Verdict::Ack || self.is(Mutant::LateAckForgotten) {
                    return Settled::Stale;
                }
                self.dead.remove(at);
                self.acked += 1;
                return Settled::Done;
            }
            let killer = dead.task.verdict.filter(|_| dead.task.settled == receipt);
            let same = killer.is_some_and(|before| before.repeats(verdict));
            return if same { Settled::Done } else { Settled::Stale };
        }
        if self.live.contains_key(id) { Settled::Stale } else { Settled::Gone }
    }

    /// What is left of the lease, if it could be prolonged.
    pub(crate) fn extend(&mut self, id: Id, receipt: Number, lease: Millis) -> Option<Millis> {
        let now = self.now;
        let live = self.live.get_mut(id).filter(|live| live.main.receipt == receipt)?;
        match &mut live.place {
            Place::Claimed(ends) if *ends > now => {
                *ends = (*ends).max(now + lease);
                Some(*ends - now)
            }
            _ => None,
        }
    }

    /// What remove says: `Ok` of whether there was one, or the version that it has.
    pub(crate) fn remove(&mut self, id: Id, version: Option<Number>) -> Result<bool, Number> {
        if let Some(version) = version {
            let Some(live) = self.live.get(id) else { return Ok(false) };
            let current = live.successor.as_ref().unwrap_or(&live.main).version;
            if current != version {
                return Err(current);
            }
        }
        self.windows.remove(id);
        Ok(self.live.remove(id).is_some())
    }

    pub(crate) fn reschedule(&mut self, id: Id, due: Millis) -> Rescheduled {
        let before = self.died;
        if let Some(live) = self.live.get(id) {
            if self.is_held(live) {
                return Rescheduled::Claimed;
            }
            if matches!(live.place, Place::Claimed(_)) {
                // Its lease has ended: first what that means, so that nobody gets more attempts than allowed.
                self.end_lease(id);
            }
        }
        let reply = if let Some(Live { mut main, successor, .. }) = self.live.remove(id) {
            main.due = due;
            self.put(id, main, successor);
            Rescheduled::Moved(due)
        } else if self.newest_dead(id).is_some() {
            Rescheduled::Dead
        } else {
            Rescheduled::Absent
        };
        self.trim_dead(before);
        reply
    }

    pub(crate) fn kick_id(&mut self, id: Id) -> u64 {
        match self.newest_dead(id) {
            Some(dead) if !self.live.contains_key(id) => {
                let receipt = dead.task.receipt;
                self.revive(receipt);
                1
            }
            _ => 0,
        }
    }

    pub(crate) fn kick_count(&mut self, count: u64) -> u64 {
        let mut kicked = 0;
        self.dead.sort_by_key(|dead| (dead.died, dead.task.receipt));
        while kicked < count
            && let Some(dead) = self.dead.iter().find(|dead| !self.live.contains_key(dead.id))
        {
            let receipt = dead.task.receipt;
            self.revive(receipt);
            kicked += 1;
        }
        kicked
    }

    fn revive(&mut self, receipt: Number) {
        let at = self.dead.iter().position(|dead| dead.task.receipt == receipt).unwrap();
        let Dead { id, mut task, .. } = self.dead.remove(at);
        if task.settled != receipt {
            // Nobody settled it; its delivery is over all the same.
            (task.settled, task.verdict) = (receipt, None);
        }
        (task.version, task.due, task.attempts, task.receipt) = (self.next_number(), self.now, 0, 0);
        task.expires = task.expires.filter(|expires| *expires > self.now);
        self.serial += 1;
        task.serial = self.serial;
        self.put(id, task, None);
    }

    pub(crate) fn purge(&mut self) -> u64 {
        let count = self.live.len() + self.dead.len();
        self.live.clear();
        self.dead.clear();
        self.windows.clear();
        count as u64
    }

    pub(crate) fn next_due(&self) -> Option<Millis> {
        if !self.ready().is_empty() {
            return Some(0);
        }
        let times = self.live.values().map(|live| match live.place {
            Place::Claimed(ends) => ends,
            _ => live.main.due,
        });
        times.map(|time| time.saturating_sub(self.now)).min()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rescheduled {
    Moved(Millis),
    Absent,
    Claimed,
    Dead,
}
