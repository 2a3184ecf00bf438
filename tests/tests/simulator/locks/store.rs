//! What happens at the store, and what mutants make of it.

use super::*;

impl World<'_> {
    pub(super) fn perform(&mut self, client: usize, request: &Request) -> Played<Reply> {
        let before = if self.watches_grants { self.granted_to_another(client, request) } else { None };
        let mut reply = self.mutated_store(client, request);
        if let Some(before) = before {
            let after = self.lease_at_store(client);
            Checker::untouched(Some(before), after)?;
        }
        if let (Some(Mutant::CoarseFence), Reply::Acquire(AcquireReply::Granted { fence, .. })) =
            (self.mutant, &mut reply)
        {
            *fence &= !0xF_FFFF;
        }
        if let (Request::Acquire(acquire), Reply::Acquire(AcquireReply::Granted { fence, .. })) =
            (request, &reply)
        {
            self.granted_to.insert(*fence, acquire.token.as_str().to_owned());
        }
        if self.scene.calm
            && let Request::Acquire(acquire) = request
            && acquire.waiter.is_some_and(|_| !self.arrivals.contains(&client))
        {
            self.arrivals.push(client);
        }
        self.checker.performed(self.scene.now, request, &reply)?;
        Ok(reply)
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
        match (self.mutant, &reply) {
            (Some(Mutant::BlindRelease), Reply::Release(ReleaseReply::Gone(_))) => {
                self.store(client, &Request::BreakLease(BreakLease { name: self.name.clone() }));
                Reply::Release(ReleaseReply::Released)
            }
            _ => reply,
        }
    }

    pub(super) fn store(&mut self, client: usize, request: &Request) -> Reply {
        self.tally.store_steps += 1;
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
            | Request::Holder(_)
            | Request::Waiters(_)
            | Request::BreakLease(_)
            | Request::StoreValue(_)
            | Request::Invalidate(_)
            | Request::Queue(_) => {
                return None;
            }
        };
        let fence = self.lease_at_store(client)?;
        self.granted_to.get(&fence).filter(|holder| *holder != own.as_str()).map(|_| fence)
    }

    pub(super) fn lease_at_store(&mut self, client: usize) -> Option<Fence> {
        match self.store(client, &Request::Holder(Holder { name: self.name.clone() })) {
            Reply::Holder(held) => {
                held.first().filter(|holder| holder.held_as == HeldAs::Lease).map(|holder| holder.fence)
            }
            _ => None,
        }
    }
}
