//! Worlds of locks: one lock, several taken together, a semaphore. Judged by the simulator's checker.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use rusqlite::types::Value;
use stanchion::engine::Jitter;
use stanchion::engine::acquire::{AcquireMachine, AcquireParams, Acquired, Grant, LockPlan};
use stanchion::engine::call::{Answer, CallMachine};
use stanchion::engine::lease::{LeaseState, LeaseTerms, Status};
use stanchion::engine::leased::{Leased, LockLease, Share};
use stanchion::engine::release::{Company, judge_release};
use stanchion::engine::several::{Several, SeveralMachine, SeveralParams};
use stanchion::internals::{Moment, Token, name_of_kind, token};
use stanchion::name::{LockKind, LockName};
use stanchion::protocol::{AcquireAll, AcquireAllReply, Fence, Leave, Permits, Release, Reply, Request};

use crate::again::{Again, Care, Cared, Engine, Outcome};
use crate::checker::Checker;
use crate::mutant::Mutant;
use crate::stage::{digest, token_of};
use crate::world::{Game, Kept, Left, Op, Played, Wish, World};

/// What a lease has of an exclusive lock.
const ONE: Permits = Permits { weight: 1, limit: 1 };
/// How long a call is tried.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Columns of the table of waiters.
const TOKEN: usize = 2;
const CLIENT: usize = 5;
const SEQ: usize = 6;

/// What each client does.
#[derive(Clone, Debug)]
pub struct User {
    pub ttl: Duration,
    pub renews: bool,
    pub wait: Duration,
    pub weight: u32,
    /// Which of the locks it takes, in this order.
    pub locks: Vec<usize>,
    /// How often it takes them, prolongs its lease by hand, and gives up waiting.
    pub turns: u32,
    pub extends: u32,
    pub cancels: u32,
}

#[derive(Clone)]
pub struct Locks {
    names: Rc<[LockName]>,
    limit: Option<u32>,
    users: Vec<User>,
    /// Whether a client has begun; those that are alike begin in order.
    begun: Vec<bool>,
    /// Whether it has had what it wanted when all was calm.
    served: Vec<bool>,
    tokens: Vec<u64>,
    checkers: Vec<Checker>,
    /// Tokens of acquires that the network copied.
    copied: BTreeSet<String>,
    /// Whether the store forgot who holds a lock.
    forgot: bool,
    mutant: Option<Mutant>,
}

/// What a call is for.
#[derive(Clone, Debug)]
pub enum Purpose {
    Several,
    /// Several locks in one step, as a mutant does it.
    Together {
        token: Token,
    },
    /// One lock; of several the next one, as a mutant does it.
    Acquire {
        token: Token,
        number: usize,
        got: Vec<u64>,
        give_up: Moment,
    },
    Release {
        token: Token,
        lock: usize,
        lease: Ended,
        sent: Sent,
    },
    Extend {
        kept: u64,
    },
}

impl Purpose {
    fn takes(&self) -> bool {
        matches!(self, Self::Several | Self::Together { .. } | Self::Acquire { .. })
    }
}

/// A lease that is given back.
#[derive(Clone, Debug)]
pub struct Ended {
    fence: Fence,
    company: Company,
    deadline: Moment,
}

/// The sendings of a call.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Those that may have been carried out, and when each was sent.
    left: Vec<(u32, Moment)>,
    unsent: u32,
}

/// What a lease is on.
#[derive(Clone, Debug)]
pub struct Holding {
    pub lock: usize,
    pub token: Token,
    /// Whether its owner has it in hand: of several locks, once all of them are granted.
    pub in_hand: bool,
}

impl Locks {
    /// So many locks, or one with so many permits.
    pub fn world(
        locks: usize,
        limit: Option<u32>,
        users: Vec<User>,
        left: Left,
        mutant: Option<Mutant>,
    ) -> World<Self> {
        let kind = if limit.is_some() { LockKind::Semaphore } else { LockKind::Exclusive };
        let name = |number: usize| name_of_kind(kind, &format!("w{number}")).unwrap();
        let count = users.len();
        let game = Self {
            names: (0..locks).map(name).collect(),
            limit,
            users,
            begun: vec![false; count],
            served: vec![false; count],
            tokens: vec![0; count],
            checkers: (0..locks).map(|_| Checker::default()).collect(),
            copied: BTreeSet::new(),
            forgot: false,
            mutant,
        };
        World::new(count, left, game)
    }

    fn permits(&self, client: usize) -> Option<Permits> {
        self.limit.map(|limit| Permits { weight: self.users[client].weight, limit })
    }

