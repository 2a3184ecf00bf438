//! Fleets of workers: the worker's machine claims, for handlers that are quick or slow, that fail, or hang. Workers are
//! stopped, as at a deploy, frozen, and killed.

mod calls;
mod checks;
mod leases;
mod mutant;
mod worker;

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::AddAssign;
use std::rc::Rc;
use std::time::Duration;

use stanchion::internals::{CallSlots, Moment, queue_name, task_id};
use stanchion::name::QueueName;
use stanchion::protocol::{
    CallId, ClientId, Due, Enqueue, NewTask, OnDuplicate, QueueReply, QueueRequest, QueueStats, QueueVerb,
    Reply, Request,
};

use crate::scene::{Event, Played, Process, Scene, Stores, Weather};
use worker::SimWorker;

pub use mutant::Mutant;

/// Workers of a fleet; a schedule uses some of them.
const MOST_WORKERS: usize = 3;
/// Ids that tasks of the storm have.
const IDS: [&str; 4] = ["a", "b", "c", "d"];
/// More than anything here fails.
const MAX_ATTEMPTS: u32 = 1_000;
/// How long the storm lasts; mishaps come in its first 5 s.
const STORM: Duration = Duration::from_secs(8);
/// Then nothing of it is on its way any more, and handlers that hung have ended.
const AFTERMATH: Duration = Duration::from_secs(30);
/// When the calm must be over.
const DRAINED_WITHIN: Duration = Duration::from_secs(120);

/// What happened in schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Handlers that began; that lost their claims; that were stuck.
    pub begun: u64,
    pub lost: u64,
    pub stuck: u64,
    /// Runs that took longer than their timeouts; verdicts that came too late to be sent.
    pub timed_out: u64,
    pub too_late: u64,
    /// Workers that were stopped; handlers that were told to end, that were left behind; tasks that went back.
    pub stops: u64,
    pub signalled: u64,
    pub left_behind: u64,
    pub put_back: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.begun += other.begun;
        self.lost += other.lost;
        self.stuck += other.stuck;
        self.timed_out += other.timed_out;
        self.too_late += other.too_late;
        self.stops += other.stops;
        self.signalled += other.signalled;
        self.left_behind += other.left_behind;
        self.put_back += other.put_back;
    }
}

/// Workers that share a queue.
pub struct Fleet(Stores);

impl crate::Fleet for Fleet {
    type Mutant = Mutant;
    type Tally = Tally;
    const SHARE: u64 = 40;

    fn new() -> Self {
        Self(Stores::new(MOST_WORKERS))
    }

    fn play(&mut self, seed: u64, mutant: Option<Mutant>, loud: bool) -> Played<Tally> {
        let mut world = World::new(&self.0, seed, mutant, loud);
        world.run()?;
        Ok(world.tally)
    }
}

/// How far the schedule has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Storm,
    Calm,
    /// All is done: the workers are stopped for good.
    Over,
}

struct World<'f> {
    stores: &'f Stores,
    scene: Scene,
    queue: QueueName,
    workers: Vec<SimWorker>,
    /// What the leases see.
    now: Rc<Cell<Moment>>,
    mutant: Option<Mutant>,
    part: Part,
    calm_from: Moment,
    /// Tasks of the calm that nobody has begun, and since when.
    waiting: HashMap<String, Moment>,
    /// What is put in, and when, in order.
    plan: Vec<(Moment, String)>,
    enqueues: u32,
    next_look: Moment,
    tally: Tally,
}

impl<'f> World<'f> {
    fn new(stores: &'f Stores, seed: u64, mutant: Option<Mutant>, loud: bool) -> Self {
        let mut scene = Scene::new(&stores.clock, seed, loud);
        let count = scene.rng.usize(1..=MOST_WORKERS);
        for _ in 0..count {
            scene.processes.push(Process::new(scene.rng.bool(), 0));
        }
        let now = Rc::new(Cell::new(scene.now));
        let mut world = Self {
            stores,
            queue: queue_name(&format!("w{seed}")).unwrap(),
            workers: Vec::new(),
            now,
            mutant,
            part: Part::Storm,
            calm_from: scene.now + STORM,
            waiting: HashMap::new(),
            plan: Vec::new(),
            enqueues: 0,
            next_look: scene.now,
            tally: Tally::default(),
            scene,
        };
        for client in 0..count {
            let worker = world.new_worker(client);
            world.workers.push(worker);
        }
        world
    }

    fn run(&mut self) -> Played {
        self.make_plan();
        for client in 0..self.workers.len() {
            self.scene.act_after(client, Duration::ZERO);
        }
        for _ in 0..self.scene.rng.u32(0..6) {
            self.scene.plan_mishap();
        }
        while let Some(event) = self.scene.next()? {
            self.now.set(self.scene.now);
            self.put_in()?;
            self.handle(event)?;
            self.check_handlers()?;
            self.check_stops()?;
            self.check_calm()?;
        }
        if self.part != Part::Over {
            return Err("liveness: nothing happens any more".into());
        }
        Ok(())
    }

