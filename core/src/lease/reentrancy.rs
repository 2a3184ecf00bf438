//! A caller whose owner may be inside already: see `engine/reentrancy.rs`.

use std::sync::Arc;

use crate::base::error::Error;
use crate::base::name::{LockName, checked_owner};
use crate::base::wake::{Place, locked};
use crate::engine::reentrancy::Key;
use crate::lease::held_lock::HeldLock;
use crate::protocol::Permits;
use crate::session::Live;
use crate::session::tracked_lease::TrackedLease;

/// The key of an owner at a lock.
pub(crate) fn owner_key(name: &LockName, owner: &str) -> Result<Key, Error> {
    checked_owner(owner)?;
    Ok((name.clone(), owner.into()))
}

/// This caller acquires for its owner. While it does, others of the same owner wait for the result, and join it.
pub(crate) struct Acquiring {
    live: Arc<Live>,
    key: Key,
}

impl Acquiring {
    /// Or else a place that is hinted when another caller, which does so already, has got the lock, or has not.
    pub(crate) fn begin(live: &Arc<Live>, key: &Key) -> Result<Self, Place> {
        let mut place = None;
        let acquires = locked(&live.owners).acquires(key, || place.insert(live.hub.enter()).waiter().seq);
        match place {
            Some(place) if !acquires => Err(place),
            _ => Ok(Self { live: Arc::clone(live), key: key.clone() }),
        }
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        // In a forked child the mutex may have been inherited locked, and those who wait are the parent's.
        if !self.live.is_inherited() {
            let waiting = locked(&self.live.owners).acquired(&self.key);
            waiting.into_iter().for_each(|seq| self.live.hub.deliver(seq));
        }
    }
}

/// One acquire of an owner.
pub(crate) struct Entry {
    live: Arc<Live>,
    key: Key,
}

impl Entry {
    /// Enters again, if the owner is inside and its lease is valid.
    ///
    /// # Errors
    /// `InvalidArgument` if the owner wants more than it has.
    pub(crate) fn again(
        live: &Arc<Live>,
        key: &Key,
        wanted: Option<Permits>,
    ) -> Result<Option<(HeldLock, Self)>, Error> {
        let kept = |cell: &_| TrackedLease::of(live, Arc::clone(cell));
        let again = locked(&live.owners).again(key, wanted, |cell| kept(cell).is_valid())?;
        let entry = || Self { live: Arc::clone(live), key: key.clone() };
        Ok(again.map(|(cell, lock)| (HeldLock { kept: kept(&cell), lock }, entry())))
    }

    /// Notes the owner's first acquire.
    pub(crate) fn first(key: Key, held: &HeldLock) -> Self {
        let live = Arc::clone(&held.kept.live);
        locked(&live.owners).first(key.clone(), Arc::clone(&held.kept.cell), held.lock.clone());
        Self { live, key }
    }

    /// Releases once. Returns whether that was the last time, and the lock is to be released in the store.
    pub(crate) fn leave(&self, held: &HeldLock) -> bool {
        // In a forked child the mutex may have been inherited locked, and the owners are the parent's.
        self.live.is_inherited() || locked(&self.live.owners).leave(&self.key, &held.lock)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::blocking::Lock;
    use crate::base::error::ErrorKind;
    use crate::base::fork::testing::in_child;
    use crate::lease::lock_target::{LockTarget, Part};
    use crate::session::builder::ClientBuilder;
    use crate::session::options::LockOptions;

    const SOON: std::time::Duration = std::time::Duration::from_secs(30);

    /// A thread of the parent may have been among the owners when the process forked.
    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn a_child_does_not_wait_for_a_thread_that_it_lacks() {
        let session = Arc::new(ClientBuilder::new(Some("memory:".into())).session().unwrap());
        let lock = Lock::new(LockTarget::new(Arc::clone(&session), "a", Part::Exclusive)).reentrant("me");
        let lease = lock.acquire(LockOptions::new()).unwrap();
        let busy = locked(&session.live().unwrap().owners);
        assert!(in_child(|| lease.release().is_err_and(|error| error.kind() == ErrorKind::Forked)));
        drop(busy);
        lease.release().unwrap();
    }

    /// Both callers come before the lock is free; one waits in line, and the other for it.
    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
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
        let waits_for_it = || locked(&live.owners).any_waits();
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
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn a_caller_whose_forerunner_gives_up_goes_on_by_itself() {
        let (live, lock) = lock();
        let mine = lock.reentrant("me");
        let held = lock.acquire(LockOptions::new()).unwrap();
        let key = owner_key(&live.prefixes.lock_name("a").unwrap(), "me").unwrap();
        let acquiring = Acquiring::begin(&live, &key).ok().unwrap();
        assert!(mine.try_acquire(LockOptions::new()).unwrap().is_none(), "a try does not wait");
        let error = mine.acquire(LockOptions::new().wait(std::time::Duration::from_millis(20))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        let waiting = std::thread::spawn(move || mine.acquire(LockOptions::new().wait(SOON)));
        drop(acquiring);
        held.release().unwrap();
        waiting.join().unwrap().unwrap().release().unwrap();
    }

    fn lock() -> (Arc<Live>, Lock) {
        let session = Arc::new(ClientBuilder::new(Some("memory:".into())).session().unwrap());
        let live = Arc::clone(session.live().unwrap());
        (live, Lock::new(LockTarget::new(session, "a", Part::Exclusive)))
    }
}
