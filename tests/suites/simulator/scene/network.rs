//! Messages on their way: lost, late, doubled, reordered.

use std::time::Duration;

use stanchion::protocol::{Failure, FailureKind, Reply, Request};

use super::{Event, Route, Scene};

/// What happens to messages, in percent.
#[derive(Clone, Copy)]
pub struct Weather {
    pub lost: u32,
    pub doubled: u32,
    pub slow: u32,
    pub hints_lost: u32,
    /// Requests that cannot be sent at all.
    pub unsent: u32,
}

impl Weather {
    pub const CALM: Self = Self { lost: 0, doubled: 0, slow: 0, hints_lost: 0, unsent: 0 };

    pub fn draw(rng: &mut fastrand::Rng) -> Self {
        let (lost, doubled, slow, hints_lost) = match rng.u32(0..4) {
            0 => (0, 0, 5, 0),
            1 => (5, 5, 10, 10),
            2 => (20, 20, 25, 30),
            _ => (2, 0, 40, 100),
        };
        Self { lost, doubled, slow, hints_lost, unsent: 0 }
    }
}

impl Scene {
    /// Whether it left: only then can it be carried out.
    pub fn send(&mut self, client: usize, route: Route, number: u32, request: Request) -> bool {
        let life = self.processes[client].life;
        if self.chance(self.weather.unsent) {
            let result = Err(Failure::new(FailureKind::NotSent, "no connection"));
            // That is known at once: later, it would count as lost.
            let delay = self.between(0, 5);
            self.schedule(delay, Event::Deliver { client, life, route, number, result });
            return false;
        }
        let copies = if self.chance(self.weather.doubled) { 2 } else { 1 };
        self.doubled += copies - 1;
        for _ in 0..copies {
            if self.chance(self.weather.lost) {
                self.lost += 1;
            } else {
                let delay = self.delay();
                let request = Box::new(request.clone());
                self.schedule(delay, Event::Arrive { client, life, route, number, request });
            }
        }
        true
    }

    /// The store's answer to a request of this life of the client.
    pub fn answer(&mut self, client: usize, life: u32, route: Route, number: u32, reply: Reply) {
        if self.chance(self.weather.lost) {
            self.lost += 1;
        } else {
            let delay = self.delay();
            self.schedule(delay, Event::Deliver { client, life, route, number, result: Ok(reply) });
        }
    }

    /// A hint for a waiting call.
    pub fn hint(&mut self, client: usize, op: u64) {
        if !self.chance(self.weather.hints_lost) {
            let (life, delay) = (self.processes[client].life, self.delay());
            self.schedule(delay, Event::Hint { client, life, op });
        }
    }

    fn delay(&mut self) -> Duration {
        if self.chance(self.weather.slow) { self.between(50, 2_500) } else { self.between(0, 5) }
    }
}
