//! Worlds of one queue: enqueues of one id, two workers, and tasks beside it. Judged by the simulator's model and
//! ledger, and by the rules of liveness here.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::Value;
use stanchion::ErrorKind;
use stanchion::engine::Jitter;
use stanchion::engine::call::CallMachine;
use stanchion::engine::claim::{ClaimMachine, ClaimParams, ClaimedOne};
use stanchion::engine::lease::{LeaseState, LeaseTerms, Status};
use stanchion::engine::leased::{Leased, TaskLease};
use stanchion::engine::settle::judge_settled;
use stanchion::engine::worker::{Event, HandlerEnd, Order};
use stanchion::internals::{Moment, queue_name, task_id};
use stanchion::name::{QueueName, TaskId};
use stanchion::protocol::{
    CallId, ClaimReply, ClaimedTask, ClientId, Due, Enqueue, EnqueueOutcome, Get, List, NewTask, OnDuplicate,
    Outcome as Accepted, QueueReply, QueueRequest, QueueVerb, Receipt, Reply, Request, Settle, Settled,
    Settlement, TaskState, Verdict,
};

use crate::again::{Again, Care, Engine, Outcome};
use crate::crew::{Answer, Crew, HANDS, HANGS, Happens, Said, What, Work, crew};
use crate::mutant::Mutant;
use crate::stage::digest;
use crate::world::{Game, Kept, Left, Op, Played, Wish, World};

#[path = "../simulator/queues/body.rs"]
mod body;
#[path = "../simulator/queues/ledger/mod.rs"]
#[allow(dead_code, reason = "nobody removes dead tasks here")]
mod ledger;
#[path = "../simulator/queues/model/mod.rs"]
#[allow(dead_code, reason = "not every verb is in a small world")]
mod model;

use body::Body;
use ledger::{Ledger, Performed};
use model::{Model, Now};

/// How long a call is tried, and how long a claim waits.
const TIMEOUT: Duration = Duration::from_secs(3);
const WAIT: Duration = Duration::from_secs(8);
/// Life of a claim, and how long a failed task stays away.
const LEASE: Duration = Duration::from_millis(300);
const MAX_RUN: Duration = Duration::from_millis(500);
const DELAY: Duration = Duration::from_millis(500);
/// How long a debounced task waits, and for how long it can be put off.
const QUIET: Duration = Duration::from_millis(50);
const MAX_WAIT: Duration = Duration::from_millis(120);
const WINDOW: Duration = Duration::from_millis(100);
const ATTEMPTS: u32 = 3;
/// How soon a worker tells of a loss.
const SAYS_WITHIN: Duration = Duration::from_millis(200);
/// Columns of the tables.
const ID: usize = 2;
const STATE: usize = 4;
const TURN: usize = 5;
const DUE: usize = 8;
const BACKOFF: usize = 20;
const SEQUENCE: usize = 4;

/// What may happen in a world of a queue. Client 0 enqueues, the others work.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Ids that are in the queue when the world begins.
    pub there: Vec<&'static str>,
    /// How often the id "x" is enqueued, and how: 0 keep, 1 replace, 2 debounce, 3 throttle, 4 skip.
    pub enqueues: u32,
    pub policies: Vec<u8>,
    pub workers: usize,
    /// How often each worker claims, and what it may say.
    pub claims: u32,
    pub verdicts: Vec<Wish>,
    /// Whether the first worker is a machine with several hands, one of which hangs.
    pub has_crew: bool,
}

#[derive(Clone)]
pub struct Queues {
    queue: QueueName,
    plan: Plan,
    claims: Vec<u32>,
    begun: Vec<bool>,
    slots: Vec<Vec<CallId>>,
    bodies: u64,
    model: Model,
    ledger: Ledger,
    alive: Liveness,
    crew: Option<Crew>,
    handlers: BTreeMap<Receipt, Handler>,
    /// Deliveries whose verdict has to be said again.
    unheard: BTreeMap<Receipt, Holding>,
    mutant: Option<Mutant>,
}

