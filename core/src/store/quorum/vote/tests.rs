//! Clients and servers in virtual time: servers go away, freeze, come back empty; messages are lost and come late.

use std::sync::Arc;

use super::*;
use crate::base::clock::{Clock, ManualClock, Moment};
use crate::base::name::{LockName, Prefixes};
use crate::base::token::Token;
use crate::base::wake::Hub;
use crate::engine::deadline;
use crate::protocol::{BreakLease, ClientId, Granted, Holder, Waiter};
use crate::store::sqlite::{SqliteStore, SqliteTarget};
use crate::store::{Store, StoreConfig};

const TTL: Duration = Duration::from_millis(1_000);
/// How long an emptied server stays out: no lease is longer, by its own clock.
const REJOIN: Duration = Duration::from_millis(1_000);

fn prefixes() -> Prefixes {
    Prefixes::parse("Lock:", "Queue:").unwrap()
}

fn name() -> LockName {
    prefixes().lock_name("a").unwrap()
}

fn acquisition(token: Token, waiter: Option<Waiter>) -> Request {
    Request::Acquire(Acquire {
        name: name(),
        permits: None,
        token,
        ttl: TTL,
        min_fence: Fence::NONE,
        waiter,
        patience: None,
        owner: Arc::from("x"),
        adopt: None,
        early: 0.0,
        looks: false,
    })
}

struct Server {
    store: SqliteStore,
    clock: ManualClock,
    away_until: Option<Moment>,
    /// What is on its way to it without anybody who waits for the answer.
    late: Vec<Request>,
}

impl Server {
    /// A server whose clock is ahead by so much.
    fn new(ahead: Duration) -> Self {
        let clock = ManualClock::new();
        clock.advance(ahead);
        Self { store: empty(&clock), clock, away_until: None, late: Vec::new() }
    }

    fn perform(&self, request: &Request) -> Result<Reply, Failure> {
        self.store.perform(request, Moment::FAR)
    }
}

fn empty(clock: &ManualClock) -> SqliteStore {
    let config = StoreConfig {
        prefixes: prefixes(),
        clock: Clock::Manual(clock.clone()),
        hub: Hub::new(ClientId(1)),
        clock_margin: crate::protocol::CLOCK_MARGIN,
    };
    SqliteStore::open(SqliteTarget::Memory { name: None }, config).unwrap()
}

/// A vote on its way.
struct Call {
    vote: Vote,
    round: Request,
    left: Vec<usize>,
    answers: Answers,
    asked: Moment,
}

#[derive(Clone)]
struct Lease {
    token: Token,
    fence: Fence,
    deadline: Moment,
}

#[derive(Default)]
struct Client {
    call: Option<Call>,
    lease: Option<Lease>,
    /// The token of a call that waits, and asks again with it.
    waits: Option<Token>,
}

/// As the engine asks for it.
fn renewal(lease: &Lease) -> Request {
    let granted = Some(Granted { fence: lease.fence, owner: Arc::from("x") });
    Request::Extend(Extend { granted, ..Extend::new(name(), lease.token.clone(), TTL) })
}

struct World {
    jitter: fastrand::Rng,
    now: Moment,
    servers: Vec<Server>,
    clients: Vec<Client>,
    debts: Vec<(usize, Request)>,
    tokens: u128,
    last_fence: Fence,
    grants: usize,
}

impl World {
    fn new(seed: u64, count: usize) -> Self {
        let mut jitter = fastrand::Rng::with_seed(seed);
        let servers = (0..count).map(|_| Server::new(Duration::from_millis(jitter.u64(0..400)))).collect();
        let clients = (0..3).map(|_| Client::default()).collect();
        let now = Moment::from_nanos(0);
        Self {
            jitter,
            now,
            servers,
            clients,
            debts: Vec::new(),
            tokens: 0,
            last_fence: Fence::NONE,
            grants: 0,
        }
    }