    fn next_token(&mut self, client: usize) -> Token {
        self.tokens[client] += 1;
        token((client as u128 + 1) * 1_000 + u128::from(self.tokens[client]))
    }
}

impl World<Locks> {
    fn call(&self, request: Request, patience: Duration, cleanup: Vec<Request>) -> Again<Engine> {
        let now = self.now;
        Again::new(move || {
            let mut machine = CallMachine::new(request.clone(), now, now + patience, Jitter::seeded(1));
            for request in &cleanup {
                machine = machine.or_else(request.clone());
            }
            Engine::Call(machine)
        })
    }

    fn acquire(&mut self, client: usize) -> Played {
        self.game.begun[client] = true;
        if self.game.users[client].locks.len() > 1 {
            return match self.game.mutant {
                Some(Mutant::EarlierLocksUnseen) => self.acquire_together(client),
                _ => self.acquire_several(client),
            };
        }
        let give_up = self.now + self.wait(client);
        self.acquire_one(client, 0, Vec::new(), give_up)
    }

    fn wait(&self, client: usize) -> Duration {
        if self.calm { Duration::from_secs(60) } else { self.game.users[client].wait }
    }

    fn acquire_together(&mut self, client: usize) -> Played {
        let token = self.game.next_token(client);
        let user = &self.game.users[client];
        let names: Vec<_> = user.locks.iter().map(|lock| self.game.names[*lock].clone()).collect();
        let request = Request::AcquireAll(AcquireAll {
            locks: names.iter().map(|name| (name.clone(), Fence::NONE)).collect(),
            token: token.clone(),
            ttl: user.ttl,
            owner: "1 world client".into(),
        });
        let leave = |name| Request::Leave(Leave { name, token: token.clone(), foreign_share: false });
        let engine = self.call(request, TIMEOUT, names.into_iter().map(leave).collect());
        self.begin(client, engine, Purpose::Together { token })
    }

    /// What is asked for of one lock, by the call of this id.
    fn order(&self, client: usize, id: u64, number: usize, token: &Token, wait: Duration) -> AcquireParams {
        let user = &self.game.users[client];
        let name = self.game.names[user.locks[number]].clone();
        let plan = LockPlan {
            permits: self.game.permits(client),
            ..LockPlan::new(name, user.ttl, wait, TIMEOUT, "1 world client".into())
        };
        let waiter = self.stage.borrow().waiter(client, id);
        AcquireParams { plan, token: token.clone(), min_fence: Fence::NONE, waiter }
    }

    fn acquire_several(&mut self, client: usize) -> Played {
        let (token, id) = (self.game.next_token(client), self.clients[client].next_id());
        let (count, wait, now) = (self.game.users[client].locks.len(), self.wait(client), self.now);
        let locks = (0..count).map(|number| self.order(client, id, number, &token, wait)).collect();
        let order = SeveralParams { locks, foreign_holders: vec![None; count], in_one_step: true };
        let make = move || Engine::Several(SeveralMachine::new(order.clone(), now, true, Jitter::seeded(1)));
        self.begin_as(client, id, Again::new(make), Purpose::Several)
    }

    fn acquire_one(&mut self, client: usize, number: usize, got: Vec<u64>, give_up: Moment) -> Played {
        let (token, id) = (self.game.next_token(client), self.clients[client].next_id());
        let order = self.order(client, id, number, &token, give_up.since(self.now));
        let now = self.now;
        let make =
            move || Engine::Acquire(AcquireMachine::new(order.clone(), now, true, None, Jitter::seeded(1)));
        let purpose = Purpose::Acquire { token, number, got, give_up };
        self.begin_as(client, id, Again::new(make), purpose)
    }

    fn granted(&mut self, client: usize, lock: usize, token: Token, grant: &Grant) -> u64 {
        let user = &self.game.users[client];
        let lock_lease = LockLease {
            name: self.game.names[lock].clone(),
            token: token.clone(),
            granted: grant.fence,
            acquire_resent: grant.resent,
            foreign_share: false,
            share: None,
            owner: "".into(),
        };
        let permits = self.game.permits(client);
        let (now, ttl, deadline) = (self.now, user.ttl, grant.deadline);
        let hold_until = user.renews.then_some(now + Duration::from_secs(3_600));
        let make = move || {
            let leased = Leased::Lock(LockLease { share: permits.map(Share::new), ..lock_lease.clone() });
            LeaseState::new(LeaseTerms { leased, ttl, deadline, hold_until, timeout: None }, now)
        };
        let id = self.clients[client].next_id();
        let holding = Holding { lock, token, in_hand: false };
        self.keep(client, id, Again::new(make), holding);
        id
    }

