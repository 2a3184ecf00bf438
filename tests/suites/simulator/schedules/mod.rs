//! Fleets of consumers of a queue with schedules, which are put, listed, paused and run while they claim: whoever claims
//! fires. What may never happen is that a slot is fired twice, or lost; and while somebody waits, each comes in time.

mod acts;
mod calls;
mod ledger;
mod mutant;

use std::ops::AddAssign;
use std::time::Duration;

use stanchion::engine::call::CallMachine;
use stanchion::engine::claim::ClaimMachine;
use stanchion::internals::{CallSlots, Clock, Moment, queue_name};
use stanchion::name::QueueName;
use stanchion::protocol::{
    CallId, ClientId, QueueReply, QueueRequest, QueueVerb, Reply, Request, WallMillis,
};
use stanchion::wake::Place;

use crate::scene::{Event, Played, Process, Scene, Stores, Weather};
use ledger::Ledger;

pub use mutant::Mutant;

/// Clients of a fleet; a run uses some of them.
const MOST_CLIENTS: usize = 4;
/// Then nothing of the storm is on its way any more.
const AFTERMATH: Duration = Duration::from_secs(8);
/// For how long every slot has to come in time.
const CALM: Duration = Duration::from_secs(6);
/// How late it may be: the longest way to the store and back, three times, and those who come first in line.
const BOUND: Duration = Duration::from_millis(60);

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Slots that got a task, that were skipped, and that were missed.
    pub fired: u64,
    pub skipped: u64,
    pub missed: u64,
    /// Fires that came too late.
    pub stale: u64,
    /// Lists that were too old.
    pub older: u64,
    pub lost: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.fired += other.fired;
        self.skipped += other.skipped;
        self.missed += other.missed;
        self.stale += other.stale;
        self.older += other.older;
        self.lost += other.lost;
    }
}

/// Clients that share a queue.
pub struct Fleet(Stores);

impl crate::Fleet for Fleet {
    type Mutant = Mutant;
    type Tally = Tally;
    const SHARE: u64 = 100;

    fn new() -> Self {
        Self(Stores::new(MOST_CLIENTS))
    }

    fn play(&mut self, seed: u64, mutant: Option<Mutant>, loud: bool) -> Played<Tally> {
        let mut world = World::new(&self.0, seed, mutant, loud);
        world.run()?;
        Ok(Tally { lost: world.scene.lost, ..world.ledger.tally })
    }
}

/// A call in progress.
struct Op {
    id: u64,
    kind: OpKind,
    /// Sendings whose reply is awaited, and until when.
    awaited: Vec<(u32, Moment)>,
}

enum OpKind {
    Claim { machine: Box<ClaimMachine>, place: Place, last: CallId },
    Call(Box<CallMachine>),
}

/// What a client does at the moment.
struct SimClient {
    ops: Vec<Op>,
    slots: CallSlots,
}

impl SimClient {
    /// The client of a process: each life has another name.
    fn new(client: usize, life: u32) -> Self {
        let name = ClientId(u64::from(life) * 100 + client as u64);
        Self { ops: Vec::new(), slots: CallSlots::new(name) }
    }
}

struct World<'f> {
    stores: &'f Stores,
    scene: Scene,
    queue: QueueName,
    clients: Vec<SimClient>,
    ledger: Ledger,
    mutant: Option<Mutant>,
    /// When the storm ended.
    calm_from: Option<Moment>,
    generation: u64,
}

impl<'f> World<'f> {
    fn new(stores: &'f Stores, seed: u64, mutant: Option<Mutant>, loud: bool) -> Self {
        let mut scene = Scene::new(&stores.clock, seed, loud);
        let count = scene.rng.usize(2..=MOST_CLIENTS);
        for _ in 0..count {
            let process = Process::new(scene.rng.bool(), scene.rng.u32(3..=6));
            scene.processes.push(process);
        }
        Self {
            stores,
            queue: queue_name(&format!("c{seed}")).unwrap(),
            clients: (0..count).map(|client| SimClient::new(client, 0)).collect(),
            ledger: Ledger::default(),
            mutant,
            calm_from: None,
            generation: 0,
            scene,
        }
    }

