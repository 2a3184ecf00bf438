//! The channel of hints of one client: opened on the first wait, read by a waiting thread, or, while tasks wait, by the
//! event loop of a host or a thread of its own.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::base::clock::{Clock, Moment};
use crate::base::contained::contained;
use crate::base::sigmask::{join, spawn_quietly};
use crate::base::wake::{Hub, Place, locked};
use crate::store::{Hints, Store};

/// A waiting thread comes back to its host this often, so that the host can run signal handlers.
pub(crate) const INTERRUPT_CHECK: Duration = Duration::from_millis(50);
/// How long opening the channel may take before a wait goes on without it.
const OPEN_WITHIN: Duration = Duration::from_secs(1);
/// How long a channel that could not be opened, or broke, is left alone.
const REOPEN_AFTER: Duration = Duration::from_secs(1);
/// How long the reading thread stays when no task waits.
const IDLE_EXIT: Duration = Duration::from_secs(5);
/// A read may last this much longer than asked for: the system counts socket timeouts in ticks of up to 10 ms.
const READ_OVERSHOOT: Duration = Duration::from_millis(12);
/// How long one read of the reading thread lasts: whoever closes the client waits for it.
const READ_SLICE: Duration = Duration::from_millis(100);

#[cfg(feature = "redis")]
mod hosted;

/// States of the channel: never opened, open, broken or refused (a new attempt comes later).
const UNTRIED: u8 = 0;
const OPEN: u8 = 1;
const BROKEN: u8 = 2;

/// How a wait of a thread ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Hinted,
    TimeUp,
    Interrupted,
}

pub(crate) struct Channel {
    store: Arc<dyn Store>,
    clock: Clock,
    hub: Arc<Hub>,
    /// Locked by whoever reads it, a waiting thread or the reading thread, again and again: a wait for it can be long.
    reader: Mutex<Reader>,
    /// Locked only while it is being opened.
    opening: Mutex<()>,
    state: AtomicU8,
    /// Counts attempts to open it, successful or not.
    attempts: watch::Sender<u64>,
    /// Whether a thread or an event loop reads it for tasks.
    is_read: AtomicBool,
    /// Which event loop reads it; zero: none does.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only sockets are polled by a host"))]
    host: AtomicU64,
    /// More than one event loop waits: then a thread reads, which stands still with none of them.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only sockets are polled by a host"))]
    has_several_hosts: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
    closed: AtomicBool,
    /// For the event loop that reads it.
    closes: Arc<Notify>,
}

#[derive(Default)]
struct Reader {
    hints: Option<Box<dyn Hints>>,
    /// All hints are delivered to the hub directly; there is nothing to read.
    direct: bool,
    not_before: Option<Instant>,
}

