//! Messages on their way: lost, late, doubled, reordered.

use super::*;

impl World<'_> {
    pub(super) fn send(&mut self, client: usize, route: Route, number: u32, request: Request) {
        let life = self.clients[client].life;
        let copies = if self.chance(self.weather.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            if !self.chance(self.weather.lost) {
                let delay = self.delay();
                let request = Box::new(request.clone());
                self.schedule(delay, Event::Arrive { client, life, route, number, request });
            }
        }
    }

    pub(super) fn arrive(
        &mut self,
        client: usize,
        life: u32,
        route: Route,
        number: u32,
        request: &Request,
    ) -> Played {
        let reply = self.perform(client, request)?;
        self.spread_hints();
        if !self.chance(self.weather.lost) {
            let delay = self.delay();
            self.schedule(delay, Event::Deliver { client, life, route, number, result: Ok(reply) });
        }
        Ok(())
    }

    pub(super) fn spread_hints(&mut self) {
        for client in 0..self.clients.len() {
            let Some(Op { id, kind: OpKind::Acquire { place, .. }, .. }) = &self.clients[client].op else {
                continue;
            };
            if place.take_hint() {
                let op = *id;
                self.tally.hand_offs += 1;
                if !self.chance(self.weather.hints_lost) {
                    let (life, delay) = (self.clients[client].life, self.delay());
                    self.schedule(delay, Event::Hint { client, life, op });
                }
            }
        }
    }
}
