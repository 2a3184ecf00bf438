//! settle, extend_claim

use std::time::Duration;

use stanchion::name::TaskId;
use stanchion::protocol::{
    ExtendClaim, ExtendClaimReply, Happened, ResultOf, ResultReply, Settle, Settled, Settlement, Verdict,
    Version,
};

use super::claim::micros;
use super::{Cause, Ended, Live, Model, Place};

impl Model {
    pub(super) fn settle(&mut self, verb: &Settle) -> Vec<Settled> {
        verb.items.iter().map(|item| self.settle_one(item)).collect()
    }

    fn settle_one(&mut self, item: &Settlement) -> Settled {
        let main = self.live.get(&item.id).map(|live| &live.main);
        match main {
            Some(main) if main.receipt == item.receipt => return self.accept(&item.id, &item.verdict),
            Some(main) if main.settled.0 == item.receipt => {
                let same = main.settled.1 == ended_by(&item.verdict);
                return if same { Settled::Done { late: false, dead: false } } else { Settled::Stale };
            }
            _ => {}
        }
        let lives = main.is_some();
        let grave = self.dead.iter().position(|dead| dead.id == item.id && dead.receipt == item.receipt);
        match grave {
            Some(index)
                if self.dead[index].cause == Cause::LeaseEnded && ended_by(&item.verdict) == Ended::Ack =>
            {
                let dead = self.dead.remove(index);
                self.keep_result(&item.id, dead.task.version, &item.verdict);
                self.counts.acked += 1;
                self.happen(Happened::Done, &item.id, &dead.task, "");
                Settled::Done { late: true, dead: false }
            }
            Some(index) if self.dead[index].verdict == ended_by(&item.verdict) => {
                Settled::Done { late: false, dead: true }
            }
            Some(_) => Settled::Stale,
            None if lives => Settled::Stale,
            None => Settled::Gone,
        }
    }

    /// The receipt is that of the delivery that is not settled yet.
    pub(super) fn accept(&mut self, id: &TaskId, verdict: &Verdict) -> Settled {
        let mut live = self.live.remove(id).unwrap();
        let late = !live.main.is_held(self.now.boot);
        let receipt = live.main.spend(ended_by(verdict));
        let mut dead = false;
        match verdict {
            Verdict::Nack { .. }
            | Verdict::Bury { .. }
            | Verdict::PutBack { .. }
            | Verdict::Throttle { .. }
                if live.main.cancelled =>
            {
                self.end_cancelled(id, live);
            }
            Verdict::Ack | Verdict::AckWith { .. } => {
                self.counts.acked += 1;
                self.happen(Happened::Done, id, &live.main, "");
                if live.main.version.get() > receipt.get() {
                    // It was asked for again since, and that is yet to be done.
                    (live.main.attempts, live.main.reason) = (0, String::new());
                    live.main.failures.clear();
                    self.live.insert(id.clone(), live);
                } else {
                    self.keep_result(id, live.main.version, verdict);
                    self.succeed(id, live, None);
                }
            }
            Verdict::Nack { delay, reason } => {
                live.main.failed(self.now.ms(), reason);
                if live.main.attempts >= live.main.max_attempts {
                    dead = true;
                    self.die(id, live, reason, receipt, Cause::Failed);
                } else {
                    self.counts.retried += 1;
                    self.happen(Happened::Failed, id, &live.main, reason);
                    live.main.reason = reason.to_string();
                    live.main.first = self.now.ms();
                    live.main.due = self.after(*delay);
                    live.main.backoff = live.main.due;
                    self.retry(id, live, None);
                }
            }
            Verdict::Bury { reason } => {
                dead = true;
                live.main.failed(self.now.ms(), reason);
                self.die(id, live, reason, receipt, Cause::Failed);
            }
            Verdict::Throttle { .. } => unreachable!("keys and limits have a fleet of their own"),
            Verdict::PutBack { delay } => {
                self.happen(Happened::PutBack, id, &live.main, "");
                live.main.attempts -= 1;
                let mut place = Some(match live.main.place {
                    Place::Claimed(_) => Place::Ready(live.main.turn),
                    // Its lease has ended, and it waits already.
                    place => place,
                });
                if !delay.is_zero() {
                    live.main.due = self.after(*delay);
                    live.main.backoff = live.main.due;
                    place = None;
                }
                self.retry(id, live, place);
            }
        }
        Settled::Done { late, dead }
    }

    pub(super) fn extend_claim(&mut self, verb: &ExtendClaim) -> ExtendClaimReply {
        let boot = self.now.boot;
        let Some(live) = self.live.get_mut(&verb.id) else { return ExtendClaimReply::Gone };
        if live.main.receipt != verb.receipt {
            return ExtendClaimReply::Stale;
        }
        match &mut live.main.place {
            Place::Claimed(ends) if *ends > boot && live.main.cancelled => ExtendClaimReply::Cancelled,
            Place::Claimed(ends) if *ends > boot => {
                *ends = (*ends).max(boot + micros(verb.lease));
                ExtendClaimReply::Extended(Duration::from_micros(*ends - boot))
            }
            _ => ExtendClaimReply::Expired,
        }
    }
}

impl Model {
    fn keep_result(&mut self, id: &TaskId, version: Version, verdict: &Verdict) {
        if let Verdict::AckWith { result, keep } = verdict {
            self.results.insert(id.clone(), (version, self.after(*keep), result.clone()));
        }
    }

    /// What became of a task.
    pub(super) fn result(&self, verb: &ResultOf) -> ResultReply {
        if let Some((version, ends, result)) = self.results.get(&verb.id)
            && *ends > self.now.ms()
            && *version >= verb.version
        {
            return ResultReply::Done { version: *version, result: result.clone() };
        }
        let newest = |live: &Live| live.successor.as_ref().unwrap_or(&live.main).version;
        if self.live.get(&verb.id).is_some_and(|live| newest(live) >= verb.version) {
            return ResultReply::Pending;
        }
        let dead = self.dead.iter().filter(|dead| dead.id == verb.id).max_by_key(|dead| dead.receipt);
        match dead {
            Some(dead) if dead.task.version >= verb.version => {
                ResultReply::Dead { reason: dead.task.reason.as_str().into() }
            }
            _ => ResultReply::Gone,
        }
    }
}

fn ended_by(verdict: &Verdict) -> Ended {
    match verdict {
        Verdict::Ack | Verdict::AckWith { .. } => Ended::Ack,
        Verdict::Nack { .. } => Ended::Nack,
        Verdict::Bury { .. } => Ended::Bury,
        Verdict::PutBack { .. } => Ended::PutBack,
        Verdict::Throttle { .. } => unreachable!("keys and limits have a fleet of their own"),
    }
}
