//! What users want: tasks in, tasks out, and now and then something else.

use stanchion::engine::ask::{AskMachine, AskParams, Question};
use stanchion::engine::call::CallMachine;
use stanchion::engine::claim::{ClaimMachine, ClaimParams};
use stanchion::engine::events::WhatHappens;
use stanchion::engine::result::WhatBecame;
use stanchion::protocol::{
    Cancel, Configure, DeadOnes, DiedBy, Due, EVENTS_MAX, Enqueue, Get, NewTask, OnDuplicate, Pause, Pop,
    Remove, Reschedule, Settle, Settlement, Sweep, Verdict, Version,
};
use stanchion::wake::Place;

use super::*;

/// How long a call without a wait is tried.
const TIMEOUT: Duration = Duration::from_secs(3);
const LONG_LEASE_MS: u64 = 20_000;
const LONGEST_SHORT_LEASE_MS: u64 = 3_000;

impl World<'_> {
    pub(super) fn act(&mut self, client: usize) -> Played {
        if self.scene.calm {
            return self.act_calmly(client);
        }
        if self.scene.processes[client].turns == 0 {
            return Ok(());
        }
        if self.clients[client].ops.len() >= 2 {
            let pause = self.scene.between(10, 300);
            self.scene.act_after(client, pause);
            return Ok(());
        }
        self.scene.processes[client].turns -= 1;
        match self.scene.rng.u32(0..100) {
            0..45 => {
                let queue = self.any_queue();
                let count = self.scene.rng.usize(1..=3);
                let tasks: Vec<NewTask> = (0..count).map(|_| self.new_task(queue)).collect();
                self.enqueue(client, queue, tasks)?;
            }
            45..80 => self.claim_something(client)?,
            _ => self.manage(client)?,
        }
        // Some do the next thing without waiting for this one.
        if self.scene.once_in(2) {
            let pause = self.scene.between(0, 300);
            self.scene.act_after(client, pause);
        }
        Ok(())
    }

    pub(super) fn begin(&mut self, client: usize, kind: OpKind) -> Played {
        let id = self.scene.processes[client].next_id();
        self.clients[client].ops.push(Op { id, kind, awaited: Vec::new() });
        self.step(client, id)
    }

    pub(super) fn any_queue(&mut self) -> usize {
        self.scene.rng.usize(0..self.queues.len())
    }

    fn any_id(&mut self) -> TaskId {
        self.ids[self.scene.rng.usize(0..self.ids.len())].clone()
    }

    fn call(&mut self, queue: usize, verb: QueueVerb) -> CallMachine {
        let request = self.queue_request(queue, verb);
        CallMachine::new(request, self.scene.now, self.scene.now + TIMEOUT, self.scene.jitter())
    }

    pub(super) fn enqueue(&mut self, client: usize, queue: usize, tasks: Vec<NewTask>) -> Played {
        let call = self.clients[client].slots.take_next();
        let bodies = tasks.iter().map(|task| Body::read(&task.body)).collect();
        let machine = self
            .call(queue, QueueVerb::Enqueue(Enqueue { call, timeout: Duration::ZERO, tasks: tasks.into() }));
        self.begin(client, OpKind::Enqueue { machine, call, bodies })
    }

    fn new_task(&mut self, queue: usize) -> NewTask {
        let id = self.scene.rng.usize(0..self.ids.len());
        let on_duplicate = match self.scene.rng.u32(0..9) {
            0..3 => OnDuplicate::Keep,
            3..5 => OnDuplicate::Replace,
            5 | 6 => OnDuplicate::Debounce { max_wait: self.scene.between(100, 3_000) },
            7 => OnDuplicate::Skip,
            _ => OnDuplicate::Throttle { window: self.scene.between(100, 5_000) },
        };
        let due = match self.scene.rng.u32(0..5) {
            0 => Due::In(self.scene.between(0, 2_500)),
            1 => Due::At(self.time().wall / 1_000 + self.scene.rng.u64(0..2_000)),
            _ => Due::Now,
        };
        let is_debounced = matches!(on_duplicate, OnDuplicate::Debounce { .. });
        let body = if is_debounced && self.scene.rng.bool() {
            Body((queue * self.ids.len() + id) as u64)
        } else {
            self.next_body()
        };
        NewTask {
            key: None,
            node: None,
            id: self.ids[id].clone(),
            body: body.bytes(),
            due,
            priority: self.scene.rng.u8(0..3),
            max_attempts: self.scene.rng.u32(1..=4),
            expires: self.scene.once_in(8).then(|| self.scene.between(200, 6_000)),
            on_duplicate,
        }
    }

    pub(super) fn next_body(&mut self) -> Body {
        self.bodies += 1;
        Body(self.bodies)
    }

    fn claim_something(&mut self, client: usize) -> Played {
        let first = self.any_queue();
        let mut queues = vec![first];
        if self.queues.len() > 1 && self.scene.rng.bool() {
            queues.push(1 - first);
        }
        let wait = match self.scene.rng.u32(0..5) {
            0 | 1 => Duration::ZERO,
            2 => self.scene.between(20, 600),
            _ => self.scene.between(500, 8_000),
        };
        let lease = match self.long_leases {
            true => Duration::from_millis(LONG_LEASE_MS),
            false => self.scene.between(50, LONGEST_SHORT_LEASE_MS),
        };
        let max = self.scene.rng.u32(1..=3);
        let settles = if self.scene.rng.bool() { self.verdicts_on(client, first) } else { Vec::new() };
        let renews = self.scene.rng.bool();
        self.claim(client, &queues, max, wait, lease, renews, settles)
    }

    /// Claims of the queue whose workers are done with them now.
    fn verdicts_on(&mut self, client: usize, queue: usize) -> Vec<(Held, Verdict)> {
        let of_queue = |held: &mut Held| held.queue == queue && held.verdict.is_some();
        let done: Vec<Held> = self.clients[client].tasks.extract_if(.., of_queue).collect();
        let now = self.scene.now;
        let with_verdict = |mut held: Held| {
            held.state.end();
            self.ledger.stopped(now, queue, held.task.receipt);
            held.verdict.clone().map(|verdict| (held, verdict))
        };
        done.into_iter().filter_map(with_verdict).collect()
    }

    #[allow(clippy::too_many_arguments, reason = "they are what a claim consists of")]
    pub(super) fn claim(
        &mut self,
        client: usize,
        queues: &[usize],
        max: u32,
        wait: Duration,
        lease: Duration,
        renews: bool,
        settles: Vec<(Held, Verdict)>,
    ) -> Played {
        let place = self.stores.enter(client);
        let items: Vec<_> = settles.iter().map(|(held, verdict)| settlement(held, verdict)).collect();
        let order = ClaimParams {
            queues: queues.iter().map(|queue| self.queues[*queue].clone()).collect(),
            max,
            lease,
            wait,
            timeout: TIMEOUT,
            patient: self.scene.rng.bool(),
            settle: (!items.is_empty()).then(|| Settle { items: items.into() }),
            waiter: place.waiter(),
            consumer: format!("{client} host ").into(),
            clock_stands: false,
            slot: self.clients[client].slots.take(),
        };
        let last = order.slot;
        let listening = self.scene.rng.bool();
        let machine = Box::new(ClaimMachine::new(order, self.scene.now, listening, self.scene.jitter()));
        self.begin(client, OpKind::Claim { machine, place, lease, renews, settles, last })
    }

    /// The verdict of one worker as a call of its own.
    pub(super) fn settle(&mut self, client: usize, mut held: Held, verdict: Verdict) -> Played {
        held.state.end();
        self.ledger.stopped(self.scene.now, held.queue, held.task.receipt);
        let items = [settlement(&held, &verdict)].into();
        let machine = self.call(held.queue, QueueVerb::Settle(Settle { items }));
        self.begin(client, OpKind::Settle { machine, held, verdict })
    }

    fn a_sweep(&mut self) -> Sweep {
        let until =
            DiedBy::Ago(if self.scene.rng.bool() { Duration::ZERO } else { self.scene.between(0, 500) });
        Sweep { until, ..Sweep::new(DeadOnes::Oldest, self.scene.rng.u32(1..=2)) }
    }

    fn manage(&mut self, client: usize) -> Played {
        let queue = self.any_queue();
        if self.scene.once_in(5) {
            return self.ask_for_a_result(client, queue);
        }
        if self.scene.once_in(6) {
            return self.ask_for_events(client, queue);
        }
        let (verb, once) = match self.scene.rng.u32(0..18) {
            0 | 1 => (QueueVerb::Kick(Sweep::new(DeadOnes::Ids([self.any_id()].into()), 9)), true),
            2 => (QueueVerb::RemoveDead(self.a_sweep()), true),
            3 => (QueueVerb::Kick(self.a_sweep()), true),
            4 | 5 => (QueueVerb::Remove(Remove { id: self.any_id(), version: self.a_version() }), true),
            6..8 => {
                let due = Due::In(self.scene.between(0, 1_000));
                (QueueVerb::Reschedule(Reschedule { id: self.any_id(), due }), false)
            }
            8 => (QueueVerb::Pause(Pause { paused: true }), false),
            9 | 10 => (QueueVerb::Pause(Pause { paused: false }), false),
            11 | 12 => (QueueVerb::Pop(Pop { max: self.scene.rng.u32(1..=2) }), true),
            16 | 17 => (QueueVerb::Cancel(Cancel { id: self.any_id() }), true),
            13 => (QueueVerb::Get(Get { id: self.any_id() }), false),
            14 => {
                let max_len = self.scene.rng.bool().then(|| self.scene.rng.u64(1..4));
                (QueueVerb::Configure(Configure { max_len: Some(max_len), ..Configure::default() }), false)
            }
            _ if self.scene.once_in(4) => (QueueVerb::Purge, true),
            15 => {
                let events = Some(if self.scene.rng.bool() { EVENTS_MAX } else { 0 });
                (QueueVerb::Configure(Configure { events, ..Configure::default() }), true)
            }
            _ => (QueueVerb::Stats, false),
        };
        let machine = self.call(queue, verb);
        let machine = if once { machine.once() } else { machine };
        self.begin(client, OpKind::Other { machine })
    }

    fn ask_for_a_result(&mut self, client: usize, queue: usize) -> Played {
        let wait = if self.scene.once_in(3) { Duration::ZERO } else { self.scene.between(50, 9_000) };
        let version = self.a_version().unwrap_or(Version::NONE);
        let id = self.any_id();
        self.await_result(client, queue, id, version, wait)
    }

    pub(super) fn await_result(
        &mut self,
        client: usize,
        queue: usize,
        id: TaskId,
        version: Version,
        wait: Duration,
    ) -> Played {
        let place = self.stores.enter(client);
        let machine = self.question(WhatBecame { id: id.clone(), version }, queue, wait, &place);
        self.begin(client, OpKind::Result { machine, place, id })
    }

    fn ask_for_events(&mut self, client: usize, queue: usize) -> Played {
        let wait = if self.scene.once_in(3) { Duration::ZERO } else { self.scene.between(50, 9_000) };
        let last = self.models[queue].last_event();
        let after = match self.scene.rng.u32(0..4) {
            0 => None,
            1 => Some(0),
            2 => Some(last),
            _ => Some(last.saturating_sub(self.scene.rng.u64(0..20))),
        };
        self.await_events(client, queue, after, wait)
    }

    pub(super) fn await_events(
        &mut self,
        client: usize,
        queue: usize,
        after: Option<u64>,
        wait: Duration,
    ) -> Played {
        let place = self.stores.enter(client);
        let machine = self.question(WhatHappens { after }, queue, wait, &place);
        self.begin(client, OpKind::Events { machine, place, queue })
    }

    fn question<Q: Question>(
        &mut self,
        question: Q,
        queue: usize,
        wait: Duration,
        place: &Place,
    ) -> AskMachine<Q> {
        let queue = self.queues[queue].clone();
        let params = AskParams { queue, wait, timeout: TIMEOUT, waiter: place.waiter() };
        let listening = self.scene.rng.bool();
        AskMachine::new(question, params, self.scene.now, listening, self.scene.jitter())
    }

    /// A version to remove: mostly any, sometimes a wrong one.
    fn a_version(&mut self) -> Option<Version> {
        self.scene.once_in(4).then(|| Version::new(self.time().wall - self.scene.rng.u64(0..1_000_000)))
    }
}

pub(super) fn settlement(held: &Held, verdict: &Verdict) -> Settlement {
    Settlement { id: held.task.id.clone(), receipt: held.task.receipt, verdict: verdict.clone() }
}
