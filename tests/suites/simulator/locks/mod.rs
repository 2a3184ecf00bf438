//! The world of a schedule: clients, a network, and the store.

mod calls;
mod changes;
mod checker;
mod client;
mod leases;
mod mutant;
mod store;

use std::collections::HashMap;
use std::ops::AddAssign;
use std::time::Duration;

use stanchion::engine::acquire::{AcquireMachine, AcquireParams, Acquired, Grant, LockPlan};
use stanchion::engine::call::CallMachine;
use stanchion::engine::lease::{LeaseState, LeaseTerms, Need};
use stanchion::engine::leased::{Leased, LockLease, Share};
use stanchion::engine::release::judge_release;
use stanchion::engine::several::{Several, SeveralMachine, SeveralParams};
use stanchion::engine::{Machine, NAP_MOST, Step};
use stanchion::internals::{Moment, Token, name_of_kind, token};
use stanchion::name::{LockKind, LockName};
use stanchion::protocol::{
    Acquire, AcquireAllReply, AcquireReply, BreakLease, ExtendReply, Failure, FailureKind, Fence, HeldAs,
    Holder, Leave, Permits, Release, ReleaseReply, Reply, Request, further_pause,
};
use stanchion::wake::Place;

pub use mutant::Mutant;

use crate::scene::{Event, Played, Process, Route, Scene, Stores, Trouble, Weather};
use checker::Checker;
use client::{Op, OpKind, Sendings, SimClient, SimLease};

/// Clients of a fleet. A schedule uses a few of them, or, rarely, so many that those far back in line poll seldom.
const MOST_CLIENTS: usize = 16;
const FEW_CLIENTS: usize = 5;
/// Longest ttl and cooldown in a schedule.
const LONGEST_MS: u64 = 3_000;
/// In calm weather, how long the first may wait: what is left of old leases and cooldowns, a dead waiter's life, and a
/// grant window for each dead head.
const CALM_BOUND: Duration = Duration::from_millis(LONGEST_MS + 2_500 + 2_000);
/// In calm weather, how long each of those before it may take: a hold, and the messages.
const HAND_OVER: Duration = Duration::from_millis(50 + 4 * 5);

/// What a lease has of an exclusive lock.
const ONE: Permits = Permits { weight: 1, limit: 1 };

/// What happened in schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub store_steps: u64,
    pub leases: u64,
    pub hand_offs: u64,
    pub losses: u64,
    /// Several locks that were acquired together.
    pub together: u64,
    /// Leases that the store ended before their time.
    pub early: u64,
    pub failovers: u64,
    /// Owners of permits that had all of them after less.
    pub upgrades: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.store_steps += other.store_steps;
        self.leases += other.leases;
        self.hand_offs += other.hand_offs;
        self.losses += other.losses;
        self.together += other.together;
        self.early += other.early;
        self.failovers += other.failovers;
        self.upgrades += other.upgrades;
    }
}

/// Clients that want the same lock.
pub struct Fleet {
    stores: Stores,
    replica: Stores,
}

impl crate::Fleet for Fleet {
    type Mutant = Mutant;
    type Tally = Tally;

    fn new() -> Self {
        let stores = Stores::new(MOST_CLIENTS);
        Self { replica: stores.replica(), stores }
    }

    fn play(&mut self, seed: u64, mutant: Option<Mutant>, loud: bool) -> Played<Tally> {
        let mut world = World::new(self, seed, mutant, loud);
        world.run()?;
        world.tally.leases = world.checkers.iter().map(Checker::count).sum();
        Ok(world.tally)
    }
}

struct World<'f> {
    fleet: &'f Fleet,
    stores: &'f Stores,
    /// It does what the store does, until it falls behind.
    replica: Option<&'f Stores>,
    /// Since when the replica hears of no writes.
    behind_since: Option<Moment>,
    scene: Scene,
    /// In their order.
    names: Vec<LockName>,
    /// How many permits there are, if it is a semaphore.
    limit: Option<u32>,
    clients: Vec<SimClient>,
    /// Of each lock.
    checkers: Vec<Checker>,
    breaks: bool,
    /// Asks for the holder before and after each request (L4): three times the work, so not in every schedule.
    watches_grants: bool,
    mutant: Option<Mutant>,
    tokens: u128,
    /// At the store: which token each fence of a lock was granted to.
    granted_to: HashMap<(String, Fence), Token>,
    /// In calm weather: clients in the order they came to the store, and in the order they got the lock.
    arrivals: Vec<(usize, Moment)>,
    grants: Vec<(usize, Moment)>,
    /// What dead waiters go on asking, where a mutant lets them.
    ghosts: Vec<Acquire>,
    tally: Tally,
}