/// A handler at work.
#[derive(Clone, Debug)]
struct Handler {
    id: TaskId,
    /// Whether its worker has said that its claim is lost.
    told: bool,
}

/// V1, by the number of deliveries; in which order tasks are delivered, and V2, is the ledger's.
#[derive(Clone, Debug, Default)]
struct Liveness {
    /// Ready tasks: how many others may be delivered before each, and how many were.
    ready: BTreeMap<String, (usize, usize)>,
    /// Put back by a worker: its next delivery is the same one once more.
    put_back: BTreeSet<TaskId>,
}

#[derive(Clone, Debug)]
pub enum Purpose {
    Enqueue {
        call: CallId,
        body: Body,
    },
    Claim {
        settles: Option<Holding>,
    },
    Settle {
        held: Holding,
        verdict: Verdict,
    },
    /// Of the worker with several hands.
    CrewClaim {
        settles: Vec<(Holding, Verdict)>,
    },
    CrewSettle {
        settles: Vec<(Holding, Verdict)>,
    },
}

/// A claimed task.
#[derive(Clone, Debug)]
pub struct Holding {
    task: ClaimedTask,
    /// As far as is known when it is settled.
    deadline: Moment,
    /// An earlier verdict, of the same kind, may have been carried out.
    resent: bool,
}

impl Queues {
    pub fn world(plan: Plan, left: Left, mutant: Option<Mutant>) -> Played<World<Self>> {
        let clients = plan.workers + 1;
        let game = Self {
            queue: queue_name("w").unwrap(),
            claims: vec![plan.claims; clients],
            begun: vec![false; clients],
            slots: vec![Vec::new(); clients],
            bodies: Body::COMMON,
            model: Model::default(),
            ledger: Ledger::default(),
            alive: Liveness::default(),
            crew: plan.has_crew.then(crew),
            handlers: BTreeMap::new(),
            unheard: BTreeMap::new(),
            mutant,
            plan,
        };
        let mut world = World::new(clients, left, game);
        let tasks: Vec<NewTask> =
            world.game.plan.there.clone().into_iter().map(|id| world.new_task(id, 0)).collect();
        if !tasks.is_empty() {
            let call = world.next_call(0);
            let verb = QueueVerb::Enqueue(Enqueue { call, timeout: Duration::ZERO, tasks: tasks.into() });
            let request = world.request(verb);
            Self::perform(&mut world, 0, 0, &request)?;
        }
        world.look_around()?;
        Ok(world)
    }
}

impl World<Queues> {
    fn request(&self, verb: QueueVerb) -> Request {
        Request::Queue(QueueRequest { queue: self.game.queue.clone(), verb })
    }

    fn clock(&self) -> Now {
        let (boot, wall) = self.stage.borrow().time(self.now);
        Now { boot, wall }
    }

    fn new_task(&mut self, id: &str, policy: u8) -> NewTask {
        self.game.bodies += 1;
        let on_duplicate = match policy {
            0 => OnDuplicate::Keep,
            1 => OnDuplicate::Replace,
            2 => OnDuplicate::Debounce { max_wait: MAX_WAIT },
            3 => OnDuplicate::Throttle { window: WINDOW },
            _ => OnDuplicate::Skip,
        };
        NewTask {
            key: None,
            node: None,
            id: task_id(id).unwrap(),
            body: Body(self.game.bodies).bytes(),
            due: if policy == 2 { Due::In(QUIET) } else { Due::Now },
            priority: 0,
            max_attempts: ATTEMPTS,
            expires: None,
            on_duplicate,
        }
    }

    /// A slot with the number of its last call. Each life of a client has another name.
    fn slot(&mut self, client: usize) -> CallId {
        let name = ClientId(u64::from(self.clients[client].life) * 100 + client as u64);
        let free = &mut self.game.slots[client];
        free.retain(|call| call.client == name);
        let slot = u32::try_from(self.clients[client].next_id()).unwrap();
        free.pop().unwrap_or(CallId { client: name, slot, number: 0 })
    }

    fn next_call(&mut self, client: usize) -> CallId {
        let mut call = self.slot(client);
        call.number += 1;
        call
    }

