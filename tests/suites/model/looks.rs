//! What is where in the model, and in which order.

use crate::keys::Gate;
use crate::queue::Queue;
use crate::terms::{Dead, Id, Live, Millis, Place, Tie};

impl Queue {
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

    pub(crate) fn next_due(&self) -> Option<Millis> {
        let comes = match self.gate().1 {
            Gate::MaxRunning => None,
            Gate::Rate(left) | Gate::Throttled(left) => self.next_task().map(|next| next.max(left)),
            Gate::Open | Gate::Paused => self.next_task(),
        };
        let ends = self.live.values().filter_map(|live| match live.place {
            Place::Claimed(ends) => Some(ends.saturating_sub(self.now)),
            _ => None,
        });
        comes.into_iter().chain(ends).min()
    }

    /// As far as leases and the queue's own limits are nothing to it.
    fn next_task(&self) -> Option<Millis> {
        if self.keys.sweeps || !self.line().is_empty() {
            return Some(0);
        }
        let dues = self.live.values().filter(|live| live.place == Place::Scheduled).map(|live| live.main.due);
        let next = dues.chain(self.keys.waiting().1).min();
        next.map(|time| time.saturating_sub(self.now))
    }
}
