//! After the storm: everything is drained, whoever waits gets what comes, and nothing is left behind.

use stanchion::Error;
use stanchion::engine::events::Happenings;
use stanchion::internals::task_id;
use stanchion::protocol::{
    Configure, Due, EVENTS_MAX, Get, NewTask, OnDuplicate, Pause, QueueStats, ResultReply, Version,
};

use super::store::every_dead;
use super::*;
use crate::scene::Weather;

/// Until then nothing of the storm is on its way any more, and waiters that died are not counted.
const AFTERMATH: Duration = Duration::from_secs(8);
/// How long a task may take to a waiting worker: a hint, a claim, its answer; and the same for those who come
/// first in line and are gone.
const BOUND: Duration = Duration::from_millis(250);
/// If no hint gets through: the longest pause of four waiters, and a claim.
const BOUND_WITHOUT_HINTS: Duration = Duration::from_millis(4_100);
/// The same of who waits for a result: its longest pause, and a question.
const RESULT_BOUND_WITHOUT_HINTS: Duration = Duration::from_millis(5_250);
/// Leases, delays and retries of the storm are over.
const DRAINED_WITHIN: Duration = Duration::from_secs(150);

/// The calm part of a schedule.
#[derive(Default)]
pub struct Calm {
    began: Option<Moment>,
    bound: Duration,
    /// Tasks that wait for a worker, and since when.
    waiting: HashMap<Body, Moment>,
    /// Tasks that are on their way, each to this queue.
    produced: HashMap<Body, usize>,
    /// Tasks for whose results somebody waits, and since when they are done.
    results: HashMap<TaskId, Option<Moment>>,
    result_bound: Duration,
    /// Who watches the first queue: after which event, and since when there is a later one.
    watching: Option<(usize, u64)>,
    unseen: Option<Moment>,
    ends: bool,
}

impl Calm {
    pub fn performed(&mut self, now: Moment, verb: &QueueVerb) {
        if let (Some(_), QueueVerb::Enqueue(enqueue)) = (self.began, verb) {
            self.waiting.extend(enqueue.tasks.iter().map(|task| (Body::read(&task.body), now)));
        }
        if let QueueVerb::Settle(settle) | QueueVerb::SettleAndClaim(settle, _) = verb {
            for item in &*settle.items {
                self.results.entry(item.id.clone()).and_modify(|done| *done = Some(now));
            }
        }
    }

    /// Somebody was told what became of a task.
    pub fn heard(&mut self, id: &TaskId, result: Result<ResultReply, Error>) -> Played {
        match (self.results.remove(id), result) {
            (None, _) | (Some(_), Ok(ResultReply::Done { .. })) => Ok(()),
            (Some(_), other) => Err(format!("the result of {id:?} was waited for, and this came: {other:?}")),
        }
    }

    pub fn delivered(&mut self, body: Body) {
        self.waiting.remove(&body);
    }
}

fn calm_id(body: Body) -> TaskId {
    task_id(&format!("calm{}", body.0)).unwrap()
}

