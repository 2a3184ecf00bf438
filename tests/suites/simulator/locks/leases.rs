//! Leases in use: renewed, lost, given back.

use super::*;

impl World<'_> {
    pub(super) fn care_for_leases(&mut self, client: usize) -> Played {
        let ids: Vec<_> = self.clients[client].leases.iter().map(|lease| lease.id).collect();
        ids.into_iter().try_for_each(|id| self.care_for_lease(client, id))
    }

    pub(super) fn lease(&mut self, client: usize, id: u64) -> Option<&mut SimLease> {
        self.clients[client].leases.iter_mut().find(|lease| lease.id == id && !lease.is_over)
    }

    /// As the keeper does: renews, announces, and gives back what its owner is done with.
    fn care_for_lease(&mut self, client: usize, id: u64) -> Played {
        self.write(client, id)?;
        let now = self.scene.now;
        let Some(lease) = self.lease(client, id) else { return Ok(()) };
        if now >= lease.ends {
            return self.end_leases(client);
        }
        if let Some((_, sent, until)) = lease.renewal {
            if now < until {
                // A loss is announced even while a renewal is on its way.
                if now >= lease.state.deadline() {
                    return self.lost(client, id);
                }
                let deadline = lease.state.deadline();
                self.scene.wake_at(client, deadline);
                return Ok(());
            }
            lease.renewal = None;
            let need = lease.state.extended(now, sent, &Err(Failure::new(FailureKind::Lost, "no answer")));
            return self.follow(client, id, need);
        }
        let need = lease.state.need(now);
        self.follow(client, id, need)
    }

    pub(super) fn follow(&mut self, client: usize, id: u64, need: Need) -> Played {
        match need {
            Need::Nothing(until) => self.scene.wake_at(client, until),
            Need::Renew(request) => {
                let (now, until) = (self.scene.now, self.scene.now + Duration::from_secs(1));
                let Some(lease) = self.lease(client, id) else { return Ok(()) };
                lease.renewals += 1;
                lease.renewal = Some((lease.renewals, now, until));
                let (number, deadline) = (lease.renewals, lease.state.deadline());
                self.scene.wake_at(client, until.min(deadline));
                self.scene.send(client, Route::Renewal(id), number, request);
            }
            Need::Announce(farewell) => {
                if let Some(request) = farewell {
                    self.scene.run_errand(client, request);
                }
                return self.lost(client, id);
            }
            Need::Forget => {}
        }
        Ok(())
    }

    /// The loss of one is the loss of all that are held together.
    fn lost(&mut self, client: usize, id: u64) -> Played {
        self.tally.losses += 1;
        let leases = &mut self.clients[client].leases;
        let Some(index) = leases.iter().position(|lease| lease.id == id) else { return Ok(()) };
        let lease = leases.remove(index);
        let now = self.scene.now;
        self.checker(&lease.lock.name).stopped(now, &lease.lock.token);
        if !self.clients[client].leases.is_empty() {
            return self.end_leases(client);
        }
        let pause = self.scene.between(0, 200);
        self.scene.act_after(client, pause);
        Ok(())
    }

    /// The owner is done: it releases, with or without cooldown, or just drops what it has.
    fn end_leases(&mut self, client: usize) -> Played {
        let now = self.scene.now;
        let mut leases = std::mem::take(&mut self.clients[client].leases);
        for lease in &mut leases {
            lease.is_over = true;
            self.checker(&lease.lock.name).stopped(now, &lease.lock.token);
        }
        if !self.scene.calm && self.scene.once_in(8) {
            for lease in &mut leases {
                let farewell = lease.state.leased().cleanup();
                lease.state.end();
                if let Some(farewell) = farewell {
                    self.scene.run_errand(client, farewell);
                }
            }
            let pause = self.scene.between(0, 200);
            self.scene.act_after(client, pause);
            return Ok(());
        }
        self.clients[client].leases = leases;
        self.release_next(client)
    }

    /// Releases what is left of those that its owner is done with, one after the other.
    pub(super) fn release_next(&mut self, client: usize) -> Played {
        let Some(mut lease) = self.clients[client].leases.pop() else {
            let pause = self.scene.between(0, 200);
            self.scene.act_after(client, pause);
            return Ok(());
        };
        let (fence, deadline) = (lease.lock.fence(), lease.state.deadline());
        let cooldown =
            (!self.scene.calm && self.scene.once_in(8)).then(|| self.scene.between(50, LONGEST_MS));
        let cooldown = cooldown.filter(|_| self.limit.is_none() && self.names.len() == 1);
        let request = Request::Release(Release {
            name: lease.lock.name.clone(),
            token: lease.lock.token.clone(),
            cooldown,
            acquire_resent: lease.lock.acquire_resent,
            own_fence: lease.state.fence_to_check(self.scene.now),
            foreign_share: false,
        });
        lease.state.end();
        let mut machine = CallMachine::new(
            request,
            self.scene.now,
            self.scene.now + Duration::from_secs(3),
            self.scene.jitter(),
        );
        if let Some(farewell) = lease.state.leased().cleanup() {
            machine = machine.or_else(farewell);
        }
        let company = lease.lock.company();
        let LockLease { name, token, .. } = lease.lock;
        self.begin(client, OpKind::Release { machine, name, token, fence, company, deadline });
        self.step(client)
    }
}
