//! Keys and limits of the model: how many tasks of a key are in line and running, and which wait for their turn.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::Queue;
use crate::terms::{Id, Live, Millis, Mutant, Place, Task};

pub(crate) type Key = &'static str;

/// One per `per`, so many of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) per: Millis,
    pub(crate) burst: u64,
}

/// What a key has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) concurrency: Option<usize>,
    pub(crate) rate: Option<Rate>,
    pub(crate) weight: usize,
}

/// What keeps the queue from giving out what is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Paused,
    MaxRunning,
    Rate(Millis),
    Throttled(Millis),
}

/// Where a task with a key is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// With its priority.
    Line(u8),
    Run,
    Held,
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    tat: Millis,
    until: Millis,
    /// When it is looked at though none of its tasks leaves.
    looks: Option<Millis>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) max_running: Option<usize>,
    pub(crate) rate: Option<Rate>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) key_rate: Option<Rate>,
    pub(crate) own: BTreeMap<Key, Own>,
    tat: Millis,
    held_until: Millis,
    /// Whether the next claim looks at every key that holds tasks.
    pub(crate) sweeps: bool,
    /// Whether a key has, or had, a concurrency: then the end of a run makes room.
    pub(crate) counts_runs: bool,
    stood: BTreeMap<Id, (Key, At)>,
    times: BTreeMap<Key, Times>,
    /// Those whose tasks came or went, in order.
    changed: Vec<Key>,
    dropped: BTreeSet<Key>,
}

/// How many more may come into line.
enum Room {
    None,
    Free(usize),
    /// One of a higher priority than all in line.
    Higher,
}

impl Rate {
    /// How much earlier than its time one may come.
    fn slack(self) -> Millis {
        (self.burst - 1) * self.per + (self.per * 9 / 10).min(100)
    }

    /// The time of one that may have been slower before: no more than one gap of what it is now is waited for.
    fn tat(self, tat: Millis, now: Millis) -> Millis {
        tat.min(now + self.slack() + self.per)
    }
}

impl Keys {
    pub(crate) fn change(&mut self, key: Key) {
        if !self.changed.contains(&key) {
            self.changed.push(key);
        }
    }

    fn own_of(&self, key: Key) -> Own {
        let Self { concurrency, key_rate: rate, .. } = *self;
        let own = self.own.get(key).copied().unwrap_or(Own { concurrency: None, rate: None, weight: 1 });
        Own { concurrency: own.concurrency.or(concurrency), rate: own.rate.or(rate), ..own }
    }

    fn in_line(&self, key: Key) -> Vec<u8> {
        let of_key = self.stood.values().filter(|(other, _)| *other == key);
        of_key
            .filter_map(|(_, at)| if let At::Line(priority) = at { Some(*priority) } else { None })
            .collect()
    }

    fn count(&self, key: Key, at: At) -> usize {
        self.stood.values().filter(|stood| **stood == (key, at)).count()
    }

    /// When the next may come into line behind so many.
    fn free_at(&self, key: Key, before: usize, now: Millis) -> Millis {
        let Times { tat, until, .. } = self.times.get(key).copied().unwrap_or_default();
        let Some(rate) = self.own_of(key).rate else { return until };
        let tat = if before > 0 { tat.max(now) } else { tat };
        until.max((tat + before as Millis * rate.per).saturating_sub(rate.slack()))
    }

    fn room(&self, key: Key, share: usize, now: Millis) -> Room {
        let (own, in_line, running) = (self.own_of(key), self.in_line(key).len(), self.count(key, At::Run));
        if own.concurrency.is_some_and(|most| running >= most) || self.free_at(key, in_line, now) > now {
            return Room::None;
        }
        let by_weight = own.weight.max(share).saturating_sub(in_line);
        let free =
            own.concurrency.map_or(by_weight, |most| by_weight.min(most.saturating_sub(running + in_line)));
        if free > 0 { Room::Free(free) } else { Room::Higher }
    }

    fn is_higher(&self, key: Key, priority: u8) -> bool {
        self.in_line(key).into_iter().all(|other| other < priority)
    }

