//! Fleets that share a limiter: tries and waits that are cancelled, frozen and killed, whose messages are lost, late and
//! doubled. Never more is used than the limit allows, nobody goes on before its time, and nobody waits longer than it was
//! told.

mod ledger;
mod mutant;

use std::ops::AddAssign;
use std::time::Duration;

use stanchion::engine::take::{TakeEnd, TakeMachine};
use stanchion::engine::{Machine, Step};
use stanchion::internals::{Clock, Moment, Token, limiter_name, token};
use stanchion::name::LimiterName;
use stanchion::protocol::{Failure, FailureKind, GiveBack, LimitKind, Reply, Request, Rule, Take, TakeReply};

use crate::scene::{Event, Played, Process, Route, Scene, Stores, Weather};
use ledger::{Caller, Ledger, micros};

pub use mutant::Mutant;

/// Clients of a fleet; a run uses some of them.
const MOST_CLIENTS: usize = 4;
/// Then nothing of the storm is on its way any more.
const AFTERMATH: Duration = Duration::from_secs(8);
/// How late one may go on: the longest way back from the store in calm weather, and a thousandth of the longest wait.
const BOUND: Duration = Duration::from_micros(5_000 + 6_000 + 1);

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub taken: u64,
    pub used: u64,
    pub waited: u64,
    pub refused: u64,
    pub given_back: u64,
    pub lost: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.taken += other.taken;
        self.used += other.used;
        self.waited += other.waited;
        self.refused += other.refused;
        self.given_back += other.given_back;
        self.lost += other.lost;
    }
}

/// Clients that share a limiter.
pub struct Fleet(Stores);

impl crate::Fleet for Fleet {
    type Mutant = Mutant;
    type Tally = Tally;
    const SHARE: u64 = 10;

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
    machine: TakeMachine,
    /// Sendings whose reply is awaited, when they were sent, and until when.
    awaited: Vec<(u32, Moment, Moment)>,
    count: u32,
    token: Option<Token>,
    /// Whether it began when nothing went wrong any more.
    began_calm: bool,
}

struct World<'f> {
    stores: &'f Stores,
    scene: Scene,
    name: LimiterName,
    rule: Rule,
    /// What each client does at the moment.
    ops: Vec<Vec<Op>>,
    /// Whose each token is.
    tokens: Vec<Caller>,
    /// Tokens have numbers after this one: the store remembers those that another schedule has ended.
    first_token: u128,
    /// Those whose give-back has come to the store.
    ended: Vec<Token>,
    ledger: Ledger,
    mutant: Option<Mutant>,
    calm_from: Option<Moment>,
    origin: u64,
}

impl<'f> World<'f> {
    fn new(stores: &'f Stores, seed: u64, mutant: Option<Mutant>, loud: bool) -> Self {
        let mut scene = Scene::new(&stores.clock, seed, loud);
        let count = scene.rng.usize(2..=MOST_CLIENTS);
        for _ in 0..count {
            let process = Process::new(scene.rng.bool(), scene.rng.u32(4..=10));
            scene.processes.push(process);
        }
        let kind = LimitKind::ALL[scene.rng.usize(0..3)];
        let (most, burst) = (scene.rng.u32(1..=4), scene.rng.u32(1..=4));
        // Windows are those of the clock: schedules begin at whole seconds, so that a seed repeats at another time.
        let per = match kind {
            LimitKind::FixedWindow => {
                [50_000, 125_000, 200_000, 250_000, 500_000, 1_000_000][scene.rng.usize(0..6)]
            }
            _ => scene.rng.u64(50_000..2_000_000),
        };
        let burst = if kind == LimitKind::Gcra { burst } else { most };
        let rule = Rule { kind, most, per, burst };
        let clock = Clock::Manual(stores.clock.clone());
        Self {
            stores,
            name: limiter_name(&format!("l{seed}")).unwrap(),
            rule,
            ops: (0..count).map(|_| Vec::new()).collect(),
            tokens: Vec::new(),
            first_token: u128::from(seed) << 32,
            ended: Vec::new(),
            ledger: Ledger::new(rule),
            mutant,
            calm_from: None,
            origin: clock.wall_micros() - clock.now().as_micros(),
            scene,
        }
    }