    fn call(&self, verb: QueueVerb) -> Again<Engine> {
        let (request, now) = (self.request(verb), self.now);
        Again::new(move || {
            Engine::Call(CallMachine::new(request.clone(), now, now + TIMEOUT, Jitter::seeded(1)))
        })
    }

    fn enqueue(&mut self, policy: u8) -> Played {
        self.game.plan.enqueues -= 1;
        let task = self.new_task("x", policy);
        let (call, body) = (self.next_call(0), Body::read(&task.body));
        let engine =
            self.call(QueueVerb::Enqueue(Enqueue { call, timeout: Duration::ZERO, tasks: [task].into() }));
        self.begin(0, engine, Purpose::Enqueue { call, body })
    }

    fn claim(&mut self, client: usize, settles: Option<Holding>) -> Played {
        self.game.claims[client] = self.game.claims[client].saturating_sub(1);
        self.game.begun[client] = true;
        let wait = if self.calm { Duration::from_secs(120) } else { WAIT };
        let items = settles.iter().map(|held| settlement(held, &Verdict::Ack)).collect();
        self.begin_claim(client, 1, wait, items, Purpose::Claim { settles })
    }

    fn begin_claim(
        &mut self,
        client: usize,
        max: u32,
        wait: Duration,
        items: Arc<[Settlement]>,
        purpose: Purpose,
    ) -> Played {
        let slot = self.slot(client);
        let id = self.clients[client].next_id();
        let order = ClaimParams {
            queues: vec![self.game.queue.clone()],
            max,
            lease: LEASE,
            wait,
            timeout: TIMEOUT,
            patient: false,
            settle: (!items.is_empty()).then_some(Settle { items }),
            waiter: self.stage.borrow().waiter(client, id),
            // Who had it makes no difference: it would only be told apart.
            consumer: "".into(),
            clock_stands: false,
            slot,
        };
        let now = self.now;
        let make = move || Engine::Claim(ClaimMachine::new(order.clone(), now, true, Jitter::seeded(1)));
        self.begin_as(client, id, Again::new(make), purpose)
    }

    fn begin_work(&mut self, client: usize, one: ClaimedOne) -> Played {
        let ClaimedOne { queue, task, deadline } = one;
        let now = self.now;
        self.game.ledger.began(now, 0, &task, deadline)?;
        let lease = TaskLease { queue, id: task.id.clone(), receipt: task.receipt };
        // The first worker renews its claims, for as long as a run may take.
        let hold_until = (client == 1).then_some(now + MAX_RUN);
        let make = move || {
            let leased = Leased::Task(lease.clone());
            LeaseState::new(LeaseTerms { leased, ttl: LEASE, deadline, hold_until, timeout: None }, now)
        };
        let id = self.clients[client].next_id();
        self.keep(client, id, Again::new(make), Holding { task, deadline, resent: false });
        Ok(())
    }

    /// The worker is done with what it holds.
    fn put_down(&mut self, client: usize) -> Option<Holding> {
        let receipt = self.clients[client].kept.last()?.holding.task.receipt;
        self.put_down_one(client, receipt)
    }

    fn put_down_one(&mut self, client: usize, receipt: Receipt) -> Option<Holding> {
        let all = &mut self.clients[client].kept;
        let index = all.iter().position(|kept| kept.holding.task.receipt == receipt)?;
        let mut kept = all.remove(index);
        kept.holding.deadline = kept.state.deadline();
        kept.state.tell(Care::End);
        self.game.ledger.stopped(self.now, 0, kept.holding.task.receipt);
        Some(kept.holding)
    }

    fn settle(&mut self, client: usize, verdict: Verdict) -> Played {
        let Some(held) = self.put_down(client) else { return Ok(()) };
        let items = [settlement(&held, &verdict)].into();
        let engine = self.call(QueueVerb::Settle(Settle { items }));
        self.begin(client, engine, Purpose::Settle { held, verdict })
    }