    /// A task that had a place leaves it.
    pub(crate) fn leave(&mut self, id: Id) {
        let Some((key, at)) = self.stood.remove(id) else { return };
        if at == At::Run && !self.counts_runs {
            return;
        }
        self.change(key);
        if let At::Line(priority) = at
            && self.is_higher(key, priority)
        {
            self.dropped.insert(key);
        }
    }

    /// Whether one that is due comes into line; otherwise it is held.
    fn enter(&mut self, id: Id, key: Key, priority: u8, now: Millis) -> bool {
        self.change(key);
        let is_higher = !self.in_line(key).is_empty() && self.is_higher(key, priority);
        let enters = match self.room(key, 0, now) {
            Room::None => false,
            Room::Free(_) => is_higher || self.count(key, At::Held) == 0,
            Room::Higher => is_higher,
        };
        self.stood.insert(id, (key, if enters { At::Line(priority) } else { At::Held }));
        enters
    }

    /// Whether what was delivered, or is, is counted as a run.
    pub(crate) fn runs(&self, id: Id) -> bool {
        matches!(self.stood.get(id), Some((_, At::Run)))
    }

    pub(crate) fn purge(&mut self) {
        self.stood.clear();
        self.times.clear();
        self.changed.clear();
    }

    /// The queue's rate is another now.
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>, now: Millis) {
        self.rate = rate;
        self.tat = rate.map_or(self.tat, |rate| rate.tat(self.tat, now));
    }

    pub(crate) fn throttle(&mut self, key: Option<Key>, until: Millis) {
        match key {
            Some(key) => {
                self.change(key);
                let times = self.times.entry(key).or_default();
                times.until = times.until.max(until);
            }
            None => self.held_until = self.held_until.max(until),
        }
    }

    /// How many keys wait for a time, and for which the first.
    pub(crate) fn waiting(&self) -> (usize, Option<Millis>) {
        let looks: Vec<Millis> = self.times.values().filter_map(|times| times.looks).collect();
        (looks.len(), looks.into_iter().min())
    }
}

impl Queue {
    /// Where a task comes to that is due; it had this turn, or gets it.
    pub(super) fn enter(&mut self, id: Id, task: &Task, turn: u64) -> Place {
        let enters = task.key.is_none_or(|key| self.keys.enter(id, key, task.priority, self.now));
        if enters { Place::Ready(turn) } else { Place::Held(turn) }
    }

    /// Whether the key of a task in line lets it run now; otherwise it is held.
    pub(super) fn may_run(&mut self, id: Id) -> bool {
        let live = &self.live[id];
        let (Some(key), Place::Ready(turn), now) = (live.main.key, live.place, self.now) else { return true };
        self.keys.leave(id);
        let own = self.keys.own_of(key);
        let is_full = own.concurrency.is_some_and(|most| self.keys.count(key, At::Run) >= most);
        if (is_full && !self.is(Mutant::NoConcurrency)) || self.keys.free_at(key, 0, now) > now {
            self.keys.stood.insert(id, (key, At::Held));
            self.live.get_mut(id).unwrap().place = Place::Held(turn);
            return false;
        }
        if let Some(rate) = own.rate {
            let times = self.keys.times.entry(key).or_default();
            times.tat = times.tat.max(now) + rate.per;
        }
        self.keys.stood.insert(id, (key, At::Run));
        true
    }

    /// Those held of a key, the first first.
    fn held_of(&self, key: Key) -> Vec<Id> {
        let turn = |(id, live): (&Id, &Live)| match live.place {
            Place::Held(turn) if live.main.key == Some(key) => Some((turn, *id)),
            _ => None,
        };
        let mut held: Vec<_> = self.live.iter().filter_map(turn).collect();
        held.sort_unstable();
        held.into_iter().map(|(_, id)| id).collect()
    }

    /// What is held, by key and turn.
    pub(crate) fn held_back(&self) -> Vec<Id> {
        let keys: BTreeSet<Key> = self.live.values().filter_map(|live| live.main.key).collect();
        keys.into_iter().flat_map(|key| self.held_of(key)).collect()
    }

