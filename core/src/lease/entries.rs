//! Reentrancy: which owners hold which locks, and how often each has acquired.
//!
//! An owner is a name that the caller gives, not a thread: a task may move from thread to thread, and a request
//! may have several.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::base::error::Error;
use crate::base::name::{LockName, checked_owner};
use crate::base::wake::{Place, locked};
use crate::lease::held::Held;
use crate::session::Live;
use crate::verbs::Permits;

/// An owner at a lock.
pub(crate) type Key = (LockName, Arc<str>);

/// The owners of one client that hold a lock, and those whose first acquire is on its way.
#[derive(Default)]
pub(crate) struct Entries {
    inside: Mutex<HashMap<Key, Inside>>,
    /// With the other callers of the same owner, which wait for its result.
    coming: Mutex<HashMap<Key, Vec<u64>>>,
}

struct Inside {
    held: Held,
    times: usize,
}

/// The first acquire of an owner, on its way. Other callers of the same owner wait for it here: in the store's line they
/// would wait behind their own owner.
pub(crate) struct Coming {
    live: Arc<Live>,
    key: Key,
}

impl Coming {
    /// Announces that this caller acquires for the owner. If another does so already: a place that is hinted when that one
    /// has ended, with or without the lock.
    pub(crate) fn first(live: &Arc<Live>, key: &Key) -> Result<Self, Place> {
        let mut coming = locked(&live.entries.coming);
        if let Some(waiting) = coming.get_mut(key) {
            let place = live.hub.enter();
            waiting.push(place.waiter().seq);
            return Err(place);
        }
        coming.insert(key.clone(), Vec::new());
        Ok(Self { live: Arc::clone(live), key: key.clone() })
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        // In a forked child the mutex may have been inherited locked, and those who wait are the parent's.
        if !self.live.is_inherited() {
            let waiting = locked(&self.live.entries.coming).remove(&self.key);
            waiting.into_iter().flatten().for_each(|seq| self.live.hub.deliver(seq));
        }
    }
}

/// One acquire of an owner.
pub(crate) struct Entry {
    live: Arc<Live>,
    key: Key,
}

impl Entry {
    /// The key of an owner at a lock.
    pub(crate) fn key(name: &LockName, owner: &str) -> Result<Key, Error> {
        checked_owner(owner)?;
        Ok((name.clone(), owner.into()))
    }

    /// Counts the owner once more, if it holds the lock and its lease is valid.
    ///
    /// # Errors
    /// `InvalidArgument` if the owner asks for more than it has: two readers that both wait to become the writer would
    /// deadlock.
    pub(crate) fn again(
        live: &Arc<Live>,
        key: &Key,
        wanted: Option<Permits>,
    ) -> Result<Option<(Held, Self)>, Error> {
        let mut inside = locked(&live.entries.inside);
        let Some(owner) = inside.get_mut(key) else { return Ok(None) };
        if !owner.held.kept.is_valid() {
            inside.remove(key);
            return Ok(None);
        }
        let has = owner.held.lock.share.as_ref().map(|share| share.permits().weight);
        if wanted.map(|permits| permits.weight) > has {
            return Err(Error::invalid(
                "the owner has less of the lock than it wants now, and a lease is not upgraded; release it first",
            ));
        }
        owner.times += 1;
        Ok(Some((owner.held.clone(), Self { live: Arc::clone(live), key: key.clone() })))
    }

    /// Notes the owner's first acquire.
    pub(crate) fn first(live: &Arc<Live>, key: Key, held: &Held) -> Self {
        locked(&live.entries.inside).insert(key.clone(), Inside { held: held.clone(), times: 1 });
        Self { live: Arc::clone(live), key }
    }

