//! The channel as it is read by the event loop of a host.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::sync::Notify;

use crate::base::host_loop::HostLoop;
use crate::base::wake::locked;
use crate::session::channel::{Channel, OPEN, OPEN_WITHIN, REOPEN_AFTER, Reader, UNTRIED};
use crate::store::Deliver;

/// However the reading ends, also with the event loop: the next one who waits has the channel read again.
struct Reading {
    channel: Weak<Channel>,
    closes: Arc<Notify>,
    host: u64,
    /// If the reading ends now, with its event loop or because nobody waits, the next one who waits may open it at once.
    may_open: bool,
}

impl Channel {
    /// Has the event loop of a host read it, if this is in a turn of one.
    pub(super) fn is_hosted(self: &Arc<Self>) -> bool {
        let (Some(reader), Some(host)) = (self.free_reader(), HostLoop::current_id()) else { return false };
        if reader.hints.is_some() || reader.direct || self.has_several_hosts.load(Ordering::Acquire) {
            return false;
        }
        let hub = Arc::downgrade(&self.hub);
        let deliver: Deliver = Arc::new(move |seq| {
            if let Some(hub) = hub.upgrade() {
                hub.deliver(seq);
            }
        });
        if self.store.listen_hosted(self.clock.now(), Arc::clone(&deliver)).is_none() {
            return false;
        }
        let left_alone = reader.not_before.is_some_and(|moment| Instant::now() < moment);
        drop(reader);
        if left_alone {
            // Those who wait poll meanwhile.
            self.is_read.store(false, Ordering::Release);
            return true;
        }
        let closes = Arc::clone(&self.closes);
        let reading = Reading { channel: Arc::downgrade(self), closes, host, may_open: false };
        self.host.store(host, Ordering::Release);
        HostLoop::spawn_beside(reading.read(deliver));
        true
    }

    /// Whether a thread is to read it from now on: if the event loop that does is not the one that waits now, it may stand
    /// still, or be run no more.
    pub(super) fn is_taken_over(&self) -> bool {
        let host = self.host.load(Ordering::Acquire);
        if host == 0 || HostLoop::current_id() == Some(host) {
            return false;
        }
        self.has_several_hosts.store(true, Ordering::Release);
        if self.host.compare_exchange(host, 0, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        self.closes.notify_one();
        self.reset();
        true
    }

    /// As if it had never been opened: whoever waits next waits until it is.
    fn reset(&self) {
        *locked(&self.reader) = Reader::default();
        self.state.store(UNTRIED, Ordering::Release);
    }
}

impl Reading {
    async fn read(mut self, deliver: Deliver) {
        loop {
            self.listen(Arc::clone(&deliver)).await;
            self.may_open = false;
            let Some(channel) = self.channel.upgrade() else { return };
            if channel.closed.load(Ordering::Acquire) || channel.host.load(Ordering::Acquire) != self.host {
                return;
            }
            channel.broke(&mut locked(&channel.reader));
            channel.attempts.send_modify(|count| *count += 1);
            drop(channel);
            // Those who wait poll meanwhile.
            tokio::select! { () = tokio::time::sleep(REOPEN_AFTER) => {}, () = self.closes.notified() => return }
            self.may_open = true;
            if self.channel.upgrade().is_none_or(|channel| channel.hub.is_empty()) {
                return;
            }
        }
    }

    /// Opens it, and hears hints until it breaks, is closed or taken over.
    async fn listen(&mut self, deliver: Deliver) {
        let Some(channel) = self.channel.upgrade() else { return };
        let until = channel.clock.now() + OPEN_WITHIN;
        let Some(opening) = channel.store.listen_hosted(until, deliver) else { return };
        let Ok(listening) = opening.await else { return };
        if channel.host.load(Ordering::Acquire) != self.host {
            return;
        }
        locked(&channel.reader).direct = true;
        channel.state.store(OPEN, Ordering::Release);
        channel.attempts.send_modify(|count| *count += 1);
        drop(channel);
        self.may_open = true;
        tokio::select! { () = listening => {}, () = self.closes.notified() => {} }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Some(channel) = self.channel.upgrade() else { return };
        if channel.host.compare_exchange(self.host, 0, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        if self.may_open {
            channel.reset();
        } else {
            channel.broke(&mut locked(&channel.reader));
        }
        channel.is_read.store(false, Ordering::Release);
        channel.attempts.send_modify(|count| *count += 1);
        if self.may_open {
            // They poll, and have it read again.
            channel.hub.wake_all();
        }
    }
}
