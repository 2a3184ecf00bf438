//! The world of a schedule: clients, a network, and the store.

mod calls;
mod chance;
mod leases;
mod mutant;
mod network;
mod store;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stanchion::ManualClock;
use stanchion::engine::acquire::{AcquireMachine, AcquireOrder, Acquired, Grant};
use stanchion::engine::call::CallMachine;
use stanchion::engine::lease::{LeaseState, LeaseTerms, Need};
use stanchion::engine::leased::{Leased, LockLease};
use stanchion::engine::release::judge_release;
use stanchion::engine::{Dice, Machine, Step};
use stanchion::internals::{Clock, Moment, lock_name, store_config, token};
use stanchion::name::LockName;
use stanchion::store::sqlite::{SqliteStore, SqliteTarget};
use stanchion::store::{Failure, FailureKind, Store};
use stanchion::verbs::{
    Acquire, AcquireReply, BreakLease, ExtendReply, Fence, HeldAs, Holder, Leave, Release, ReleaseReply,
    Reply, Request,
};
use stanchion::wake::Hub;

pub use mutant::Mutant;

use crate::checker::Checker;
use crate::client::{Errand, Op, OpKind, Route, SimClient, SimLease};

/// Clients of a fleet; a schedule uses some of them.
const MOST_CLIENTS: usize = 5;
/// Longest ttl and cooldown in a schedule.
const LONGEST_MS: u64 = 3_000;
/// A schedule that goes on for longer does not come to an end.
const MOST_EVENTS: u32 = 20_000;
/// In calm weather, how long everybody may take until all have had the lock: what is left of old leases
/// and cooldowns, a dead waiter's life, a grant window for each dead head, and the holds themselves.
const CALM_BOUND: Duration = Duration::from_millis(LONGEST_MS + 2_500 + 2_000 + 3_000);

/// What happened in schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub store_steps: u64,
    pub leases: u64,
    pub hand_offs: u64,
    pub losses: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.store_steps += other.store_steps;
        self.leases += other.leases;
        self.hand_offs += other.hand_offs;
        self.losses += other.losses;
    }
}

/// Stores that share one in-memory database and one clock; used for many schedules in turn.
pub struct Fleet {
    clock: ManualClock,
    stores: Vec<(SqliteStore, Arc<Hub>)>,
}

impl Fleet {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let clock = ManualClock::new();
        let name = format!("fleet{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let store = |client| {
            let config = store_config(Clock::Manual(clock.clone()), client).unwrap();
            let hub = Arc::clone(&config.hub);
            let target = SqliteTarget::Memory { name: Some(name.clone()) };
            (SqliteStore::open(target, config).unwrap(), hub)
        };
        Self { stores: (1..=MOST_CLIENTS as u64).map(store).collect(), clock }
    }

    /// Plays the schedule of this seed.
    pub fn play(&mut self, seed: u64, mutant: Option<Mutant>, loud: bool) -> Result<Tally, String> {
        let mut world = World::new(self, seed, mutant, loud);
        world.run()?;
        world.tally.leases = world.checker.count();
        Ok(world.tally)
    }
}

type Played<T = ()> = Result<T, String>;

#[derive(Debug)]
enum Event {
    /// A request reaches the store.
    Arrive {
        client: usize,
        life: u32,
        route: Route,
        number: u32,
        request: Box<Request>,
    },
    /// A reply reaches its client.
    Deliver {
        client: usize,
        life: u32,
        route: Route,
        number: u32,
        result: Result<Reply, Failure>,
    },
    /// A hint reaches its client.
    Hint {
        client: usize,
        life: u32,
        op: u64,
    },
    /// A timer of a client runs out.
    Wake {
        client: usize,
        life: u32,
    },
    /// A client thinks about what to do next.
    Act {
        client: usize,
        life: u32,
    },
    Cancel {
        client: usize,
    },
    Freeze {
        client: usize,
        time: Duration,
    },
    Kill {
        client: usize,
    },
}