impl<'f> World<'f> {
    fn new(fleet: &'f Fleet, seed: u64, mutant: Option<Mutant>, loud: bool) -> Self {
        let mut scene = Scene::new(&fleet.stores.clock, seed, loud);
        let is_crowded = scene.once_in(50);
        let most = if is_crowded { MOST_CLIENTS } else { FEW_CLIENTS };
        let count = scene.rng.usize(2..=most);
        for _ in 0..count {
            let process = Process::new(scene.rng.bool(), scene.rng.u32(1..=3));
            scene.processes.push(process);
        }
        // One that is the same in every schedule would hide what depends on it.
        let is_semaphore = match mutant {
            None => scene.once_in(2),
            Some(mutant) => matches!(mutant, Mutant::IgnoresWeight | Mutant::BlindDowngrades),
        };
        let limit = is_semaphore.then(|| scene.rng.u32(2..=4));
        let locks = if limit.is_none() && scene.once_in(3) { 2 } else { 1 };
        if scene.rng.bool() {
            scene.weather.unsent = scene.rng.u32(5..=40);
        }
        if mutant == Some(Mutant::LongNaps) {
            scene.longest_nap = Duration::MAX;
        }
        let kind = if is_semaphore { LockKind::Semaphore } else { LockKind::Exclusive };
        Self {
            fleet,
            stores: &fleet.stores,
            replica: scene.once_in(8).then_some(&fleet.replica),
            behind_since: None,
            names: (0..locks).map(|lock| name_of_kind(kind, &format!("s{seed}l{lock}")).unwrap()).collect(),
            limit,
            clients: (0..count).map(|_| SimClient::default()).collect(),
            checkers: (0..locks).map(|_| Checker::default()).collect(),
            breaks: scene.once_in(8),
            watches_grants: scene.once_in(4) && limit.is_none() && locks == 1,
            mutant,
            tokens: u128::from(seed) << 64,
            granted_to: HashMap::new(),
            arrivals: Vec::new(),
            grants: Vec::new(),
            ghosts: Vec::new(),
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
        self.plan_trouble();
        self.drain()?;
        self.calm_down()?;
        self.leave_nothing_behind()
    }

    /// After the storm everybody wants the lock once more, nobody disturbs them, and all must get it: soon,
    /// and in the order in which they came.
    fn calm_down(&mut self) -> Played {
        self.scene.calm = true;
        self.scene.weather = Weather::CALM;
        // Nobody sleeps any more.
        let awake = self.scene.processes.iter().map(|process| process.frozen_until).max();
        self.scene.advance(awake.unwrap_or(self.scene.now));
        for client in 0..self.clients.len() {
            self.scene.processes[client].turns = 1;
            let pause = self.scene.between(0, 30);
            self.scene.act_after(client, pause);
        }
        self.drain()?;
        if self.grants.len() < self.clients.len() {
            return Err(format!("L7: {} of {} got the lock", self.grants.len(), self.clients.len()));
        }
        // Who wants several is in several lines.
        if self.names.len() > 1 {
            return Ok(());
        }
        // Of a semaphore, several are granted at once, and hear of it in any order.
        let clients = |those: &[(usize, Moment)]| those.iter().map(|(client, _)| *client).collect::<Vec<_>>();
        if self.limit.is_none() && clients(&self.grants) != clients(&self.arrivals) {
            return Err("FIFO: the lock was not granted in the order of arrival".into());
        }
        self.check_waits()
    }

    /// V3: who stays in line is granted the lock after a hand-over for each of those before it, and a window for each
    /// dead one.
    fn check_waits(&self) -> Played {
        let count = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        for (before, (client, came)) in (0..).zip(&self.arrivals) {
            let granted = self.grants.iter().find(|(other, _)| other == client);
            let waited = granted.map_or(Duration::MAX, |(_, at)| at.since(*came));
            // What a failover has brought back is dead, and each of them costs a grant window.
            let dead = Duration::from_secs(self.tally.failovers * u64::from(count));
            if waited > CALM_BOUND + further_pause(count) + HAND_OVER * before + dead {
                return Err(format!("V3: client {client} waited for {waited:?} behind {before} others"));
            }
        }
        Ok(())
    }

    /// L8: when all are gone, each lock is free, nobody is in line, and one call gets it.
    fn leave_nothing_behind(&mut self) -> Played {
        self.scene.advance(self.scene.now + Duration::from_millis(LONGEST_MS));
        for name in self.names.clone() {
            let token = self.next_token();
            let acquire = self.acquire_request(&name, token.clone());
            match self.store(0, &acquire) {
                Reply::Acquire(AcquireReply::Granted { .. }) => {}
                other => return Err(format!("L8: something was left behind: {other:?}")),
            }
            let holder = self.store(0, &Request::Holder(Holder { name: name.clone() }));
            let Reply::Holder(held) = holder else { return Err("L8: no answer".into()) };
            let Some(holder) = held.first() else { return Err("L8: no holder".into()) };
            // A failover may have undone that somebody left the line.
            if holder.waiters > 0 && self.tally.failovers == 0 {
                return Err(format!("L8: {} waiters were left behind", holder.waiters));
            }
            let release = self.release_request(&name, token);
            self.store(0, &release);
        }
        Ok(())
    }

    /// The store ends leases before their time, is replaced by a replica, or a machine sleeps.
    fn plan_trouble(&mut self) {
        if self.scene.once_in(4) {
            for _ in 0..self.scene.rng.u32(1..=4) {
                let at = self.scene.between(0, 4_000);
                self.scene.schedule(at, Event::Store(Trouble::EndsEarly));
            }
        }
        if self.replica.is_some() {
            let behind = self.scene.between(0, 4_000);
            let lag = self.scene.between(0, 200);
            self.scene.schedule(behind, Event::Store(Trouble::FallsBehind));
            self.scene.schedule(behind + lag, Event::Store(Trouble::FailsOver));
        }
        if self.scene.once_in(4) {
            let client = self.scene.rng.usize(0..self.clients.len());
            let (at, time) = (self.scene.between(0, 4_000), self.scene.between(100, 10_000));
            self.scene.schedule(at, Event::Suspend { client, time });
        }
    }

    fn befall(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::EndsEarly => self.end_early(),
            Trouble::FallsBehind => self.behind_since = Some(self.scene.now),
            Trouble::FailsOver => self.fail_over(),
        }
    }