    /// Tasks of the storm; and of the calm: one whose handler hangs at its first run, and others beside it.
    fn make_plan(&mut self) {
        let began = self.scene.now;
        for _ in 0..self.scene.rng.u32(3..12) {
            let id = IDS[self.scene.rng.usize(0..IDS.len())];
            let at = began + self.scene.between(0, 6_000);
            self.plan.push((at, id.to_owned()));
        }
        let calm = self.calm_from + AFTERMATH;
        self.plan.push((calm, "poison".into()));
        for (number, after) in [1, 4, 9].into_iter().enumerate() {
            self.plan.push((calm + Duration::from_secs(after), format!("calm{number}")));
        }
        self.plan.sort();
        for index in 0..self.plan.len() {
            let at = self.plan[index].0.since(began);
            self.scene.act_after(0, at);
        }
    }

    /// Puts in what is due. The producer is nobody's worker, and nothing happens to it.
    fn put_in(&mut self) -> Played {
        while self.plan.first().is_some_and(|(at, _)| *at <= self.scene.now) {
            let (_, id) = self.plan.remove(0);
            self.enqueues += 1;
            let call = CallId { client: ClientId(9_999), slot: 1, number: self.enqueues.into() };
            let task = NewTask {
                key: None,
                node: None,
                id: task_id(&id).unwrap(),
                body: (*b"body").into(),
                due: Due::Now,
                priority: 0,
                max_attempts: MAX_ATTEMPTS,
                expires: None,
                on_duplicate: OnDuplicate::Keep,
            };
            self.ask(QueueVerb::Enqueue(Enqueue { call, timeout: Duration::ZERO, tasks: [task].into() }))?;
            self.spread_hints();
            if id.starts_with("calm") {
                self.waiting.insert(id, self.scene.now);
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Played {
        match event {
            Event::Arrive { client, life, route, number, request } => {
                let reply = self.stores.perform(client, &request)?;
                self.spread_hints();
                self.scene.answer(client, life, route, number, reply);
                Ok(())
            }
            Event::Deliver { client, route, number, result, .. } => {
                self.deliver(client, route, number, result)
            }
            Event::Hint { client, op, .. } => self.hinted(client, op),
            Event::Wake { client, .. } => self.wake(client),
            Event::Act { client, .. } => self.act(client),
            Event::Cancel { client } => self.stop(client),
            Event::Freeze { .. } | Event::Suspend { .. } | Event::Store(_) => Ok(()),
            Event::Kill { client } => {
                if self.part == Part::Storm {
                    self.scene.processes[client].die();
                    self.workers[client] = self.new_worker(client);
                    let pause = self.scene.between(10, 1_000);
                    self.scene.act_after(client, pause);
                    // The acts of the plan died with it.
                    self.scene.act_after(client, STORM);
                    self.scene.act_after(client, STORM + AFTERMATH);
                }
                Ok(())
            }
        }
    }

    /// A process looks after its worker, or starts one.
    fn act(&mut self, client: usize) -> Played {
        if self.workers[client].is_out && self.part != Part::Over {
            self.workers[client] = self.new_worker(client);
        }
        self.wake(client)
    }

    fn stop(&mut self, client: usize) -> Played {
        let hurries = self.scene.once_in(3);
        let now = self.scene.now;
        let worker = &mut self.workers[client];
        if worker.is_out {
            return Ok(());
        }
        self.tally.stops += u64::from(worker.stopped.is_none());
        worker.stopped.get_or_insert(now);
        worker.machine.stop(now);
        if hurries || self.part == Part::Over {
            worker.machine.hurry(now);
        }
        self.wake(client)
    }

    fn spread_hints(&mut self) {
        for (client, worker) in self.workers.iter().enumerate() {
            for op in &worker.ops {
                if op.kind.takes_hint() {
                    self.scene.hint(client, op.id);
                }
            }
        }
    }

    fn queue_request(&self, verb: QueueVerb) -> Request {
        Request::Queue(QueueRequest { queue: self.queue.clone(), verb })
    }

    /// Asks the store something between two steps of the schedule.
    fn ask(&self, verb: QueueVerb) -> Played<QueueReply> {
        match self.stores.perform(0, &self.queue_request(verb))? {
            Reply::Queue(reply) => Ok(reply),
            other => Err(format!("{other:?}")),
        }
    }

    fn stats(&self) -> Played<QueueStats> {
        match self.ask(QueueVerb::Stats)? {
            QueueReply::Stats(stats) => Ok(*stats),
            other => Err(format!("{other:?}")),
        }
    }

    fn new_worker(&mut self, client: usize) -> SimWorker {
        let life = self.scene.processes[client].life;
        let slots = CallSlots::new(ClientId(
            u64::from(life) * 100 + client as u64 + u64::from(self.enqueues) * 100_000,
        ));
        SimWorker::new(&mut self.scene, slots)
    }
}