    fn judge(&mut self, held: &Holding, verdict: &Verdict, settled: Settled, resent: bool) -> Played {
        let now = self.now;
        let judged = judge_settled(settled, resent, now, held.deadline);
        self.game.ledger.judged(now, 0, held.task.receipt, verdict, &judged, resent)
    }

    fn tell_crew(&mut self, client: usize, what: What) -> Answer {
        let now = self.now;
        let is_lost = |kept: &&Kept<Queues>| matches!(kept.state.status(now), Status::Lost(_));
        let lost = self.clients[client].kept.iter().filter(is_lost).map(|kept| kept.holding.task.receipt);
        let lost = Rc::new(lost.collect());
        let crew = self.game.crew.as_mut().filter(|_| client == 1);
        crew.map_or(Answer::Nothing, |crew| crew.tell(Happens { now, lost, what }))
    }

    /// Has the hands work on what lies ready. No id is ever in two of them.
    fn begin_handlers(&mut self, client: usize) -> Played {
        while let Answer::Begun(Some(work)) = self.tell_crew(client, What::Begin) {
            let Some(kept) =
                self.clients[client].kept.iter().find(|kept| kept.holding.task.receipt == work.receipt)
            else {
                return Err("V6: a handler began without a claim".into());
            };
            let id = kept.holding.task.id.clone();
            self.say(|| format!("client {client}: a handler begins with {id:?} ({})", work.receipt));
            if self.game.handlers.values().any(|handler| handler.id == id) {
                return Err(format!("V6: {id:?} is run twice at once by one worker"));
            }
            self.game.handlers.insert(work.receipt, Handler { id, told: false });
        }
        Ok(())
    }

    /// What the machine of the worker wants.
    fn follow_crew(&mut self, client: usize) -> Played {
        loop {
            self.begin_handlers(client)?;
            let Answer::Order(order) = self.tell_crew(client, What::Asked) else { return Ok(()) };
            match order {
                Order::Claim { max, wait, settle } => {
                    let settles = self.verdicts(client, settle);
                    let items = settles.iter().map(|(held, verdict)| settlement(held, verdict)).collect();
                    let max = u32::try_from(max).unwrap();
                    self.begin_claim(client, max, wait, items, Purpose::CrewClaim { settles })?;
                }
                Order::Settle(said) => {
                    let settles = self.verdicts(client, said);
                    let items = settles.iter().map(|(held, verdict)| settlement(held, verdict)).collect();
                    let engine = self.call(QueueVerb::Settle(Settle { items }));
                    self.begin(client, engine, Purpose::CrewSettle { settles })?;
                }
                Order::Look => drop(self.tell_crew(client, What::Looked)),
                Order::Abandon => {
                    let claims = |op: &&Op<Queues>| matches!(op.purpose, Purpose::CrewClaim { .. });
                    if let Some(id) = self.clients[client].ops.iter().find(claims).map(|op| op.id) {
                        self.cancel(client, id);
                    }
                }
                Order::Signal(_) => {}
                Order::Wait(until) => {
                    self.clients[client].alarm = until;
                    break;
                }
                Order::Done => break,
            }
        }
        if let Answer::Events(events) = self.tell_crew(client, What::Events) {
            for event in events {
                if let Event::Lost(work) = event
                    && let Some(handler) = self.game.handlers.get_mut(&work.receipt)
                {
                    handler.told = true;
                }
            }
        }
        self.check_losses(client)
    }

    fn verdicts(&mut self, client: usize, said: Vec<Said>) -> Vec<(Holding, Verdict)> {
        let mut holding = |receipt| {
            let unheard = self.game.unheard.remove(&receipt);
            unheard.or_else(|| self.put_down_one(client, receipt))
        };
        said.into_iter().filter_map(|said| Some((holding(said.receipt)?, said.verdict))).collect()
    }

    /// The verdicts were not heard of: they are said again.
    fn again(&mut self, settles: Vec<(Holding, Verdict)>, error: &stanchion::Error) -> (Vec<Said>, bool) {
        let in_doubt = error.kind() == ErrorKind::Indeterminate;
        let may_pass = in_doubt || error.kind() == ErrorKind::StoreUnavailable;
        let again = settles.into_iter().map(|(mut held, verdict)| {
            let receipt = held.task.receipt;
            held.resent |= in_doubt;
            self.game.unheard.insert(receipt, held);
            Said { receipt, verdict }
        });
        (again.collect(), may_pass)
    }

