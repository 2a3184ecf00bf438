//! Leases in use: renewed, lost, given back.

use super::*;

impl World<'_> {
    /// As the keeper does: renews, announces, and gives back what its owner is done with.
    pub(super) fn care_for_lease(&mut self, client: usize) -> Played {
        self.write(client)?;
        let now = self.scene.now;
        let Some(lease) = &mut self.clients[client].lease else { return Ok(()) };
        if now >= lease.ends {
            return self.end_lease(client);
        }
        if let Some((_, sent, until)) = lease.renewal {
            if now < until {
                // A loss is announced even while a renewal is on its way.
                if now >= lease.state.deadline() {
                    return self.lost(client);
                }
                let deadline = lease.state.deadline();
                self.scene.wake_at(client, deadline);
                return Ok(());
            }
            lease.renewal = None;
            let need = lease.state.extended(now, sent, &Err(Failure::new(FailureKind::Lost, "no answer")));
            return self.follow(client, need);
        }
        let need = lease.state.need(now);
        self.follow(client, need)
    }

    pub(super) fn follow(&mut self, client: usize, need: Need) -> Played {
        match need {
            Need::Nothing(until) => self.scene.wake_at(client, until),
            Need::Renew(request) => {
                let (now, until) = (self.scene.now, self.scene.now + Duration::from_secs(1));
                let Some(lease) = &mut self.clients[client].lease else { return Ok(()) };
                lease.renewals += 1;
                lease.renewal = Some((lease.renewals, now, until));
                let (number, route, deadline) =
                    (lease.renewals, Route::Renewal(lease.id), lease.state.deadline());
                self.scene.wake_at(client, until.min(deadline));
                self.scene.send(client, route, number, request);
            }
            Need::Announce(farewell) => {
                if let Some(request) = farewell {
                    self.scene.run_errand(client, request);
                }
                return self.lost(client);
            }
            Need::Forget => {}
        }
        Ok(())
    }

    pub(super) fn lost(&mut self, client: usize) -> Played {
        self.tally.losses += 1;
        if let Some(lease) = self.clients[client].lease.take() {
            self.checker.stopped(self.scene.now, &lease.lock.token);
        }
        let pause = self.scene.between(0, 200);
        self.scene.act_after(client, pause);
        Ok(())
    }

    /// The owner is done: it releases, with or without cooldown, or just drops the lease.
    pub(super) fn end_lease(&mut self, client: usize) -> Played {
        let Some(mut lease) = self.clients[client].lease.take() else { return Ok(()) };
        self.checker.stopped(self.scene.now, &lease.lock.token);
        let (fence, deadline) = (lease.lock.fence, lease.state.deadline());
        if !self.scene.calm && self.scene.rng.u32(0..8) == 0 {
            let farewell = lease.state.leased().farewell();
            lease.state.end();
            if let Some(farewell) = farewell {
                self.scene.run_errand(client, farewell);
            }
            let pause = self.scene.between(0, 200);
            self.scene.act_after(client, pause);
            return Ok(());
        }
        let cooldown =
            (!self.scene.calm && self.scene.rng.u32(0..8) == 0).then(|| self.scene.between(50, LONGEST_MS));
        let cooldown = cooldown.filter(|_| self.limit.is_none());
        let request = Request::Release(Release {
            name: self.name.clone(),
            token: lease.lock.token.clone(),
            cooldown,
            acquire_resent: lease.lock.acquire_resent,
            own_fence: (lease.lock.acquire_resent || self.scene.now >= deadline).then_some(fence),
            foreign_share: false,
        });
        let mut machine = CallMachine::new(
            request,
            self.scene.now,
            self.scene.now + Duration::from_secs(3),
            self.scene.dice(),
        );
        if let Some(farewell) = lease.state.leased().farewell() {
            machine = machine.or_else(farewell);
        }
        let company = lease.lock.company();
        let token = lease.lock.token;
        let kind = OpKind::Release { machine, token, fence, company, deadline, first_sent: Moment::FAR };
        self.begin(client, kind);
        self.step(client)
    }
}
