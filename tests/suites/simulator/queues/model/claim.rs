//! claim, settle_and_claim, abandon, pop

use std::time::Duration;

use stanchion::name::TaskId;
use stanchion::protocol::{
    Abandon, Claim, ClaimReply, ClaimedTask, Happened, Pop, QueueReply, Receipt, Settle, TaskState, Verdict,
};

use super::{Ended, Heard, Live, Model, Place, Stored};

impl Model {
    pub(super) fn claim(&mut self, verb: &Claim) -> QueueReply {
        let reply = match self.hear(verb.call) {
            Heard::Repeated(stored) => self.give_again(&stored),
            Heard::Abandoned => self.nothing(),
            Heard::Superseded => return QueueReply::Superseded,
            Heard::New => {
                let reply = self.claim_new(verb);
                self.remember(verb.call, Some(stored_of(&reply)));
                reply
            }
        };
        QueueReply::Claim(reply)
    }

    pub(super) fn settle_and_claim(&mut self, settle: &Settle, claim: &Claim) -> QueueReply {
        match self.hear(claim.call) {
            Heard::Repeated(stored) => {
                let again = self.give_again(&stored);
                QueueReply::SettleAndClaim(stored.settled, again)
            }
            Heard::Abandoned | Heard::Superseded => QueueReply::Superseded,
            Heard::New => {
                let settled = self.settle(settle);
                let reply = self.claim_new(claim);
                let stored = Stored { settled: settled.clone(), ..stored_of(&reply) };
                self.remember(claim.call, Some(stored));
                QueueReply::SettleAndClaim(settled, reply)
            }
        }
    }

    fn claim_new(&mut self, verb: &Claim) -> ClaimReply {
        if self.paused {
            return self.nothing();
        }
        self.promote();
        let ends = self.now.boot + micros(verb.lease);
        let taken = self.take(verb.max);
        for id in &taken {
            let main = &mut self.live.get_mut(id).unwrap().main;
            (main.place, main.consumer) = (Place::Claimed(ends), verb.consumer.as_ref().to_owned());
        }
        if taken.is_empty() {
            return self.nothing();
        }
        ClaimReply::Claimed(taken.iter().map(|id| self.claimed(id)).collect())
    }

    fn promote(&mut self) {
        let mut ended: Vec<(u64, u64, TaskId)> = Vec::new();
        let mut due: Vec<(u64, u64, TaskId)> = Vec::new();
        for (id, Live { main, .. }) in &self.live {
            match main.place {
                Place::Claimed(ends) if ends <= self.now.boot => ended.push((ends, main.serial, id.clone())),
                _ => {}
            }
        }
        ended.sort();
        for (_, _, id) in ended {
            let live = self.live.remove(&id).unwrap();
            self.end_lease(&id, live);
        }
        for (id, Live { main, .. }) in &self.live {
            if main.place == Place::Scheduled && main.due <= self.now.ms() {
                due.push((main.due, main.serial, id.clone()));
            }
        }
        due.sort();
        for (_, _, id) in due {
            let live = self.live.remove(&id).unwrap();
            self.put(&id, live, None);
        }
    }

    /// Takes tasks in order, as the line stands now: each gets an attempt and a receipt. Expired ones die on
    /// the way.
    fn take(&mut self, max: u32) -> Vec<TaskId> {
        let mut taken = Vec::new();
        let last = self.sequence;
        while taken.len() < max as usize {
            let line = self.live.iter().filter_map(|(id, live)| match live.main.place {
                Place::Ready(turn) if turn.1 <= last => Some((turn, id.clone())),
                _ => None,
            });
            let Some((_, id)) = line.min() else { break };
            if self.expire(&id) {
                continue;
            }
            let mut live = self.live.remove(&id).unwrap();
            if let Place::Ready(turn) = live.main.place {
                live.main.turn = turn;
            }
            live.main.attempts += 1;
            live.main.receipt = self.next_receipt();
            self.happen(Happened::Started, &id, &live.main, "");
            // Not in line any more; the caller says where it goes.
            live.main.place = Place::Claimed(u64::MAX);
            self.live.insert(id.clone(), live);
            taken.push(id);
        }
        taken
    }