    /// V6: a worker says soon that a claim is lost, also if its handler hangs.
    fn check_losses(&self, client: usize) -> Played {
        for kept in self.clients[client].kept.iter().filter(|_| self.clients[client].was_awake()) {
            let handler = self.game.handlers.get(&kept.holding.task.receipt);
            if handler.is_some_and(|handler| !handler.told) && self.now > kept.state.deadline() + SAYS_WITHIN
            {
                return Err(format!(
                    "V6: {:?} is lost, and its worker does not say so",
                    kept.holding.task.id
                ));
            }
        }
        Ok(())
    }

    fn end_handler(&mut self, client: usize, receipt: Receipt, ending: HandlerEnd) -> Played {
        self.game.handlers.remove(&receipt);
        self.tell_crew(client, What::Ended(receipt, ending));
        let now = self.now;
        let is_over = |kept: &Kept<Queues>| {
            kept.holding.task.receipt == receipt && matches!(kept.state.status(now), Status::Lost(_))
        };
        self.clients[client].kept.retain(|kept| !is_over(kept));
        Ok(())
    }

    /// V1, after each step at the store.
    fn check_liveness(&mut self, verb: &QueueVerb, reply: &QueueReply) -> Played {
        let consumers = self.game.plan.workers + if self.game.plan.has_crew { HANDS - 1 } else { 0 };
        let line = self.line();
        let alive = &mut self.game.alive;
        if let QueueVerb::Settle(verb) | QueueVerb::SettleAndClaim(verb, _) = verb {
            let back = verb.items.iter().filter(|item| matches!(item.verdict, Verdict::PUT_BACK));
            alive.put_back.extend(back.map(|item| item.id.clone()));
        }
        if let QueueReply::Claim(ClaimReply::Claimed(tasks))
        | QueueReply::SettleAndClaim(_, ClaimReply::Claimed(tasks)) = reply
        {
            tasks.iter().try_for_each(|task| alive.delivered(&task.id))?;
        }
        alive.ready.retain(|id, _| line.contains(id));
        for (ahead, id) in line.into_iter().enumerate() {
            alive.ready.entry(id).or_insert((ahead + consumers, 0));
        }
        Ok(())
    }

    /// The ids of the ready tasks in their order.
    fn line(&self) -> Vec<String> {
        let stage = self.stage.borrow();
        let ready = stage.rows(self.rows, "task").iter().filter(|row| row[STATE] == Value::Integer(1));
        let mut line: Vec<(i64, String)> = ready
            .filter_map(|row| match (&row[TURN], &row[ID]) {
                (Value::Integer(turn), Value::Text(id)) => Some((*turn, id.clone())),
                _ => None,
            })
            .collect();
        line.sort();
        line.into_iter().map(|(_, id)| id).collect()
    }

    fn ask(&mut self, verb: QueueVerb) -> Played<QueueReply> {
        let request = self.request(verb);
        match Queues::perform(self, 0, 0, &request)? {
            Reply::Queue(reply) => Ok(reply),
            other => Err(format!("{other:?}")),
        }
    }
}

impl Liveness {
    fn delivered(&mut self, id: &TaskId) -> Played {
        let was_ready = self.ready.remove(id.as_str()).is_some();
        // One that was given before, or is due only now, has passed nobody who was ready then.
        if self.put_back.remove(id) || !was_ready {
            return Ok(());
        }
        for (id, (bound, passed)) in &mut self.ready {
            *passed += 1;
            if passed >= bound {
                return Err(format!("V1: {id} is ready, and {passed} others were delivered before it"));
            }
        }
        Ok(())
    }
}

impl Game for Queues {
    type Purpose = Purpose;
    type Holding = Holding;

