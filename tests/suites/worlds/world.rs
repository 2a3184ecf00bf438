//! A small world: clients with the engine's machines, the messages between them and the store, and what may happen
//! next. As the drivers and the keeper do it; every choice is a [`Move`].

use std::cell::RefCell;
use std::fmt::{self, Debug};
use std::rc::Rc;
use std::time::Duration;

use stanchion::engine::lease::{LeaseState, Need, Status};
use stanchion::internals::Moment;
use stanchion::protocol::{Failure, FailureKind, Receipt, Reply, Request};

use crate::again::{Again, Asked, Care, Cared, Engine, Input, Outcome};
use crate::stage::{DAWN, Rows, Stage, digest, token_of};

/// Why a world is broken, or that it is not.
pub type Played<T = ()> = Result<T, String>;

/// How long a renewal's answer is awaited, and a clean-up's; and the pause after one that failed.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(100);
/// How long a client that was suspended may not look at its timers afterwards.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// What users want in a world, and what is judged.
pub trait Game: Clone {
    /// What a call is for.
    type Purpose: Clone + Debug;
    /// What a lease is for.
    type Holding: Clone + Debug;

    /// What this client's user may do now.
    fn wishes(world: &World<Self>, client: usize) -> Vec<Wish>;
    /// What the user does to come to an end when nothing disturbs.
    fn calm_wish(world: &World<Self>, client: usize) -> Option<Wish>;
    fn act(world: &mut World<Self>, client: usize, wish: Wish) -> Played;
    /// A call has its outcome.
    fn done(world: &mut World<Self>, client: usize, op: Op<Self>, outcome: Outcome) -> Played;
    /// A lease was lost, or its client died.
    fn lost(world: &mut World<Self>, client: usize, kept: &Kept<Self>);
    /// A renewal moved the deadline.
    fn prolonged(world: &mut World<Self>, client: usize, kept: u64) -> Played;
    /// A request of a call was sent.
    fn sent(_purpose: &mut Self::Purpose, _number: u32, _now: Moment) {}
    /// The network made a copy of a request, which its client does not know of.
    fn doubled(&mut self, _request: &Request) {}
    /// A sending was left undone, surely.
    fn unsent(_purpose: &mut Self::Purpose, _number: u32) {}
    /// The store's answer, which a mutant may change, once it was judged.
    fn perform(world: &mut World<Self>, client: usize, life: u32, request: &Request) -> Played<Reply>;
    /// The store forgets what it promised to somebody, if it promised anything.
    fn end_early(_world: &mut World<Self>) -> bool {
        false
    }
    /// From here everybody only comes to an end.
    fn calm_down(&mut self);
    /// Whether nobody wants anything any more.
    fn is_over(world: &World<Self>) -> bool;
    /// Whether the store has what it should have.
    fn compare(_world: &World<Self>) -> Played {
        Ok(())
    }
    /// When all is over.
    fn epilogue(world: &World<Self>) -> Played;
    /// Another process takes the place of one that died.
    fn reborn(_world: &mut World<Self>, _client: usize) {}
    /// Something may have happened to a client that runs.
    fn look_around(_world: &mut World<Self>, _client: usize) -> Played {
        Ok(())
    }
    /// What users may yet do, and what judges remember.
    fn digest(&self, calm: bool) -> u64;
}

/// What a user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Acquire,
    Release,
    Extend,
    Cancel,
    /// With the policy of this number.
    Enqueue(u8),
    Claim,
    Ack,
    AckAndClaim,
    Nack,
    PutBack,
    /// The handler of this delivery ends.
    Finish(Receipt),
    Fail(Receipt),
}

/// What may happen next. Numbers are of clients, and of messages in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    Wish(usize, Wish),
    /// A request is carried out, and its answer comes back at once.
    Serve(usize),
    /// A request is carried out; its answer is on its way.
    Perform(usize),
    /// As `Serve`, and a copy of the request comes later.
    Double(usize),
    /// A request could not be sent.
    Refuse(usize),
    /// An answer or a hint reaches its client.
    Deliver(usize),
    /// Time passes until the next thing that is due.
    Pass,
    Freeze(usize),
    Suspend(usize),
    Thaw(usize),
    Kill(usize),
    EndEarly,
}

