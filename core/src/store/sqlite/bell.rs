//! What wakes whoever reads a client's channel, when a hint came from within the process.

use std::mem;
use std::sync::{Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::base::wake::locked;
use crate::store::sqlite::watch::Ear;

/// Rung when a hint was delivered to the client's hub directly, so that whoever reads its channel looks up.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
    /// Of one that sleeps until the file is written to.
    ear: Mutex<Weak<Ear>>,
}

impl Bell {
    pub(super) fn ring(&self) {
        *locked(&self.rung) = true;
        self.changed.notify_all();
        if let Some(ear) = locked(&self.ear).upgrade() {
            ear.hear();
        }
    }

    /// Sleeps for `nap`, or until it is rung; whether it was.
    pub(super) fn wait(&self, nap: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(locked(&self.rung), nap, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut *rung)
    }

    /// Has this one hear it, too.
    pub(super) fn heard_by(&self, ear: Weak<Ear>) {
        *locked(&self.ear) = ear;
    }
}
