//! Chance: all of it comes from the seed.

use std::time::Duration;

use stanchion::engine::Jitter;

use super::{Event, Scene};

impl Scene {
    pub fn between(&mut self, least_ms: u64, most_ms: u64) -> Duration {
        Duration::from_micros(self.rng.u64(least_ms * 1_000..=most_ms * 1_000))
    }

    /// As many times out of a hundred.
    pub fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.rng.u32(0..100) < percent
    }

    /// One out of so many times.
    pub fn once_in(&mut self, count: u32) -> bool {
        self.rng.u32(0..count) == 0
    }

    pub fn jitter(&mut self) -> Jitter {
        Jitter::seeded(self.rng.u64(..))
    }

    /// Somebody will be cancelled, frozen or killed.
    pub fn plan_mishap(&mut self) {
        let client = self.rng.usize(0..self.processes.len());
        let at = self.between(0, 5_000);
        let time = self.between(100, 4_000);
        let event = match self.rng.u32(0..4) {
            0 => Event::Kill { client },
            1 => Event::Freeze { client, time },
            _ => Event::Cancel { client },
        };
        self.schedule(at, event);
    }
}
