//! The verbs of the model.

use crate::queue::Queue;
use crate::terms::{
    Cause, Dead, EXPIRED, EXPIRED_AFTER, Id, Live, Millis, Mutant, New, Number, Outcome, Place, Policy,
    Rescheduled, Settled, Task, Verdict,
};

impl Queue {
    pub(crate) fn enqueue(&mut self, new: &New) -> (Outcome, Number, Millis) {
        if let Policy::Throttle(_) = new.policy
            && self.windows.get(new.id).is_some_and(|ends| *ends > self.now)
        {
            return (Outcome::Throttled, 0, 0);
        }
        self.notice(new.id);
        let new_only = !self.is(Mutant::FullForAll);
        if !(new_only && self.live.contains_key(new.id))
            && self.max_len.is_some_and(|most| self.live.len() >= most)
            && !self.is(Mutant::NoMaxLen)
        {
            return (Outcome::Full, 0, 0);
        }
        if let Some(live) = self.live.get(new.id)
            && new.policy == Policy::Skip
            && !self.is(Mutant::SkipHasSuccessor)
            && live.successor.is_none()
            && self.is_held(live)
        {
            return (Outcome::Skipped, live.main.version, live.main.due);
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
        let waits = !(self.is_held(&live) || self.is(Mutant::EndedLeaseRuns) && live.main.receipt != 0);
        let pending = waits && live.successor.is_none();
        if pending && replaces && live.main.receipt != 0 {
            (live.main.settled, live.main.verdict, live.main.receipt) = (live.main.receipt, None, 0);
        }
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
                task.go_on(&old);
            }
            self.hold_back(&mut task, old.backoff);
            let place = self.stays(&old, live.place, &mut task);
            let due = task.due;
            self.put_in(new.id, task, None, place);
            return (Outcome::Replaced, version, due);
        }
        let outcome = if live.successor.is_some() { Outcome::Replaced } else { Outcome::Successor };
        let mut task = self.fresh(new, version, live.successor.as_ref());
        (task.replaces, task.debounced) = (replaces, matches!(new.policy, Policy::Debounce(_)));
        if !replaces || self.is_held(&live) {
            let due = task.due;
            live.successor = Some(task);
            self.live.insert(new.id, live);
            return (outcome, version, due);
        }
        self.hold_back(&mut task, live.main.backoff);
        let place = self.stays(&live.main, live.place, &mut task);
        let due = task.due;
        self.supplant(new.id, live.main, task, place);
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
            debounced: false,
            backoff: 0,
            turn: 0,
            key: new.key,
        };
        if let Policy::Debounce(max_wait) = new.policy {
            let before = before.filter(|_| !self.is(Mutant::DebounceForgetsFirst));
            task.first = before.map_or(self.now, |before| before.first);
            task.due = task.due.min(task.first + max_wait);
        }
        task
    }

    /// Whether the task has expired; then it is dead.
    fn expire(&mut self, id: Id) -> bool {
        let over = self.live[id].main.expires.is_some_and(|expires| expires <= self.now);
        if !over || self.is(Mutant::NoExpiry) {
            return false;
        }
        let live = self.live.remove(id).unwrap();
        let reason = match &*live.main.reason {
            "" => EXPIRED.to_owned(),
            before => format!("{EXPIRED_AFTER}{before}"),
        };
        self.die(id, live.main, live.successor, &reason, Cause::Expired);
        true
    }

    /// What has expired counts no longer, if so many more would not fit.
    pub(crate) fn make_room(&mut self, more: usize) {
        let fits = self.max_len.is_none_or(|most| self.live.len() + more <= most);
        if fits || self.is(Mutant::ExpiredCountsAsLive) {
            return;
        }
        for id in [self.line(), self.scheduled(|_, _| true)].concat() {
            self.expire(id);
        }
    }

    /// Takes from the line; `end` says what becomes of each.
    fn take(&mut self, max: usize, mut end: impl FnMut(&mut Self, Id, Live)) -> Vec<(Id, Task)> {
        let mut taken = Vec::new();
        if self.paused {
            return taken;
        }
        self.promote();
        let max = max.min(self.gate().0);
        loop {
            self.take_line(max, &mut taken, &mut end);
            // When nothing is in line any more, keys that hold tasks give more than their share.
            let wanted = max - taken.len();
            if self.write_keys(wanted) == 0 || wanted == 0 {
                break;
            }
        }
        self.pass(taken.len());
        taken
    }

    /// As the line stands now: a successor that comes into it meanwhile is not taken.
    fn take_line(
        &mut self,
        max: usize,
        taken: &mut Vec<(Id, Task)>,
        end: &mut impl FnMut(&mut Self, Id, Live),
    ) {
        for id in self.line() {
            if taken.len() == max {
                break;
            }
            if self.expire(id) || !self.may_run(id) {
                continue;
            }
            let mut live = self.live.remove(id).unwrap();
            if let Place::Ready(turn) = live.place {
                live.main.turn = turn;
            }
            live.main.attempts += 1;
            live.main.receipt = self.next_number();
            taken.push((id, live.main.clone()));
            end(self, id, live);
        }
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
            queue.succeed(id, &main, live.successor, None);
        })
    }

    pub(crate) fn settle(&mut self, id: Id, receipt: Number, verdict: Verdict, reason: &str) -> Settled {
        if self.live.get(id).is_some_and(|live| live.main.receipt == receipt) {
            let Live { mut main, successor, place } = self.live.remove(id).unwrap();
            (main.settled, main.verdict) = (receipt, Some(verdict));
            if let Verdict::Throttle(time) = verdict {
                self.keys.throttle(main.key, self.now + time);
            }
            match verdict {
                Verdict::Ack => {
                    self.acked += 1;
                    if self.is(Mutant::WindowEndsWithAck) {
                        self.windows.remove(id);
                    }
                    if main.version > receipt {
                        // It was asked for again since, and that is yet to be done.
                        (main.attempts, main.receipt, main.reason) = (0, 0, String::new());
                        self.live.insert(id, Live { main, successor, place });
                    } else {
                        self.succeed(id, &main, successor, None);
                    }
                }
                Verdict::Nack(delay) => {
                    let more = u32::from(self.is(Mutant::OneAttemptMore));
                    if main.attempts >= main.max_attempts + more {
                        self.die(id, main, successor, reason, Cause::Failed);
                    } else {
                        self.retried += 1;
                        main.receipt = 0;
                        main.reason = reason.into();
                        if !self.is(Mutant::FirstSurvivesFailure) {
                            main.first = self.now;
                        }
                        (main.due, main.backoff) = (self.now + delay, self.now + delay);
                        self.retry(id, main, successor, None);
                    }
                }
                Verdict::Bury => self.die(id, main, successor, reason, Cause::Failed),
                Verdict::PutBack(_) | Verdict::Throttle(_) => {
                    let delay = if let Verdict::PutBack(delay) = verdict { delay } else { 0 };
                    main.receipt = 0;
                    main.attempts -= u32::from(!self.is(Mutant::PutBackCounts));
                    let place = match place {
                        _ if delay > 0 || self.is(Mutant::PutBackLosesPlace) => None,
                        Place::Claimed(_) => Some(Place::Ready(main.turn)),
                        // Its lease has ended, and it waits already.
                        place => Some(place),
                    };
                    if delay > 0 {
                        (main.due, main.backoff) = (self.now + delay, self.now + delay);
                    }
                    self.retry(id, main, successor, place);
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
            if dead.cause == Cause::LeaseEnded {
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
        self.keys.leave(id);
        Ok(self.live.remove(id).is_some())
    }

    pub(crate) fn reschedule(&mut self, id: Id, due: Millis) -> Rescheduled {
        self.notice(id);
        if self.live.get(id).is_some_and(|live| self.is_held(live)) {
            return Rescheduled::Claimed;
        }
        if let Some(Live { main, successor, place }) = self.live.remove(id) {
            let mut moved = Task { due, backoff: 0, ..main.clone() };
            let place = self.stays(&main, place, &mut moved);
            let due = moved.due;
            self.put_in(id, moved, successor, place);
            Rescheduled::Moved(due)
        } else if self.newest_dead(id).is_some() {
            Rescheduled::Dead
        } else {
            Rescheduled::Absent
        }
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

    pub(crate) fn remove_dead(&mut self, count: u64, reason: &str) -> u64 {
        self.dead.sort_by_key(Dead::age);
        let wanted = self.dead.iter().filter(|dead| dead.task.reason.starts_with(reason));
        let receipts: Vec<_> = wanted.take(count as usize).map(|dead| dead.task.receipt).collect();
        self.dead.retain(|dead| !receipts.contains(&dead.task.receipt));
        receipts.len() as u64
    }

    pub(crate) fn remove_one_dead(&mut self, number: usize) -> u64 {
        let dead = self.listed_dead();
        let Some(receipt) = dead.get(number % dead.len().max(1)).map(|dead| dead.task.receipt) else {
            return 0;
        };
        self.dead.retain(|dead| dead.task.receipt != receipt);
        1
    }

    /// Those that failed, the newest first; then those that expired.
    pub(crate) fn listed_dead(&self) -> Vec<&Dead> {
        let mut dead: Vec<_> = self.dead.iter().collect();
        dead.sort_by_key(|dead| (dead.expired(), std::cmp::Reverse((dead.died, dead.task.receipt))));
        dead
    }

    pub(crate) fn kick(&mut self, count: u64, reason: &str) -> u64 {
        let mut kicked = 0;
        self.dead.sort_by_key(Dead::age);
        let is_meant = |dead: &Dead| dead.task.reason.starts_with(reason);
        while kicked < count
            && let Some(dead) =
                self.dead.iter().find(|dead| is_meant(dead) && !self.live.contains_key(dead.id))
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
        (task.first, task.backoff) = (self.now, 0);
        task.expires = task.expires.filter(|expires| *expires > self.now);
        self.serial += 1;
        task.serial = self.serial;
        self.put(id, task, None);
    }

    pub(crate) fn purge(&mut self) -> u64 {
        let count = self.live.len() + self.dead.len();
        self.live.clear();
        self.keys.purge();
        self.dead.clear();
        self.windows.clear();
        count as u64
    }
}

impl Task {
    /// The same is asked for again by debounce: attempts go on, with one left in any case.
    pub(super) fn go_on(&mut self, before: &Self) {
        self.attempts = before.attempts.min(self.max_attempts - 1);
    }
}