    fn step(&mut self) {
        match self.jitter.u32(0..100) {
            0..=7 => {
                let time = Duration::from_millis(self.jitter.u64(1..250));
                self.pass(time);
            }
            8 => self.trouble(),
            9..=10 => self.deliver_late(),
            11 if !self.debts.is_empty() => {
                let (server, request) = self.debts.swap_remove(self.jitter.usize(0..self.debts.len()));
                self.servers[server].late.push(request);
            }
            _ => {
                let client = self.jitter.usize(0..self.clients.len());
                match self.clients[client].call.take() {
                    Some(call) => self.go_on(client, call),
                    None => self.begin(client),
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        for server in &mut self.servers {
            // Clocks go a little differently.
            server.clock.advance(time + time.mul_f64(0.004 * self.jitter.f64()));
            if server.away_until.is_some_and(|until| until <= self.now) {
                server.away_until = None;
            }
        }
    }

    fn trouble(&mut self) {
        let least = self.servers.len() / 2 + 1;
        let up = self.servers.iter().filter(|server| server.away_until.is_none()).count();
        let number = self.jitter.usize(0..self.servers.len());
        let empties = self.jitter.bool();
        let away = Duration::from_millis(self.jitter.u64(50..3_000));
        let server = &mut self.servers[number];
        if server.away_until.is_some() {
            return;
        }
        if empties && up > least {
            server.store = empty(&server.clock);
            server.away_until = Some(self.now + away.max(REJOIN));
        } else {
            server.away_until = Some(self.now + away);
        }
    }

    fn deliver_late(&mut self) {
        let number = self.jitter.usize(0..self.servers.len());
        let server = &mut self.servers[number];
        if server.away_until.is_none() && !server.late.is_empty() {
            let request = server.late.swap_remove(self.jitter.usize(0..server.late.len()));
            let _ = server.perform(&request);
        }
    }

    fn begin(&mut self, client: usize) {
        let lease = self.clients[client].lease.clone();
        let request = match lease {
            Some(lease) if self.jitter.u32(0..4) > 0 || self.now >= lease.deadline => self.end(&lease),
            Some(lease) => renewal(&lease),
            None => {
                let token = match self.clients[client].waits.clone() {
                    Some(token) => token,
                    None => {
                        self.tokens += 1;
                        Token::from_bits(self.tokens)
                    }
                };
                let waits = self.jitter.bool() || self.clients[client].waits.is_some();
                self.clients[client].waits = waits.then(|| token.clone());
                acquisition(token, waits.then_some(Waiter { client: ClientId(1), seq: 1 }))
            }
        };
        self.send(client, request);
    }

    /// A lease that ends: by a release, or by a holder that says nothing.
    fn end(&mut self, lease: &Lease) -> Request {
        let token = lease.token.clone();
        match self.jitter.u32(0..4) {
            0 => Request::Leave(Leave { name: name(), token, foreign_share: false }),
            _ => Request::Release(Release {
                name: name(),
                token,
                cooldown: None,
                // As a client does that renews.
                acquire_resent: true,
                own_fence: None,
                foreign_share: false,
            }),
        }
    }

    fn send(&mut self, client: usize, request: Request) {
        let (vote, mut round) = Vote::new(request, self.servers.len());
        if let Request::Acquire(acquire) = &mut round.request {
            acquire.waiter = None;
        }
        let asked = self.now;
        let call = Call { vote, round: round.request, left: round.to, answers: Vec::new(), asked };
        self.clients[client].call = Some(call);
    }

    /// One server's part of a round, with the fate of request and reply.
    fn go_on(&mut self, client: usize, mut call: Call) {
        if call.left.is_empty() {
            match call.vote.next(std::mem::take(&mut call.answers)) {
                Next::Ask(round) => {
                    (call.round, call.left) = (round.request, round.to);
                    self.clients[client].call = Some(call);
                }
                Next::Done(verdict) => self.done(client, call, verdict),
            }
            return;
        }
        let number = call.left.swap_remove(self.jitter.usize(0..call.left.len()));
        let server = &mut self.servers[number];
        let lost = || Err(Failure::new(FailureKind::Lost, "lost"));
        let answer = match (server.away_until, self.jitter.u32(0..40)) {
            (Some(_), 0..=19) => Err(Failure::new(FailureKind::NotSent, "down")),
            (Some(_), _) | (None, 0) => {
                server.late.push(call.round.clone());
                lost()
            }
            (None, 1) => {
                let _ = server.perform(&call.round);
                lost()
            }
            (None, 2) => {
                server.late.push(call.round.clone());
                server.perform(&call.round)
            }
            (None, _) => server.perform(&call.round),
        };
        call.answers.push((number, answer));
        self.clients[client].call = Some(call);
    }

    fn done(&mut self, client: usize, call: Call, verdict: Decision) {
        self.debts.extend(verdict.debts);
        match (&call.vote.request, verdict.reply) {
            (Request::Acquire(acquire), Ok(Reply::Acquire(AcquireReply::Granted { fence, ttl }))) => {
                let lease =
                    Lease { token: acquire.token.clone(), fence, deadline: deadline(call.asked, ttl) };
                self.clients[client].waits = None;
                self.granted(client, lease);
            }
            (Request::Acquire(acquire), reply) => {
                // What the engine does: a try, a failure, and now and then a wait end; others ask again.
                let again =
                    matches!(reply, Ok(Reply::Acquire(AcquireReply::Waiting(_)))) && self.jitter.bool();
                if !again && (self.clients[client].waits.take().is_some() || reply.is_err()) {
                    let token = acquire.token.clone();
                    self.send(client, Request::Leave(Leave { name: name(), token, foreign_share: false }));
                }
            }
            (Request::Extend(_), Ok(Reply::Extend(ExtendReply::Extended(left)))) => {
                let now = self.now;
                let lease = self.clients[client].lease.as_mut().unwrap();
                // A late answer revives nothing.
                if now < lease.deadline {
                    lease.deadline = lease.deadline.max(deadline(call.asked, left));
                }
                self.check_alone();
            }
            (Request::Extend(_), Err(_)) => {}
            _ => self.clients[client].lease = None,
        }
    }

    fn granted(&mut self, client: usize, lease: Lease) {
        if self.now >= lease.deadline {
            let token = lease.token;
            return self.send(client, Request::Leave(Leave { name: name(), token, foreign_share: false }));
        }
        assert!(
            lease.fence > self.last_fence,
            "the fence {} was given after {}",
            lease.fence,
            self.last_fence
        );
        self.last_fence = lease.fence;
        self.grants += 1;
        self.clients[client].lease = Some(lease);
        self.check_alone();
    }

    /// Those who are giving it back do not count themselves as holders any more.
    fn check_alone(&self) {
        let holds = |client: &&Client| {
            let ends =
                client.call.as_ref().is_some_and(|call| !matches!(call.vote.request, Request::Extend(_)));
            !ends && client.lease.as_ref().is_some_and(|lease| self.now < lease.deadline)
        };
        assert!(self.clients.iter().filter(holds).count() <= 1, "two hold the lock");
    }
}

/// Never two holders, and fences that rise, whatever becomes of a minority and of any message.
#[test]
fn schedules_of_a_quorum() {
    let mut grants = 0;
    for seed in 0..300 {
        let mut world = World::new(seed, if seed % 2 == 0 { 3 } else { 5 });
        let run = std::panic::AssertUnwindSafe(|| (0..1_500).for_each(|_| world.step()));
        assert!(std::panic::catch_unwind(run).is_ok(), "seed {seed}");
        grants += world.grants;
    }
    assert!(grants > 5_000, "{grants} grants in all");
}

fn answered(replies: Vec<Result<Reply, FailureKind>>) -> Answers {
    let answer = |reply: Result<Reply, FailureKind>| reply.map_err(|kind| Failure::new(kind, "it is away"));
    replies.into_iter().map(answer).enumerate().collect()
}

/// What becomes of a request when these answer.
fn judged(
    request: &Request,
    replies: Vec<Result<Reply, FailureKind>>,
) -> (Result<Reply, FailureKind>, usize) {
    let (mut vote, _) = Vote::new(request.clone(), replies.len());
    match vote.next(answered(replies)) {
        Next::Done(verdict) => (verdict.reply.map_err(|failure| failure.kind), verdict.debts.len()),
        Next::Ask(round) => panic!("{} is asked of {:?}", round.request.verb(), round.to),
    }
}

fn absence(fence: u64) -> Absence {
    Absence { fence: Fence::new(fence), born: Fence::new(1), broken: Fence::NONE, foreign: false }
}

#[test]
fn a_release_tells_what_a_majority_knows() {
    let token = Token::from_bits(1);
    let request = Request::Release(Release {
        name: name(),
        token,
        cooldown: None,
        acquire_resent: false,
        own_fence: None,
        foreign_share: false,
    });
    let released = || Ok(Reply::Release(ReleaseReply::Released));
    let gone = |fence| Ok(Reply::Release(ReleaseReply::Gone(absence(fence))));
    let away = || Err(FailureKind::NotSent);
    let rows = [
        (vec![released(), released(), gone(0)], released(), 0),
        (vec![released(), released(), away()], released(), 1),
        (vec![released(), away(), away()], Err(FailureKind::NotSent), 0),
        (vec![released(), gone(0), away()], Err(FailureKind::Final(ErrorKind::Indeterminate)), 1),
        (vec![released(), gone(0), gone(0)], gone(0), 0),
        // One that tried in vain has left a larger fence on one of them.
        (vec![gone(7), gone(9), gone(7)], gone(7), 0),
        (vec![gone(9), gone(9), gone(7)], gone(9), 0),
        (vec![gone(9), gone(7), away()], gone(7), 1),
    ];
    for (replies, expected, debts) in rows {
        let told = format!("{replies:?}");
        let (reply, owed) = judged(&request, replies);
        assert_eq!((reply, owed), (expected, debts), "{told}");
    }
}

#[test]
fn an_extension_needs_a_majority_and_lasts_as_long_as_it() {
    let token = Token::from_bits(1);
    let request = Request::Extend(Extend::new(name(), token, TTL));
    let left = |millis| Ok(Reply::Extend(ExtendReply::Extended(Duration::from_millis(millis))));
    let gone = || Ok(Reply::Extend(ExtendReply::Gone(absence(9))));
    let away = || Err(FailureKind::Lost);
    assert_eq!(judged(&request, vec![left(900), left(30), left(1_000)]), (left(900), 0));
    assert_eq!(judged(&request, vec![left(900), left(1_000), away()]), (left(900), 0));
    assert_eq!(judged(&request, vec![left(900), gone(), away()]), (Err(FailureKind::Lost), 0));
    // Lost: what a minority still has of it is in others' way.
    assert_eq!(judged(&request, vec![left(900), gone(), gone()]), (gone(), 1));
}

#[test]
fn a_holder_is_who_has_or_may_have_a_majority() {
    let holder = |fence, millis| HolderReply {
        held_as: HeldAs::Lease,
        fence: Fence::new(fence),
        remaining: Some(Duration::from_millis(millis)),
        since_ms: 0,
        owner: String::new(),
        waiters: 0,
        weight: 1,
    };
    let request = Request::Holder(Holder { name: name() });
    let held = |fence, millis| Ok(Reply::Holder(vec![holder(fence, millis)]));
    let free = || Ok(Reply::Holder(Vec::new()));
    let away = || Err(FailureKind::NotSent);
    assert_eq!(judged(&request, vec![held(7, 50), held(7, 40), held(7, 60)]).0, held(7, 50));
    assert_eq!(judged(&request, vec![held(7, 50), held(7, 40), free()]).0, held(7, 40));
    assert_eq!(judged(&request, vec![held(7, 50), held(8, 40), free()]).0, free());
    assert_eq!(judged(&request, vec![held(7, 50), away(), free()]).0, held(7, 50));
    assert_eq!(judged(&request, vec![held(7, 50), away(), away()]).0, Err(FailureKind::NotSent));
    let request = Request::BreakLease(BreakLease { name: name() });
    let broken = |was| Ok(Reply::BreakLease(was));
    assert_eq!(judged(&request, vec![broken(false), broken(true), away()]).0, broken(true));
    // It must not be asked again, as if nobody had done it.
    assert_eq!(judged(&request, vec![broken(true), away(), away()]).0, Err(FailureKind::Lost));
    assert_eq!(judged(&request, vec![away(), away(), away()]).0, Err(FailureKind::NotSent));
}

#[test]
fn a_refusal_of_too_many_is_told_as_it_is() {
    let request = Request::Holder(Holder { name: name() });
    let denied = || Err(FailureKind::Final(ErrorKind::Denied));
    let told = judged(&request, vec![denied(), denied(), Ok(Reply::Holder(Vec::new()))]).0;
    assert_eq!(told, Err(FailureKind::Final(ErrorKind::Denied)));
}

/// Granted by one of three, which is told to give it back, and answers so.
fn given_back(request: Request, answer: Result<Reply, FailureKind>) -> (Result<Reply, FailureKind>, usize) {
    let grant = Ok(Reply::Acquire(AcquireReply::Granted { fence: Fence::new(9), ttl: TTL }));
    let busy = || {
        let obstacle = Obstacle { remaining: Some(TTL), unexpiring: None, rank: 0 };
        Ok(Reply::Acquire(AcquireReply::Busy(obstacle)))
    };
    let (mut vote, _) = Vote::new(request, 3);
    let Next::Ask(round) = vote.next(answered(vec![grant, busy(), busy()])) else { panic!("one has it") };
    assert!(matches!(round.request, Request::Release(_)), "{:?}", round.request);
    assert_eq!(round.to, [0]);
    let Next::Done(verdict) = vote.next(answered(vec![answer])) else { panic!("it was given back") };
    (verdict.reply.map_err(|failure| failure.kind), verdict.debts.len())
}

#[test]
fn what_may_be_given_back_late_ends_the_call() {
    let waiter = || acquisition(Token::from_bits(1), Some(Waiter { client: ClientId(1), seq: 1 }));
    let released = || Ok(Reply::Release(ReleaseReply::Released));
    let waits = |reply| matches!(reply, Ok(Reply::Acquire(AcquireReply::Waiting(_))));
    assert!(waits(given_back(waiter(), released()).0));
    // It was not sent: so it will not come, and the next try finds its own token.
    assert!(waits(given_back(waiter(), Err(FailureKind::NotSent)).0));
    assert_eq!(given_back(waiter(), Err(FailureKind::Lost)), (Err(FailureKind::Spent), 0));
    // A try has no later sending, and is told the truth; who was silent is told again.
    let (reply, debts) = given_back(acquisition(Token::from_bits(1), None), Err(FailureKind::Lost));
    assert!(matches!(reply, Ok(Reply::Acquire(AcquireReply::Busy(_)))), "{reply:?}");
    assert_eq!(debts, 1);
}

fn release(token: &Token, acquire_resent: bool) -> Request {
    Request::Release(Release {
        name: name(),
        token: token.clone(),
        cooldown: None,
        acquire_resent,
        own_fence: None,
        foreign_share: false,
    })
}

/// Three servers, all of which answer.
fn three() -> Vec<Server> {
    (0..3).map(|_| Server::new(Duration::ZERO)).collect()
}

/// One that was emptied, or stayed away for so long that the lease ran out there.
fn forgets(server: &mut Server) {
    server.store = empty(&server.clock);
}

fn asked(servers: &[Server], round: &Round) -> Answers {
    round.to.iter().map(|number| (*number, servers[*number].perform(&round.request))).collect()
}

/// What comes of a request when all answer.
fn voted(servers: &[Server], request: Request) -> Reply {
    let (mut vote, mut round) = Vote::new(request, servers.len());
    loop {
        match vote.next(asked(servers, &round)) {
            Next::Ask(another) => round = another,
            Next::Done(verdict) => return verdict.reply.unwrap(),
        }
    }
}

fn granted(servers: &[Server], number: u128) -> Lease {
    let token = Token::from_bits(number);
    match voted(servers, acquisition(token.clone(), None)) {
        Reply::Acquire(AcquireReply::Granted { fence, .. }) => Lease { token, fence, deadline: Moment::FAR },
        other => panic!("{other:?}"),
    }
}

/// What each server says of the lock: its fence, if it is held.
fn held(servers: &[Server]) -> Vec<Option<Fence>> {
    let look = |server: &Server| match server.perform(&Request::Holder(Holder { name: name() })) {
        Ok(Reply::Holder(holders)) => holders.first().map(|holder| holder.fence),
        other => panic!("{other:?}"),
    };
    servers.iter().map(look).collect()
}

fn is_extended(reply: &Reply) -> bool {
    matches!(reply, Reply::Extend(ExtendReply::Extended(_)))
}

/// Each server forgets the lease, one after the other; with a waiter that tries all the while.
#[test]
fn a_renewed_lease_outlives_a_rolling_restart() {
    let mut servers = three();
    let lease = granted(&servers, 1);
    for number in [0, 1, 2, 0] {
        forgets(&mut servers[number]);
        // It has the forgetful one for a moment, and leaves a larger fence there.
        let tried = voted(&servers, acquisition(Token::from_bits(2), None));
        assert!(matches!(tried, Reply::Acquire(AcquireReply::Busy(_))), "{tried:?}");
        assert!(is_extended(&voted(&servers, renewal(&lease))), "after server {number}");
        assert_eq!(
            held(&servers),
            [Some(lease.fence); 3],
            "it votes for the lease again, with the lease's fence"
        );
    }
    assert_eq!(voted(&servers, release(&lease.token, true)), Reply::Release(ReleaseReply::Released));
    let next = granted(&servers, 3);
    assert!(next.fence > lease.fence);
}

/// The next grant goes above what a failed try has left, also if that was ahead of the clock.
#[test]
fn a_lock_taken_again_forgets_no_larger_fence() {
    let mut servers = three();
    let lease = granted(&servers, 1);
    forgets(&mut servers[2]);
    let far = Fence::new(lease.fence.get() + 3_600_000_000);
    let ahead = Request::Acquire(Acquire { min_fence: far, ..unwaiting(2) });
    assert!(
        matches!(servers[2].perform(&ahead), Ok(Reply::Acquire(AcquireReply::Granted { fence, .. })) if fence == far)
    );
    servers[2].perform(&release(&Token::from_bits(2), false)).unwrap();
    assert!(is_extended(&voted(&servers, renewal(&lease))));
    servers[2].perform(&release(&lease.token, false)).unwrap();
    let next = servers[2].perform(&Request::Acquire(unwaiting(3)));
    assert!(
        matches!(next, Ok(Reply::Acquire(AcquireReply::Granted { fence, .. })) if fence > far),
        "{next:?}"
    );
}

fn unwaiting(number: u128) -> Acquire {
    let Request::Acquire(acquire) = acquisition(Token::from_bits(number), None) else { unreachable!() };
    acquire
}

/// A majority has prolonged the lease; what has one server take the lock again comes after the release.
#[test]
fn a_renewal_that_meets_a_release_leaves_nothing_behind() {
    let mut servers = three();
    let lease = granted(&servers, 1);
    forgets(&mut servers[1]);
    let (mut vote, round) = Vote::new(renewal(&lease), 3);
    let Next::Ask(late) = vote.next(asked(&servers, &round)) else { panic!("one has forgotten it") };
    assert_eq!(late.to, [1]);
    assert_eq!(voted(&servers, release(&lease.token, true)), Reply::Release(ReleaseReply::Released));
    assert!(!is_extended(asked(&servers, &late)[0].1.as_ref().unwrap()));
    assert_eq!(held(&servers), [None; 3]);
}

/// The lease is broken while one server is about to take the lock again.
#[test]
fn a_broken_lease_does_not_live_on() {
    let mut servers = (0..5).map(|_| Server::new(Duration::ZERO)).collect::<Vec<_>>();
    let lease = granted(&servers, 1);
    forgets(&mut servers[3]);
    forgets(&mut servers[4]);
    let (mut vote, round) = Vote::new(renewal(&lease), 5);
    let Next::Ask(late) = vote.next(asked(&servers, &round)) else { panic!("two have forgotten it") };
    // Two of those that have it do not hear of it; two that have not are the majority with the one that has.
    for number in [2, 3, 4] {
        servers[number].perform(&Request::BreakLease(BreakLease { name: name() })).unwrap();
    }
    asked(&servers, &late);
    assert_eq!(held(&servers).iter().flatten().count(), 4, "most have it again");
    let told = voted(&servers, renewal(&lease));
    let Reply::Extend(ExtendReply::Gone(absence)) = &told else { panic!("{told:?}") };
    assert_eq!(absence.broken, lease.fence);
}