struct Scheduled {
    at: Moment,
    order: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// How messages travel in this schedule, in percent.
#[derive(Clone, Copy, Debug)]
struct Weather {
    lost: u32,
    doubled: u32,
    slow: u32,
    hints_lost: u32,
}

const CALM: Weather = Weather { lost: 0, doubled: 0, slow: 0, hints_lost: 0 };

struct World<'f> {
    fleet: &'f Fleet,
    seed: u64,
    rng: fastrand::Rng,
    now: Moment,
    name: LockName,
    queue: BinaryHeap<Reverse<Scheduled>>,
    order: u64,
    clients: Vec<SimClient>,
    checker: Checker,
    weather: Weather,
    breaks: bool,
    /// Asks for the holder before and after each request (L4): three times the work, so not in every schedule.
    watches_grants: bool,
    mutant: Option<Mutant>,
    loud: bool,
    tokens: u128,
    /// At the store: which token each fence was granted to.
    granted_to: HashMap<Fence, String>,
    /// In calm weather: clients in the order they came to the store, and in the order they got the lock.
    arrivals: Vec<usize>,
    grants: Vec<usize>,
    calm: bool,
    tally: Tally,
}

impl<'f> World<'f> {
    fn new(fleet: &'f Fleet, seed: u64, mutant: Option<Mutant>, loud: bool) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5742_11AA);
        let weather = match rng.u32(0..4) {
            0 => Weather { lost: 0, doubled: 0, slow: 5, hints_lost: 0 },
            1 => Weather { lost: 5, doubled: 5, slow: 10, hints_lost: 10 },
            2 => Weather { lost: 20, doubled: 20, slow: 25, hints_lost: 30 },
            _ => Weather { lost: 2, doubled: 0, slow: 40, hints_lost: 100 },
        };
        let count = rng.usize(2..=MOST_CLIENTS);
        let clients = (0..count).map(|_| SimClient::new(rng.bool(), rng.u32(1..=3))).collect();
        Self {
            fleet,
            seed,
            now: Clock::Manual(fleet.clock.clone()).now(),
            name: lock_name(&format!("s{seed}")).unwrap(),
            queue: BinaryHeap::new(),
            order: 0,
            clients,
            checker: Checker::default(),
            weather,
            breaks: rng.u32(0..8) == 0,
            watches_grants: rng.u32(0..4) == 0,
            mutant,
            loud,
            tokens: u128::from(seed) << 64,
            granted_to: HashMap::new(),
            arrivals: Vec::new(),
            grants: Vec::new(),
            calm: false,
            tally: Tally::default(),
            rng,
        }
    }

    fn run(&mut self) -> Played {
        for client in 0..self.clients.len() {
            let pause = self.between(0, 300);
            self.act_after(client, pause);
        }
        for _ in 0..self.rng.u32(0..5) {
            self.plan_mishap();
        }
        self.drain()?;
        self.calm_down()?;
        self.leave_nothing_behind()
    }

    fn plan_mishap(&mut self) {
        let client = self.rng.usize(0..self.clients.len());
        let at = self.between(0, 5_000);
        let time = self.between(100, 4_000);
        let event = match self.rng.u32(0..4) {
            0 => Event::Kill { client },
            1 => Event::Freeze { client, time },
            _ => Event::Cancel { client },
        };
        self.schedule(at, event);
    }

    /// After the storm everybody wants the lock once more, nobody disturbs them, and all must get it: soon,
    /// and in the order in which they came.
    fn calm_down(&mut self) -> Played {
        self.calm = true;
        self.weather = CALM;
        let began = self.now;
        for client in 0..self.clients.len() {
            self.clients[client].turns = 1;
            let pause = self.between(0, 30);
            self.act_after(client, pause);
        }
        self.drain()?;
        if self.grants.len() < self.clients.len() {
            return Err(format!("L7: {} of {} got the lock", self.grants.len(), self.clients.len()));
        }
        let took = self.now.since(began);
        if took > CALM_BOUND {
            return Err(format!("L7: it took {took:?} until everybody had the lock once"));
        }
        if self.grants != self.arrivals {
            return Err("FIFO: the lock was not granted in the order of arrival".into());
        }
        Ok(())
    }

