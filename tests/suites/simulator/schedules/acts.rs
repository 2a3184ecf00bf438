//! What users want: tasks, and now and then another schedule.

use std::sync::Arc;

use stanchion::engine::claim::ClaimParams;
use stanchion::internals::task_id;
use stanchion::protocol::{
    Missed, NewSchedule, Overlap, PauseSchedule, PutSchedules, ScheduleOwner, Settle, Settlement, Verdict,
};

use super::*;

/// How long a call without a wait is tried.
const TIMEOUT: Duration = Duration::from_secs(3);
const LEASE: Duration = Duration::from_secs(2);
/// Those that are put one by one, and those of an owner's list.
const IDS: [&str; 4] = ["a", "b", "listed", "listed too"];

impl World<'_> {
    pub(super) fn act(&mut self, client: usize) -> Played {
        if self.is_over() {
            return Ok(());
        }
        if self.scene.calm {
            return self.wait_for_tasks(client);
        }
        if self.scene.processes[client].turns == 0 || self.clients[client].ops.len() >= 2 {
            return Ok(());
        }
        self.scene.processes[client].turns -= 1;
        match self.scene.rng.u32(0..10) {
            0..6 => {
                let wait = self.scene.between(0, 4_000);
                self.claim(client, wait)?;
            }
            6 | 7 => self.put(client)?,
            8 => self.put_list(client)?,
            _ => self.pause_or_remove(client)?,
        }
        if self.scene.once_in(2) {
            let pause = self.scene.between(0, 500);
            self.scene.act_after(client, pause);
        }
        Ok(())
    }

    /// In the calm everybody claims, again and again.
    fn wait_for_tasks(&mut self, client: usize) -> Played {
        let claims = |op: &Op| matches!(op.kind, OpKind::Claim { .. });
        if self.calm_from.is_none_or(|from| self.scene.now < from)
            || self.clients[client].ops.iter().any(claims)
        {
            return Ok(());
        }
        self.claim(client, Duration::from_secs(60))
    }

    fn claim(&mut self, client: usize, wait: Duration) -> Played {
        let place = self.stores.enter(client);
        let order = ClaimParams {
            queues: vec![self.queue.clone()],
            max: self.scene.rng.u32(1..=3),
            lease: LEASE,
            wait,
            timeout: TIMEOUT,
            patient: self.scene.rng.bool(),
            settle: None,
            waiter: place.waiter(),
            consumer: "client".into(),
            clock_stands: false,
            slot: self.clients[client].slots.take(),
        };
        let last = order.slot;
        let listening = self.scene.rng.bool();
        let machine = Box::new(ClaimMachine::new(order, self.scene.now, listening, self.scene.jitter()));
        self.begin(client, OpKind::Claim { machine, place, last })
    }

    /// Most tasks are done at once, some are not: overlaps are noticed then.
    pub(super) fn settle(&mut self, client: usize, tasks: Vec<stanchion::protocol::ClaimedTask>) -> Played {
        if tasks.is_empty() || (!self.scene.calm && self.scene.once_in(4)) {
            return Ok(());
        }
        let ack = |task: stanchion::protocol::ClaimedTask| Settlement {
            id: task.id,
            receipt: task.receipt,
            verdict: Verdict::Ack,
        };
        let settle = Settle { items: tasks.into_iter().map(ack).collect() };
        self.call(client, QueueVerb::Settle(settle), false)
    }

    fn call(&mut self, client: usize, verb: QueueVerb, once: bool) -> Played {
        let request = self.queue_request(verb);
        let machine =
            CallMachine::new(request, self.scene.now, self.scene.now + TIMEOUT, self.scene.jitter());
        self.begin(client, OpKind::Call(Box::new(if once { machine.once() } else { machine })))
    }

    fn begin(&mut self, client: usize, kind: OpKind) -> Played {
        let id = self.scene.processes[client].next_id();
        self.clients[client].ops.push(Op { id, kind, awaited: Vec::new() });
        self.step(client, id)
    }

    fn put(&mut self, client: usize) -> Played {
        let id = IDS[self.scene.rng.usize(0..2)];
        let schedules = Arc::new([self.new_schedule(id)]);
        self.call(client, QueueVerb::PutSchedules(PutSchedules { owner: None, schedules }), true)
    }

    /// The list of a deploy, or of one before it.
    fn put_list(&mut self, client: usize) -> Played {
        let generation = if self.scene.once_in(3) {
            self.scene.rng.u64(0..=self.generation)
        } else {
            self.generation += 1;
            self.generation
        };
        let first = self.scene.rng.usize(2..=3);
        let schedules = IDS[first..].iter().map(|id| self.new_schedule(id)).collect();
        let owner = Some(ScheduleOwner { name: "app".into(), generation });
        self.call(client, QueueVerb::PutSchedules(PutSchedules { owner, schedules }), false)
    }

    fn new_schedule(&mut self, id: &str) -> NewSchedule {
        let period = [300, 700, 1_100][self.scene.rng.usize(0..3)];
        NewSchedule {
            key: None,
            id: task_id(id).unwrap(),
            timing: format!("{{\"when\":\"every {period}ms\",\"tz\":\"UTC\"}}").into(),
            missed: if self.scene.once_in(3) { Missed::Last } else { Missed::All(1_000) },
            overlap: if self.scene.once_in(4) { Overlap::Skip } else { Overlap::Queue },
            paused: self.scene.once_in(8),
            body: [].into(),
            priority: 0,
            max_attempts: 1_000,
            expires: None,
        }
    }

    fn pause_or_remove(&mut self, client: usize) -> Played {
        let id = task_id(IDS[self.scene.rng.usize(0..IDS.len())]).unwrap();
        if self.scene.once_in(6) {
            return self.call(client, QueueVerb::RemoveSchedule(id), true);
        }
        let paused = self.scene.rng.bool();
        self.call(client, QueueVerb::PauseSchedule(PauseSchedule { id, paused }), false)
    }
}
