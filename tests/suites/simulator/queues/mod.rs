//! Fleets of producers and workers on one or two queues.

mod acts;
mod body;
mod calls;
mod calm;
mod client;
mod deliveries;
mod ledger;
mod model;
mod mutant;
mod store;

use std::collections::HashMap;
use std::ops::AddAssign;
use std::time::Duration;

use stanchion::internals::{CallSlots, Clock, Moment, queue_name};
use stanchion::name::{QueueName, TaskId};
use stanchion::protocol::{
    CallId, ClientId, EVENTS_MAX, QueueReply, QueueRequest, QueueVerb, Reply, Request,
};

use crate::scene::{Event, Played, Process, Route, Scene, Stores};
use body::Body;
use client::{Held, Op, OpKind, SimClient};
use ledger::Ledger;
use model::{Model, Now};

pub use mutant::Mutant;

/// Clients of a fleet; a schedule uses some of them.
const MOST_CLIENTS: usize = 4;
/// Queues of a schedule.
const MOST_QUEUES: usize = 2;
/// Ids that tasks of a schedule have.
const IDS: [&str; 4] = ["a", "b", "c", "d"];

/// What happened in schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub store_steps: u64,
    /// Tasks that came into a worker's hands; deliveries after a first attempt; leases that ended although
    /// nobody had heard of them.
    pub deliveries: u64,
    pub redeliveries: u64,
    pub unheard: u64,
    /// Claims that were lost under their workers.
    pub losses: u64,
    /// Calls that were sent again.
    pub resent: u64,
    /// Messages that never came, or came twice.
    pub lost: u64,
    pub doubled: u64,
    /// Settlements after the end of the lease that were accepted, and stale ones that were not.
    pub late: u64,
    pub stale: u64,
    pub deaths: u64,
    pub hints: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.store_steps += other.store_steps;
        self.deliveries += other.deliveries;
        self.redeliveries += other.redeliveries;
        self.unheard += other.unheard;
        self.losses += other.losses;
        self.resent += other.resent;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.late += other.late;
        self.stale += other.stale;
        self.deaths += other.deaths;
        self.hints += other.hints;
    }
}

/// Clients that share queues.
pub struct Fleet(Stores);

impl crate::Fleet for Fleet {
    type Mutant = Mutant;
    type Tally = Tally;

    fn new() -> Self {
        Self(Stores::new(MOST_CLIENTS))
    }

    fn play(&mut self, seed: u64, mutant: Option<Mutant>, loud: bool) -> Played<Tally> {
        let mut world = World::new(&self.0, seed, mutant, loud);
        world.run()?;
        let ledger = &world.ledger;
        let (deliveries, redeliveries, unheard) = (ledger.heard, ledger.redelivered, ledger.unheard);
        let (lost, doubled) = (world.scene.lost, world.scene.doubled);
        Ok(Tally { deliveries, redeliveries, unheard, lost, doubled, ..world.tally })
    }
}

struct World<'f> {
    stores: &'f Stores,
    scene: Scene,
    queues: Vec<QueueName>,
    ids: Vec<TaskId>,
    clients: Vec<SimClient>,
    models: Vec<Model>,
    ledger: Ledger,
    /// Leases of this schedule outlast every mishap; otherwise they are short.
    long_leases: bool,
    mutant: Option<Mutant>,
    bodies: u64,
    /// Enqueues that surely were not carried out.
    refused: Vec<Body>,
    calm: calm::Calm,
    /// How often each call was carried out, for a mutant.
    copies: HashMap<CallId, u32>,
    tally: Tally,
}