impl Channel {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Clock, hub: Arc<Hub>) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            hub,
            reader: Mutex::default(),
            opening: Mutex::default(),
            state: AtomicU8::new(UNTRIED),
            attempts: watch::Sender::new(0),
            is_read: AtomicBool::new(false),
            host: AtomicU64::new(0),
            has_several_hosts: AtomicBool::new(false),
            thread: Mutex::default(),
            closed: AtomicBool::new(false),
            closes: Arc::default(),
        })
    }

    /// Whether hints arrive now.
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == OPEN
    }

    /// Opens the channel on the calling thread, unless that failed a moment ago.
    pub(crate) fn open(&self) {
        while !self.is_open() {
            if let Some(mut reader) = self.free_reader() {
                return self.open_for(&mut reader);
            }
            // Another opens it, or is about to.
            drop(locked(&self.opening));
            thread::yield_now();
        }
    }

    /// The reader, unless another has it.
    fn free_reader(&self) -> Option<MutexGuard<'_, Reader>> {
        match self.reader.try_lock() {
            Ok(reader) => Some(reader),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn open_for(&self, reader: &mut Reader) {
        if reader.direct
            || self.closed.load(Ordering::Acquire)
            || reader.hints.is_some()
            || reader.not_before.is_some_and(|moment| Instant::now() < moment)
        {
            return;
        }
        let _opening = locked(&self.opening);
        match self.store.listen(self.clock.now() + OPEN_WITHIN) {
            Ok(hints) => {
                reader.direct = hints.is_none();
                reader.hints = hints;
                self.state.store(OPEN, Ordering::Release);
            }
            Err(_) => self.broke(reader),
        }
        self.attempts.send_modify(|count| *count += 1);
    }

    fn broke(&self, reader: &mut Reader) {
        self.state.store(BROKEN, Ordering::Release);
        *reader = Reader { not_before: Some(Instant::now() + REOPEN_AFTER), ..Reader::default() };
    }

    /// Reads for up to `patience`; false if there is nothing to read from.
    fn read(&self, reader: &mut Reader, patience: Duration) -> bool {
        self.open_for(reader);
        let Some(hints) = &mut reader.hints else { return false };
        if hints.read(patience, &mut |seq| self.hub.deliver(seq)).is_err() {
            self.broke(reader);
        }
        true
    }

    /// Waits as a thread: the first one reads the channel for all (leader), the others sleep. `interrupt`
    /// runs at least every 50 ms and may end the wait. An `exact` wait sleeps towards its end, which is a
    /// matter of microseconds, and has the reading thread read meanwhile.
    pub(crate) fn wait(
        self: &Arc<Self>,
        place: &Place,
        until: Moment,
        exact: bool,
        interrupt: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Waited {
        let mut led = false;
        let waited = loop {
            if place.take_hint() {
                break Waited::Hinted;
            }
            if self.clock.now() >= until {
                break Waited::TimeUp;
            }
            if interrupt().is_break() {
                break Waited::Interrupted;
            }
            let left = self.clock.nap(until);
            let (nap, may_lead) = match left.checked_sub(READ_OVERSHOOT) {
                Some(early) if exact && !early.is_zero() => (early.min(INTERRUPT_CHECK), true),
                _ if exact => (left, false),
                _ => (left.min(INTERRUPT_CHECK), true),
            };
            if !may_lead {
                self.keep_reading();
            }
            place.park();
            if may_lead && self.lead(nap) {
                led = true;
                place.unpark();
            } else {
                place.sleep(nap);
            }
        };
        if led {
            self.hub.nudge();
        }
        waited
    }

    /// Reads the channel for all, unless another does or there is nothing to read.
    fn lead(&self, patience: Duration) -> bool {
        self.free_reader().is_some_and(|mut reader| self.read(&mut reader, patience))
    }

    /// Opens the channel from a task, unless that failed a moment ago.
    pub(crate) async fn open_async(self: &Arc<Self>) {
        let mut attempts = self.attempts.subscribe();
        attempts.mark_unchanged();
        self.keep_reading();
        // While it is broken, waiters poll, and the thread tries again in the background.
        if self.state.load(Ordering::Acquire) == UNTRIED {
            // Whatever comes first: the first attempt has ended, or it takes too long to wait for.
            let _ = tokio::time::timeout(OPEN_WITHIN, attempts.changed()).await;
        }
    }

    /// Waits as a task; true if a hint came.
    pub(crate) async fn wait_async(self: &Arc<Self>, place: &Place, until: Moment) -> bool {
        self.keep_reading();
        while self.clock.now() < until {
            let nap = self.clock.nap(until);
            if tokio::time::timeout(nap, place.hinted()).await.is_ok() {
                return true;
            }
        }
        place.take_hint()
    }

    /// Has the channel read while tasks wait.
    fn keep_reading(self: &Arc<Self>) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        let is_read = self.is_read.swap(true, Ordering::AcqRel);
        if if is_read { self.is_taken_over() } else { !self.is_hosted() } {
            self.read_by_a_thread();
        }
    }

    /// Has the event loop of a host read it, if this is in a turn of one.
    #[cfg(not(feature = "redis"))]
    fn is_hosted(self: &Arc<Self>) -> bool {
        false
    }

    /// Whether a thread is to read it from now on.
    #[cfg(not(feature = "redis"))]
    fn is_taken_over(&self) -> bool {
        false
    }

    fn read_by_a_thread(self: &Arc<Self>) {
        let channel = Arc::downgrade(self);
        let run = move || {
            let mut idle_since = Instant::now();
            while let Some(channel) =
                channel.upgrade().filter(|channel| !channel.closed.load(Ordering::Acquire))
            {
                if !channel.hub.is_empty() {
                    idle_since = Instant::now();
                } else if idle_since.elapsed() > IDLE_EXIT {
                    channel.is_read.store(false, Ordering::Release);
                    // A task may have begun to wait just before: it saw the flag still set.
                    if channel.hub.is_empty() || channel.is_read.swap(true, Ordering::AcqRel) {
                        return;
                    }
                }
                let read = contained("channel", || channel.read(&mut locked(&channel.reader), READ_SLICE));
                let reads = read.unwrap_or_else(|| {
                    channel.broke(&mut locked(&channel.reader));
                    false
                });
                if !reads {
                    thread::sleep(INTERRUPT_CHECK);
                }
            }
        };
        match spawn_quietly("stanchion-wake", run) {
            Ok(thread) => *locked(&self.thread) = Some(thread),
            Err(_) => {
                // Without a thread, waiters poll.
                self.is_read.store(false, Ordering::Release);
                self.attempts.send_modify(|count| *count += 1);
            }
        }
    }

    /// Closes it for good, and waits for the thread that reads it.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.closes.notify_one();
        let thread = locked(&self.thread).take();
        join(thread);
        let mut reader = locked(&self.reader);
        self.state.store(BROKEN, Ordering::Release);
        *reader = Reader::default();
    }

    /// In a forked child: closes the inherited connection if nobody was reading it.
    pub(crate) fn close_inherited(&self) {
        if let Ok(mut reader) = self.reader.try_lock() {
            reader.hints = None;
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.closes.notify_one();
    }
}

#[cfg(test)]
mod tests;
