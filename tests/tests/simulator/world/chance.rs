//! Time and chance.

use super::*;

impl World<'_> {
    pub(super) fn schedule(&mut self, after: Duration, event: Event) {
        self.order += 1;
        self.queue.push(Reverse(Scheduled { at: self.now + after, order: self.order, event }));
    }

    pub(super) fn act_after(&mut self, client: usize, pause: Duration) {
        let life = self.clients[client].life;
        self.schedule(pause, Event::Act { client, life });
    }

    pub(super) fn wake_at(&mut self, client: usize, at: Moment) {
        if at != Moment::FAR {
            let life = self.clients[client].life;
            self.schedule(at.since(self.now), Event::Wake { client, life });
        }
    }

    pub(super) fn advance(&mut self, to: Moment) {
        self.fleet.clock.advance(to.since(self.now));
        self.now = self.now.max(to);
    }

    pub(super) fn delay(&mut self) -> Duration {
        if self.chance(self.weather.slow) { self.between(50, 2_500) } else { self.between(0, 5) }
    }

    pub(super) fn between(&mut self, least_ms: u64, most_ms: u64) -> Duration {
        Duration::from_micros(self.rng.u64(least_ms * 1_000..=most_ms * 1_000))
    }

    pub(super) fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.rng.u32(0..100) < percent
    }

    pub(super) fn dice(&mut self) -> Dice {
        Dice::seeded(self.rng.u64(..))
    }

    pub(super) fn next_token(&mut self) -> stanchion::Token {
        self.tokens += 1;
        token(self.tokens)
    }
}