    fn wishes(world: &World<Self>, client: usize) -> Vec<Wish> {
        let (game, this) = (&world.game, &world.clients[client]);
        if client == 0 {
            let may = game.plan.enqueues > 0 && this.ops.is_empty();
            return if may {
                game.plan.policies.iter().copied().map(Wish::Enqueue).collect()
            } else {
                Vec::new()
            };
        }
        if client == 1 && game.crew.is_some() {
            let ends = game.handlers.iter().filter(|(_, handler)| handler.id.as_str() != HANGS);
            return ends.flat_map(|(receipt, _)| [Wish::Finish(*receipt), Wish::Fail(*receipt)]).collect();
        }
        let mut wishes = Vec::new();
        let in_order = game.plan.has_crew || game.begun[1..client].iter().all(|begun| *begun);
        if this.ops.is_empty() && this.kept.is_empty() && game.claims[client] > 0 && in_order {
            wishes.push(Wish::Claim);
        }
        if !this.kept.is_empty() {
            let may = |wish: &&Wish| **wish != Wish::AckAndClaim || game.claims[client] > 0;
            wishes.extend(game.plan.verdicts.iter().filter(may));
        }
        wishes
    }

    fn calm_wish(world: &World<Self>, client: usize) -> Option<Wish> {
        let this = &world.clients[client];
        let claims = this.ops.iter().any(|op| matches!(op.purpose, Purpose::Claim { .. }));
        match client {
            0 => None,
            1 if world.game.crew.is_some() => {
                let mut ends = world.game.handlers.iter().filter(|(_, handler)| handler.id.as_str() != HANGS);
                ends.next().map(|(receipt, _)| Wish::Finish(*receipt))
            }
            _ if !this.kept.is_empty() => Some(Wish::Ack),
            _ if !claims => Some(Wish::Claim),
            _ => None,
        }
    }

    fn act(world: &mut World<Self>, client: usize, wish: Wish) -> Played {
        match wish {
            Wish::Enqueue(policy) => world.enqueue(policy),
            Wish::Claim => world.claim(client, None),
            Wish::Ack => world.settle(client, Verdict::Ack),
            Wish::AckAndClaim => {
                let held = world.put_down(client);
                world.claim(client, held)
            }
            Wish::Nack => world.settle(client, Verdict::Nack { delay: DELAY, reason: "failed".into() }),
            Wish::Finish(receipt) => world.end_handler(client, receipt, HandlerEnd::Returned),
            Wish::Fail(receipt) => world.end_handler(client, receipt, HandlerEnd::Failed("failed".into())),
            Wish::PutBack => world.settle(client, Verdict::PUT_BACK),
            _ => Ok(()),
        }
    }

