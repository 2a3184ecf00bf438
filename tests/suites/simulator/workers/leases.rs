//! What the keeper does for the worker's claims.

use stanchion::LossReason;
use stanchion::engine::claim::ClaimedOne;
use stanchion::engine::lease::{LeaseState, LeaseTerms, Need, Status, Timeout};
use stanchion::engine::leased::{Leased, TaskLease};
use stanchion::protocol::{Failure, FailureKind, Verdict};

use super::worker::{RETRY, SimJob};
use super::*;
use crate::scene::Route;

/// How many leases long a claim is renewed.
const MAX_RUN: u32 = 3;

/// A lease in the keeper's care.
pub struct Held {
    id: u64,
    job: SimJob,
    /// The renewal on its way: its number, when it was sent, when it is given up.
    renewal: Option<(u32, Moment, Moment)>,
    renewals: u32,
}

impl World<'_> {
    pub(super) fn keep(&mut self, client: usize, one: ClaimedOne) -> SimJob {
        let ClaimedOne { queue, task, deadline } = one;
        let (now, lease) = (self.scene.now, self.workers[client].lease);
        let leased = TaskLease { queue, id: task.id.clone(), receipt: task.receipt };
        let timeout = self.scene.once_in(4).then(|| Timeout {
            at: now + self.scene.between(100, 4_000),
            request: leased.clone().settled(Verdict::Nack { delay: RETRY, reason: "timeout".into() }),
        });
        let hold_until = Some(now + lease * MAX_RUN);
        let terms = LeaseTerms { leased: Leased::Task(leased), ttl: lease, deadline, hold_until, timeout };
        let job = SimJob::new(task, LeaseState::new(terms, now), self);
        self.scene.wake_at(client, job.0.state.borrow().due());
        let id = self.scene.processes[client].next_id();
        let held = Held { id, job: job.clone(), renewal: None, renewals: 0 };
        self.workers[client].leases.push(held);
        job
    }

    pub(super) fn care_for_leases(&mut self, client: usize) {
        let now = self.scene.now;
        let ids: Vec<u64> = self.workers[client].leases.iter().map(|held| held.id).collect();
        for id in ids {
            let Some(held) = self.workers[client].leases.iter_mut().find(|held| held.id == id) else {
                continue;
            };
            let mut state = held.job.0.state.borrow_mut();
            let need = match held.renewal {
                Some((_, _, until)) if now < until && now < state.deadline() => continue,
                Some((_, _, until)) if now < until => state.need(now),
                Some((_, sent, _)) => {
                    held.renewal = None;
                    state.extended(now, sent, &Err(Failure::new(FailureKind::Lost, "no answer")))
                }
                None => state.need(now),
            };
            drop(state);
            self.follow(client, id, need);
        }
    }

    fn follow(&mut self, client: usize, id: u64, need: Need) {
        let now = self.scene.now;
        let leases = &mut self.workers[client].leases;
        let Some(held) = leases.iter_mut().find(|held| held.id == id) else { return };
        match need {
            Need::Nothing(until) => self.scene.wake_at(client, until),
            Need::Renew(request) => {
                let until = now + Duration::from_secs(1);
                held.renewals += 1;
                held.renewal = Some((held.renewals, now, until));
                let (number, deadline) = (held.renewals, held.job.0.state.borrow().deadline());
                self.scene.wake_at(client, until.min(deadline));
                self.scene.send(client, Route::Renewal(id), number, request);
            }
            Need::Announce(request) => {
                let timed_out = held.job.status() == Status::Lost(LossReason::TimedOut);
                held.job.0.timed_out.set(timed_out);
                self.tally.timed_out += u64::from(timed_out);
                leases.retain(|held| held.id != id);
                if let Some(request) = request {
                    self.scene.run_errand(client, request);
                }
            }
            Need::Forget => leases.retain(|held| held.id != id),
        }
    }

    pub(super) fn renewed(&mut self, client: usize, id: u64, number: u32, result: &Result<Reply, Failure>) {
        let now = self.scene.now;
        let Some(held) = self.workers[client].leases.iter_mut().find(|held| held.id == id) else { return };
        let Some((_, sent, _)) = held.renewal.filter(|(awaited, ..)| *awaited == number) else { return };
        held.renewal = None;
        let need = held.job.0.state.borrow_mut().extended(now, sent, result);
        self.follow(client, id, need);
    }
}
