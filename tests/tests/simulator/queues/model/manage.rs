//! remove, reschedule, kick, purge

use stanchion::name::TaskId;
use stanchion::verbs::{Kick, Remove, Removed, Reschedule, RescheduleReply};

use super::{Live, Model, Place, Task};

impl Model {
    pub(super) fn remove(&mut self, verb: &Remove) -> Removed {
        let version =
            self.live.get(&verb.id).map(|live| live.successor.as_ref().unwrap_or(&live.main).version);
        match (version, verb.version) {
            (Some(version), Some(wanted)) if version != wanted => return Removed::OtherVersion(version),
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
        let has_ended = |live: &Live| matches!(live.main.place, Place::Claimed(ends) if ends <= boot);
        if self.live.get(&verb.id).is_some_and(has_ended) {
            let live = self.live.remove(&verb.id).unwrap();
            self.end_lease(&verb.id, live);
        }
        match self.live.remove(&verb.id) {
            Some(live) if live.main.is_held(boot) => {
                self.live.insert(verb.id.clone(), live);
                RescheduleReply::Claimed
            }
            Some(mut live) => {
                live.main.due = self.due(verb.due);
                let due = live.main.due;
                self.put(&verb.id, live);
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
                    candidates.map(|dead| (dead.died, dead.receipt)).min()
                };
                let mut kicked = 0;
                while kicked < u64::from(*count)
                    && let Some((_, receipt)) = oldest(self)
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
            attempts: 0,
            receipt: 0,
            settled: (dead.receipt, dead.verdict),
            replaces: false,
            ..dead.task
        };
        self.put(&dead.id, Live { main, successor: None });
    }

    pub(super) fn purge(&mut self) -> u64 {
        let dropped = self.live.len() + self.dead.len();
        self.live.clear();
        self.dead.clear();
        self.windows.clear();
        dropped as u64
    }
}