    /// A place for a waiting call. Both stores count on, so that a hint after a failover never means another call.
    fn enter(&self, client: usize) -> Place {
        let (first, second) = (self.fleet.stores.enter(client), self.fleet.replica.enter(client));
        if std::ptr::eq(self.stores, &raw const self.fleet.replica) { second } else { first }
    }

    fn fail_over(&mut self) {
        let Some(replica) = self.replica.take() else { return };
        self.stores = replica;
        self.tally.failovers += 1;
        let (now, since) = (self.scene.now, self.behind_since.unwrap_or(self.scene.now));
        self.checkers.iter_mut().for_each(|checker| checker.failed_over(now, since));
    }

    fn checker(&mut self, name: &LockName) -> &mut Checker {
        let index = self.names.iter().position(|known| known == name).unwrap_or_default();
        &mut self.checkers[index]
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
            let is_awake = process.dozes_until(NAP_MOST) < self.scene.now;
            let is_late = |lease: &SimLease| !lease.is_over && lease.state.deadline() < self.scene.now;
            if is_awake
                && client.leases.iter().any(is_late)
                && matches!(self.mutant, None | Some(Mutant::LongNaps))
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
            Event::Freeze { .. } | Event::Suspend { .. } => Ok(()),
            Event::Store(trouble) => {
                self.befall(trouble);
                Ok(())
            }
            Event::Kill { client } => {
                self.scene.processes[client].die();
                if let Some(op) = self.clients[client].op.take() {
                    self.haunt(op);
                }
                let now = self.scene.now;
                for lease in std::mem::take(&mut self.clients[client].leases) {
                    self.checker(&lease.lock.name).stopped(now, &lease.lock.token);
                }
                let pause = self.scene.between(10, 1_000);
                self.scene.act_after(client, pause);
                Ok(())
            }
        }
    }

    fn spread_hints(&mut self) {
        for client in 0..self.clients.len() {
            let Some(Op { id, kind, .. }) = &self.clients[client].op else { continue };
            if kind.place().is_some_and(Place::take_hint) {
                self.tally.hand_offs += 1;
                self.scene.hint(client, *id);
            }
        }
    }

    fn next_token(&mut self) -> Token {
        self.tokens += 1;
        token(self.tokens)
    }
}