    /// The first ones of each key that has changed come into line, as far as there is room; how many.
    pub(crate) fn write_keys(&mut self, wanted: usize) -> usize {
        let changed = std::mem::take(&mut self.keys.changed);
        let share = wanted.div_ceil(changed.len().max(1));
        let pulled = changed.iter().map(|key| self.pull(key, share)).sum();
        for key in &changed {
            self.note_wait(key);
        }
        self.keys.changed.clear();
        self.keys.dropped.clear();
        pulled
    }

    fn pull(&mut self, key: Key, share: usize) -> usize {
        let (free, only_higher) = match self.keys.room(key, share, self.now) {
            Room::None => return 0,
            Room::Free(free) => (free, false),
            Room::Higher if self.keys.dropped.contains(key) => (1, true),
            Room::Higher => return 0,
        };
        let mut pulled = 0;
        if self.is(Mutant::NothingComesAfter) {
            return 0;
        }
        for id in self.held_of(key).into_iter().take(free.min(share.max(2))) {
            let priority = self.live[id].main.priority;
            let in_line = self.keys.in_line(key).len();
            if only_higher && !self.keys.is_higher(key, priority)
                || self.keys.free_at(key, in_line, self.now) > self.now
            {
                break;
            }
            self.keys.stood.insert(id, (key, At::Line(priority)));
            let turn = self.next_turn(priority);
            self.live.get_mut(id).unwrap().place = Place::Ready(turn);
            pulled += 1;
        }
        pulled
    }

    fn note_wait(&mut self, key: Key) {
        let now = self.now;
        if let Some(rate) = self.keys.own_of(key).rate
            && let Some(times) = self.keys.times.get_mut(key)
        {
            times.tat = rate.tat(times.tat, now);
        }
        let at = self.keys.free_at(key, 0, now);
        let waits = self.keys.count(key, At::Held) > 0 && self.keys.in_line(key).is_empty() && at > now;
        let looks = waits.then_some(at);
        if looks.is_some() || self.keys.times.contains_key(key) {
            self.keys.times.entry(key).or_default().looks = looks;
        }
    }

    /// Keys whose time has come, and, after a change of limits, all that hold tasks.
    pub(super) fn promote_keys(&mut self) {
        let now = self.now;
        let looks = self.keys.times.iter().filter_map(|(key, times)| Some((times.looks?, *key)));
        let mut due: Vec<(Millis, Key)> = looks.filter(|(at, _)| *at <= now).collect();
        due.sort_unstable();
        due.into_iter().for_each(|(_, key)| self.keys.change(key));
        if std::mem::take(&mut self.keys.sweeps) {
            let holds: BTreeSet<Key> =
                self.held_back().iter().filter_map(|id| self.live[id].main.key).collect();
            holds.into_iter().for_each(|key| self.keys.change(key));
        }
    }

    /// How many tasks may go now, and what is in the way if none may.
    pub(crate) fn gate(&self) -> (usize, Gate) {
        let now = self.now;
        if self.keys.held_until > now {
            return (0, Gate::Throttled(self.keys.held_until - now));
        }
        let (mut free, mut gate) = (usize::MAX, Gate::Open);
        if let Some(rate) = self.keys.rate {
            let ahead = self.keys.tat.max(now) - now;
            free = rate.slack().checked_sub(ahead).map_or(0, |early| (early / rate.per + 1) as usize);
            if free == 0 {
                gate = Gate::Rate(ahead - rate.slack());
            }
        }
        if let Some(most) = self.keys.max_running
            && !self.is(Mutant::NoMaxRunning)
        {
            let running = self.live.values().filter(|live| matches!(live.place, Place::Claimed(_))).count();
            if running >= most {
                return (0, Gate::MaxRunning);
            }
            free = free.min(most - running);
        }
        (free, gate)
    }

    /// So many went.
    pub(super) fn pass(&mut self, count: usize) {
        if let Some(rate) = self.keys.rate
            && count > 0
        {
            self.keys.tat = self.keys.tat.max(self.now) + count as Millis * rate.per;
        }
    }
}
