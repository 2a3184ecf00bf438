//! Reentrant use: which owners are inside, and how often.
//!
//! An owner is a name that the caller gives, not a thread: a task may move from thread to thread, and a request
//! may have several.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::error::Error;
use crate::held::Held;
use crate::name::{LockName, checked_owner};
use crate::session::Live;
use crate::verbs::Permits;
use crate::wake::locked;

/// An owner at a lock.
pub(crate) type Key = (LockName, Arc<str>);

/// The owners that are inside, of one client.
#[derive(Default)]
pub(crate) struct Entries(Mutex<HashMap<Key, Inside>>);

struct Inside {
    held: Held,
    times: usize,
}

/// One of the times that an owner is inside.
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

    /// Enters again, if the owner is inside and its lease is valid.
    ///
    /// # Errors
    /// `InvalidArgument` if the owner wants more than it has: a reader that becomes a writer could wait for another
    /// that wants the same, for ever.
    pub(crate) fn again(
        live: &Arc<Live>,
        key: &Key,
        wanted: Option<Permits>,
    ) -> Result<Option<(Held, Self)>, Error> {
        let mut inside = locked(&live.entries.0);
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

    /// Notes that the owner is inside for the first time.
    pub(crate) fn first(live: &Arc<Live>, key: Key, held: &Held) -> Self {
        locked(&live.entries.0).insert(key.clone(), Inside { held: held.clone(), times: 1 });
        Self { live: Arc::clone(live), key }
    }

    /// Leaves once; whether that was the last time, and the lock is to be given back.
    pub(crate) fn leave(&self, held: &Held) -> bool {
        // In a forked child the mutex may have been inherited locked, and the owners are the parent's.
        if self.live.is_inherited() {
            return true;
        }
        let mut inside = locked(&self.live.entries.0);
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
    use crate::blocking::Lock;
    use crate::builder::ClientBuilder;
    use crate::error::ErrorKind;
    use crate::fork::testing::in_child;
    use crate::named::{Named, Part};
    use crate::options::LockOptions;

    /// A thread of the parent may have been among the owners when the process forked.
    #[test]
    fn a_child_does_not_wait_for_a_thread_that_it_lacks() {
        let session = Arc::new(ClientBuilder::new(Some("memory:".into())).session().unwrap());
        let lock = Lock::new(Named::new(Arc::clone(&session), "a", Part::Exclusive)).reentrant("me");
        let lease = lock.acquire(LockOptions::new()).unwrap();
        let busy = locked(&session.live().unwrap().entries.0);
        assert!(in_child(|| lease
            .release_shared(None)
            .is_err_and(|error| error.kind() == ErrorKind::Forked)));
        drop(busy);
        lease.release().unwrap();
    }
}
