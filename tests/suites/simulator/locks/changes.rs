//! Owners of permits that give back all but one, and want all again.

use super::*;
use stanchion::engine::call::Answer;
use stanchion::protocol::{Downgrade, DowngradeReply, Upgrade, UpgradeReply};
use stanchion::{Error, ErrorKind};

impl World<'_> {
    /// Sometimes the owner changes what it has, if it has nothing else to do.
    pub(super) fn change(&mut self, client: usize, id: u64) -> Played {
        let (now, limit) = (self.scene.now, self.limit.unwrap_or(1));
        if limit == 1 || self.scene.calm || self.clients[client].op.is_some() || !self.scene.rng.bool() {
            return Ok(());
        }
        let is_blind = self.mutant == Some(Mutant::BlindDowngrades);
        let gives_back = self.scene.rng.bool();
        let Some(lease) = self.lease(client, id).filter(|lease| now < lease.state.deadline()) else {
            return Ok(());
        };
        let fence = lease.lock.known_fence().filter(|_| !is_blind);
        let LockLease { name, token, share: Some(share), .. } = lease.lock.clone() else { return Ok(()) };
        // Some give back what they may have after an upgrade that was not answered.
        let upgrades = !share.permits().excludes_all() && (fence.is_some() || is_blind || !gives_back);
        if upgrades && share.may_be_downgraded() {
            return Ok(());
        }
        let request = if upgrades {
            share.asks_for_all();
            Request::Upgrade(Upgrade { name, token, limit })
        } else {
            if fence.is_none() && !is_blind {
                share.asks_blindly();
            }
            self.checker(&name).downgrades(&token, 1);
            Request::Downgrade(Downgrade { name, token, weight: 1, fence })
        };
        let machine = CallMachine::new(request, now, now + Duration::from_secs(3), self.scene.jitter());
        self.begin(client, OpKind::Change { machine, lease: id, share, upgrades });
        self.step(client)
    }

    /// Takes in what came of it, as the lease does.
    pub(super) fn changed(
        &mut self,
        client: usize,
        id: u64,
        share: &Share,
        upgrades: bool,
        answer: Result<Answer, Error>,
    ) -> Played {
        let is_over = match &answer {
            Ok(answer) => answer.copies == 1,
            Err(error) => error.kind() == ErrorKind::StoreUnavailable,
        };
        if upgrades && is_over {
            share.asked_for_all();
        }
        let now = self.scene.now;
        let Some(lease) = self.lease(client, id).filter(|lease| now < lease.state.deadline()) else {
            return Ok(());
        };
        let LockLease { name, token, .. } = lease.lock.clone();
        match answer.map(|answer| answer.reply) {
            Ok(Reply::Downgrade(DowngradeReply::Downgraded)) => share.keep(1),
            Ok(Reply::Upgrade(UpgradeReply::Upgraded(fence))) => {
                share.has_all(fence);
                self.tally.upgrades += 1;
                self.checker(&name).upgraded(now, &token, fence)?;
            }
            _ => return Ok(()),
        }
        self.write(client, id)?;
        self.change(client, id)
    }
}