impl World<'_> {
    /// Everybody works, somebody produces, and nobody disturbs them until nothing is left.
    pub(super) fn calm_down(&mut self) -> Played {
        self.scene.calm = true;
        self.scene.weather = Weather::CALM;
        (self.calm.bound, self.calm.result_bound) = (BOUND, BOUND);
        if self.scene.once_in(4) {
            self.scene.weather.hints_lost = 100;
            self.calm.bound = BOUND_WITHOUT_HINTS;
            self.calm.result_bound = RESULT_BOUND_WITHOUT_HINTS;
        }
        for queue in 0..self.queues.len() {
            self.ask(queue, QueueVerb::Pause(Pause { paused: false }))?;
            let unlimited =
                Configure { max_len: Some(None), events: Some(EVENTS_MAX), ..Configure::default() };
            self.ask(queue, QueueVerb::Configure(unlimited))?;
        }
        self.calm.began = Some(self.scene.now);
        for client in 0..self.clients.len() {
            self.scene.processes[client].turns = 1;
            for pause in [self.scene.between(0, 20), self.scene.between(200, 1_500)] {
                self.scene.act_after(client, AFTERMATH + pause);
            }
        }
        self.drain()?;
        if !self.calm.ends {
            return Err("liveness: tasks are left and nobody waits for them".into());
        }
        Ok(())
    }

    pub(super) fn keep_events(&mut self, queue: usize, most: u64) -> Played {
        self.ask(queue, QueueVerb::Configure(Configure { events: Some(most), ..Configure::default() }))
            .map(drop)
    }

    /// Somebody was told of events. In the calm part the watcher of the first queue goes on.
    pub(super) fn watched(
        &mut self,
        client: usize,
        queue: usize,
        result: Result<Happenings, Error>,
    ) -> Played {
        if self.calm.watching.is_none_or(|(watcher, _)| (watcher, 0) != (client, queue)) || self.calm.ends {
            return Ok(());
        }
        let happenings = result.map_err(|error| format!("who watches was told {error}"))?;
        if happenings.missed {
            return Err(format!("who watches has missed events before {:?}", happenings.events.first()));
        }
        self.watch(client, happenings.cursor)
    }

    fn watch(&mut self, client: usize, after: u64) -> Played {
        self.calm.watching = Some((client, after));
        self.calm.unseen = None;
        self.note_unseen();
        self.await_events(client, 0, Some(after), DRAINED_WITHIN * 2)
    }

    pub(super) fn note_unseen(&mut self) {
        if let Some((_, seen)) = self.calm.watching
            && self.models[0].last_event() > seen
        {
            self.calm.unseen.get_or_insert(self.scene.now);
        }
    }

    /// A worker that waits for nothing claims; then it produces.
    pub(super) fn act_calmly(&mut self, client: usize) -> Played {
        if self.calm.ends || self.scene.now < self.calm.began.unwrap_or(self.scene.now) + AFTERMATH {
            return Ok(());
        }
        let claims = |op: &Op| matches!(op.kind, OpKind::Claim { .. });
        if !self.clients[client].ops.iter().any(claims) {
            let queues: Vec<usize> = (0..self.queues.len()).collect();
            let max = self.scene.rng.u32(1..=3);
            let (wait, lease) = (DRAINED_WITHIN * 2, Duration::from_secs(20));
            if self.calm.watching.is_none() {
                self.watch(client, self.models[0].last_event())?;
            }
            return self.claim(client, &queues, max, wait, lease, false, Vec::new());
        }
        if self.scene.processes[client].turns == 0 {
            return Ok(());
        }
        self.scene.processes[client].turns -= 1;
        let queue = self.any_queue();
        let body = self.next_body();
        let task = NewTask {
            key: None,
            node: None,
            id: calm_id(body),
            body: body.bytes(),
            due: Due::Now,
            priority: 0,
            max_attempts: 1,
            expires: None,
            on_duplicate: OnDuplicate::Keep,
        };
        self.calm.produced.insert(body, queue);
        self.enqueue(client, queue, vec![task])
    }

    /// Who has produced a task waits for what comes of it.
    pub(super) fn produced(&mut self, client: usize, bodies: &[Body]) -> Played {
        for body in bodies {
            if let Some(queue) = self.calm.produced.remove(body) {
                let id = calm_id(*body);
                self.calm.results.insert(id.clone(), None);
                self.await_result(client, queue, id, Version::NONE, DRAINED_WITHIN)?;
            }
        }
        Ok(())
    }

    /// Liveness: after every step.
    pub(super) fn check_calm(&mut self) -> Played {
        let (Some(began), false) = (self.calm.began, self.calm.ends) else { return Ok(()) };
        let (now, bound) = (self.scene.now, self.calm.bound);
        if let Some(body) = self.calm.waiting.iter().find(|(_, since)| now > **since + bound) {
            return Err(format!("liveness: nobody got {body:?} within {bound:?}"));
        }
        let unheard = |(_, done): &(&TaskId, &Option<Moment>)| {
            done.is_some_and(|done| now > done + self.calm.result_bound)
        };
        if let Some((id, _)) = self.calm.results.iter().find(unheard) {
            let bound = self.calm.result_bound;
            return Err(format!(
                "liveness: who waits for the result of {id:?} has not heard within {bound:?}"
            ));
        }
        if self.calm.unseen.is_some_and(|since| now > since + self.calm.result_bound) {
            let bound = self.calm.result_bound;
            return Err(format!("liveness: who watches has not heard of an event within {bound:?}"));
        }
        if now > began + DRAINED_WITHIN {
            return Err(format!("liveness: tasks are left after {DRAINED_WITHIN:?}"));
        }
        let is_over = self.scene.processes.iter().all(|process| process.turns == 0)
            && self.models.iter().all(Model::is_empty)
            && self.calm.waiting.is_empty()
            && self
                .clients
                .iter()
                .flat_map(|client| &client.ops)
                .all(|op| matches!(op.kind, OpKind::Claim { .. } | OpKind::Events { .. }))
            && self.calm.unseen.is_none();
        if is_over {
            self.calm.ends = true;
            for client in 0..self.clients.len() {
                while !self.clients[client].ops.is_empty() {
                    self.cancel_op(client, 0);
                }
            }
        }
        Ok(())
    }

    /// The store and the model agree on what there is.
    pub(super) fn compare_states(&mut self) -> Played {
        for queue in 0..self.queues.len() {
            self.stats(queue)?;
            self.ask(queue, QueueVerb::Consumers)?;
            for id in self.ids.clone() {
                self.ask(queue, QueueVerb::Get(Get { id }))?;
            }
        }
        Ok(())
    }

    fn stats(&mut self, queue: usize) -> Played<QueueStats> {
        match self.ask(queue, QueueVerb::Stats)? {
            QueueReply::Stats(stats) => Ok(*stats),
            other => Err(format!("{other:?}")),
        }
    }

    /// Q1, Q9, Q10: when all is drained.
    pub(super) fn settle_accounts(&mut self) -> Played {
        if let Some(body) = self.refused.iter().find(|body| self.ledger.knows(**body)) {
            return Err(format!("Q1: {body:?} was said not to be carried out"));
        }
        for queue in 0..self.queues.len() {
            let stats = self.stats(queue)?;
            if stats.scheduled + stats.ready + stats.claimed + stats.successors > 0 {
                return Err(format!("Q10: something is left: {stats:?}"));
            }
            let QueueReply::List(dead) = self.ask(queue, every_dead())? else { return Err("no list".into()) };
            if dead.tasks.len() as u64 != stats.dead {
                return Err(format!("Q1: {} of {} dead tasks", dead.tasks.len(), stats.dead));
            }
            self.ledger.settle_accounts(queue, &dead.tasks)?;
            if stats.waiters > 0 {
                return Err(format!("Q10: somebody still waits: {stats:?}"));
            }
        }
        Ok(())
    }
}
