//! Reentrancy: which owners hold which locks, and how often each has acquired.
//!
//! An owner is a name that the caller gives, not a thread: a task may move from thread to thread, and a request
//! may have several.

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::error::Error;
use crate::base::name::LockName;
use crate::engine::leased::LockLease;
use crate::protocol::Permits;

/// An owner at a lock.
pub(crate) type Key = (LockName, Arc<str>);

/// The owners of one client that are inside, and those that are acquiring for the first time. `L` is a lease.
pub(crate) struct Owners<L> {
    inside: HashMap<Key, Inside<L>>,
    /// With the callers of the same owner that wait for the result.
    acquiring: HashMap<Key, Vec<u64>>,
}

struct Inside<L> {
    lease: L,
    lock: LockLease,
    times: usize,
}

impl<L: Clone> Owners<L> {
    /// Whether this caller is to acquire for the owner. If another does so already, this one would stand behind its own
    /// owner in the store's line: so it waits here instead, under the number that `wait` gives it.
    pub(crate) fn acquires(&mut self, key: &Key, wait: impl FnOnce() -> u64) -> bool {
        if let Some(waiting) = self.acquiring.get_mut(key) {
            waiting.push(wait());
            return false;
        }
        self.acquiring.insert(key.clone(), Vec::new());
        true
    }

    /// That acquire has ended; these wait for it.
    pub(crate) fn acquired(&mut self, key: &Key) -> Vec<u64> {
        self.acquiring.remove(key).unwrap_or_default()
    }

    /// Enters again, if the owner is inside and its lease is valid.
    ///
    /// # Errors
    /// `InvalidArgument` if the owner wants more than it has: a reader that becomes a writer could wait for another
    /// that wants the same, for ever.
    pub(crate) fn again(
        &mut self,
        key: &Key,
        wanted: Option<Permits>,
        is_valid: impl FnOnce(&L) -> bool,
    ) -> Result<Option<(L, LockLease)>, Error> {
        let Some(owner) = self.inside.get_mut(key) else { return Ok(None) };
        if !is_valid(&owner.lease) {
            self.inside.remove(key);
            return Ok(None);
        }
        let has = owner.lock.share.as_ref().map(|share| share.permits().weight);
        if wanted.map(|permits| permits.weight) > has {
            return Err(Error::invalid(
                "the owner holds less of the lock than it asks for now, and this cannot be raised; release it first",
            ));
        }
        owner.times += 1;
        Ok(Some((owner.lease.clone(), owner.lock.clone())))
    }

    /// The owner is inside for the first time.
    pub(crate) fn first(&mut self, key: Key, lease: L, lock: LockLease) {
        self.inside.insert(key, Inside { lease, lock, times: 1 });
    }

    /// Releases once. Returns whether that was the last time, and the lock is to be released in the store.
    pub(crate) fn leave(&mut self, key: &Key, lock: &LockLease) -> bool {
        let Some(owner) = self.inside.get_mut(key) else { return true };
        if owner.lock.token != lock.token {
            // The owner lost this lease, and has another by now.
            return true;
        }
        owner.times -= 1;
        let is_last = owner.times == 0;
        if is_last {
            self.inside.remove(key);
        }
        is_last
    }
}

impl<L> Default for Owners<L> {
    fn default() -> Self {
        Self { inside: HashMap::new(), acquiring: HashMap::new() }
    }
}

#[cfg(test)]
impl<L> Owners<L> {
    /// Whether any caller waits for another of its owner.
    pub(crate) fn any_waits(&self) -> bool {
        self.acquiring.values().any(|waiting| !waiting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Prefixes;
    use crate::base::token::Token;
    use crate::protocol::Fence;

    fn key() -> Key {
        (Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap(), "me".into())
    }

    fn lock(bits: u128) -> LockLease {
        LockLease {
            name: key().0,
            token: Token::from_bits(bits),
            granted: Fence::new(1),
            acquire_resent: false,
            foreign_share: false,
            share: None,
            owner: "client".into(),
        }
    }

    #[test]
    fn one_caller_of_an_owner_acquires_and_the_others_wait_for_it() {
        let (mut owners, key) = (Owners::<u8>::default(), key());
        assert!(owners.acquires(&key, || unreachable!("the first does not wait")));
        assert!(!owners.acquires(&key, || 5) && !owners.acquires(&key, || 6));
        assert_eq!(owners.acquired(&key), [5, 6]);
        assert!(owners.acquires(&key, || 7), "the next one takes its turn");
        assert!(owners.acquired(&key).is_empty());
    }

    #[test]
    fn an_owner_is_inside_until_it_has_left_as_often_as_it_came() {
        let (mut owners, key) = (Owners::default(), key());
        assert!(owners.again(&key, None, |_| true).unwrap().is_none());
        owners.first(key.clone(), "lease", lock(1));
        assert_eq!(owners.again(&key, None, |_| true).unwrap().unwrap().0, "lease");
        assert!(!owners.leave(&key, &lock(1)));
        assert!(owners.leave(&key, &lock(1)));
        assert!(owners.again(&key, None, |_| true).unwrap().is_none());
    }

    #[test]
    fn a_lost_lease_is_not_entered_and_its_release_leaves_the_next_one_alone() {
        let (mut owners, key) = (Owners::default(), key());
        owners.first(key.clone(), "old", lock(1));
        assert!(owners.again(&key, None, |_| false).unwrap().is_none());
        owners.first(key.clone(), "new", lock(2));
        assert!(owners.leave(&key, &lock(1)), "the old one is given back by itself");
        assert_eq!(owners.again(&key, None, |_| true).unwrap().unwrap().0, "new");
    }
}
