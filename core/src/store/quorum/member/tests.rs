//! One server that goes away and comes back, in the time of the test.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::base::clock::ManualClock;
use crate::base::name::{LockKind, LockName, Prefixes, QueueName};
use crate::base::token::Token;
use crate::protocol::{Leave, Reply};
use crate::store::Finding;
use crate::store::redis::life::Lives;
use crate::store::{Hear, Hints, Pending};

type Deed = Box<dyn FnOnce() + Send>;

/// A server that does nothing, and answers if it is up.
#[derive(Default)]
pub(in crate::store::quorum) struct Fake {
    down: AtomicBool,
    told: Mutex<Vec<Request>>,
    /// What happens while it carries out a request, one after the other.
    meanwhile: Mutex<VecDeque<Deed>>,
}

impl Fake {
    pub(in crate::store::quorum) fn goes_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    pub(in crate::store::quorum) fn meanwhile(&self, deed: impl FnOnce() + Send + 'static) {
        locked(&self.meanwhile).push_back(Box::new(deed));
    }

    fn answer(&self) -> Result<(), Failure> {
        match self.down.load(Ordering::SeqCst) {
            true => Err(Failure::new(FailureKind::Lost, "it is down")),
            false => Ok(()),
        }
    }
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a server")
    }
}

impl Store for Fake {
    fn close(&self) {}

    fn perform(&self, request: &Request, _: Moment) -> Result<Reply, Failure> {
        let answer = self.answer();
        let deed = locked(&self.meanwhile).pop_front();
        if let Some(deed) = deed {
            deed();
        }
        locked(&self.told).push(request.clone());
        answer.map(|()| Reply::Leave)
    }

    fn perform_async<'a>(&'a self, request: &'a Request, until: Moment) -> Pending<'a> {
        Box::pin(async move { self.perform(request, until) })
    }

    fn perform_all(&self, requests: &[Request], until: Moment, hear: Hear<'_, Reply>) {
        requests.iter().enumerate().for_each(|(number, request)| hear(number, self.perform(request, until)));
    }

    fn listen(&self, _: Moment) -> Result<Option<Box<dyn Hints>>, Failure> {
        Ok(None)
    }

    fn check(&self, _: Moment) -> Result<(), Failure> {
        self.answer()
    }

    fn doctor(&self, _: Moment) -> Result<Vec<Finding>, Failure> {
        Ok(Vec::new())
    }

    fn list(&self, _: LockKind, _: u64, _: Moment) -> Result<(u64, Vec<LockName>), Failure> {
        Ok((0, Vec::new()))
    }

    fn list_queues(&self, _: u64, _: Moment) -> Result<(u64, Vec<QueueName>), Failure> {
        Ok((0, Vec::new()))
    }
}

fn cleanup(number: u128) -> Request {
    let name = Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap();
    Request::Leave(Leave { name, token: Token::from_bits(number), foreign_share: false })
}

fn token(request: &Request) -> Token {
    let Request::Leave(leave) = request else { panic!("no cleanup") };
    leave.token.clone()
}

/// A server that is left out, and that nobody looks after but the test.
fn left_out() -> (Arc<Fake>, Arc<Member>, ManualClock) {
    let (fake, clock) = (Arc::new(Fake::default()), ManualClock::new());
    let store: Arc<dyn Store> = fake.clone();
    let lives = Lives::new(vec!["here".to_owned()], Duration::ZERO, Clock::Manual(clock.clone()));
    let member = Member::new(store, lives.life(0), Clock::Manual(clock.clone()));
    leave(&member);
    (fake, member, clock)
}

fn leave(member: &Arc<Member>) {
    locked(&member.state).absent = Some(Failure::new(FailureKind::NotSent, "it was down"));
}

pub(in crate::store::quorum) fn leaves_and_returns(member: &Arc<Member>) {
    leave(member);
    member.look_after();
}

fn told(fake: &Fake) -> Vec<Token> {
    locked(&fake.told).iter().map(token).collect()
}

#[test]
fn what_a_silent_server_is_owed_has_a_bound() {
    let (fake, member, _) = left_out();
    let most = DEBTS_MOST as u128;
    (0..most + 500).for_each(|number| member.owe(cleanup(number)));
    assert_eq!(locked(&member.state).debts.len(), DEBTS_MOST);
    member.look_after();
    let newest: Vec<_> = (500..most + 500).map(Token::from_bits).collect();
    assert!(told(&fake) == newest, "the newest, in their order");
    assert!(member.absence().is_none());
}

#[test]
fn what_a_silent_server_is_owed_is_forgotten_after_its_time() {
    let (fake, member, clock) = left_out();
    member.owe(cleanup(1));
    clock.advance(DEBT_FOR / 2);
    member.owe(cleanup(2));
    clock.advance(DEBT_FOR / 2);
    member.look_after();
    assert_eq!(told(&fake), [Token::from_bits(2)]);
}

/// It fails again while it is told: then it is told all of it later, before what came meanwhile.
#[test]
fn what_a_silent_server_did_not_take_is_owed_still() {
    let (fake, member, _) = left_out();
    (1..=3).for_each(|number| member.owe(cleanup(number)));
    let later = Arc::clone(&member);
    fake.goes_down(true);
    fake.meanwhile(move || later.owe(cleanup(4)));
    assert!(member.settle().is_err());
    assert_eq!(locked(&member.state).debts.len(), 4);
    locked(&fake.told).clear();
    fake.goes_down(false);
    member.look_after();
    let all: Vec<_> = (1..=4).map(Token::from_bits).collect();
    assert_eq!(told(&fake), all);
}

/// What it did not answer before it was found well again says nothing about it.
#[test]
fn a_stale_failure_does_not_put_a_server_out_again() {
    let (fake, member, _) = left_out();
    let before = member.returns();
    let silent: Result<(), _> = Err(Failure::new(FailureKind::Lost, "no answer"));
    member.look_after();
    member.note(before, &silent);
    assert!(member.absence().is_none(), "it has come back since");
    fake.goes_down(true);
    member.note(member.returns(), &silent);
    assert!(member.absence().is_some(), "it went away again");
    member.close();
}

/// While it hears what it was owed, more is owed to it.
#[test]
fn a_server_comes_back_when_it_was_told_what_it_was_owed_before() {
    let (fake, member, _) = left_out();
    member.owe(cleanup(1));
    let was_out = Arc::new(Mutex::new(Vec::new()));
    for number in [Some(2), None] {
        let (later, was_out) = (Arc::clone(&member), Arc::clone(&was_out));
        fake.meanwhile(move || {
            let absence = later.absence();
            locked(&was_out).push(absence.is_some());
            number.into_iter().for_each(|number| later.owe(cleanup(number)));
        });
    }
    member.look_after();
    assert_eq!(*locked(&was_out), [true, false], "the rest holds up nobody");
    assert_eq!(told(&fake), [Token::from_bits(1), Token::from_bits(2)]);
    assert!(member.absence().is_none() && locked(&member.state).debts.is_empty());
}

#[test]
fn a_server_that_does_not_take_the_rest_is_left_out_again() {
    let (fake, member, _) = left_out();
    member.owe(cleanup(1));
    let (later, down) = (Arc::clone(&member), Arc::clone(&fake));
    fake.meanwhile(move || {
        later.owe(cleanup(2));
        // After it has been told this, and was found well.
        down.goes_down(true);
    });
    member.look_after();
    assert!(member.absence().is_some());
    assert_eq!(locked(&member.state).debts.len(), 1);
    member.close();
}
