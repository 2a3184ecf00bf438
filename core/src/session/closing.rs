//! How a client closes: no call begins any more, waits end, and `close` returns when all calls have ended.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::base::error::{Error, ErrorKind};
use crate::base::wake::locked;

/// Whether a client is being closed, and the calls that are on their way.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    begun: AtomicBool,
    over: AtomicBool,
    calls: AtomicUsize,
    lock: Mutex<()>,
    idle: Condvar,
    told: Notify,
}

/// A call that is on its way.
#[derive(Debug)]
pub(crate) struct OnItsWay<'a>(&'a Closing);

/// An interrupt check in the midst of a call.
#[derive(Debug)]
pub(crate) struct InTurn(());

thread_local! {
    /// The clients in whose calls this thread has its turn, by their addresses.
    static TURNS: RefCell<Vec<*const Closing>> = const { RefCell::new(Vec::new()) };
}

impl Closing {
    /// From now on.
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// Everything is closed: a call that still goes on does its own clean-up.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Notes that the host has its turn in a call of this thread.
    pub(crate) fn turn(&self) -> InTurn {
        let _ = TURNS.try_with(|turns| turns.borrow_mut().push(self));
        InTurn(())
    }

    /// How many calls of this thread cannot end before the current one returns: it runs inside their interrupt checks,
    /// perhaps in a signal handler.
    pub(crate) fn beneath(&self) -> usize {
        let count =
            |turns: &RefCell<Vec<_>>| turns.borrow().iter().filter(|one| std::ptr::eq(**one, self)).count();
        TURNS.try_with(count).unwrap_or(0)
    }

    /// Notes a call until it has ended.
    pub(crate) fn call(&self) -> OnItsWay<'_> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        OnItsWay(self)
    }

    /// Waits up to `time` until no more than so many calls are left.
    pub(crate) fn wait(&self, time: Duration, beneath: usize) {
        let until = Instant::now() + time;
        let mut guard = locked(&self.lock);
        while self.calls.load(Ordering::SeqCst) > beneath {
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
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
        if self.0.has_begun() {
            drop(locked(&self.0.lock));
            self.0.idle.notify_all();
        }
    }
}

impl Drop for InTurn {
    fn drop(&mut self) {
        let _ = TURNS.try_with(|turns| turns.borrow_mut().pop());
    }
}

/// What a call of a closed client ends with.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client was closed; open another one")
}