/// What may yet go wrong.
#[derive(Clone, Debug)]
pub struct Left {
    pub doubled: u32,
    pub unsent: u32,
    pub mishaps: u32,
    pub ended: u32,
}

pub struct World<G: Game> {
    pub stage: Rc<RefCell<Stage>>,
    pub now: Moment,
    pub rows: Rows,
    pub clients: Vec<Client<G>>,
    mail: Vec<Mail>,
    pub left: Left,
    /// Nothing goes wrong any more.
    pub calm: bool,
    pub game: G,
    /// What happens, for whoever wants to read it.
    pub told: Option<Rc<RefCell<Vec<String>>>>,
}

pub struct Client<G: Game> {
    pub life: u32,
    frozen: Option<Frozen>,
    /// It looks at no timer before this.
    deaf_until: Moment,
    /// What may happen to it once.
    may_stop: bool,
    may_die: bool,
    pub ops: Vec<Op<G>>,
    pub kept: Vec<Kept<G>>,
    errands: Vec<Errand>,
    /// When the game wants to look at it.
    pub alarm: Moment,
    next: u64,
    /// Calls of this life have later numbers.
    born: u64,
}

#[derive(Clone, Copy, Debug)]
enum Frozen {
    /// Its process stands still.
    Process,
    /// Its machine sleeps: timers do not see that time passed.
    Machine(Moment),
}

/// A call of the user.
pub struct Op<G: Game> {
    pub id: u64,
    pub engine: Again<Engine>,
    /// Sendings whose reply is awaited, and until when.
    awaited: Vec<(u32, Moment)>,
    until: Moment,
    pub purpose: G::Purpose,
}

/// A lease in use.
pub struct Kept<G: Game> {
    pub id: u64,
    pub state: Again<LeaseState>,
    /// The renewal on its way: its number, when it was sent, when it is given up.
    renewal: Option<(u32, Moment, Moment)>,
    renewals: u32,
    pub holding: G::Holding,
}

#[derive(Clone, Debug)]
struct Errand {
    id: u64,
    request: Request,
    sent: u32,
    again_at: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    Op(u64),
    Renewal(u64),
    Errand(u64),
}

#[derive(Clone)]
struct Mail {
    client: usize,
    life: u32,
    route: Route,
    number: u32,
    sent: Moment,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Request(Box<Request>),
    Reply(Result<Reply, Failure>),
    Hint,
}

impl Mail {
    fn rank(&self) -> (usize, u32, Route, u32, u8, Moment) {
        let kind = match self.what {
            What::Request(_) => 0,
            What::Reply(_) => 1,
            What::Hint => 2,
        };
        (self.client, self.life, self.route, self.number, kind, self.sent)
    }
}

impl<G: Game> Client<G> {
    fn new() -> Self {
        Self {
            life: 0,
            frozen: None,
            deaf_until: DAWN,
            may_stop: true,
            may_die: true,
            ops: Vec::new(),
            kept: Vec::new(),
            errands: Vec::new(),
            alarm: Moment::FAR,
            next: 0,
            born: 0,
        }
    }

    pub fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn runs(&self) -> bool {
        self.frozen.is_none()
    }

    /// Whether nothing kept it from looking at its timers.
    pub fn was_awake(&self) -> bool {
        self.may_stop
    }

    pub fn has_errands(&self) -> bool {
        !self.errands.is_empty()
    }

    pub fn kept(&mut self, id: u64) -> Option<&mut Kept<G>> {
        self.kept.iter_mut().find(|kept| kept.id == id)
    }

    /// When it next looks at something.
    fn due(&self) -> Moment {
        let ops = self.ops.iter().map(|op| op.until);
        let kept = self.kept.iter().map(|kept| kept.due(self.deaf_until));
        let errands = self.errands.iter().map(|errand| errand.again_at);
        ops.chain(kept).chain(errands).fold(self.alarm, Moment::min).max(self.deaf_until)
    }
}

impl<G: Game> Kept<G> {
    fn due(&self, now: Moment) -> Moment {
        match self.renewal {
            _ if self.state.status(now.min(self.state.deadline() - Duration::from_nanos(1)))
                != Status::Held =>
            {
                Moment::FAR
            }
            Some((_, _, until)) => until.min(self.state.deadline()),
            None => self.state.due(),
        }
    }
}

