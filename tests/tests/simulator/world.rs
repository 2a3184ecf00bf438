//! The world of a schedule: clients, a network, and the store.

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

/// A deliberate bug. Each is put in where the bug would be in the real code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The deadline counts from when the reply came, not from when the call was sent.
    DeadlineFromReply,
    /// A hint is taken for a grant.
    HintIsGrant,
    /// A release deletes the key without looking whose it is.
    BlindRelease,
    /// A token that left is not remembered as ended.
    NoTombstone,
    /// Two grants may have the same fence.
    CoarseFence,
    /// A renewal's answer that comes after the deadline revives the lease.
    LateReplyRevives,
    /// The owner does not look at the deadline.
    IgnoresDeadline,
    /// A waiter relies on hints alone.
    NeverPolls,
    /// Every poll is a new call: the waiter loses its place in line.
    PollLosesPlace,
    /// The owner goes on although a renewal was refused.
    IgnoresRefusal,
}

impl Mutant {
    pub const ALL: [Self; 10] = [
        Self::DeadlineFromReply,
        Self::HintIsGrant,
        Self::BlindRelease,
        Self::NoTombstone,
        Self::CoarseFence,
        Self::LateReplyRevives,
        Self::IgnoresDeadline,
        Self::NeverPolls,
        Self::PollLosesPlace,
        Self::IgnoresRefusal,
    ];
}

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
                    self.checker.stopped(self.now, &lease.token);
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

    // The network

    fn send(&mut self, client: usize, route: Route, number: u32, request: Request) {
        let life = self.clients[client].life;
        let copies = if self.chance(self.weather.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            if !self.chance(self.weather.lost) {
                let delay = self.delay();
                let request = Box::new(request.clone());
                self.schedule(delay, Event::Arrive { client, life, route, number, request });
            }
        }
    }

    fn arrive(&mut self, client: usize, life: u32, route: Route, number: u32, request: &Request) -> Played {
        let reply = self.perform(client, request)?;
        self.spread_hints();
        if !self.chance(self.weather.lost) {
            let delay = self.delay();
            self.schedule(delay, Event::Deliver { client, life, route, number, result: Ok(reply) });
        }
        Ok(())
    }

    fn spread_hints(&mut self) {
        for client in 0..self.clients.len() {
            let Some(Op { id, kind: OpKind::Acquire { place, .. }, .. }) = &self.clients[client].op else {
                continue;
            };
            if place.take_hint() {
                let op = *id;
                self.tally.hand_offs += 1;
                if !self.chance(self.weather.hints_lost) {
                    let (life, delay) = (self.clients[client].life, self.delay());
                    self.schedule(delay, Event::Hint { client, life, op });
                }
            }
        }
    }

    // The store

    fn perform(&mut self, client: usize, request: &Request) -> Played<Reply> {
        let before = if self.watches_grants { self.granted_to_another(client, request) } else { None };
        let mut reply = self.mutated_store(client, request);
        if let Some(before) = before {
            let after = self.lease_at_store(client);
            Checker::untouched(Some(before), after)?;
        }
        if let (Some(Mutant::CoarseFence), Reply::Acquire(AcquireReply::Granted { fence, .. })) =
            (self.mutant, &mut reply)
        {
            *fence &= !0xF_FFFF;
        }
        if let (Request::Acquire(acquire), Reply::Acquire(AcquireReply::Granted { fence, .. })) =
            (request, &reply)
        {
            self.granted_to.insert(*fence, acquire.token.as_str().to_owned());
        }
        if self.calm
            && let Request::Acquire(acquire) = request
            && acquire.waiter.is_some_and(|_| !self.arrivals.contains(&client))
        {
            self.arrivals.push(client);
        }
        self.checker.performed(self.now, request, &reply)?;
        Ok(reply)
    }

    fn mutated_store(&mut self, client: usize, request: &Request) -> Reply {
        let reply = match (self.mutant, request) {
            (Some(Mutant::NoTombstone), Request::Leave(Leave { name, token, foreign_share })) => {
                let release = Release {
                    name: name.clone(),
                    token: token.clone(),
                    cooldown: None,
                    acquire_resent: false,
                    own_fence: None,
                    foreign_share: *foreign_share,
                };
                self.store(client, &Request::Release(release));
                return Reply::Leave;
            }
            _ => self.store(client, request),
        };
        match (self.mutant, &reply) {
            (Some(Mutant::BlindRelease), Reply::Release(ReleaseReply::Gone(_))) => {
                self.store(client, &Request::BreakLease(BreakLease { name: self.name.clone() }));
                Reply::Release(ReleaseReply::Released)
            }
            _ => reply,
        }
    }

    fn store(&mut self, client: usize, request: &Request) -> Reply {
        self.tally.store_steps += 1;
        let until = self.now + Duration::from_secs(5);
        self.fleet.stores[client]
            .0
            .perform(request, until)
            .unwrap_or_else(|failure| panic!("seed {}: the store failed: {}", self.seed, failure.message))
    }

    /// The fence of a lease that this request has no business with.
    fn granted_to_another(&mut self, client: usize, request: &Request) -> Option<Fence> {
        let own = match request {
            Request::Acquire(acquire) => &acquire.token,
            Request::Extend(extend) => &extend.token,
            Request::Release(release) => &release.token,
            Request::Leave(leave) => &leave.token,
            Request::Resume(_) | Request::Holder(_) | Request::BreakLease(_) => return None,
        };
        let fence = self.lease_at_store(client)?;
        self.granted_to.get(&fence).filter(|holder| *holder != own.as_str()).map(|_| fence)
    }

    fn lease_at_store(&mut self, client: usize) -> Option<Fence> {
        match self.store(client, &Request::Holder(Holder { name: self.name.clone() })) {
            Reply::Holder(Some(holder)) if holder.held_as == HeldAs::Lease => Some(holder.fence),
            _ => None,
        }
    }

    // The clients

    fn act(&mut self, client: usize) -> Played {
        if !self.clients[client].is_idle() || self.clients[client].turns == 0 {
            return Ok(());
        }
        self.clients[client].turns -= 1;
        if !self.calm && self.breaks && self.rng.u32(0..4) == 0 {
            let request = Request::BreakLease(BreakLease { name: self.name.clone() });
            let machine = CallMachine::new(request, self.now, self.now + Duration::from_secs(2), self.dice());
            self.begin(client, OpKind::Break { machine: machine.once() });
        } else {
            self.begin_acquire(client);
        }
        self.step(client)
    }

    fn begin(&mut self, client: usize, kind: OpKind) {
        let id = self.clients[client].next_id();
        self.clients[client].op = Some(Op { id, kind, awaited: Vec::new() });
    }

    fn begin_acquire(&mut self, client: usize) {
        let ttl_ms = if self.calm { 500 } else { self.rng.u64(50..=LONGEST_MS) };
        let wait = match self.rng.u32(0..5) {
            _ if self.calm => Duration::from_secs(60),
            0 => Duration::ZERO,
            1 => self.between(20, 600),
            _ => self.between(500, 8_000),
        };
        let token = self.next_token();
        let place = self.fleet.stores[client].1.enter();
        let order = AcquireOrder {
            name: self.name.clone(),
            token: token.clone(),
            ttl: Duration::from_millis(ttl_ms),
            wait,
            timeout: Duration::from_secs(3),
            fail_fast: !self.calm && self.rng.u32(0..8) == 0,
            adopt_after: None,
            owner: "1 sim client".into(),
            min_fence: 0,
            waiter: place.waiter(),
            foreign_share: false,
        };
        let listening = self.calm || self.rng.bool();
        let machine = AcquireMachine::new(order, self.now, listening, None, self.dice());
        let renews = self.rng.bool() && !self.calm;
        self.begin(client, OpKind::Acquire { machine, place, token, renews, ttl_ms });
    }

    fn acquire_request(&self, token: stanchion::Token) -> Request {
        Request::Acquire(Acquire {
            name: self.name.clone(),
            token,
            ttl: Duration::from_millis(LONGEST_MS),
            min_fence: 0,
            waiter: None,
            patience: None,
            owner: "".into(),
            adopt: None,
        })
    }

    /// Does what the machine of the running call asks.
    fn step(&mut self, client: usize) -> Played {
        let Some(mut op) = self.clients[client].op.take() else { return Ok(()) };
        loop {
            let step = match &mut op.kind {
                OpKind::Acquire { machine, .. } => Asked::of(machine.step(self.now), Outcome::Acquired),
                OpKind::Release { machine, .. } | OpKind::Break { machine } => {
                    Asked::of(machine.step(self.now), Outcome::Answered)
                }
            };
            match step {
                Asked::Send(number, request, until) => {
                    if self.loses_its_place(&op, number) {
                        return self.start_over(client, op);
                    }
                    if let OpKind::Release { first_sent, .. } = &mut op.kind {
                        *first_sent = (*first_sent).min(self.now);
                    }
                    op.awaited.push((number, until));
                    self.send(client, Route::Op(op.id), number, request);
                    self.wake_at(client, until);
                    break;
                }
                Asked::Listen => {
                    if let OpKind::Acquire { machine, .. } = &mut op.kind {
                        machine.listening();
                    }
                }
                Asked::Wait(until) => {
                    if self.mutant != Some(Mutant::NeverPolls) {
                        self.wake_at(client, until);
                    }
                    break;
                }
                Asked::Done(outcome) => return self.finish(client, op, outcome),
            }
        }
        self.clients[client].op = Some(op);
        Ok(())
    }

    fn loses_its_place(&self, op: &Op, number: u32) -> bool {
        self.mutant == Some(Mutant::PollLosesPlace) && matches!(op.kind, OpKind::Acquire { .. }) && number > 1
    }

    fn start_over(&mut self, client: usize, mut op: Op) -> Played {
        if let OpKind::Acquire { machine, .. } = &mut op.kind
            && let Some(request) = machine.abandon()
        {
            self.run_errand(client, request);
        }
        self.begin_acquire(client);
        self.step(client)
    }

    fn finish(&mut self, client: usize, mut op: Op, outcome: Outcome) -> Played {
        let errand = match &mut op.kind {
            OpKind::Acquire { machine, .. } => machine.abandon(),
            OpKind::Release { machine, .. } | OpKind::Break { machine } => machine.abandon(),
        };
        if let Some(request) = errand {
            self.run_errand(client, request);
        }
        match (op.kind, outcome) {
            (
                OpKind::Acquire { token, renews, ttl_ms, .. },
                Outcome::Acquired(Ok(Acquired::Granted(grant))),
            ) => {
                return self.granted(client, token, renews, ttl_ms, &grant);
            }
            (OpKind::Release { token, fence, deadline, first_sent, .. }, Outcome::Answered(Ok(answer)))
                if judge_release(&answer, fence, deadline).is_ok() =>
            {
                self.checker.released(&token, first_sent)?;
            }
            _ => {}
        }
        let pause = self.between(0, 200);
        self.act_after(client, pause);
        Ok(())
    }

    fn granted(
        &mut self,
        client: usize,
        token: stanchion::Token,
        renews: bool,
        ttl_ms: u64,
        grant: &Grant,
    ) -> Played {
        let ttl = Duration::from_millis(ttl_ms);
        let mut deadline = grant.deadline;
        if self.mutant == Some(Mutant::DeadlineFromReply) {
            deadline = self.now + ttl;
        }
        if self.mutant == Some(Mutant::IgnoresDeadline) {
            deadline = deadline + ttl * 4;
        }
        self.checker.began(self.now, &token, grant.fence, deadline)?;
        if self.calm {
            self.grants.push(client);
        }
        let hold = if self.calm { 20..=50 } else { 0..=2 * ttl_ms };
        let ends = self.now + Duration::from_millis(self.rng.u64(hold));
        let terms = LeaseTerms {
            name: self.name.clone(),
            token: token.clone(),
            fence: grant.fence,
            ttl,
            deadline,
            hold_until: renews.then(|| self.now + Duration::from_millis(LONGEST_MS * 2)),
            acquire_resent: grant.resent,
            foreign_share: false,
        };
        let id = self.clients[client].next_id();
        let state = LeaseState::new(terms, self.now);
        self.wake_at(client, state.due());
        self.wake_at(client, ends);
        self.clients[client].lease = Some(SimLease { id, state, token, ends, renewal: None, renewals: 0 });
        self.write(client)
    }

    /// The owner writes to the resource, if it believes in its lease.
    fn write(&mut self, client: usize) -> Played {
        match &self.clients[client].lease {
            Some(lease) if self.now < lease.state.deadline() => {
                self.checker.writes(&lease.token, lease.state.fence())
            }
            _ => Ok(()),
        }
    }

    fn wake(&mut self, client: usize) -> Played {
        self.give_up_on_replies(client);
        self.step(client)?;
        self.care_for_lease(client)?;
        self.care_for_errands(client);
        Ok(())
    }

    /// As the drivers do: a reply that has not come in time counts as lost.
    fn give_up_on_replies(&mut self, client: usize) {
        let now = self.now;
        let SimClient { op: Some(op), drops_late_replies: true, .. } = &mut self.clients[client] else {
            return;
        };
        while let Some(index) = op.awaited.iter().position(|(_, until)| *until <= now) {
            let (number, _) = op.awaited.remove(index);
            let lost = Err(Failure::new(FailureKind::Lost, "no answer"));
            match &mut op.kind {
                OpKind::Acquire { machine, .. } => machine.reply(now, number, lost),
                OpKind::Release { machine, .. } | OpKind::Break { machine } => {
                    machine.reply(now, number, lost);
                }
            }
        }
    }

    /// As the keeper does: renews, announces, and gives back what its owner is done with.
    fn care_for_lease(&mut self, client: usize) -> Played {
        self.write(client)?;
        let now = self.now;
        let Some(lease) = &mut self.clients[client].lease else { return Ok(()) };
        if now >= lease.ends {
            return self.end_lease(client);
        }
        if let Some((_, sent, until)) = lease.renewal {
            if now < until {
                // A loss is announced even while a renewal is on its way.
                if now >= lease.state.deadline() {
                    return self.lost(client);
                }
                let deadline = lease.state.deadline();
                self.wake_at(client, deadline);
                return Ok(());
            }
            lease.renewal = None;
            let need = lease.state.extended(now, sent, &Err(Failure::new(FailureKind::Lost, "no answer")));
            return self.follow(client, need);
        }
        let need = lease.state.need(now);
        self.follow(client, need)
    }

    fn follow(&mut self, client: usize, need: Need) -> Played {
        match need {
            Need::Nothing(until) => self.wake_at(client, until),
            Need::Renew(request) => {
                let (now, until) = (self.now, self.now + Duration::from_secs(1));
                let Some(lease) = &mut self.clients[client].lease else { return Ok(()) };
                lease.renewals += 1;
                lease.renewal = Some((lease.renewals, now, until));
                let (number, route, deadline) =
                    (lease.renewals, Route::Renewal(lease.id), lease.state.deadline());
                self.wake_at(client, until.min(deadline));
                self.send(client, route, number, request);
            }
            Need::Announce(farewell) => {
                if let Some(request) = farewell {
                    self.run_errand(client, request);
                }
                return self.lost(client);
            }
            Need::Forget => {}
        }
        Ok(())
    }

    fn lost(&mut self, client: usize) -> Played {
        self.tally.losses += 1;
        if let Some(lease) = self.clients[client].lease.take() {
            self.checker.stopped(self.now, &lease.token);
        }
        let pause = self.between(0, 200);
        self.act_after(client, pause);
        Ok(())
    }

    /// The owner is done: it releases, with or without cooldown, or just drops the lease.
    fn end_lease(&mut self, client: usize) -> Played {
        let Some(mut lease) = self.clients[client].lease.take() else { return Ok(()) };
        self.checker.stopped(self.now, &lease.token);
        let (fence, deadline) = (lease.state.fence(), lease.state.deadline());
        if !self.calm && self.rng.u32(0..8) == 0 {
            let farewell = lease.state.farewell();
            lease.state.end();
            self.run_errand(client, farewell);
            let pause = self.between(0, 200);
            self.act_after(client, pause);
            return Ok(());
        }
        let cooldown = (!self.calm && self.rng.u32(0..8) == 0).then(|| self.between(50, LONGEST_MS));
        let request = Request::Release(Release {
            name: self.name.clone(),
            token: lease.token.clone(),
            cooldown,
            acquire_resent: lease.state.acquire_resent,
            own_fence: (lease.state.acquire_resent || self.now >= deadline).then_some(fence),
            foreign_share: false,
        });
        let machine = CallMachine::new(request, self.now, self.now + Duration::from_secs(3), self.dice())
            .or_else(lease.state.farewell());
        let kind = OpKind::Release { machine, token: lease.token, fence, deadline, first_sent: Moment::FAR };
        self.begin(client, kind);
        self.step(client)
    }

    fn deliver(
        &mut self,
        client: usize,
        route: Route,
        number: u32,
        result: Result<Reply, Failure>,
    ) -> Played {
        match route {
            Route::Op(id) => {
                let now = self.now;
                let SimClient { op: Some(op), drops_late_replies, .. } = &mut self.clients[client] else {
                    return Ok(());
                };
                let index = op.awaited.iter().position(|(awaited, _)| *awaited == number);
                if op.id != id || (index.is_none() && *drops_late_replies) {
                    return Ok(());
                }
                index.map(|index| op.awaited.remove(index));
                match &mut op.kind {
                    OpKind::Acquire { machine, .. } => machine.reply(now, number, result),
                    OpKind::Release { machine, .. } | OpKind::Break { machine } => {
                        machine.reply(now, number, result);
                    }
                }
                self.step(client)
            }
            Route::Renewal(id) => self.renewed(client, id, number, &result),
            Route::Errand(id) => {
                self.clients[client].errands.retain(|errand| errand.id != id);
                Ok(())
            }
        }
    }

    fn renewed(&mut self, client: usize, id: u64, number: u32, result: &Result<Reply, Failure>) -> Played {
        let now = self.now;
        let Some(lease) = &mut self.clients[client].lease else { return Ok(()) };
        let Some((awaited, sent, _)) = lease.renewal else { return Ok(()) };
        if lease.id != id || awaited != number {
            return Ok(());
        }
        lease.renewal = None;
        let (before, token) = (lease.state.deadline(), lease.token.clone());
        if matches!(result, Ok(Reply::Extend(ExtendReply::Gone(_)))) {
            self.checker.refused(&token);
            if self.mutant == Some(Mutant::IgnoresRefusal) {
                return Ok(());
            }
        }
        if self.mutant == Some(Mutant::LateReplyRevives)
            && now >= before
            && let Ok(Reply::Extend(ExtendReply::Extended(left))) = result
        {
            return self.checker.prolonged(now, &token, now + *left);
        }
        let need = lease.state.extended(now, sent, result);
        let after = lease.state.deadline();
        if after != before {
            self.checker.prolonged(now, &token, after)?;
        }
        self.follow(client, need)
    }

    fn hinted(&mut self, client: usize, op: u64) -> Played {
        let now = self.now;
        let Some(running) = self.clients[client].op.as_mut().filter(|running| running.id == op) else {
            return Ok(());
        };
        let OpKind::Acquire { machine, token, .. } = &mut running.kind else { return Ok(()) };
        if self.mutant == Some(Mutant::HintIsGrant) {
            let token = token.clone();
            let fence = self.lease_or_offer(client);
            return self.checker.began(now, &token, fence, now + Duration::from_secs(1));
        }
        machine.hint();
        if running.awaited.is_empty() || !self.clients[client].drops_late_replies {
            return self.step(client);
        }
        Ok(())
    }

    fn lease_or_offer(&mut self, client: usize) -> Fence {
        match self.store(client, &Request::Holder(Holder { name: self.name.clone() })) {
            Reply::Holder(Some(holder)) => holder.fence,
            _ => 0,
        }
    }

    fn cancel(&mut self, client: usize) -> Played {
        let Some(mut op) = self.clients[client].op.take() else { return Ok(()) };
        let errand = match &mut op.kind {
            OpKind::Acquire { machine, .. } => machine.abandon(),
            OpKind::Release { machine, .. } | OpKind::Break { machine } => machine.abandon(),
        };
        drop(op);
        if let Some(request) = errand {
            self.run_errand(client, request);
        }
        let pause = self.between(0, 500);
        self.act_after(client, pause);
        Ok(())
    }

    fn run_errand(&mut self, client: usize, request: Request) {
        let id = self.clients[client].next_id();
        let until = self.now + Duration::from_secs(60);
        self.clients[client].errands.push(Errand { id, request, sent: 0, awaited_until: None, until });
        self.care_for_errands(client);
    }

    fn care_for_errands(&mut self, client: usize) {
        let now = self.now;
        self.clients[client].errands.retain(|errand| now < errand.until);
        let mut sendings = Vec::new();
        for errand in &mut self.clients[client].errands {
            if errand.awaited_until.is_none_or(|until| until <= now) {
                errand.sent += 1;
                errand.awaited_until = Some(now + Duration::from_secs(1));
                sendings.push((Route::Errand(errand.id), errand.sent, errand.request.clone()));
            }
        }
        for (route, number, request) in sendings {
            self.send(client, route, number, request);
            self.wake_at(client, now + Duration::from_secs(1));
        }
    }

    // Time and chance

    fn schedule(&mut self, after: Duration, event: Event) {
        self.order += 1;
        self.queue.push(Reverse(Scheduled { at: self.now + after, order: self.order, event }));
    }

    fn act_after(&mut self, client: usize, pause: Duration) {
        let life = self.clients[client].life;
        self.schedule(pause, Event::Act { client, life });
    }

    fn wake_at(&mut self, client: usize, at: Moment) {
        if at != Moment::FAR {
            let life = self.clients[client].life;
            self.schedule(at.since(self.now), Event::Wake { client, life });
        }
    }

    fn advance(&mut self, to: Moment) {
        self.fleet.clock.advance(to.since(self.now));
        self.now = self.now.max(to);
    }

    fn delay(&mut self) -> Duration {
        if self.chance(self.weather.slow) { self.between(50, 2_500) } else { self.between(0, 5) }
    }

    fn between(&mut self, least_ms: u64, most_ms: u64) -> Duration {
        Duration::from_micros(self.rng.u64(least_ms * 1_000..=most_ms * 1_000))
    }

    fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.rng.u32(0..100) < percent
    }

    fn dice(&mut self) -> Dice {
        Dice::seeded(self.rng.u64(..))
    }

    fn next_token(&mut self) -> stanchion::Token {
        self.tokens += 1;
        token(self.tokens)
    }
}

/// A step of either machine.
enum Asked {
    Send(u32, Request, Moment),
    Listen,
    Wait(Moment),
    Done(Outcome),
}

enum Outcome {
    Acquired(Result<Acquired, stanchion::Error>),
    Answered(Result<stanchion::engine::call::Answer, stanchion::Error>),
}

impl Asked {
    fn of<T>(step: Step<T>, outcome: impl FnOnce(Result<T, stanchion::Error>) -> Outcome) -> Self {
        match step {
            Step::Send(call) => Self::Send(call.number, call.request, call.until),
            Step::Listen => Self::Listen,
            Step::Wait { until, .. } => Self::Wait(until),
            Step::Done(result) => Self::Done(outcome(result)),
        }
    }
}