    fn run(&mut self) -> Played {
        for client in 0..self.ops.len() {
            let pause = self.scene.between(0, 300);
            self.scene.act_after(client, pause);
        }
        for _ in 0..self.scene.rng.u32(0..5) {
            self.scene.plan_mishap();
        }
        self.drain()?;
        self.scene.calm = true;
        self.scene.weather = Weather::CALM;
        self.calm_from = Some(self.scene.now + AFTERMATH);
        for client in 0..self.ops.len() {
            self.scene.processes[client].turns = 3;
            let pause = AFTERMATH + self.scene.between(0, 20);
            self.scene.act_after(client, pause);
        }
        self.drain()
    }

    fn drain(&mut self) -> Played {
        while let Some(event) = self.scene.next()? {
            self.handle(event)?;
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Played {
        match event {
            Event::Arrive { client, life, route, number, request } => {
                let reply = self.perform(client, life, route, &request)?;
                self.scene.answer(client, life, route, number, reply);
                Ok(())
            }
            Event::Deliver { client, route, number, result, .. } => {
                self.deliver(client, route, number, result)
            }
            Event::Wake { client, .. } => self.wake(client),
            Event::Act { client, .. } => self.act(client),
            Event::Cancel { client } => {
                if let Some(op) = self.ops[client].pop() {
                    self.clean_up_after(client, op);
                }
                Ok(())
            }
            Event::Kill { client } => {
                self.scene.processes[client].die();
                self.ops[client].clear();
                let pause = self.scene.between(10, 1_000);
                self.scene.act_after(client, pause);
                Ok(())
            }
            Event::Hint { .. } | Event::Freeze { .. } | Event::Suspend { .. } | Event::Store(_) => Ok(()),
        }
    }

    /// The store carries out a request, and the ledger notes it.
    fn perform(&mut self, client: usize, life: u32, route: Route, request: &Request) -> Played<Reply> {
        let now = micros(self.scene.now, self.origin);
        match request {
            Request::Take(take) => {
                let Route::Op(id) = route else { return Err("a take that is no call".into()) };
                let forgets = self.mutant == Some(Mutant::StoreForgets) && self.scene.once_in(4);
                let reply = self.stores.perform(client, request)?;
                if let Reply::Take(TakeReply::Taken(begins)) = reply {
                    if let Some(token) = take.token.as_ref().filter(|token| self.ended.contains(token)) {
                        return Err(format!(
                            "T5: {:?} takes though it was given back",
                            self.caller_of(token)
                        ));
                    }
                    let begins = now + u64::try_from(begins.as_micros()).unwrap();
                    self.ledger.taken((client, life, id), begins, take.count)?;
                    if forgets && let Some(token) = take.token.clone() {
                        self.stores.perform(client, &self.giving_back(take.count, token))?;
                    }
                }
                Ok(reply)
            }
            Request::GiveBack(given) => {
                let mut given = given.clone();
                if self.mutant == Some(Mutant::GivesBackAnothers) {
                    given.token = self.token(self.tokens.len());
                }
                let reply = self.stores.perform(client, &Request::GiveBack(given.clone()))?;
                self.ended.push(given.token.clone());
                if reply == Reply::GiveBack(true) {
                    let caller = self.caller_of(&given.token);
                    self.ledger.given_back(caller)?;
                }
                Ok(reply)
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn giving_back(&self, count: u32, token: Token) -> Request {
        Request::GiveBack(GiveBack { name: self.name.clone(), rule: self.rule, count, token })
    }

    fn caller_of(&self, given: &Token) -> Caller {
        let place = (0..self.tokens.len()).find(|place| self.token(*place + 1) == *given);
        self.tokens[place.unwrap_or_default()]
    }

    fn token(&self, number: usize) -> Token {
        token(self.first_token + number as u128)
    }

    /// A user wants something.
    fn act(&mut self, client: usize) -> Played {
        let process = &mut self.scene.processes[client];
        if process.turns == 0 {
            return Ok(());
        }
        process.turns -= 1;
        let (id, life) = (process.next_id(), process.life);
        let count = self.scene.rng.u32(1..=self.rule.burst);
        let waits = self.scene.rng.u32(0..4) > 0;
        let own = if waits { Some(self.new_token((client, life, id))) } else { None };
        let wait_most = if waits { self.scene.between(1, 6_000) } else { Duration::ZERO };
        let take = Take { name: self.name.clone(), rule: self.rule, count, wait_most, token: own.clone() };
        let (now, jitter) = (self.scene.now, self.scene.jitter());
        // As on a clock that stands, a wait would count from the sending.
        let early = self.mutant == Some(Mutant::CountsFromSending);
        let machine = TakeMachine::new(take, now, now + Duration::from_secs(5), early, jitter);
        let began_calm = self.calm_from.is_some_and(|from| now >= from);
        self.ops[client].push(Op { id, machine, awaited: Vec::new(), count, token: own, began_calm });
        // Others come meanwhile, also of this client.
        if self.scene.once_in(2) {
            let pause = self.scene.between(0, 300);
            self.scene.act_after(client, pause);
        }
        self.step(client, id)
    }

    fn new_token(&mut self, caller: Caller) -> Token {
        self.tokens.push(caller);
        let number = if self.mutant == Some(Mutant::SharesTokens) { 1 } else { self.tokens.len() };
        self.token(number)
    }

    /// Does what the machine of a running call asks.
    fn step(&mut self, client: usize, id: u64) -> Played {
        let Some(index) = self.ops[client].iter().position(|op| op.id == id) else { return Ok(()) };
        let mut op = self.ops[client].remove(index);
        match op.machine.step(self.scene.now) {
            Step::Send(call) => {
                op.awaited.push((call.number, self.scene.now, call.until));
                self.scene.send(client, Route::Op(id), call.number, call.request);
                self.scene.wake_at(client, call.until);
            }
            Step::Listen => return Err("it listens to nothing".into()),
            Step::Wait { until, .. } => {
                let twice = self.mutant == Some(Mutant::WaitsTooLong) && op.awaited.is_empty();
                let extra = if twice { until.since(self.scene.now) } else { Duration::ZERO };
                self.scene.wake_at(client, until + extra);
            }
            Step::Done(result) => return self.finish(client, op, result.ok()),
        }
        self.ops[client].push(op);
        Ok(())
    }

    fn finish(&mut self, client: usize, mut op: Op, end: Option<TakeEnd>) -> Played {
        let caller = (client, self.scene.processes[client].life, op.id);
        let pause = if self.scene.calm { Duration::ZERO } else { self.scene.between(0, 300) };
        self.scene.act_after(client, pause);
        let goes_on = match end {
            Some(TakeEnd::Allowed { waited }) => {
                self.ledger.tally.waited += u64::from(waited);
                true
            }
            Some(TakeEnd::RetryAfter(_)) => {
                self.ledger.tally.refused += 1;
                self.mutant == Some(Mutant::IgnoresRefusal)
            }
            None => false,
        };
        if goes_on {
            let now = micros(self.scene.now, self.origin);
            let begins = self.ledger.used(caller, now)?;
            let late = Duration::from_micros(now - begins);
            if op.began_calm && late > BOUND {
                return Err(format!("T4: {caller:?} goes on {late:?} late"));
            }
            if self.mutant == Some(Mutant::GivesBackWhatIsUsed)
                && let Some(token) = op.token.take()
            {
                let request = self.giving_back(op.count, token);
                self.scene.run_errand(client, request);
            }
        }
        self.clean_up_after(client, op);
        Ok(())
    }

    fn clean_up_after(&mut self, client: usize, mut op: Op) {
        while let Some(request) = op.machine.abandon() {
            self.scene.run_errand(client, request);
        }
    }

    fn wake(&mut self, client: usize) -> Played {
        let ids: Vec<u64> = self.ops[client].iter().map(|op| op.id).collect();
        for id in ids {
            self.give_up_on_replies(client, id);
            self.step(client, id)?;
        }
        self.scene.care_for_errands(client);
        Ok(())
    }

    /// As the drivers do: a reply that has not come in time counts as lost.
    fn give_up_on_replies(&mut self, client: usize, id: u64) {
        let now = self.scene.now;
        if !self.scene.processes[client].drops_late_replies {
            return;
        }
        let Some(op) = self.ops[client].iter_mut().find(|op| op.id == id) else { return };
        while let Some(index) = op.awaited.iter().position(|(.., until)| *until <= now) {
            let (number, ..) = op.awaited.remove(index);
            op.machine.reply(now, number, Err(Failure::new(FailureKind::Lost, "no answer")));
        }
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
                let drops_late_replies = self.scene.processes[client].drops_late_replies;
                let Some(op) = self.ops[client].iter_mut().find(|op| op.id == id) else { return Ok(()) };
                let index = op.awaited.iter().position(|(awaited, ..)| *awaited == number);
                if index.is_none() && drops_late_replies {
                    return Ok(());
                }
                index.map(|index| op.awaited.remove(index));
                op.machine.reply(self.scene.now, number, result);
                self.step(client, id)
            }
            Route::Renewal(_) => Ok(()),
            Route::Errand(id) => {
                self.scene.errand_answered(client, id, &result);
                Ok(())
            }
        }
    }
}