impl<G: Game> World<G> {
    pub fn new(clients: usize, left: Left, game: G) -> Self {
        Self {
            stage: Rc::new(RefCell::new(Stage::new(clients))),
            now: DAWN,
            rows: 0,
            clients: (0..clients).map(|_| Client::new()).collect(),
            mail: Vec::new(),
            left,
            calm: false,
            game,
            told: None,
        }
    }

    pub fn say(&self, text: impl FnOnce() -> String) {
        if let Some(told) = &self.told {
            let millis = self.now.since(DAWN).as_secs_f64() * 1_000.0;
            told.borrow_mut().push(format!("{millis:>9.1} ms  {}", text()));
        }
    }

    pub fn digest(&self) -> u64 {
        let mail: Vec<_> = self.mail.iter().map(Shown).collect();
        digest(&(
            self.now,
            self.rows,
            &self.clients,
            mail,
            &self.left,
            self.calm,
            self.game.digest(self.calm),
        ))
    }

    /// Whatever may happen now.
    pub fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for client in (0..self.clients.len()).filter(|client| self.clients[*client].runs()) {
            moves.extend(G::wishes(self, client).into_iter().map(|wish| Move::Wish(client, wish)));
        }
        let mut before = None;
        for (number, mail) in self.mail.iter().enumerate() {
            if before.replace(mail.rank()) == Some(mail.rank()) {
                continue;
            }
            let runs = self.clients[mail.client].runs();
            match &mail.what {
                What::Request(_) => {
                    let is_fresh = mail.sent == self.now;
                    if runs {
                        moves.push(Move::Serve(number));
                    }
                    moves.push(Move::Perform(number));
                    if self.left.doubled > 0 && runs {
                        moves.push(Move::Double(number));
                    }
                    if self.left.unsent > 0 && is_fresh && runs {
                        moves.push(Move::Refuse(number));
                    }
                }
                What::Reply(_) | What::Hint if runs => moves.push(Move::Deliver(number)),
                What::Reply(_) | What::Hint => {}
            }
        }
        if self.next_instant().is_some() {
            moves.push(Move::Pass);
        }
        for (number, client) in self.clients.iter().enumerate() {
            let is_busy = !client.ops.is_empty() || !client.kept.is_empty();
            if client.frozen.is_some() {
                moves.push(Move::Thaw(number));
            } else if self.left.mishaps > 0 && client.may_stop && is_busy {
                moves.extend([Move::Freeze(number), Move::Suspend(number)]);
            }
            if self.left.mishaps > 0 && client.may_die && is_busy {
                moves.push(Move::Kill(number));
            }
        }
        if self.left.ended > 0 {
            moves.push(Move::EndEarly);
        }
        moves
    }

    pub fn make(&mut self, chosen: Move) -> Played {
        match chosen {
            Move::Wish(client, wish) => {
                self.say(|| format!("client {client}: {wish:?}"));
                G::act(self, client, wish)?;
            }
            Move::Serve(number) => self.serve(number, 0)?,
            Move::Double(number) => {
                self.left.doubled -= 1;
                self.serve(number, 1)?;
            }
            Move::Perform(number) => {
                let mail = self.mail.remove(number);
                let reply = self.perform(&mail)?;
                self.mail.push(Mail { what: What::Reply(Ok(reply)), ..mail });
            }
            Move::Refuse(number) => {
                self.left.unsent -= 1;
                let mail = self.mail.remove(number);
                self.say(|| format!("client {}: {} cannot be sent", mail.client, mail.shown()));
                let failure = Failure::new(FailureKind::NotSent, "no connection");
                self.deliver(mail, Err(failure))?;
            }
            Move::Deliver(number) => {
                let mail = self.mail.remove(number);
                self.say(|| format!("client {}: {}", mail.client, mail.shown()));
                match mail.what.clone() {
                    What::Reply(result) => self.deliver(mail, result)?,
                    _ => self.hinted(&mail)?,
                }
            }
            Move::Pass => self.pass()?,
            Move::Freeze(client) => self.stop(client, Frozen::Process),
            Move::Suspend(client) => self.stop(client, Frozen::Machine(self.now)),
            Move::Thaw(client) => self.thaw(client)?,
            Move::Kill(client) => {
                self.kill(client);
                G::reborn(self, client);
            }
            Move::EndEarly => {
                if G::end_early(self) {
                    self.left.ended -= 1;
                    self.say(|| "the store forgets what it promised".into());
                }
            }
        }
        self.look_around()?;
        self.tidy();
        Ok(())
    }

    pub fn look_around(&mut self) -> Played {
        for client in 0..self.clients.len() {
            if self.clients[client].runs() && self.clients[client].deaf_until <= self.now {
                G::look_around(self, client)?;
            }
        }
        Ok(())
    }

    fn serve(&mut self, number: usize, copies: usize) -> Played {
        let mail = self.mail.remove(number);
        if copies > 0 {
            self.say(|| format!("a copy of {} stays on its way", mail.shown()));
            self.mail.push(mail.clone());
            if let What::Request(request) = &mail.what {
                self.game.doubled(request);
            }
        }
        let reply = self.perform(&mail)?;
        self.deliver(mail, Ok(reply))
    }

    fn perform(&mut self, mail: &Mail) -> Played<Reply> {
        let What::Request(request) = &mail.what else { return Err("only requests".into()) };
        let reply = G::perform(self, mail.client, mail.life, request)?;
        self.say(|| format!("store: {} of client {}: {reply:?}", mail.shown(), mail.client));
        Ok(reply)
    }

    /// The store carries it out, as it is.
    pub fn store(&mut self, client: usize, request: &Request) -> Played<Reply> {
        let done = self.stage.borrow_mut().perform(self.rows, self.now, client, request)?;
        self.rows = done.rows;
        for (hinted, seq) in done.hints {
            let life = self.clients[hinted].life;
            let stage = self.stage.borrow();
            let waits = |op: &&Op<G>| stage.waiter(hinted, op.id).seq == seq;
            if let Some(op) = self.clients[hinted].ops.iter().find(waits) {
                let (route, what) = (Route::Op(op.id), What::Hint);
                self.mail.push(Mail { client: hinted, life, route, number: 0, sent: DAWN, what });
            }
        }
        Ok(done.reply)
    }

    pub fn begin(&mut self, client: usize, engine: Again<Engine>, purpose: G::Purpose) -> Played {
        let id = self.clients[client].next_id();
        self.begin_as(client, id, engine, purpose)
    }

    pub fn begin_as(&mut self, client: usize, id: u64, engine: Again<Engine>, purpose: G::Purpose) -> Played {
        let op = Op { id, engine, awaited: Vec::new(), until: Moment::FAR, purpose };
        self.clients[client].ops.push(op);
        self.step(client, id)
    }

    /// Does what the machine of a running call asks.
    fn step(&mut self, client: usize, id: u64) -> Played {
        let now = self.now;
        loop {
            let ops = &mut self.clients[client].ops;
            let Some(index) = ops.iter().position(|op| op.id == id) else { return Ok(()) };
            let op = &mut ops[index];
            match op.engine.tell(Input::Step(now)) {
                Asked::Send(number, request, until) => {
                    op.awaited.push((number, until));
                    op.until = until;
                    G::sent(&mut op.purpose, number, now);
                    self.send(client, Route::Op(id), number, request);
                    return Ok(());
                }
                Asked::Listen => drop(op.engine.tell(Input::Listening)),
                Asked::Done(outcome) => {
                    let mut op = ops.remove(index);
                    self.clean_up(client, &mut op);
                    return G::done(self, client, op, outcome);
                }
                Asked::Wait(until) => {
                    op.until = until;
                    return Ok(());
                }
                Asked::Nothing | Asked::Leftover(_) => return Err("no step".into()),
            }
        }
    }

    fn clean_up(&mut self, client: usize, op: &mut Op<G>) {
        while let Asked::Leftover(Some(request)) = op.engine.tell(Input::Abandon) {
            self.run_errand(client, request);
        }
    }

    /// Nobody waits for this call any more.
    pub fn cancel(&mut self, client: usize, id: u64) {
        let ops = &mut self.clients[client].ops;
        if let Some(index) = ops.iter().position(|op| op.id == id) {
            let mut op = ops.remove(index);
            self.clean_up(client, &mut op);
        }
    }

    fn send(&mut self, client: usize, route: Route, number: u32, request: Request) {
        let (life, what) = (self.clients[client].life, What::Request(Box::new(request)));
        self.mail.push(Mail { client, life, route, number, sent: self.now, what });
    }

    pub fn run_errand(&mut self, client: usize, request: Request) {
        let id = self.clients[client].next_id();
        let again_at = self.now + PATIENCE;
        self.clients[client].errands.push(Errand { id, request: request.clone(), sent: 1, again_at });
        self.send(client, Route::Errand(id), 1, request);
    }

    fn deliver(&mut self, mail: Mail, result: Result<Reply, Failure>) -> Played {
        let (now, client) = (self.now, mail.client);
        if mail.life != self.clients[client].life {
            return Ok(());
        }
        match mail.route {
            Route::Op(id) => {
                let Some(op) = self.clients[client].ops.iter_mut().find(|op| op.id == id) else {
                    return Ok(());
                };
                let Some(index) = op.awaited.iter().position(|(number, _)| *number == mail.number) else {
                    return Ok(());
                };
                op.awaited.remove(index);
                if matches!(&result, Err(failure) if !failure.may_be_done()) {
                    G::unsent(&mut op.purpose, mail.number);
                }
                op.engine.tell(Input::Reply(now, mail.number, result));
                self.step(client, id)
            }
            Route::Renewal(id) => self.renewed(client, id, mail.number, result),
            Route::Errand(id) => {
                let errands = &mut self.clients[client].errands;
                match result {
                    Ok(_) => errands.retain(|errand| errand.id != id),
                    Err(_) => {
                        let failed = errands.iter_mut().filter(|errand| errand.id == id);
                        failed.for_each(|errand| errand.again_at = now + PAUSE);
                    }
                }
                Ok(())
            }
        }
    }

    fn hinted(&mut self, mail: &Mail) -> Played {
        let Route::Op(id) = mail.route else { return Ok(()) };
        let Some(op) = self.clients[mail.client].ops.iter_mut().find(|op| op.id == id) else { return Ok(()) };
        op.engine.tell(Input::Hint);
        if op.awaited.is_empty() { self.step(mail.client, id) } else { Ok(()) }
    }

    fn next_instant(&self) -> Option<Moment> {
        let clients = self.clients.iter().filter(|client| client.runs()).map(Client::due);
        let first = clients.min().filter(|due| *due != Moment::FAR);
        let at_store = self.stage.borrow().next_instant(self.rows, self.now);
        first.into_iter().chain(at_store).min().map(|at| at.max(self.now))
    }

    fn pass(&mut self) -> Played {
        let Some(at) = self.next_instant() else { return Ok(()) };
        // The store counts whole microseconds: between them it and its clients would see different times.
        let micros = at.since(DAWN).as_nanos().div_ceil(1_000);
        self.now = DAWN + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        self.say(|| "time has passed".into());
        (0..self.clients.len()).try_for_each(|client| self.wake(client))
    }

    fn wake(&mut self, client: usize) -> Played {
        let now = self.now;
        if !self.clients[client].runs() || self.clients[client].due() > now {
            return Ok(());
        }
        let ids: Vec<u64> = self.clients[client].ops.iter().map(|op| op.id).collect();
        for id in ids {
            let Some(op) = self.clients[client].ops.iter_mut().find(|op| op.id == id) else { continue };
            if op.until > now {
                continue;
            }
            // As the drivers do: a reply that has not come in time counts as lost.
            while let Some(index) = op.awaited.iter().position(|(_, until)| *until <= now) {
                let (number, _) = op.awaited.remove(index);
                let lost = Err(Failure::new(FailureKind::Lost, "no answer"));
                op.engine.tell(Input::Reply(now, number, lost));
            }
            self.step(client, id)?;
        }
        let ids: Vec<u64> = self.clients[client].kept.iter().map(|kept| kept.id).collect();
        ids.into_iter().try_for_each(|id| self.care(client, id))?;
        let mut again = Vec::new();
        for errand in self.clients[client].errands.iter_mut().filter(|errand| errand.again_at <= now) {
            errand.sent += 1;
            errand.again_at = now + PATIENCE;
            again.push((Route::Errand(errand.id), errand.sent, errand.request.clone()));
        }
        again.into_iter().for_each(|(route, number, request)| self.send(client, route, number, request));
        Ok(())
    }

    /// Whether the waiter with this number is a call of a client that lives.
    pub fn is_of_the_living(&self, client: i64, seq: i64) -> bool {
        let stage = self.stage.borrow();
        self.clients.iter().enumerate().any(|(number, living)| {
            (living.born + 1..=living.next).any(|id| {
                let waiter = stage.waiter(number, id);
                i64::try_from(waiter.client.0) == Ok(client) && i64::try_from(waiter.seq) == Ok(seq)
            })
        })
    }

    pub fn keep(&mut self, client: usize, id: u64, state: Again<LeaseState>, holding: G::Holding) {
        self.clients[client].kept.push(Kept { id, state, renewal: None, renewals: 0, holding });
    }

    /// Until when a lease is surely its owner's.
    pub fn deadline(&self, sent: Moment, ttl: Duration) -> Moment {
        sent + ttl.saturating_sub(ttl / 100 + Duration::from_millis(2))
    }

    /// As the keeper does.
    fn care(&mut self, client: usize, id: u64) -> Played {
        let now = self.now;
        let Some(kept) = self.clients[client].kept(id).filter(|kept| kept.due(now) <= now) else {
            return Ok(());
        };
        if let Some((_, sent, until)) = kept.renewal
            && until <= now
        {
            kept.renewal = None;
            let lost = Err(Failure::new(FailureKind::Lost, "no answer"));
            return match kept.state.tell(Care::Extended(now, sent, lost)) {
                Cared::Need(need) => self.follow(client, id, need),
                _ => Ok(()),
            };
        }
        match kept.state.tell(Care::Need(now)) {
            Cared::Need(need) => self.follow(client, id, need),
            _ => Ok(()),
        }
    }

    pub fn follow(&mut self, client: usize, id: u64, need: Need) -> Played {
        let now = self.now;
        match need {
            Need::Renew(request) => {
                let Some(kept) = self.clients[client].kept(id) else { return Ok(()) };
                kept.renewals += 1;
                kept.renewal = Some((kept.renewals, now, now + PATIENCE));
                let number = kept.renewals;
                self.send(client, Route::Renewal(id), number, request);
            }
            Need::Announce(farewell) => {
                if let Some(request) = farewell {
                    self.run_errand(client, request);
                }
                let Some(kept) = self.clients[client].kept(id).map(|kept| kept.clone()) else {
                    return Ok(());
                };
                self.say(|| format!("client {client}: lost {:?}", kept.holding));
                G::lost(self, client, &kept);
            }
            Need::Nothing(_) | Need::Forget => {}
        }
        Ok(())
    }

    fn renewed(&mut self, client: usize, id: u64, number: u32, result: Result<Reply, Failure>) -> Played {
        let now = self.now;
        let Some(kept) = self.clients[client].kept(id) else { return Ok(()) };
        let Some((_, sent, _)) = kept.renewal.filter(|(awaited, ..)| *awaited == number) else {
            return Ok(());
        };
        kept.renewal = None;
        let before = kept.state.deadline();
        let cared = kept.state.tell(Care::Extended(now, sent, result));
        if kept.state.deadline() != before {
            G::prolonged(self, client, id)?;
        }
        match cared {
            Cared::Need(need) => self.follow(client, id, need),
            _ => Ok(()),
        }
    }

    fn stop(&mut self, client: usize, how: Frozen) {
        self.say(|| format!("client {client} stands still: {how:?}"));
        self.left.mishaps -= 1;
        self.clients[client].may_stop = false;
        self.clients[client].frozen = Some(how);
    }

    fn thaw(&mut self, client: usize) -> Played {
        self.say(|| format!("client {client} goes on"));
        let now = self.now;
        if let Some(Frozen::Machine(since)) = self.clients[client].frozen.take() {
            self.clients[client].deaf_until = now + now.since(since).min(LONGEST_NAP);
        }
        self.wake(client)
    }

    fn kill(&mut self, client: usize) {
        self.say(|| format!("client {client} dies"));
        self.left.mishaps -= 1;
        let kept = std::mem::take(&mut self.clients[client].kept);
        kept.iter().for_each(|kept| G::lost(self, client, kept));
        let (life, next) = (self.clients[client].life + 1, self.clients[client].next);
        let dead = &mut self.clients[client];
        *dead = Client { life, next, born: next, may_stop: dead.may_stop, may_die: false, ..Client::new() };
    }

    /// Drops messages that change nothing, and puts the others in order.
    fn tidy(&mut self) {
        let clients = &self.clients;
        self.mail.retain(|mail| {
            let client = &clients[mail.client];
            let op = |id: u64| client.ops.iter().find(|op| op.id == id);
            match (&mail.what, mail.route) {
                (What::Request(_), _) => true,
                _ if mail.life != client.life => false,
                (What::Hint, Route::Op(id)) => op(id).is_some(),
                (What::Reply(_), Route::Op(id)) => {
                    op(id).is_some_and(|op| op.awaited.iter().any(|(number, _)| *number == mail.number))
                }
                (_, Route::Renewal(id)) => {
                    let kept = client.kept.iter().find(|kept| kept.id == id);
                    kept.and_then(|kept| kept.renewal).is_some_and(|(number, ..)| number == mail.number)
                }
                (_, Route::Errand(id)) => client.errands.iter().any(|errand| errand.id == id),
            }
        });
        self.mail.sort_by_key(Mail::rank);
        // A second hint says no more than the first.
        self.mail.dedup_by(|one, other| matches!(one.what, What::Hint) && one.rank() == other.rank());
    }

    /// The storm ceases: from here everything goes well. What is on its way comes, or never does.
    pub fn calm_down(&mut self, keeps_mail: bool) -> Played {
        self.calm = true;
        self.left = Left { doubled: 0, unsent: 0, mishaps: 0, ended: 0 };
        self.game.calm_down();
        self.say(|| {
            format!("all is calm; what is on its way {}", if keeps_mail { "comes" } else { "is lost" })
        });
        if !keeps_mail {
            self.mail.clear();
        }
        for client in 0..self.clients.len() {
            self.clients[client].may_die = false;
            if !self.clients[client].runs() {
                self.thaw(client)?;
            }
        }
        self.tidy();
        Ok(())
    }

    /// The next thing that happens when nothing goes wrong; `None` when all is over.
    pub fn calm_move(&self) -> Option<Move> {
        if let Some(mail) = self.mail.first() {
            return Some(if matches!(mail.what, What::Request(_)) {
                Move::Serve(0)
            } else {
                Move::Deliver(0)
            });
        }
        if G::is_over(self) {
            return None;
        }
        let wish = |client| G::calm_wish(self, client).map(|wish| Move::Wish(client, wish));
        Some((0..self.clients.len()).find_map(wish).unwrap_or(Move::Pass))
    }
}

