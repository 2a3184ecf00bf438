//! How a client closes: no call begins any more, those that wait end, and whoever closes it waits for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::error::{Error, ErrorKind};
use crate::wake::locked;

/// Whether a client is being closed, and the calls that are on their way.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    begun: AtomicBool,
    calls: AtomicUsize,
    lock: Mutex<()>,
    idle: Condvar,
    told: Notify,
}

/// A call that is on its way.
#[derive(Debug)]
pub(crate) struct OnItsWay<'a>(&'a Closing);

impl Closing {
    /// From now on.
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// Notes a call until it has ended.
    pub(crate) fn call(&self) -> OnItsWay<'_> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        OnItsWay(self)
    }

    /// Waits up to `time` for the calls that are on their way to end.
    pub(crate) fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut guard = locked(&self.lock);
        while self.calls.load(Ordering::SeqCst) > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            guard = self.idle.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sleeps for `nap`, as a task, or until the client is closed.
    pub(crate) async fn nap(&self, nap: Duration) {
        let told = self.told.notified();
        tokio::pin!(told);
        told.as_mut().enable();
        if !self.has_begun() {
            let _ = tokio::time::timeout(nap, told).await;
        }
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        // Either this sees that somebody waits, or whoever is about to wait sees that this has ended.
        if self.0.calls.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.has_begun() {
            drop(locked(&self.0.lock));
            self.0.idle.notify_all();
        }
    }
}

/// What a call of a closed client ends with.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client was closed; open another one")
}