    fn done(world: &mut World<Self>, client: usize, op: Op<Self>, outcome: Outcome) -> Played {
        if let Engine::Claim(machine) = &*op.engine
            && let Some(slot) = machine.free_slot()
        {
            world.game.slots[client].push(slot);
        }
        match (op.purpose, outcome) {
            (Purpose::Enqueue { call, body }, Outcome::Answered(Ok(answer))) => {
                world.game.slots[client].push(call);
                match answer.reply {
                    Reply::Queue(QueueReply::Enqueue(outcomes)) => match outcomes[0] {
                        EnqueueOutcome::Accepted {
                            outcome: Accepted::Added | Accepted::Replaced | Accepted::Successor,
                            ..
                        } if !world.game.ledger.knows(body) => {
                            Err(format!("Q1: {body:?} was acknowledged and not accepted"))
                        }
                        _ => Ok(()),
                    },
                    other => Err(format!("an enqueue was answered by {other:?}")),
                }
            }
            (Purpose::Claim { settles }, Outcome::Claimed(Ok(claimed))) => {
                if let (Some(held), Some(settled)) = (settles, claimed.settled.first()) {
                    world.judge(&held, &Verdict::Ack, *settled, false)?;
                }
                claimed.tasks.into_iter().try_for_each(|one| world.begin_work(client, one))
            }
            (Purpose::Settle { held, verdict }, Outcome::Answered(Ok(answer))) => match answer.reply {
                Reply::Queue(QueueReply::Settle(settled)) => {
                    world.judge(&held, &verdict, settled[0], answer.copies > 1)
                }
                other => Err(format!("a settle was answered by {other:?}")),
            },
            (Purpose::CrewClaim { settles }, Outcome::Claimed(Ok(claimed))) => {
                for ((held, verdict), settled) in settles.iter().zip(&claimed.settled) {
                    world.judge(held, verdict, *settled, held.resent)?;
                }
                let mutant = world.game.mutant;
                let work = |one: &ClaimedOne| Work::new(&one.task.id, one.task.receipt, mutant);
                let works = claimed.tasks.iter().map(work).collect();
                claimed.tasks.into_iter().try_for_each(|one| world.begin_work(client, one))?;
                world.tell_crew(client, What::Claimed(works));
                Ok(())
            }
            (Purpose::CrewClaim { settles }, Outcome::Claimed(Err(error))) => {
                let (again, may_pass) = world.again(settles, &error);
                world.tell_crew(client, What::ClaimFailed(again, may_pass));
                Ok(())
            }
            (Purpose::CrewSettle { settles }, Outcome::Answered(Ok(answer))) => {
                if let Reply::Queue(QueueReply::Settle(settled)) = answer.reply {
                    for ((held, verdict), settled) in settles.iter().zip(settled) {
                        world.judge(held, verdict, settled, held.resent || answer.copies > 1)?;
                    }
                }
                world.tell_crew(client, What::Settled(None));
                Ok(())
            }
            (Purpose::CrewSettle { settles }, Outcome::Answered(Err(error))) => {
                let failure = world.again(settles, &error);
                world.tell_crew(client, What::Settled(Some(failure)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn reborn(world: &mut World<Self>, client: usize) {
        if client == 1 && world.game.crew.is_some() {
            world.game.crew = Some(crew());
            world.game.handlers.clear();
            world.game.unheard.clear();
        }
    }

    fn look_around(world: &mut World<Self>, client: usize) -> Played {
        if client == 1 && world.game.crew.is_some() { world.follow_crew(client) } else { Ok(()) }
    }

    fn lost(world: &mut World<Self>, _client: usize, kept: &Kept<Self>) {
        // Its worker goes on, and may settle late.
        world.game.ledger.stopped(world.now, 0, kept.holding.task.receipt);
    }

    fn prolonged(world: &mut World<Self>, client: usize, id: u64) -> Played {
        if let Some(kept) = world.clients[client].kept(id) {
            let (receipt, deadline) = (kept.holding.task.receipt, kept.state.deadline());
            world.game.ledger.prolonged(0, receipt, deadline);
        }
        Ok(())
    }

    fn perform(world: &mut World<Self>, client: usize, life: u32, request: &Request) -> Played<Reply> {
        let Request::Queue(QueueRequest { verb, .. }) = request else { return Err("only queues".into()) };
        let before = world.line();
        let Reply::Queue(reply) = world.store(client, request)? else { return Err("no queue".into()) };
        let clock = world.clock();
        let step = Performed {
            now: world.now,
            wall_ms: clock.wall / 1_000,
            queue: 0,
            by: (client, life),
            verb,
            reply: &reply,
        };
        world.game.ledger.performed(&step)?;
        world.game.model.perform(clock, verb, &reply)?;
        let lives: Vec<u32> = world.clients.iter().map(|client| client.life).collect();
        for receipt in std::mem::take(&mut world.game.model.ended) {
            world.game.ledger.lease_ended(0, receipt, |client| lives[client])?;
        }
        world.mutate(&before, verb, &reply);
        world.check_liveness(verb, &reply)?;
        Ok(Reply::Queue(reply))
    }

    fn calm_down(&mut self) {
        self.plan.enqueues = 0;
        self.claims.fill(0);
        self.begun.fill(true);
    }

    fn is_over(world: &World<Self>) -> bool {
        if world.game.crew.is_some() {
            // What hangs comes back for ever.
            let hangs = |row: &Vec<Value>| row[ID] == Value::Text(HANGS.to_owned());
            return world.stage.borrow().rows(world.rows, "task").iter().all(hangs)
                && world.game.handlers.values().all(|handler| handler.id.as_str() == HANGS);
        }
        let is_done = |op: &Op<Self>| matches!(op.purpose, Purpose::Claim { settles: None });
        world.stage.borrow().rows(world.rows, "task").is_empty()
            && world.clients.iter().all(|client| {
                client.kept.is_empty() && !client.has_errands() && client.ops.iter().all(is_done)
            })
    }

    fn compare(world: &World<Self>) -> Played {
        let mut world = world.clone();
        world.ask(QueueVerb::Stats)?;
        world.ask(QueueVerb::Get(Get { id: task_id("x").unwrap() })).map(drop)
    }

    /// Q1, Q9, Q10.
    fn epilogue(world: &World<Self>) -> Played {
        let mut world = world.clone();
        if world.game.crew.is_some() {
            return Ok(());
        }
        if !world.game.model.is_empty() {
            return Err("Q10: something is left".into());
        }
        let verb = QueueVerb::List(List {
            state: TaskState::Dead,
            prefix: "".into(),
            bodies: true,
            from: None,
            max: 100,
        });
        let QueueReply::List(dead) = world.ask(verb)? else { return Err("no list".into()) };
        world.game.ledger.settle_accounts(0, &dead.tasks)
    }

    fn digest(&self, _calm: bool) -> u64 {
        let users = (&self.plan, &self.claims, &self.begun, &self.slots, self.bodies);
        let crew = (self.crew.as_deref(), &self.handlers, &self.unheard);
        digest(&(users, crew, &self.ledger, &self.alive))
    }
}

impl World<Queues> {
    /// What mutants make of what the store did.
    fn mutate(&mut self, before: &[String], verb: &QueueVerb, reply: &QueueReply) {
        let (Some(mutant), QueueVerb::Enqueue(verb), QueueReply::Enqueue(outcomes)) =
            (self.game.mutant, verb, reply)
        else {
            return;
        };
        let task = &verb.tasks[0];
        let id = task.id.as_str();
        let now = i64::try_from(self.clock().wall / 1_000).unwrap();
        let EnqueueOutcome::Accepted { outcome: Accepted::Replaced, .. } = outcomes[0] else {
            return;
        };
        match (mutant, task.on_duplicate) {
            (Mutant::ReplaceLosesPlace, OnDuplicate::Replace) if before.iter().any(|ready| ready == id) => {
                self.edit_task(id, |row, last| row[TURN] = Value::Integer(last + 1));
            }
            (Mutant::BurstOutlivesFailure, OnDuplicate::Debounce { .. }) => {
                self.edit_task(id, |row, _| {
                    if matches!(row[BACKOFF], Value::Integer(until) if until > now) {
                        row[DUE] = Value::Integer(now);
                    }
                });
            }
            _ => {}
        }
    }

    /// Changes the row of a task, given also the last turn of all.
    fn edit_task(&mut self, id: &str, edit: impl Fn(&mut [Value], i64)) {
        let rows = self.stage.borrow_mut().edited(self.rows, |image| {
            for (table, rows) in &mut image.0 {
                if table == "queue" {
                    rows.iter_mut().for_each(|row| add(&mut row[SEQUENCE], 1));
                }
                if table == "task" {
                    let turn = |row: &Vec<Value>| if let Value::Integer(turn) = row[TURN] { turn } else { 0 };
                    let last = rows.iter().map(turn).max().unwrap_or(0);
                    let same = |row: &&mut Vec<Value>| row[ID] == Value::Text(id.to_owned());
                    rows.iter_mut().filter(same).for_each(|row| edit(row, last));
                }
            }
        });
        self.rows = rows;
    }
}

fn add(value: &mut Value, more: i64) {
    if let Value::Integer(number) = value {
        *number += more;
    }
}

fn settlement(held: &Holding, verdict: &Verdict) -> Settlement {
    Settlement { id: held.task.id.clone(), receipt: held.task.receipt, verdict: verdict.clone() }
}