    /// The acquire has returned: its owner believes in these leases now.
    fn returned(&mut self, client: usize, ids: &[u64]) -> Played {
        let now = self.now;
        for id in ids {
            let Some(kept) = self.clients[client].kept(*id) else {
                return Err("L5: a lease was returned with one of its locks lost".into());
            };
            kept.holding.in_hand = true;
            let Leased::Lock(lease) = kept.state.leased().clone() else { continue };
            if kept.state.status(now) != Status::Held {
                return Err(format!(
                    "L5: a lease was returned with its deadline passed (fence {})",
                    lease.fence()
                ));
            }
            let (lock, deadline) = (kept.holding.lock, kept.state.deadline());
            let permits = lease.share.as_ref().map_or(ONE, Share::permits);
            let checker = &mut self.game.checkers[lock];
            checker.began(now, &lease.token, lease.fence(), permits, deadline)?;
            checker.writes(&lease.token, lease.fence())?;
        }
        self.game.served[client] |= self.calm;
        Ok(())
    }

    /// The user is done with all that it holds.
    fn release(&mut self, client: usize) -> Played {
        for mut kept in std::mem::take(&mut self.clients[client].kept) {
            let Leased::Lock(lease) = kept.state.leased().clone() else { continue };
            let deadline = kept.state.deadline();
            self.game.checkers[kept.holding.lock].stopped(self.now, &lease.token);
            kept.state.tell(Care::End);
            let request = Request::Release(Release {
                name: lease.name.clone(),
                token: lease.token.clone(),
                cooldown: None,
                acquire_resent: lease.acquire_resent,
                own_fence: kept.state.fence_to_check(self.now),
                foreign_share: false,
            });
            let farewell = kept.state.leased().cleanup();
            let engine = self.call(request, TIMEOUT, farewell.into_iter().collect());
            let ended = Ended { fence: lease.fence(), company: lease.company(), deadline };
            let (token, lock) = (lease.token.clone(), kept.holding.lock);
            self.begin(
                client,
                engine,
                Purpose::Release { token, lock, lease: ended, sent: Sent::default() },
            )?;
        }
        Ok(())
    }

    fn extend(&mut self, client: usize) -> Played {
        let ttl = self.game.users[client].ttl;
        let Some(kept) = self.clients[client].kept.first_mut() else { return Ok(()) };
        let id = kept.id;
        if let Cared::Extend(request) = kept.state.tell(Care::Extend(ttl)) {
            let engine = self.call(request, TIMEOUT, Vec::new());
            self.begin(client, engine, Purpose::Extend { kept: id })?;
        }
        Ok(())
    }

    fn extended(&mut self, client: usize, id: u64, answer: Answer) -> Played {
        let now = self.now;
        let Some(kept) = self.clients[client].kept(id) else { return Ok(()) };
        let before = kept.state.deadline();
        let cared = kept.state.tell(Care::Extended(now, answer.sent, Ok(answer.reply)));
        if kept.state.deadline() != before {
            Locks::prolonged(self, client, id)?;
        }
        match cared {
            Cared::Need(need) => self.follow(client, id, need),
            _ => Ok(()),
        }
    }

    fn released(
        &mut self,
        token: &Token,
        lock: usize,
        lease: &Ended,
        sent: &Sent,
        mut answer: Answer,
    ) -> Played {
        let Sent { left: sent, unsent } = sent;
        if self.game.mutant == Some(Mutant::UnsentCounts) {
            answer.copies += *unsent;
        }
        if judge_release(&answer, lease.fence, lease.company, lease.deadline).is_err() {
            return Ok(());
        }
        // With two that left, an earlier one may have done it before the store forgot; and a late copy of the acquire
        // may have brought the lock to the same token once more: nobody can tell.
        let knows = sent.len() == 1 && !self.game.copied.contains(token.as_str());
        let Some((_, first)) = sent.first().filter(|_| knows) else { return Ok(()) };
        self.game.checkers[lock].released(token, *first, false)
    }

    /// Takes one lock after the other.
    fn next_in_turn(&mut self, client: usize, mut got: Vec<u64>, kept: u64, give_up: Moment) -> Played {
        got.push(kept);
        if got.len() == self.game.users[client].locks.len() {
            return self.returned(client, &got);
        }
        let number = got.len();
        self.acquire_one(client, number, got, give_up)
    }