    /// Releases once. Returns whether that was the last time, and the lock is to be released in the store.
    pub(crate) fn leave(&self, held: &Held) -> bool {
        // In a forked child the mutex may have been inherited locked, and the owners are the parent's.
        if self.live.is_inherited() {
            return true;
        }
        let mut inside = locked(&self.live.entries.inside);
        let Some(owner) = inside.get_mut(&self.key) else { return true };
        if owner.held.lock.token != held.lock.token {
            // The owner lost this lease, and has another by now.
            return true;
        }
        owner.times -= 1;
        if owner.times == 0 {
            inside.remove(&self.key);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::blocking::Lock;
    use crate::base::error::ErrorKind;
    use crate::base::fork::testing::in_child;
    use crate::lease::named::{Named, Part};
    use crate::session::builder::ClientBuilder;
    use crate::session::options::LockOptions;

    const SOON: std::time::Duration = std::time::Duration::from_secs(30);

    /// A thread of the parent may have been among the owners when the process forked.
    #[test]
    fn a_child_does_not_wait_for_a_thread_that_it_lacks() {
        let session = Arc::new(ClientBuilder::new(Some("memory:".into())).session().unwrap());
        let lock = Lock::new(Named::new(Arc::clone(&session), "a", Part::Exclusive)).reentrant("me");
        let lease = lock.acquire(LockOptions::new()).unwrap();
        let busy = locked(&session.live().unwrap().entries.inside);
        assert!(in_child(|| lease
            .release_shared(None)
            .is_err_and(|error| error.kind() == ErrorKind::Forked)));
        drop(busy);
        lease.release().unwrap();
    }

    /// Both callers come before the lock is free; one waits in line, and the other for it.
    #[test]
    fn callers_of_one_owner_that_come_at_once_come_in_together() {
        let (live, lock) = lock();
        let mine = lock.reentrant("me");
        let held = lock.acquire(LockOptions::new()).unwrap();
        let (told, hear) = std::sync::mpsc::channel();
        for _ in 0..2 {
            let (mine, told) = (mine.clone(), told.clone());
            std::thread::spawn(move || drop(told.send(mine.acquire(LockOptions::new().wait(SOON * 2)))));
        }
        let began = std::time::Instant::now();
        let waits_for_it = || locked(&live.entries.coming).values().any(|waiting| !waiting.is_empty());
        while !waits_for_it() && lock.waiters().unwrap().len() < 2 {
            assert!(began.elapsed() < SOON, "the second caller does not wait");
            std::thread::yield_now();
        }
        held.release().unwrap();
        let leases = [(); 2].map(|()| hear.recv_timeout(SOON).expect("both come in").unwrap());
        assert_eq!(leases[0].fence(), leases[1].fence());
        for lease in leases {
            assert!(lock.is_locked().unwrap());
            lease.release().unwrap();
        }
        assert!(!lock.is_locked().unwrap());
    }

    /// The first gives up; the second takes its turn.
    #[test]
    fn a_caller_whose_forerunner_gives_up_goes_on_by_itself() {
        let (live, lock) = lock();
        let mine = lock.reentrant("me");
        let held = lock.acquire(LockOptions::new()).unwrap();
        let key = Entry::key(&live.prefixes.lock_name("a").unwrap(), "me").unwrap();
        let coming = Coming::first(&live, &key).ok().unwrap();
        assert!(mine.try_acquire(LockOptions::new()).unwrap().is_none(), "a try does not wait");
        let error = mine.acquire(LockOptions::new().wait(std::time::Duration::from_millis(20))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        let waiting = std::thread::spawn(move || mine.acquire(LockOptions::new().wait(SOON)));
        drop(coming);
        held.release().unwrap();
        waiting.join().unwrap().unwrap().release().unwrap();
    }

    fn lock() -> (Arc<Live>, Lock) {
        let session = Arc::new(ClientBuilder::new(Some("memory:".into())).session().unwrap());
        let live = Arc::clone(session.live().unwrap());
        (live, Lock::new(Named::new(session, "a", Part::Exclusive)))
    }
}
