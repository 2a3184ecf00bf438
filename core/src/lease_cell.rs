//! A live lease, shared by its owner and the keeper.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{Clock, Moment};
use crate::engine::lease::{LeaseState, Status};
use crate::engine::leased::Leased;
use crate::metrics::{Ended, Meters, QueueMeters};
use crate::trace;
use crate::wake::locked;

#[derive(Debug)]
pub(crate) struct LeaseCell {
    pub(crate) state: Mutex<LeaseState>,
    changed: Condvar,
    /// Threads that wait for the loss: telling nobody is a system call, too.
    sleepers: AtomicUsize,
    notify: Notify,
    account: Account,
    /// It was counted how it ended.
    counted: AtomicBool,
}

/// Where a lease is counted, and from when on.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) began: Moment,
    pub(crate) of: AccountOf,
}

#[derive(Debug)]
pub(crate) enum AccountOf {
    Lock(Arc<Meters>),
    Task(Arc<QueueMeters>),
}

impl LeaseCell {
    pub(crate) fn new(state: LeaseState, account: Account) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            sleepers: AtomicUsize::new(0),
            notify: Notify::new(),
            account,
            counted: AtomicBool::new(false),
        })
    }

    /// Counts how it ended and for how long it was held; the first who knows counts. Whether this was the first.
    pub(crate) fn count(&self, ended: Ended, at: Moment) -> bool {
        if self.counted.swap(true, Ordering::Relaxed) {
            return false;
        }
        let held = at.since(self.account.began);
        match &self.account.of {
            AccountOf::Lock(meters) => meters.lease_ended(ended, held),
            AccountOf::Task(queue) => queue.claim_ended(ended, held),
        }
        true
    }

    /// Signals everybody who waits for the loss.
    pub(crate) fn announce(&self, now: Moment) {
        let told = self.signal(now);
        // A subscriber is code of the user's: it may ask this lease.
        if let Some((leased, ended)) = told {
            trace::lost(&leased, ended);
        }
    }

    /// What is to be traced, if this was the first to know of the loss.
    fn signal(&self, now: Moment) -> Option<(Leased, Ended)> {
        // Under the lock, so that nobody is between looking and waiting.
        let state = locked(&self.state);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.changed.notify_all();
        }
        self.notify.notify_waiters();
        let ended = Ended::Lost(state.loss()?);
        self.count(ended, now.min(state.deadline())).then(|| (state.leased().clone(), ended))
    }

    /// Waits for the loss, as a thread; true if it came.
    pub(crate) fn wait_lost(&self, clock: &Clock, until: Moment, slice: Duration) -> bool {
        let mut state = locked(&self.state);
        loop {
            let now = clock.now();
            if !matches!(state.status(now), Status::Held) {
                return true;
            }
            if now >= until {
                return false;
            }
            let nap = clock.nap(until.min(state.deadline())).min(slice);
            // Counted under the lock, under which it is read.
            self.sleepers.fetch_add(1, Ordering::Relaxed);
            state = self.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits for the loss, as a task.
    pub(crate) async fn lost(&self, clock: &Clock) {
        loop {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let deadline = {
                let state = locked(&self.state);
                if !matches!(state.status(clock.now()), Status::Held) {
                    return;
                }
                state.deadline()
            };
            let _ = tokio::time::timeout(clock.nap(deadline), notified).await;
        }
    }
}
