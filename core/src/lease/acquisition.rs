//! A validated acquire request: one or several locks, optionally reentrant. Both `Lock` types send these.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::base::token::Token;
use crate::base::wake::Place;
use crate::engine::Jitter;
use crate::engine::acquire::LockPlan;
use crate::engine::reentrancy::Key;
use crate::engine::several::{Several as Acquired, SeveralMachine, SeveralParams};
use crate::lease::held_lock::HeldLock;
use crate::lease::lease_set::LeaseSet;
use crate::lease::lock_target::LockTarget;
use crate::lease::reentrancy::{Acquiring, Entry, owner_key};
use crate::session::Live;
use crate::session::options::LockOptions;

/// A wait of which no more than this is over counts as new, and keeps its full length.
const JUST_NOW: Duration = Duration::from_millis(1);

/// See the module's documentation.
pub(crate) struct Acquisition {
    /// In the order of their names, so that two callers cannot deadlock.
    locks: Vec<LockPlan>,
    key: Option<Key>,
    give_up: Moment,
}

/// How a reentrant acquire goes on.
pub(crate) enum Entering {
    /// The owner holds the lock: it is counted once more, without a request.
    Again(LeaseSet),
    /// It comes in for the first time, by an acquire; or it is no owner that could be inside.
    First(Option<Acquiring>),
    /// Another call of the same owner acquires it right now: wait for the hint at its end, and look again.
    Wait(Place, Moment),
}

impl Acquisition {
    /// Checks everything. No I/O.
    pub(crate) fn new(
        live: &Live,
        first: &LockTarget,
        others: &[LockTarget],
        owner: Option<&str>,
        options: &LockOptions,
    ) -> Result<Self, Error> {
        let plan = |named: &LockTarget| {
            let plan = named.plan(options, &live.settings)?;
            Ok(LockPlan { clock_stands: live.clock.stands(), ..plan })
        };
        let locks = std::iter::once(first).chain(others).map(plan).collect::<Result<Vec<_>, Error>>()?;
        let wrong = |error: Error| error.during("acquire", first.name());
        let key = match owner {
            None => None,
            Some(_) if !others.is_empty() => {
                return Err(wrong(Error::invalid(
                    "several locks cannot be acquired again by an owner that has them",
                )));
            }
            Some(owner) => Some(owner_key(&locks[0].name, owner).map_err(wrong)?),
        };
        let give_up = live.clock.now() + locks[0].wait;
        Ok(Self { locks, key, give_up })
    }

    /// Counts the owner once more if it holds the lock.
    pub(crate) fn enter(&self, live: &Arc<Live>) -> Result<Entering, Error> {
        let Some(key) = &self.key else { return Ok(Entering::First(None)) };
        let first = Acquiring::begin(live, key);
        let LockPlan { name, permits, .. } = &self.locks[0];
        let again = Entry::again(live, key, *permits);
        let again = again.map_err(|error| error.during("acquire", name.as_str()))?;
        if let Some((held, entry)) = again {
            return Ok(Entering::Again(LeaseSet::new(held, Some(entry))));
        }
        match first {
            Ok(acquiring) => Ok(Entering::First(Some(acquiring))),
            Err(place) if live.clock.now() < self.give_up => Ok(Entering::Wait(place, self.give_up)),
            Err(_) => {
                Err(Error::new(ErrorKind::LockTimeout, "another caller of this owner waits for the lock")
                    .during("acquire", name.as_str()))
            }
        }
    }

    /// The lock, if it is one.
    pub(crate) fn only(&self, live: &Live) -> Option<LockPlan> {
        let [plan] = &self.locks[..] else { return None };
        let left = self.give_up.since(live.clock.now());
        // Unless some of the wait is over.
        let is_new = left + JUST_NOW > plan.wait;
        Some(if is_new { plan.clone() } else { plan.within(left) })
    }

    /// The lease set of the lock that was granted.
    pub(crate) fn grip(&self, held: HeldLock) -> LeaseSet {
        let entry = self.key.clone().map(|key| Entry::first(key, &held));
        LeaseSet::new(held, entry)
    }

    /// The acquire of several locks.
    pub(crate) fn several(&self, live: &Live) -> Result<Several, Error> {
        let place = live.hub.enter();
        let token = Token::random()?;
        let locks = self.locks.iter();
        let adopts = locks.clone().any(|plan| plan.adopt_after.is_some());
        let order = SeveralParams {
            in_one_step: !adopts && live.store.can_acquire_all(&mut locks.clone().map(|plan| &plan.name)),
            foreign_holders: locks.clone().map(|plan| live.foreign_holder(plan)).collect(),
            locks: locks.map(|plan| live.order(plan.clone(), token.clone(), &place)).collect(),
        };
        let machine = SeveralMachine::new(order, live.clock.now(), live.channel.is_open(), Jitter::random());
        Ok(Several { machine, place })
    }

    /// Applies its result: the lease set of all, or `None` if one was busy and this was a try.
    pub(crate) fn held(
        &self,
        live: &Arc<Live>,
        machine: &SeveralMachine,
        acquired: Acquired,
    ) -> Option<LeaseSet> {
        for (plan, foreign_holder) in self.locks.iter().zip(machine.foreign_holders()) {
            live.note(plan, foreign_holder.as_ref());
        }
        let Acquired::Granted { token, grants } = acquired else { return None };
        let granted = self.locks.iter().zip(&grants);
        LeaseSet::of(granted.map(|(plan, grant)| HeldLock::granted(live, plan, token.clone(), grant)))
    }
}

/// A running acquire of several locks.
pub(crate) struct Several {
    pub(crate) machine: SeveralMachine,
    pub(crate) place: Place,
}
