//! remove, reschedule, kick, purge

use stanchion::name::TaskId;
use stanchion::verbs::{Kick, Remove, Removed, Reschedule, RescheduleReply};

use super::{Cause, Follows, Live, Model, Task};

impl Model {
    pub(super) fn remove(&mut self, verb: &Remove) -> Removed {
        let version =
            self.live.get(&verb.id).map(|live| live.successor.as_ref().unwrap_or(&live.main).version);
        match (version, verb.version) {
            (Some(version), Some(wanted)) if version != wanted => return Removed::OtherVersion(version),
            (None, Some(_)) => return Removed::Absent,
            _ => {}
        }
        self.windows.remove(&verb.id);
        match self.live.remove(&verb.id) {
            Some(_) => Removed::Removed,
            None => Removed::Absent,
        }
    }

    pub(super) fn reschedule(&mut self, verb: &Reschedule) -> RescheduleReply {
        let boot = self.now.boot;
        self.notice(&verb.id);
        match self.live.remove(&verb.id) {
            Some(live) if live.main.is_held(boot) => {
                self.live.insert(verb.id.clone(), live);
                RescheduleReply::Claimed
            }
            Some(Live { main, successor }) => {
                let mut moved = Task { due: self.due(verb.due), backoff: 0, ..main.clone() };
                let place = self.stays(&main, &mut moved);
                let due = moved.due;
                self.put(&verb.id, Live { main: moved, successor }, place);
                RescheduleReply::Moved(due)
            }
            None if self.dead.iter().any(|dead| dead.id == verb.id) => RescheduleReply::Dead,
            None => RescheduleReply::Absent,
        }
    }

    pub(super) fn kick(&mut self, verb: &Kick) -> u64 {
        match verb {
            Kick::Ids(ids) => ids.iter().map(|id| self.kick_newest(id)).sum(),
            Kick::Count(count) => {
                let oldest = |model: &Self| {
                    let candidates = model.dead.iter().filter(|dead| !model.live.contains_key(&dead.id));
                    candidates.map(|dead| (dead.cause == Cause::Expired, dead.died, dead.receipt)).min()
                };
                let mut kicked = 0;
                while kicked < u64::from(*count)
                    && let Some((.., receipt)) = oldest(self)
                {
                    self.revive(receipt);
                    kicked += 1;
                }
                kicked
            }
        }
    }

    fn kick_newest(&mut self, id: &TaskId) -> u64 {
        let newest = self.dead.iter().filter(|dead| dead.id == *id).map(|dead| dead.receipt).max();
        match newest {
            Some(receipt) if !self.live.contains_key(id) => {
                self.revive(receipt);
                1
            }
            _ => 0,
        }
    }

    fn revive(&mut self, receipt: u64) {
        let index = self.dead.iter().position(|dead| dead.receipt == receipt).unwrap();
        let mut dead = self.dead.remove(index);
        if dead.task.expires <= self.now.ms() {
            dead.task.expires = 0;
        }
        let main = Task {
            serial: self.next_serial(),
            version: self.next_number(),
            due: self.now.ms(),
            first: self.now.ms(),
            backoff: 0,
            attempts: 0,
            receipt: 0,
            settled: (dead.receipt, dead.verdict),
            follows: Follows::Run,
            ..dead.task
        };
        self.put(&dead.id, Live { main, successor: None }, None);
    }

    pub(super) fn purge(&mut self) -> u64 {
        let dropped = self.live.len() + self.dead.len();
        self.live.clear();
        self.dead.clear();
        self.windows.clear();
        dropped as u64
    }
}
