//! What an acquire wants, checked: one lock or several at once, perhaps for an owner that may be inside. What
//! both faces of `Lock` go by.

use std::sync::Arc;

use crate::clock::Moment;
use crate::engine::acquire::{Acquired, Grant};
use crate::engine::call::{Answer, CallMachine};
use crate::engine::{Dice, RESEND_AFTER, deadline};
use crate::entries::{Entry, Key};
use crate::error::{Error, ErrorKind};
use crate::grip::Grip;
use crate::held::Held;
use crate::name::LockName;
use crate::named::Named;
use crate::options::{LockOptions, LockPlan};
use crate::session::Live;
use crate::token::Token;
use crate::verbs::{AcquireAll, AcquireAllReply, Fence, Leave, Reply, Request};

/// See the module's documentation.
pub(crate) struct Wanted {
    /// In the order of their names, so that nobody waits for one who waits for him.
    locks: Vec<(LockName, LockPlan)>,
    key: Option<Key>,
    give_up: Moment,
}

impl Wanted {
    /// Checks everything. No I/O.
    pub(crate) fn new(
        live: &Live,
        first: &Named,
        others: &[Named],
        owner: Option<&str>,
        options: &LockOptions,
    ) -> Result<Self, Error> {
        let lock = |named: &Named| Ok((named.checked()?, named.plan(options, &live.settings)?));
        let locks = std::iter::once(first).chain(others).map(lock).collect::<Result<Vec<_>, Error>>()?;
        let wrong = |error: Error| error.during("acquire", first.name());
        let key = match owner {
            None => None,
            Some(_) if !others.is_empty() => {
                return Err(wrong(Error::invalid(
                    "several locks cannot be acquired again by an owner that has them",
                )));
            }
            Some(owner) => Some(Entry::key(&locks[0].0, owner).map_err(wrong)?),
        };
        let give_up = live.clock.now() + locks[0].1.wait;
        Ok(Self { locks, key, give_up })
    }

    /// Enters once more, if the owner is inside.
    pub(crate) fn again(&self, live: &Arc<Live>) -> Result<Option<Grip>, Error> {
        let Some(key) = &self.key else { return Ok(None) };
        let (name, plan) = &self.locks[0];
        let again = Entry::again(live, key, plan.permits);
        let again = again.map_err(|error| error.during("acquire", name.as_str()))?;
        Ok(again.map(|(held, entry)| Grip::new(held, Some(entry))))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.locks.len()
    }

    /// One of them, with what is left of the wait.
    pub(crate) fn turn(&self, live: &Live, number: usize) -> (&LockName, LockPlan) {
        let (name, plan) = &self.locks[number];
        let is_alone = self.locks.len() == 1;
        (name, if is_alone { plan.clone() } else { plan.within(self.give_up.since(live.clock.now())) })
    }

    /// What holds a lock of it that was granted.
    pub(crate) fn grip(&self, live: &Arc<Live>, held: Held) -> Grip {
        let entry = self.key.clone().map(|key| Entry::first(live, key, &held));
        Grip::new(held, entry)
    }

    /// The attempt to take all in one step; `None` if that cannot be.
    pub(crate) fn together(&self, live: &Live) -> Result<Option<Together<'_>>, Error> {
        let plan = &self.locks[0].1;
        let mut names = self.locks.iter().map(|(name, _)| name);
        if self.locks.len() < 2 || plan.adopt_after.is_some() || !live.store.can_acquire_all(&mut names) {
            return Ok(None);
        }
        let token = Token::random()?;
        let request = Request::AcquireAll(AcquireAll {
            locks: self.locks.iter().map(|(name, _)| (name.clone(), live.min_fence(name))).collect(),
            token: token.clone(),
            ttl: plan.ttl,
            owner: Arc::clone(&plan.owner),
        });
        let now = live.clock.now();
        // A wait that ends meanwhile still hears the answer.
        let patience = if plan.wait.is_zero() { live.settings.timeout } else { plan.wait.max(RESEND_AFTER) };
        let machine = CallMachine::new(request, now, now + patience, Dice::random());
        let mut together = Together { machine, wanted: self, token };
        for farewell in together.farewells(live) {
            together.machine = together.machine.or_else(farewell);
        }
        Ok(Some(together))
    }
}

/// An attempt to take all locks in one step.
pub(crate) struct Together<'a> {
    pub(crate) machine: CallMachine,
    wanted: &'a Wanted,
    token: Token,
}

impl Together<'_> {
    /// Takes in the answer; `None` if one of the locks is busy, or somebody waited for it a moment ago.
    pub(crate) fn taken(&self, live: &Arc<Live>, answer: &Answer) -> Result<Option<Grip>, Error> {
        match &answer.reply {
            Reply::AcquireAll(AcquireAllReply::Granted(fences)) if fences.len() == self.wanted.count() => {
                let granted = self.granted(live, answer, fences);
                if granted.is_none() {
                    self.leave(live);
                }
                Ok(granted)
            }
            Reply::AcquireAll(AcquireAllReply::Busy) => {
                if answer.sendings > 1 {
                    // Another copy may have taken them, or may yet.
                    self.leave(live);
                }
                Ok(None)
            }
            _ => {
                let error = Error::new(ErrorKind::Corrupt, "the store says that this call has ended already");
                Err(error.during("acquire", self.wanted.locks[0].0.as_str()))
            }
        }
    }

    /// `None` if the answer took longer than the leases last.
    fn granted(&self, live: &Arc<Live>, answer: &Answer, fences: &[Fence]) -> Option<Grip> {
        let deadline = deadline(answer.sent, self.wanted.locks[0].1.ttl);
        if live.clock.now() >= deadline {
            return None;
        }
        let resent = answer.sendings > 1;
        let mut all: Option<Grip> = None;
        for ((name, plan), fence) in self.wanted.locks.iter().zip(fences) {
            let grant = Grant { fence: *fence, deadline, resent };
            let grip = Grip::new(Held::granted(live, name, plan, self.token.clone(), &grant), None);
            live.meters.acquired(Ok(&Acquired::Granted(grant)), answer.received.since(answer.first_sent));
            match &mut all {
                Some(all) => all.join(&grip),
                None => all = Some(grip),
            }
        }
        all
    }

    fn leave(&self, live: &Live) {
        self.farewells(live).into_iter().for_each(|farewell| live.keeper.errand(farewell));
    }

    fn farewells(&self, live: &Live) -> Vec<Request> {
        let leave = |(name, _): &(LockName, LockPlan)| {
            let foreign_share = live.gives_turns(name);
            Request::Leave(Leave { name: name.clone(), token: self.token.clone(), foreign_share })
        };
        self.wanted.locks.iter().map(leave).collect()
    }
}
