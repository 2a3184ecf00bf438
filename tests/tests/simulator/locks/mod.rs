//! The world of a schedule: clients, a network, and the store.

mod calls;
mod checker;
mod client;
mod leases;
mod mutant;
mod store;

use std::collections::HashMap;
use std::ops::AddAssign;
use std::time::Duration;

use stanchion::engine::acquire::{AcquireMachine, AcquireOrder, Acquired, Grant};
use stanchion::engine::call::CallMachine;
use stanchion::engine::lease::{LeaseState, LeaseTerms, Need};
use stanchion::engine::leased::{Leased, LockLease, Share};
use stanchion::engine::release::judge_release;
use stanchion::engine::{Machine, Step};
use stanchion::internals::{Moment, name_of_kind, token};
use stanchion::name::{LockKind, LockName};
use stanchion::store::{Failure, FailureKind};
use stanchion::verbs::{
    Acquire, AcquireReply, BreakLease, ExtendReply, Fence, HeldAs, Holder, Leave, Permits, Release,
    ReleaseReply, Reply, Request,
};

pub use mutant::Mutant;

use crate::scene::{Event, Played, Process, Route, Scene, Stores, Weather};
use checker::Checker;
use client::{Op, OpKind, SimClient, SimLease};

/// Clients of a fleet; a schedule uses some of them.
const MOST_CLIENTS: usize = 5;
/// Longest ttl and cooldown in a schedule.
const LONGEST_MS: u64 = 3_000;
/// In calm weather, how long everybody may take until all have had the lock: what is left of old leases
/// and cooldowns, a dead waiter's life, a grant window for each dead head, and the holds themselves.
const CALM_BOUND: Duration = Duration::from_millis(LONGEST_MS + 2_500 + 2_000 + 3_000);

/// What a lease has of an exclusive lock.
const ONE: Permits = Permits { weight: 1, limit: 1 };

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

/// Clients that want the same lock.
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
        world.tally.leases = world.checker.count();
        Ok(world.tally)
    }
}

struct World<'f> {
    stores: &'f Stores,
    scene: Scene,
    name: LockName,
    /// How many permits there are, if it is a semaphore.
    limit: Option<u32>,
    clients: Vec<SimClient>,
    checker: Checker,
    breaks: bool,
    /// Asks for the holder before and after each request (L4): three times the work, so not in every schedule.
    watches_grants: bool,
    mutant: Option<Mutant>,
    tokens: u128,
    /// At the store: which token each fence was granted to.
    granted_to: HashMap<Fence, String>,
    /// In calm weather: clients in the order they came to the store, and in the order they got the lock.
    arrivals: Vec<usize>,
    grants: Vec<usize>,
    tally: Tally,
}

impl<'f> World<'f> {
    fn new(stores: &'f Stores, seed: u64, mutant: Option<Mutant>, loud: bool) -> Self {
        let mut scene = Scene::new(&stores.clock, seed, loud);
        let count = scene.rng.usize(2..=MOST_CLIENTS);
        for _ in 0..count {
            let process = Process::new(scene.rng.bool(), scene.rng.u32(1..=3));
            scene.processes.push(process);
        }
        // One that is the same in every schedule would hide what depends on it.
        let is_semaphore = match mutant {
            None => scene.once_in(2),
            Some(mutant) => mutant == Mutant::IgnoresWeight,
        };
        let limit = is_semaphore.then(|| scene.rng.u32(2..=4));
        let kind = if is_semaphore { LockKind::Semaphore } else { LockKind::Exclusive };
        Self {
            stores,
            name: name_of_kind(kind, &format!("s{seed}")).unwrap(),
            limit,
            clients: (0..count).map(|_| SimClient::default()).collect(),
            checker: Checker::default(),
            breaks: scene.once_in(8),
            watches_grants: scene.once_in(4) && limit.is_none(),
            mutant,
            tokens: u128::from(seed) << 64,
            granted_to: HashMap::new(),
            arrivals: Vec::new(),
            grants: Vec::new(),
            tally: Tally::default(),
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
        self.leave_nothing_behind()
    }

    /// After the storm everybody wants the lock once more, nobody disturbs them, and all must get it: soon,
    /// and in the order in which they came.
    fn calm_down(&mut self) -> Played {
        self.scene.calm = true;
        self.scene.weather = Weather::CALM;
        let began = self.scene.now;
        for client in 0..self.clients.len() {
            self.scene.processes[client].turns = 1;
            let pause = self.scene.between(0, 30);
            self.scene.act_after(client, pause);
        }
        self.drain()?;
        if self.grants.len() < self.clients.len() {
            return Err(format!("L7: {} of {} got the lock", self.grants.len(), self.clients.len()));
        }
        let took = self.scene.now.since(began);
        if took > CALM_BOUND {
            return Err(format!("L7: it took {took:?} until everybody had the lock once"));
        }
        // Of a semaphore, several are granted at once, and hear of it in any order.
        if self.limit.is_none() && self.grants != self.arrivals {
            return Err("FIFO: the lock was not granted in the order of arrival".into());
        }
        Ok(())
    }

    /// L8: when all are gone, the lock is free, nobody is in line, and one call gets it.
    fn leave_nothing_behind(&mut self) -> Played {
        self.scene.advance(self.scene.now + Duration::from_millis(LONGEST_MS));
        let token = self.next_token();
        let acquire = self.acquire_request(token.clone());
        match self.store(0, &acquire) {
            Reply::Acquire(AcquireReply::Granted { .. }) => {}
            other => return Err(format!("L8: something was left behind: {other:?}")),
        }
        let holder = self.store(0, &Request::Holder(Holder { name: self.name.clone() }));
        let Reply::Holder(held) = holder else { return Err("L8: no answer".into()) };
        let Some(holder) = held.first() else { return Err("L8: no holder".into()) };
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
        while let Some(event) = self.scene.next()? {
            self.handle(event)?;
            self.check_announcements()?;
        }
        Ok(())
    }

    /// L6: a running client knows of a loss no later than the deadline.
    fn check_announcements(&self) -> Played {
        for (client, process) in self.clients.iter().zip(&self.scene.processes) {
            if let Some(lease) = &client.lease
                && process.frozen_until < self.scene.now
                && lease.state.deadline() < self.scene.now
                && self.mutant.is_none()
            {
                return Err("L6: the deadline has passed and the loss was not announced".into());
            }
        }
        Ok(())
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
            Event::Cancel { client } => self.cancel(client),
            Event::Freeze { .. } => Ok(()),
            Event::Kill { client } => {
                self.scene.processes[client].die();
                self.clients[client].op = None;
                if let Some(lease) = self.clients[client].lease.take() {
                    self.checker.stopped(self.scene.now, &lease.lock.token);
                }
                let pause = self.scene.between(10, 1_000);
                self.scene.act_after(client, pause);
                Ok(())
            }
        }
    }

    fn spread_hints(&mut self) {
        for client in 0..self.clients.len() {
            let Some(Op { id, kind: OpKind::Acquire { place, .. }, .. }) = &self.clients[client].op else {
                continue;
            };
            if place.take_hint() {
                self.tally.hand_offs += 1;
                self.scene.hint(client, *id);
            }
        }
    }

    fn next_token(&mut self) -> stanchion::Token {
        self.tokens += 1;
        token(self.tokens)
    }
}
