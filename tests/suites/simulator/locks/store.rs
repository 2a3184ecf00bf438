//! What happens at the store, and what mutants make of it.

use super::*;

impl World<'_> {
    pub(super) fn perform(&mut self, client: usize, request: &Request) -> Played<Reply> {
        self.raise_ghosts(client);
        let before = if self.watches_grants { self.granted_to_another(client, request) } else { None };
        let (now, mut reply) = (self.scene.now, self.mutated_store(client, request));
        if let Some(before) = before {
            let after = self.lease_at_store(client, &self.names[0].clone());
            Checker::untouched(Some(before), after)?;
        }
        if let (Some(Mutant::CoarseFence), Reply::Acquire(AcquireReply::Granted { fence, .. })) =
            (self.mutant, &mut reply)
        {
            *fence = Fence::new(fence.get() & !0xF_FFFF);
        }
        match (request, &reply) {
            (Request::Acquire(acquire), Reply::Acquire(AcquireReply::Granted { fence, .. })) => {
                self.note_grant(&acquire.name, *fence, &acquire.token);
            }
            (Request::AcquireAll(acquire), Reply::AcquireAll(AcquireAllReply::Granted(fences))) => {
                for ((name, _), fence) in acquire.locks.iter().zip(fences) {
                    self.note_grant(name, *fence, &acquire.token);
                    self.checker(name).performed(now, request, &reply)?;
                }
            }
            _ => {}
        }
        if self.scene.calm
            && let Request::Acquire(acquire) = request
            && acquire.waiter.is_some()
            && !self.arrivals.iter().any(|(other, _)| *other == client)
        {
            self.arrivals.push((client, self.scene.now));
        }
        let index = self.names.iter().position(|name| name.as_str() == request.name()).unwrap_or_default();
        self.checkers[index].performed(now, request, &reply)?;
        Ok(reply)
    }

    /// A client has died that was in line.
    pub(super) fn haunt(&mut self, op: Op) {
        if self.mutant == Some(Mutant::DeadWaiterLives)
            && let OpKind::Acquire { name, token, place, .. } = op.kind
            && let Request::Acquire(acquire) = self.acquire_request(&name, token)
        {
            self.ghosts.push(Acquire { waiter: Some(place.waiter()), ..acquire });
        }
    }

    /// Those who are dead are taken for alive. They do not answer offers.
    fn raise_ghosts(&mut self, client: usize) {
        for ghost in self.ghosts.clone() {
            if self.lease_at_store(client, &ghost.name).is_some() {
                self.store(client, &Request::Acquire(ghost));
            }
        }
    }

    fn note_grant(&mut self, name: &LockName, fence: Fence, token: &Token) {
        self.granted_to.insert((name.as_str().to_owned(), fence), token.clone());
    }

    /// A lease ends before its time, as if its key had been deleted.
    pub(super) fn end_early(&mut self) {
        let index = self.scene.rng.usize(0..self.names.len());
        let name = self.names[index].clone();
        let Some(fence) = self.lease_at_store(0, &name) else { return };
        let Some(token) = self.granted_to.get(&(name.as_str().to_owned(), fence)).cloned() else { return };
        self.checkers[index].ended_early(self.scene.now);
        self.tally.early += 1;
        let release = self.release_request(&name, token);
        self.store(0, &release);
        self.spread_hints();
    }

    pub(super) fn release_request(&self, name: &LockName, token: Token) -> Request {
        Request::Release(Release {
            name: name.clone(),
            token,
            cooldown: None,
            acquire_resent: false,
            own_fence: None,
            foreign_share: false,
        })
    }

    pub(super) fn mutated_store(&mut self, client: usize, request: &Request) -> Reply {
        let reply = match (self.mutant, request) {
            (Some(Mutant::IgnoresWeight), Request::Acquire(acquire)) => {
                let permits = acquire.permits.map(|permits| Permits { weight: 1, ..permits });
                self.store(client, &Request::Acquire(Acquire { permits, ..acquire.clone() }))
            }
            (Some(Mutant::NoTombstone), Request::Leave(Leave { name, token, foreign_share })) => {
                let release = Release {
                    name: name.clone(),
                    token: token.clone(),
                    cooldown: None,
                    acquire_resent: false,
                    own_fence: None,
                    foreign_share: *foreign_share,
                };
                self.store(client, &Request::Release(release));
                return Reply::Leave;
            }
            _ => self.store(client, request),
        };
        match (self.mutant, request, &reply) {
            (
                Some(Mutant::BlindRelease),
                Request::Release(release),
                Reply::Release(ReleaseReply::Gone(_)),
            ) => {
                self.store(client, &Request::BreakLease(BreakLease { name: release.name.clone() }));
                Reply::Release(ReleaseReply::Released)
            }
            _ => reply,
        }
    }

    pub(super) fn store(&mut self, client: usize, request: &Request) -> Reply {
        self.tally.store_steps += 1;
        if let Some(replica) = self.replica.filter(|_| self.behind_since.is_none()) {
            let _ = replica.perform(client, request);
        }
        self.stores.perform(client, request).unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// The fence of a lease that this request has no business with.
    pub(super) fn granted_to_another(&mut self, client: usize, request: &Request) -> Option<Fence> {
        let own = match request {
            Request::Acquire(acquire) => &acquire.token,
            Request::Extend(extend) => &extend.token,
            Request::Release(release) => &release.token,
            Request::Leave(leave) => &leave.token,
            Request::AcquireAll(_)
            | Request::Resume(_)
            | Request::Downgrade(_)
            | Request::Upgrade(_)
            | Request::Holder(_)
            | Request::Waiters(_)
            | Request::BreakLease(_)
            | Request::StoreValue(_)
            | Request::Invalidate(_)
            | Request::Take(_)
            | Request::GiveBack(_)
            | Request::Queue(_) => {
                return None;
            }
        };
        let name = self.names[0].clone();
        let fence = self.lease_at_store(client, &name)?;
        let holder = self.granted_to.get(&(name.as_str().to_owned(), fence));
        holder.filter(|holder| *holder != own).map(|_| fence)
    }

    pub(super) fn lease_at_store(&mut self, client: usize, name: &LockName) -> Option<Fence> {
        match self.store(client, &Request::Holder(Holder { name: name.clone() })) {
            Reply::Holder(held) => {
                held.first().filter(|holder| holder.held_as == HeldAs::Lease).map(|holder| holder.fence)
            }
            _ => None,
        }
    }
}
