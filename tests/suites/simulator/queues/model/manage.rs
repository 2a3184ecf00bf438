//! remove, reschedule, kick, purge

use stanchion::name::TaskId;
use stanchion::protocol::{
    Cancel, Cancelled, DeadOnes, DiedBy, Happened, Receipt, Remove, Removed, Reschedule, RescheduleReply,
    Sweep, Swept, WallMillis,
};

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
            Some(live) => {
                self.happen(Happened::Removed, &verb.id, &live.main, "");
                Removed::Removed
            }
            None => Removed::Absent,
        }
    }

    pub(super) fn cancel(&mut self, verb: &Cancel) -> Cancelled {
        self.windows.remove(&verb.id);
        let Some(mut live) = self.live.remove(&verb.id) else { return Cancelled::Absent };
        if !live.main.is_held(self.now.boot) {
            self.happen(Happened::Cancelled, &verb.id, &live.main, "");
            return Cancelled::Removed;
        }
        live.successor = None;
        live.main.cancelled = true;
        self.live.insert(verb.id.clone(), live);
        Cancelled::Running
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

    /// Those that a sweep is about, in their order.
    fn sweep(&self, verb: &Sweep) -> (Vec<Receipt>, WallMillis) {
        let until = match verb.until {
            DiedBy::Ago(time) => self.now.ms() - u64::try_from(time.as_micros().div_ceil(1_000)).unwrap(),
            DiedBy::Then(time) => time,
        };
        let mut oldest: Vec<_> = self.dead.iter().filter(|dead| dead.died <= until).collect();
        oldest.sort_by_key(|dead| (dead.cause == Cause::Expired, dead.died, dead.receipt));
        let receipts = match &verb.among {
            DeadOnes::Ids(ids) => ids.iter().filter_map(|id| self.newest_dead(id)).collect(),
            DeadOnes::Receipts(receipts) => receipts.to_vec(),
            DeadOnes::Oldest => oldest.iter().map(|dead| dead.receipt).collect(),
        };
        (receipts, until)
    }

    fn newest_dead(&self, id: &TaskId) -> Option<Receipt> {
        self.dead.iter().filter(|dead| dead.id == *id).map(|dead| dead.receipt).max()
    }

    pub(super) fn kick(&mut self, verb: &Sweep) -> Swept {
        let (receipts, until) = self.sweep(verb);
        let mut count = 0;
        for receipt in receipts {
            let id = self.dead.iter().find(|dead| dead.receipt == receipt).map(|dead| dead.id.clone());
            if count < u64::from(verb.max) && id.is_some_and(|id| !self.live.contains_key(&id)) {
                self.revive(receipt);
                count += 1;
            }
        }
        Swept { count, until, next: None }
    }

    pub(super) fn remove_dead(&mut self, verb: &Sweep) -> Swept {
        let (mut receipts, until) = self.sweep(verb);
        receipts.truncate(verb.max as usize);
        let before = self.dead.len();
        self.dead.retain(|dead| !receipts.contains(&dead.receipt));
        Swept { count: (before - self.dead.len()) as u64, until, next: None }
    }

    fn revive(&mut self, receipt: Receipt) {
        let index = self.dead.iter().position(|dead| dead.receipt == receipt).unwrap();
        let mut dead = self.dead.remove(index);
        if dead.task.expires <= self.now.ms() {
            dead.task.expires = 0;
        }
        let main = Task {
            serial: self.next_serial(),
            version: self.next_version(),
            due: self.now.ms(),
            first: self.now.ms(),
            backoff: 0,
            attempts: 0,
            receipt: Receipt::NONE,
            consumer: String::new(),
            settled: (dead.receipt, dead.verdict),
            follows: Follows::Run,
            ..dead.task
        };
        self.happen(Happened::Added, &dead.id, &main, "");
        self.put(&dead.id, Live { main, successor: None }, None);
    }

    pub(super) fn purge(&mut self) -> u64 {
        let dropped = self.live.len() + self.dead.len();
        self.live.clear();
        self.dead.clear();
        self.windows.clear();
        self.results.clear();
        dropped as u64
    }
}