    fn claimed(&self, id: &TaskId) -> ClaimedTask {
        let main = &self.live[id].main;
        let Place::Claimed(ends) = main.place else { panic!("it was claimed") };
        ClaimedTask {
            id: id.clone(),
            body: main.body.clone(),
            receipt: main.receipt,
            attempt: main.attempts,
            max_attempts: main.max_attempts,
            version: main.version,
            due: main.due,
            priority: main.priority,
            remaining: Duration::from_micros(ends - self.now.boot),
            key: None,
            node: None,
        }
    }

    fn give_again(&self, stored: &Stored) -> ClaimReply {
        let is_ours = |(id, receipt): &&(TaskId, Receipt)| {
            let main = self.live.get(id).map(|live| &live.main);
            main.is_some_and(|main| main.receipt == *receipt && main.is_held(self.now.boot))
        };
        let tasks: Vec<_> = stored.claims.iter().filter(is_ours).map(|(id, _)| self.claimed(id)).collect();
        if tasks.is_empty() { self.nothing() } else { ClaimReply::Claimed(tasks) }
    }

    fn nothing(&self) -> ClaimReply {
        if self.paused {
            ClaimReply::Paused { rank: 0 }
        } else {
            ClaimReply::Empty { next_due: self.next_due(), rank: 0, slot: None }
        }
    }

    fn next_due(&self) -> Option<Duration> {
        let times = self.live.values().filter_map(|live| match live.main.place {
            Place::Ready(_) => Some(0),
            Place::Scheduled => Some((live.main.due * 1_000).saturating_sub(self.now.wall)),
            Place::Claimed(ends) => Some(ends.saturating_sub(self.now.boot)),
            Place::Parked => None,
        });
        times.min().map(Duration::from_micros)
    }

    pub(super) fn abandon(&mut self, verb: &Abandon) -> QueueReply {
        let Some(call) = verb.call else { return QueueReply::Abandon };
        let claims = match self.hear(call) {
            Heard::Superseded => return QueueReply::Abandon,
            Heard::Repeated(stored) => stored.claims,
            Heard::Abandoned | Heard::New => Vec::new(),
        };
        self.remember(call, None);
        for (id, receipt) in claims {
            let main = self.live.get(&id).map(|live| &live.main);
            if main.is_some_and(|main| main.receipt == receipt && main.is_held(self.now.boot)) {
                self.accept(&id, &Verdict::PUT_BACK);
            }
        }
        QueueReply::Abandon
    }

    pub(super) fn pop(&mut self, verb: Pop) -> QueueReply {
        if self.paused {
            return QueueReply::Pop(None);
        }
        self.promote();
        let mut records = Vec::new();
        for id in self.take(verb.max) {
            let mut live = self.live.remove(&id).unwrap();
            let mut record = self.record(&id, &live.main, TaskState::Claimed);
            record.remaining = Duration::ZERO;
            records.push(record);
            live.main.spend(Ended::Ack);
            self.counts.acked += 1;
            self.happen(Happened::Done, &id, &live.main, "");
            self.succeed(&id, live, None);
        }
        QueueReply::Pop(Some(records))
    }
}

fn stored_of(reply: &ClaimReply) -> Stored {
    let claims = match reply {
        ClaimReply::Claimed(tasks) => tasks.iter().map(|task| (task.id.clone(), task.receipt)).collect(),
        ClaimReply::Empty { .. }
        | ClaimReply::Paused { .. }
        | ClaimReply::SchedulesDue(_)
        | ClaimReply::FlowsDue(_) => Vec::new(),
    };
    Stored { claims, ..Stored::default() }
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}