    fn run(&mut self) -> Played {
        for client in 0..self.clients.len() {
            let pause = self.scene.between(0, 300);
            self.scene.act_after(client, pause);
        }
        for _ in 0..self.scene.rng.u32(0..5) {
            self.scene.plan_mishap();
        }
        self.drain()?;
        self.calm_down()?;
        self.drain()?;
        self.ledger.settle_accounts()
    }

    fn drain(&mut self) -> Played {
        while let Some(event) = self.scene.next()? {
            self.handle(event)?;
            self.check_calm()?;
        }
        Ok(())
    }

    /// Somebody always waits, and nobody disturbs them.
    fn calm_down(&mut self) -> Played {
        self.scene.calm = true;
        self.scene.weather = Weather::CALM;
        self.calm_from = Some(self.scene.now + AFTERMATH);
        for client in 0..self.clients.len() {
            let pause = AFTERMATH + self.scene.between(0, 20);
            self.scene.act_after(client, pause);
        }
        // Whoever looks: nothing else may happen for a while.
        for tenth in 0..=CALM.as_millis() / 100 {
            self.scene
                .act_after(0, AFTERMATH + Duration::from_millis(100 * u64::try_from(tenth).unwrap_or(0)));
        }
        Ok(())
    }

    /// Each slot comes in time, from when everybody is at work again.
    fn check_calm(&mut self) -> Played {
        let Some(from) = self.calm_from else { return Ok(()) };
        let now = self.scene.now;
        if now < from + Duration::from_millis(300) {
            return Ok(());
        }
        if now > from + CALM {
            for client in 0..self.clients.len() {
                while !self.clients[client].ops.is_empty() {
                    self.cancel_op(client, 0);
                }
            }
            return Ok(());
        }
        let late = self.ledger.lateness(self.wall_ms());
        if late > BOUND {
            return Err(format!("S5: a slot has been due for {late:?}, and somebody waits"));
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.calm_from.is_some_and(|from| self.scene.now > from + CALM)
    }

    fn handle(&mut self, event: Event) -> Played {
        match event {
            Event::Arrive { client, life, route, number, request } => {
                let reply = self.perform(client, &request)?;
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
            Event::Cancel { client } => {
                if !self.clients[client].ops.is_empty() {
                    self.cancel_op(client, 0);
                }
                let pause = self.scene.between(0, 500);
                self.scene.act_after(client, pause);
                Ok(())
            }
            Event::Freeze { .. } | Event::Suspend { .. } | Event::Store(_) => Ok(()),
            Event::Kill { client } => {
                self.scene.processes[client].die();
                let life = self.scene.processes[client].life;
                self.clients[client] = SimClient::new(client, life);
                let pause = self.scene.between(10, 1_000);
                self.scene.act_after(client, pause);
                Ok(())
            }
        }
    }

    /// The store carries out a request, and everything is checked.
    fn perform(&mut self, client: usize, request: &Request) -> Played<Reply> {
        let Request::Queue(QueueRequest { verb, .. }) = request else { return Err("only queues".into()) };
        let before = self.before(client, verb)?;
        let reply = self.ask(client, self.mutated(client, verb)?)?;
        self.ledger.performed(self.wall_ms(), verb, &before, &reply)?;
        Ok(Reply::Queue(self.mutated_reply(reply)))
    }

    fn spread_hints(&mut self) {
        for (client, sim) in self.clients.iter().enumerate() {
            for Op { id, kind, .. } in &sim.ops {
                if let OpKind::Claim { place, .. } = kind
                    && place.take_hint()
                {
                    self.scene.hint(client, *id);
                }
            }
        }
    }

    fn wall_ms(&self) -> WallMillis {
        Clock::Manual(self.stores.clock.clone()).wall_micros() / 1_000
    }

    fn queue_request(&self, verb: QueueVerb) -> Request {
        Request::Queue(QueueRequest { queue: self.queue.clone(), verb })
    }

    /// Asks the store something between two steps.
    fn ask(&self, client: usize, verb: QueueVerb) -> Played<QueueReply> {
        match self.stores.perform(client, &self.queue_request(verb))? {
            Reply::Queue(reply) => Ok(reply),
            other => Err(format!("{other:?}")),
        }
    }
}