    /// L8: when all are gone, the lock is free, nobody is in line, and one call gets it.
    fn leave_nothing_behind(&mut self) -> Played {
        self.advance(self.now + Duration::from_millis(LONGEST_MS));
        let token = self.next_token();
        let acquire = self.acquire_request(token.clone());
        match self.store(0, &acquire) {
            Reply::Acquire(AcquireReply::Granted { .. }) => {}
            other => return Err(format!("L8: something was left behind: {other:?}")),
        }
        let holder = self.store(0, &Request::Holder(Holder { name: self.name.clone() }));
        let Reply::Holder(Some(holder)) = holder else { return Err("L8: no holder".into()) };
        if holder.waiters > 0 {
            return Err(format!("L8: {} waiters were left behind", holder.waiters));
        }
        let release = Release {
            name: self.name.clone(),
            token,
            cooldown: None,
            acquire_resent: false,
            own_fence: None,
            foreign_share: false,
        };
        self.store(0, &Request::Release(release));
        Ok(())
    }

    fn drain(&mut self) -> Played {
        let mut events = 0;
        while let Some(Reverse(Scheduled { at, event, .. })) = self.queue.pop() {
            events += 1;
            if events > MOST_EVENTS {
                return Err("the schedule does not come to an end".into());
            }
            self.advance(at);
            self.handle(event)?;
            self.check_announcements()?;
        }
        Ok(())
    }

    /// L6: a running client knows of a loss no later than the deadline.
    fn check_announcements(&self) -> Played {
        for client in &self.clients {
            if let Some(lease) = &client.lease
                && client.frozen_until < self.now
                && lease.state.deadline() < self.now
                && self.mutant.is_none()
            {
                return Err("L6: the deadline has passed and the loss was not announced".into());
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Played {
        if let Some(thaw) = self.frozen(&event) {
            let after = thaw.since(self.now);
            self.schedule(after, event);
            return Ok(());
        }
        if self.loud && !matches!(event, Event::Wake { .. }) {
            println!("{:>12?} {event:?}", self.now.as_micros());
        }
        match event {
            Event::Arrive { client, life, route, number, request } => {
                self.arrive(client, life, route, number, &request)
            }
            Event::Deliver { client, life, route, number, result } if life == self.clients[client].life => {
                self.deliver(client, route, number, result)
            }
            Event::Hint { client, life, op } if life == self.clients[client].life => self.hinted(client, op),
            Event::Wake { client, life } if life == self.clients[client].life => self.wake(client),
            Event::Act { client, life } if life == self.clients[client].life => self.act(client),
            Event::Cancel { client } => self.cancel(client),
            Event::Freeze { client, time } => {
                let thaw = self.now + time;
                self.clients[client].frozen_until = self.clients[client].frozen_until.max(thaw);
                Ok(())
            }
            Event::Kill { client } => {
                if let Some(lease) = self.clients[client].die() {
                    self.checker.stopped(self.now, &lease.lock.token);
                }
                let pause = self.between(10, 1_000);
                self.act_after(client, pause);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Until when the client that would handle this event is frozen, if it is.
    fn frozen(&self, event: &Event) -> Option<Moment> {
        let client = match event {
            Event::Deliver { client, .. }
            | Event::Hint { client, .. }
            | Event::Wake { client, .. }
            | Event::Act { client, .. }
            | Event::Cancel { client } => *client,
            Event::Arrive { .. } | Event::Freeze { .. } | Event::Kill { .. } => return None,
        };
        let thaw = self.clients[client].frozen_until;
        (thaw > self.now).then_some(thaw)
    }
}
