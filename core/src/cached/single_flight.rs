//! A caller's place in a single flight: see `engine/single_flight.rs`.

use crate::base::clock::Moment;
use crate::base::name::LockName;
use crate::base::wake::{Place, locked};
use crate::engine::single_flight::Turn;
use crate::session::Live;

/// A caller's place in a flight, from its arrival until it has its result.
pub(crate) struct FlightCaller<'a> {
    live: &'a Live,
    name: &'a LockName,
    pub(crate) place: Place,
}

impl<'a> FlightCaller<'a> {
    /// For a caller that arrived at this moment.
    pub(crate) fn take(live: &'a Live, name: &'a LockName, came: Moment) -> Self {
        let place = live.hub.enter();
        locked(&live.flights).join(name, place.waiter().seq, came, live.clock.now());
        Self { live, name, place }
    }

    /// What this caller does now. It asks the store in any case when its time is up.
    pub(crate) fn turn(&self, give_up: Moment) -> Turn {
        // In a forked child the mutex may have been inherited locked; there the call to the store fails with `Forked`.
        if self.live.is_inherited() {
            return Turn::Ask;
        }
        let seq = self.place.waiter().seq;
        locked(&self.live.flights).turn(self.name, seq, self.live.clock.now(), give_up)
    }

    /// Shares the value that a request sent at this moment has found.
    pub(crate) fn answer(&self, value: &[u8], asked: Moment) {
        if self.live.is_inherited() {
            return;
        }
        let woken = locked(&self.live.flights).answer(self.name, value, asked);
        woken.into_iter().for_each(|seq| self.live.hub.deliver(seq));
    }
}

impl Drop for FlightCaller<'_> {
    fn drop(&mut self) {
        if self.live.is_inherited() {
            return;
        }
        let now = self.live.clock.now();
        let next = locked(&self.live.flights).leave(self.name, self.place.waiter().seq, now);
        if let Some(next) = next {
            self.live.hub.deliver(next);
        }
    }
}
