//! Wake-ups: who waits in this process, and how a hint reaches it.
//!
//! A hint only makes a waiter poll the store now. Losing one costs time, never correctness.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::base::fork::{Generation, generation};

/// Identifies a client to the waker: hints for its waiters are sent to it. Not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

/// One waiting call: the client it belongs to and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// Whose call it is.
    pub client: ClientId,
    /// The call's number within its client.
    pub seq: u64,
}

/// The waiters of one client.
#[derive(Debug)]
pub struct Hub {
    client: ClientId,
    generation: Generation,
    next_seq: AtomicU64,
    slots: Mutex<HashMap<u64, Arc<Slot>>>,
}

impl Hub {
    /// A hub without waiters.
    pub fn new(client: ClientId) -> Arc<Self> {
        Arc::new(Self {
            client,
            generation: generation(),
            next_seq: AtomicU64::new(1),
            slots: Mutex::default(),
        })
    }

    /// In a forked child the mutex may have been inherited locked, and all who wait are the parent's.
    fn is_inherited(&self) -> bool {
        self.generation != generation()
    }

    /// Whose waiters these are.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// Registers one waiting call, until the place is dropped.
    pub fn enter(self: &Arc<Self>) -> Place {
        let seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot::default());
        locked(&self.slots).insert(seq, Arc::clone(&slot));
        Place { hub: Arc::clone(self), seq, slot }
    }

    /// Wakes the waiter with this number, if it still waits.
    pub fn deliver(&self, seq: u64) {
        let slot = locked(&self.slots).get(&seq).cloned();
        if let Some(slot) = slot {
            locked(&slot.state).hinted = true;
            slot.changed.notify_one();
            slot.notify.notify_one();
        }
    }

    /// Wakes all waiters.
    pub(crate) fn wake_all(&self) {
        let waiting: Vec<_> = locked(&self.slots).keys().copied().collect();
        waiting.into_iter().for_each(|seq| self.deliver(seq));
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.slots).is_empty()
    }

    /// Asks one sleeping thread to look whether it should read the channel now.
    pub(crate) fn nudge(&self) {
        if self.is_inherited() {
            return;
        }
        let slots = locked(&self.slots);
        for slot in slots.values() {
            let mut state = locked(&slot.state);
            if state.parked && !state.nudged {
                state.nudged = true;
                slot.changed.notify_one();
                return;
            }
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    state: Mutex<SlotState>,
    /// For a thread that waits.
    changed: Condvar,
    /// For a task that waits.
    notify: Notify,
}

#[derive(Debug, Default)]
struct SlotState {
    hinted: bool,
    parked: bool,
    nudged: bool,
}

/// One waiting call's place in its hub.
#[derive(Debug)]
pub struct Place {
    hub: Arc<Hub>,
    seq: u64,
    slot: Arc<Slot>,
}

impl Place {
    /// The address to which the store publishes hints for this call.
    pub fn waiter(&self) -> Waiter {
        Waiter { client: self.hub.client, seq: self.seq }
    }

    /// Takes the hint that has come, if one has.
    pub fn take_hint(&self) -> bool {
        std::mem::take(&mut locked(&self.slot.state).hinted)
    }

    /// Announces that this thread is about to sleep. Afterwards a `nudge` is not missed.
    pub(crate) fn park(&self) {
        let mut state = locked(&self.slot.state);
        state.parked = true;
        state.nudged = false;
    }

    /// Withdraws the announcement: this thread reads the channel itself.
    pub(crate) fn unpark(&self) {
        locked(&self.slot.state).parked = false;
    }

    /// Sleeps until a hint, a nudge, or for `nap`.
    pub(crate) fn sleep(&self, nap: Duration) {
        let state = locked(&self.slot.state);
        let asleep = |state: &mut SlotState| !state.hinted && !state.nudged;
        let waited = self.slot.changed.wait_timeout_while(state, nap, asleep);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.parked = false;
    }

    /// Waits for a hint, as a task.
    pub(crate) async fn hinted(&self) {
        while !self.take_hint() {
            self.slot.notify.notified().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.hub.is_inherited() {
            locked(&self.hub.slots).remove(&self.seq);
        }
    }
}

/// A lock whose data stays usable when a thread panicked with it: all of them hold plain values.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_before_the_wait_is_not_missed() {
        let hub = Hub::new(ClientId(1));
        let place = hub.enter();
        hub.deliver(place.waiter().seq);
        place.park();
        place.sleep(Duration::from_secs(60));
        assert!(place.take_hint());
        assert!(!place.take_hint());
    }

    #[test]
    fn a_nudge_wakes_a_parked_thread_without_a_hint() {
        let hub = Hub::new(ClientId(1));
        let place = hub.enter();
        place.park();
        hub.nudge();
        place.sleep(Duration::from_secs(60));
        assert!(!place.take_hint());
    }

    #[test]
    fn hints_for_others_and_for_the_departed_are_ignored() {
        let hub = Hub::new(ClientId(1));
        let place = hub.enter();
        let gone = hub.enter().waiter().seq;
        hub.deliver(gone);
        hub.deliver(12345);
        assert!(!place.take_hint());
        drop(place);
        assert!(hub.is_empty());
    }
}
