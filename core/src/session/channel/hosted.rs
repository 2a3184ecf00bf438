//! The channel as it is read by the event loop of a host.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::sync::Notify;

use crate::base::host_loop::HostLoop;
use crate::base::wake::locked;
use crate::session::channel::{Channel, OPEN, OPEN_WITHIN};
use crate::store::Deliver;

/// However the reading ends, also with the event loop: the next one who waits has the channel read again.
struct Reading {
    channel: Weak<Channel>,
    closes: Arc<Notify>,
    /// Hints come. It ends like this with the event loop, and another may read at once.
    works: bool,
}

impl Channel {
    /// Has the event loop of a host read it, if this is in a turn of one.
    pub(super) fn is_hosted(self: &Arc<Self>) -> bool {
        let Some(reader) = self.free_reader() else { return false };
        if HostLoop::current_id().is_none() || reader.hints.is_some() || reader.direct {
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
        let reading = Reading { channel: Arc::downgrade(self), closes, works: false };
        HostLoop::spawn_beside(reading.read(deliver));
        true
    }
}

impl Reading {
    async fn read(mut self, deliver: Deliver) {
        let Some(channel) = self.channel.upgrade() else { return };
        let until = channel.clock.now() + OPEN_WITHIN;
        let Some(opening) = channel.store.listen_hosted(until, deliver) else { return };
        let Ok(listening) = opening.await else { return };
        locked(&channel.reader).direct = true;
        channel.state.store(OPEN, Ordering::Release);
        channel.attempts.send_modify(|count| *count += 1);
        drop(channel);
        self.works = true;
        tokio::select! { () = listening => {}, () = self.closes.notified() => {} }
        self.works = false;
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.upgrade() {
            let mut reader = locked(&channel.reader);
            channel.broke(&mut reader);
            if self.works {
                reader.not_before = None;
            }
            drop(reader);
            channel.is_read.store(false, Ordering::Release);
            channel.attempts.send_modify(|count| *count += 1);
        }
    }
}