    /// One of several could not be had: those before it are given back.
    fn give_back(&mut self, client: usize, got: &[u64]) -> Played {
        let kept = std::mem::take(&mut self.clients[client].kept);
        let (back, rest): (Vec<_>, Vec<_>) = kept.into_iter().partition(|kept| got.contains(&kept.id));
        self.clients[client].kept = back;
        self.release(client)?;
        self.clients[client].kept = rest;
        Ok(())
    }
}

impl Game for Locks {
    type Purpose = Purpose;
    type Holding = Holding;

    fn wishes(world: &World<Self>, client: usize) -> Vec<Wish> {
        let (user, this) = (&world.game.users[client], &world.clients[client]);
        let mut wishes = Vec::new();
        let is_idle = this.ops.is_empty() && this.kept.is_empty();
        // Of clients that are alike, the first begins first.
        let others = &world.game.users[..client];
        let alike = |other: &User| format!("{other:?}") == format!("{user:?}");
        let in_order = others.iter().zip(&world.game.begun).all(|(other, begun)| *begun || !alike(other));
        if is_idle && user.turns > 0 && (in_order || world.game.begun[client]) {
            wishes.push(Wish::Acquire);
        }
        let waits = this.ops.iter().any(|op| op.purpose.takes());
        if !this.kept.is_empty() && !waits {
            if this.ops.is_empty() && user.extends > 0 {
                wishes.push(Wish::Extend);
            }
            wishes.push(Wish::Release);
        }
        if waits && user.cancels > 0 {
            wishes.push(Wish::Cancel);
        }
        wishes
    }

    fn calm_wish(world: &World<Self>, client: usize) -> Option<Wish> {
        let this = &world.clients[client];
        match (this.ops.is_empty(), this.kept.is_empty()) {
            (true, false) => Some(Wish::Release),
            (true, true) if !world.game.served[client] => Some(Wish::Acquire),
            _ => None,
        }
    }

    fn act(world: &mut World<Self>, client: usize, wish: Wish) -> Played {
        let user = &mut world.game.users[client];
        match wish {
            Wish::Acquire => {
                user.turns = user.turns.saturating_sub(1);
                world.acquire(client)
            }
            Wish::Release => world.release(client),
            Wish::Extend => {
                user.extends -= 1;
                world.extend(client)
            }
            Wish::Cancel => {
                user.cancels -= 1;
                let ids: Vec<u64> = world.clients[client].ops.iter().map(|op| op.id).collect();
                ids.into_iter().for_each(|id| world.cancel(client, id));
                world.release(client)
            }
            _ => Ok(()),
        }
    }

    fn done(world: &mut World<Self>, client: usize, op: Op<Self>, outcome: Outcome) -> Played {
        match (op.purpose, outcome) {
            (Purpose::Acquire { token, number, got, give_up }, Outcome::Acquired(result)) => {
                let lock = world.game.users[client].locks[number];
                match result {
                    Ok(Acquired::Granted(grant)) => {
                        let kept = world.granted(client, lock, token, &grant);
                        world.next_in_turn(client, got, kept, give_up)
                    }
                    _ => world.give_back(client, &got),
                }
            }
            (Purpose::Several, Outcome::Several(Ok(Several::Granted { token, grants }))) => {
                let locks = world.game.users[client].locks.clone();
                let each = locks.into_iter().zip(&grants);
                let ids: Vec<u64> =
                    each.map(|(lock, grant)| world.granted(client, lock, token.clone(), grant)).collect();
                world.returned(client, &ids)
            }
            (Purpose::Together { token }, Outcome::Answered(Ok(answer))) => {
                let deadline = world.deadline(answer.sent, world.game.users[client].ttl);
                match answer.reply {
                    Reply::AcquireAll(AcquireAllReply::Granted(fences)) if world.now < deadline => {
                        let locks = world.game.users[client].locks.clone();
                        let grant = |fence| Grant { fence, deadline, resent: answer.copies > 1 };
                        let each = locks.into_iter().zip(fences);
                        let ids: Vec<u64> = each
                            .map(|(lock, fence)| world.granted(client, lock, token.clone(), &grant(fence)))
                            .collect();
                        world.returned(client, &ids)
                    }
                    reply => {
                        if answer.copies > 1 || reply != Reply::AcquireAll(AcquireAllReply::Busy) {
                            for lock in world.game.users[client].locks.clone() {
                                let (name, token) = (world.game.names[lock].clone(), token.clone());
                                world.run_errand(
                                    client,
                                    Request::Leave(Leave { name, token, foreign_share: false }),
                                );
                            }
                        }
                        let give_up = world.now + world.wait(client);
                        world.acquire_one(client, 0, Vec::new(), give_up)
                    }
                }
            }
            (Purpose::Release { token, lock, lease, sent }, Outcome::Answered(Ok(answer))) => {
                world.released(&token, lock, &lease, &sent, answer)
            }
            (Purpose::Extend { kept }, Outcome::Answered(Ok(answer))) => world.extended(client, kept, answer),
            _ => Ok(()),
        }
    }

