//! What becomes of a lease that is dropped without a release.

use std::sync::atomic::Ordering;

use crate::lease::held_lock::HeldLock;
use crate::lease::lease_set::LeaseSet;
use crate::session::metrics::Ended;

impl LeaseSet {
    /// Gives its locks back in the background; if its owner is inside once more, it leaves only.
    pub(crate) fn let_go(&self) {
        if self.left.swap(true, Ordering::Relaxed) {
            return;
        }
        if self.entry.as_ref().is_none_or(|entry| entry.leave(&self.first)) {
            self.all().for_each(HeldLock::let_go);
        }
    }
}

impl HeldLock {
    /// Releases it in the background, as far as possible. Does nothing in a forked child: the lease is the parent's.
    pub(crate) fn let_go(&self) {
        let live = &self.kept.live;
        if live.is_inherited() {
            return live.leave_to_parent();
        }
        if self.kept.end(Ended::Dropped)
            && let Some(cleanup) = self.cleanup()
        {
            live.keeper.clean_up(cleanup);
        }
    }
}