impl<G: Game> Clone for World<G> {
    fn clone(&self) -> Self {
        Self {
            stage: Rc::clone(&self.stage),
            clients: self.clients.clone(),
            mail: self.mail.clone(),
            left: self.left.clone(),
            game: self.game.clone(),
            told: self.told.clone(),
            ..*self
        }
    }
}

impl<G: Game> Clone for Client<G> {
    fn clone(&self) -> Self {
        Self { ops: self.ops.clone(), kept: self.kept.clone(), errands: self.errands.clone(), ..*self }
    }
}

impl<G: Game> Clone for Op<G> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            awaited: self.awaited.clone(),
            purpose: self.purpose.clone(),
            ..*self
        }
    }
}

impl<G: Game> Clone for Kept<G> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), holding: self.holding.clone(), ..*self }
    }
}

impl<G: Game> Debug for Client<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?} ", self.life, self.frozen, self.deaf_until)?;
        write!(f, "{} {} {}", self.may_stop, self.may_die, self.next)?;
        for op in &self.ops {
            write!(f, "{} {:?} {:?} {:?} {:?}", op.id, op.engine, op.awaited, op.until, op.purpose)?;
        }
        for kept in &self.kept {
            write!(
                f,
                "{} {:?} {:?} {} {:?}",
                kept.id, kept.state, kept.renewal, kept.renewals, kept.holding
            )?;
        }
        write!(f, "{:?} {:?}", self.errands, self.alarm)
    }
}

/// A message as a part of the world's state.
struct Shown<'a>(&'a Mail);

impl Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mail = self.0;
        let token = match &mail.what {
            What::Request(request) => token_of(request),
            _ => "",
        };
        write!(f, "{:?} {token} {:?}", mail.rank(), mail.what)
    }
}

impl Mail {
    fn shown(&self) -> String {
        match &self.what {
            What::Request(request) => {
                format!("{} ({:?}, sending {})", request.verb(), self.route, self.number)
            }
            What::Reply(Ok(reply)) => format!("hears {reply:?}"),
            What::Reply(Err(failure)) => format!("hears {:?}", failure.kind),
            What::Hint => "is hinted".into(),
        }
    }
}