impl<'f> World<'f> {
    fn new(stores: &'f Stores, seed: u64, mutant: Option<Mutant>, loud: bool) -> Self {
        let mut scene = Scene::new(&stores.clock, seed, loud);
        if scene.rng.bool() {
            scene.weather.unsent = scene.weather.lost;
        }
        let count = scene.rng.usize(2..=MOST_CLIENTS);
        for _ in 0..count {
            let process = Process::new(scene.rng.bool(), scene.rng.u32(1..=3));
            scene.processes.push(process);
        }
        let queues = if scene.once_in(4) { MOST_QUEUES } else { 1 };
        Self {
            stores,
            queues: (0..queues).map(|number| queue_name(&format!("s{seed}q{number}")).unwrap()).collect(),
            ids: IDS.iter().map(|id| stanchion::internals::task_id(id).unwrap()).collect(),
            clients: (0..count).map(|client| SimClient::new(client, 0)).collect(),
            models: (0..queues).map(|_| Model::default()).collect(),
            ledger: Ledger::default(),
            long_leases: scene.once_in(3),
            mutant,
            bodies: Body::COMMON,
            refused: Vec::new(),
            calm: calm::Calm::default(),
            copies: HashMap::new(),
            tally: Tally::default(),
            scene,
        }
    }

    fn run(&mut self) -> Played {
        for queue in 0..self.queues.len() {
            if self.scene.rng.bool() {
                self.keep_events(queue, EVENTS_MAX)?;
            }
        }
        for client in 0..self.clients.len() {
            let pause = self.scene.between(0, 300);
            self.scene.act_after(client, pause);
        }
        for _ in 0..self.scene.rng.u32(0..5) {
            self.scene.plan_mishap();
        }
        self.drain()?;
        if self.scene.once_in(4) {
            self.compare_states()?;
        }
        self.calm_down()?;
        self.settle_accounts()
    }

    fn drain(&mut self) -> Played {
        while let Some(event) = self.scene.next()? {
            self.handle(event)?;
            self.check_losses()?;
            self.check_calm()?;
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Played {
        match event {
            Event::Arrive { client, life, route, number, request } => {
                let reply = self.perform(client, life, &request)?;
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
            Event::Cancel { client } => self.cancel(client),
            Event::Freeze { .. } | Event::Suspend { .. } | Event::Store(_) => Ok(()),
            Event::Kill { client } => {
                self.kill(client);
                Ok(())
            }
        }
    }

    fn kill(&mut self, client: usize) {
        self.scene.processes[client].die();
        let life = self.scene.processes[client].life;
        let dead = std::mem::replace(&mut self.clients[client], SimClient::new(client, life));
        for held in &dead.tasks {
            self.ledger.stopped(self.scene.now, held.queue, held.task.receipt);
        }
        let pause = self.scene.between(10, 1_000);
        self.scene.act_after(client, pause);
    }

    fn spread_hints(&mut self) {
        for (client, sim) in self.clients.iter().enumerate() {
            for Op { id, kind, .. } in &sim.ops {
                let (place, silent) = match kind {
                    OpKind::Claim { place, .. } => (place, Mutant::NobodyWoken),
                    OpKind::Result { place, .. } => (place, Mutant::AskersNotTold),
                    OpKind::Events { place, .. } => (place, Mutant::WatchersNotTold),
                    _ => continue,
                };
                if place.take_hint() && self.mutant != Some(silent) {
                    self.tally.hints += 1;
                    self.scene.hint(client, *id);
                }
            }
        }
    }

    fn time(&self) -> Now {
        let clock = Clock::Manual(self.stores.clock.clone());
        Now { boot: self.scene.now.as_micros(), wall: clock.wall_micros() }
    }

    fn queue_request(&self, queue: usize, verb: QueueVerb) -> Request {
        Request::Queue(QueueRequest { queue: self.queues[queue].clone(), verb })
    }

    /// Asks the store something between two steps of the schedule; the model has to know the answer.
    fn ask(&mut self, queue: usize, verb: QueueVerb) -> Played<QueueReply> {
        let request = self.queue_request(queue, verb);
        match self.perform(0, self.scene.processes[0].life, &request)? {
            Reply::Queue(reply) => Ok(reply),
            other => Err(format!("{other:?}")),
        }
    }
}

impl SimClient {
    /// The client of a process: each life has another name.
    fn new(client: usize, life: u32) -> Self {
        let name = ClientId(u64::from(life) * 100 + client as u64);
        Self { ops: Vec::new(), tasks: Vec::new(), slots: CallSlots::new(name) }
    }
}