    fn lost(world: &mut World<Self>, client: usize, kept: &Kept<Self>) {
        world.game.checkers[kept.holding.lock].stopped(world.now, &kept.holding.token);
        let id = kept.id;
        world.clients[client].kept.retain(|kept| kept.id != id);
    }

    fn prolonged(world: &mut World<Self>, client: usize, id: u64) -> Played {
        let now = world.now;
        let Some(kept) = world.clients[client].kept(id) else { return Ok(()) };
        let (holding, deadline) = (kept.holding.clone(), kept.state.deadline());
        world.game.checkers[holding.lock].prolonged(now, &holding.token, deadline)
    }

    fn sent(purpose: &mut Purpose, number: u32, now: Moment) {
        if let Purpose::Release { sent, .. } = purpose {
            sent.left.push((number, now));
        }
    }

    fn doubled(&mut self, request: &Request) {
        if let Request::Acquire(_) | Request::AcquireAll(_) = request {
            self.copied.insert(token_of(request).to_owned());
        }
    }

    fn unsent(purpose: &mut Purpose, number: u32) {
        if let Purpose::Release { sent, .. } = purpose {
            sent.left.retain(|(sent, _)| *sent != number);
            sent.unsent += 1;
        }
    }

    fn perform(world: &mut World<Self>, client: usize, _life: u32, request: &Request) -> Played<Reply> {
        let reply = world.store(client, request)?;
        let concerned: Vec<_> = match request {
            Request::Acquire(verb) => vec![&verb.name],
            Request::AcquireAll(verb) => verb.locks.iter().map(|(name, _)| name).collect(),
            Request::Leave(verb) => vec![&verb.name],
            _ => Vec::new(),
        };
        for lock in concerned {
            let lock = world.game.names.iter().position(|name| name == lock).unwrap();
            world.game.checkers[lock].performed(world.now, request, &reply)?;
        }
        Ok(reply)
    }

    /// The key of a lock is gone: deleted by somebody, or lost by a failover. Its record is not.
    fn end_early(world: &mut World<Self>) -> bool {
        let before = world.rows;
        let rows = world.stage.borrow_mut().edited(before, |image| {
            for (table, rows) in &mut image.0 {
                match table.as_str() {
                    "lock" => rows.iter_mut().for_each(|row| {
                        row[2] = Value::Null;
                        row[3] = Value::Integer(0);
                    }),
                    "permit" => rows.clear(),
                    _ => {}
                }
            }
        });
        world.rows = rows;
        let now = world.now;
        world.game.forgot |= rows != before;
        world.game.checkers.iter_mut().for_each(|checker| checker.ended_early(now));
        rows != before
    }

    fn calm_down(&mut self) {
        self.users.iter_mut().for_each(|user| (user.turns, user.extends, user.cancels) = (0, 0, 0));
        self.begun.fill(true);
    }

    fn is_over(world: &World<Self>) -> bool {
        world.game.served.iter().all(|served| *served)
            && world
                .clients
                .iter()
                .all(|client| client.ops.is_empty() && client.kept.is_empty() && !client.has_errands())
    }

    /// L8: nobody who lives is in line, but for late copies of acquires whose leases have ended: if the network made
    /// the copy, or the store forgot the lease, nobody could know of it, and it ends by itself.
    fn epilogue(world: &World<Self>) -> Played {
        let stage = world.stage.borrow();
        let is_copy = |token: &String| world.game.forgot || world.game.copied.contains(token);
        let lives = |row: &&Vec<Value>| match (&row[TOKEN], &row[CLIENT], &row[SEQ]) {
            (Value::Text(token), Value::Integer(client), Value::Integer(seq)) => {
                !is_copy(token) && world.is_of_the_living(*client, *seq)
            }
            _ => false,
        };
        match stage.rows(world.rows, "waiter").iter().filter(lives).count() {
            0 => Ok(()),
            left => Err(format!("L8: {left} waiters were left behind")),
        }
    }

    fn digest(&self, calm: bool) -> u64 {
        // Who is served in the end does not depend on what the judges remember.
        let checkers = (!calm).then_some(&self.checkers);
        digest(&(&self.users, &self.begun, &self.served, &self.tokens, &self.copied, self.forgot, checkers))
    }
}
