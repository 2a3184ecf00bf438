//! A live lease, shared by its owner and the keeper.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::base::clock::{Clock, Moment};
use crate::base::contained::contained;
use crate::base::wake::locked;
use crate::engine::lease::{LeaseState, Status};
use crate::engine::leased::Leased;
use crate::session::metrics::{Ended, Meters, QueueMeters};
use crate::session::trace;

#[derive(Debug)]
pub(crate) struct LeaseCell {
    /// What the keeper knows it by.
    pub(crate) id: u64,
    pub(crate) state: Mutex<LeaseState>,
    changed: Condvar,
    /// How many threads wait for the loss: without one the system call of a notification is saved.
    sleepers: AtomicUsize,
    notify: Notify,
    began: Moment,
    account: Account,
    /// Whether its end was counted in the metrics.
    counted: AtomicBool,
}

/// Where a lease is counted.
#[derive(Debug)]
pub(crate) enum Account {
    Lock(Arc<Meters>),
    Task(Arc<QueueMeters>),
}

impl LeaseCell {
    pub(crate) fn new(id: u64, state: LeaseState, began: Moment, account: Account) -> Arc<Self> {
        Arc::new(Self {
            id,
            state: Mutex::new(state),
            changed: Condvar::new(),
            sleepers: AtomicUsize::new(0),
            notify: Notify::new(),
            began,
            account,
            counted: AtomicBool::new(false),
        })
    }

    /// Counts how it ended and for how long it was held. Only the first call counts; returns whether this was it.
    pub(crate) fn count(&self, ended: Ended, at: Moment) -> bool {
        if self.counted.swap(true, Ordering::Relaxed) {
            return false;
        }
        let held = at.since(self.began);
        match &self.account {
            Account::Lock(meters) => meters.lease_ended(ended, held),
            Account::Task(queue) => queue.claim_ended(ended, held),
        }
        true
    }

    /// Signals everybody who waits for the loss.
    pub(crate) fn announce(&self, now: Moment) {
        let told = self.signal(now);
        // Wakers and subscribers are code of the program's: they may ask this lease, and they may panic.
        contained("waker", || self.notify.notify_waiters());
        if let Some((leased, ended)) = told {
            contained("trace", || trace::lost(&leased, ended));
        }
    }

    /// Wakes the threads that wait for the loss. Returns the event to trace, if the loss was not known before.
    fn signal(&self, now: Moment) -> Option<(Leased, Ended)> {
        // Under the lock, so that no thread is between looking and waiting. Tasks look when they are registered.
        let state = locked(&self.state);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.changed.notify_all();
        }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::asynchronous::{Client, Lease};
    use crate::base::clock::ManualClock;
    use crate::session::builder::ClientBuilder;
    use crate::session::options::LockOptions;

    const TTL: Duration = Duration::from_secs(600);
    /// A nap and what a busy machine takes.
    const SOON: Duration = Duration::from_secs(30);

    fn builder(clock: &ManualClock) -> ClientBuilder {
        ClientBuilder::new(Some("memory:".into())).clock(clock)
    }

    /// The machine is suspended while the owner works: the loss is reported soon after it wakes, not by the timer.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    async fn who_waits_for_the_loss_learns_of_it_after_a_suspend() {
        let clock = ManualClock::that_goes_on();
        let client: Client = builder(&clock).open().await.unwrap();
        let lease = client.lock("a").acquire(LockOptions::new().ttl(TTL)).await.unwrap();
        let waiting = tokio::spawn(async move { lease.lost().await });
        let lock = client.lock("b");
        let body =
            async move { lock.hold(LockOptions::new().ttl(TTL), |_| std::future::pending::<()>()).await };
        let body = tokio::spawn(body);
        while !client.lock("b").is_locked().await.unwrap() {
            tokio::task::yield_now().await;
        }
        clock.advance(TTL);
        tokio::time::timeout(SOON, waiting).await.expect("the loss is announced").unwrap();
        let held = tokio::time::timeout(SOON, body).await.expect("the body ends").unwrap();
        assert_eq!(held.unwrap_err().kind(), crate::ErrorKind::LeaseExpired);
    }

    /// A waker is a callback of the program: this one calls the lease whose loss it reports.
    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn a_waker_may_ask_the_lease() {
        struct Asks(std::sync::Weak<Lease>, AtomicBool);
        impl std::task::Wake for Asks {
            fn wake(self: Arc<Self>) {
                let lease = self.0.upgrade().unwrap();
                self.1.store(!lease.is_valid(), Ordering::SeqCst);
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (told, hear) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime.block_on(async {
                let client = builder(&ManualClock::new()).open().await.unwrap();
                let lease = client.lock("a").acquire(LockOptions::new().ttl(TTL)).await.unwrap();
                let lease = Arc::new(lease);
                let asks = Arc::new(Asks(Arc::downgrade(&lease), AtomicBool::new(false)));
                let waker = Arc::clone(&asks).into();
                let waiting = Arc::clone(&lease);
                let mut lost = Box::pin(async move { waiting.lost().await });
                let mut context = std::task::Context::from_waker(&waker);
                assert!(lost.as_mut().poll(&mut context).is_pending());
                lease.release().await.unwrap();
                told.send(asks.1.load(Ordering::SeqCst)).unwrap();
            });
        });
        assert!(hear.recv_timeout(SOON).expect("the waker waits for its lease"));
    }
}
