//! Limiters: random takes of each kind on each store at a time that the test sets, and what an oracle says of each to the
//! microsecond. A failure shows the shortest sequence that fails.

mod oracle;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use stanchion::ManualClock;
use stanchion::internals::{Clock, limiter_name, store_config, token};
use stanchion::protocol::{GiveBack, LimitKind, Reply, Request, Rule, TAKE_WAIT_MOST, Take, TakeReply};
use stanchion::store::Store;
use stanchion::store::sqlite::{SqliteStore, SqliteTarget};
use stanchion_tests::timed::TimedServer;
use stanchion_tests::{shared, unique};

use oracle::{Mutant, Oracle};

/// Sequences of a run.
const CASES: u32 = 1_000;
/// In how many a mistake must be noticed.
const MUTANT_CASES: u32 = 2_000;
/// Operations in a sequence at most.
const LENGTH: usize = 40;

/// What is done.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Try(u32),
    Wait {
        count: u32,
        most: u64,
    },
    /// Of the reservations so far the one with this number, counted from the last.
    GiveBack(usize),
    /// A wait that comes after it was given up.
    LateWait(u32),
    Pass(u64),
    /// Tries a microsecond before it would succeed, and then.
    TryInTime(u32),
}

/// Times are such that every cost is a whole number of microseconds: what is rounded is for another test.
fn rules() -> impl Strategy<Value = Rule> {
    let kinds =
        prop_oneof![Just(LimitKind::Gcra), Just(LimitKind::FixedWindow), Just(LimitKind::SlidingWindow)];
    let numbers = (1..=5_u32, prop_oneof![Just(1_000_u64), Just(60_000), Just(3_600_000_000)], 1..=5_u32);
    (kinds, numbers).prop_map(|(kind, (most, per, burst))| {
        let burst = if kind == LimitKind::Gcra { burst } else { most };
        Rule { kind, most, per: per.next_multiple_of(u64::from(most)), burst }
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    // Times are parts of a thousand of the limit's.
    prop_oneof![
        3 => (1..=5_u32).prop_map(Operation::Try),
        4 => (1..=5_u32, 0..4_000_u64).prop_map(|(count, most)| Operation::Wait { count, most }),
        1 => (0..3_usize).prop_map(Operation::GiveBack),
        1 => (1..=5_u32).prop_map(Operation::LateWait),
        3 => (0..1_500_u64).prop_map(Operation::Pass),
        1 => (1..=5_u32).prop_map(Operation::TryInTime),
    ]
}

/// A store at a time that is set.
trait System {
    fn perform(&mut self, request: &Request, now: u64) -> Reply;
}

/// A database, and the clock that it goes by.
struct Database {
    store: SqliteStore,
    clock: ManualClock,
    _dir: Option<tempfile::TempDir>,
}

impl Database {
    fn open(is_file: bool) -> Self {
        let clock = ManualClock::new();
        let dir = is_file.then(|| tempfile::tempdir().unwrap());
        let target = match &dir {
            Some(dir) => {
                SqliteTarget::File { path: dir.path().join("db"), mode: 0o600, secure_delete: false }
            }
            None => SqliteTarget::Memory { name: None },
        };
        let config = store_config(Clock::Manual(clock.clone()), 1).unwrap();
        Self { store: SqliteStore::open(target, config).unwrap(), clock, _dir: dir }
    }
}

impl System for Database {
    fn perform(&mut self, request: &Request, now: u64) -> Reply {
        let then = Clock::Manual(self.clock.clone()).wall_micros();
        self.clock.advance(Duration::from_micros(now - then));
        self.store.perform(request, Clock::Manual(self.clock.clone()).now() + Duration::from_secs(5)).unwrap()
    }
}

/// A server whose scripts are told the time. Keys end by its own time, which has nothing to do with that: they are kept, and
/// dropped when they would have ended.
struct Server {
    timed: TimedServer,
    ends: u64,
}

impl Server {
    /// Those of limiters. That a token has ended is remembered for longer than a sequence lasts.
    fn keys(&mut self) -> Vec<String> {
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut self.timed.raw).unwrap();
        keys.into_iter().filter(|key| !key.starts_with("stanchion:ended:")).collect()
    }
}

impl System for Server {
    fn perform(&mut self, request: &Request, now: u64) -> Reply {
        if now > self.ends {
            for key in self.keys() {
                redis::cmd("DEL").arg(key).exec(&mut self.timed.raw).unwrap();
            }
        }
        let reply = self.timed.perform(request, now).unwrap();
        for key in self.keys() {
            let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut self.timed.raw).unwrap();
            // A call that changes nothing leaves it without an end.
            if let Ok(left) = u64::try_from(left) {
                self.ends = now + 1_000 * left;
                redis::cmd("PERSIST").arg(&key).exec(&mut self.timed.raw).unwrap();
            }
        }
        reply
    }
}

/// A sequence on a system, and what was done so far.
struct Play<'a> {
    system: &'a mut dyn System,
    oracle: Oracle,
    rule: Rule,
    name: Arc<str>,
    now: u64,
    tokens: Vec<(u128, u32)>,
}

impl Play<'_> {
    fn take(&mut self, count: u32, wait: Option<(u64, u128)>) -> Result<(), String> {
        let request = Request::Take(Take {
            name: limiter_name(&self.name).unwrap(),
            rule: self.rule,
            count,
            wait_most: Duration::from_micros(wait.map_or(0, |(most, _)| most)),
            token: wait.map(|(_, number)| token(number)),
        });
        let real = match self.system.perform(&request, self.now) {
            Reply::Take(TakeReply::Taken(begins)) => Ok(begins),
            Reply::Take(TakeReply::Refused(retry)) => Err(retry),
            other => return Err(format!("{other:?}")),
        };
        let told = self.oracle.take(self.now, count, wait);
        let expected = told.map(Duration::from_micros).map_err(Duration::from_micros);
        same(&real, &expected)
    }

    fn step(&mut self, operation: Operation) -> Result<(), String> {
        let fitting = |count: u32| count.min(self.rule.burst);
        match operation {
            Operation::Try(count) => self.take(fitting(count), None),
            Operation::Wait { count, most } => {
                let (count, number) = (fitting(count), self.tokens.len() as u128 + 1);
                self.tokens.push((number, count));
                let longest = u64::try_from(TAKE_WAIT_MOST.as_micros()).unwrap();
                self.take(count, Some(((most * self.rule.per / 1_000).min(longest), number)))
            }
            Operation::GiveBack(place) => {
                let Some((number, count)) = self.tokens.iter().rev().nth(place).copied() else {
                    return Ok(());
                };
                let name = limiter_name(&self.name).unwrap();
                let request = GiveBack { name, rule: self.rule, count, token: token(number) };
                let real = self.system.perform(&Request::GiveBack(request), self.now);
                // What means nothing any more may be forgotten, or not yet.
                let is_idle = self.oracle.clone().take(self.now, self.rule.burst, None) == Ok(0);
                let given = self.oracle.give_back(number);
                if is_idle { Ok(()) } else { same(&real, &Reply::GiveBack(given)) }
            }
            Operation::LateWait(count) => {
                let (count, number) = (fitting(count), self.tokens.len() as u128 + 1);
                self.tokens.push((number, count));
                let (name, token) = (limiter_name(&self.name).unwrap(), token(number));
                let given = GiveBack { name: name.clone(), rule: self.rule, count, token: token.clone() };
                let real = self.system.perform(&Request::GiveBack(given), self.now);
                same(&real, &Reply::GiveBack(false))?;
                let late =
                    Take { name, rule: self.rule, count, wait_most: TAKE_WAIT_MOST, token: Some(token) };
                let real = self.system.perform(&Request::Take(late), self.now);
                same(&real, &Reply::Take(TakeReply::Refused(Duration::ZERO)))
            }
            Operation::Pass(parts) => {
                self.now += parts * self.rule.per / 1_000;
                Ok(())
            }
            Operation::TryInTime(count) => {
                let count = fitting(count);
                let Err(retry) = self.oracle.clone().take(self.now, count, None) else { return Ok(()) };
                self.now += retry - 1;
                self.take(count, None)?;
                self.now += 1;
                self.take(count, None)
            }
        }
    }
}

fn same<T: std::fmt::Debug + PartialEq>(real: &T, expected: &T) -> Result<(), String> {
    if real == expected { Ok(()) } else { Err(format!("the store says {real:?}, the oracle {expected:?}")) }
}

fn play(
    system: &mut dyn System,
    now: &mut u64,
    rule: Rule,
    operations: &[Operation],
    mutant: Option<Mutant>,
) -> Result<(), String> {
    let oracle = Oracle::new(rule, mutant);
    // Each sequence has a name of its own, and begins later than the one before.
    *now += 2 * rule.per + 7_200_000_000;
    let mut play =
        Play { system, oracle, rule, name: unique("limiter").into(), now: *now, tokens: Vec::new() };
    let wrong = operations.iter().find_map(|operation| {
        let wrong = play.step(*operation).err()?;
        Some(format!("{operation:?} at {}: {wrong}", play.now - *now))
    });
    *now = play.now;
    wrong.or_else(|| play.oracle.excess()).map_or(Ok(()), Err)
}

/// Plays so many sequences; the shortest that fails.
fn run(system: &mut dyn System, cases: u32, mutant: Option<Mutant>) -> Result<(), String> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let system = std::cell::RefCell::new((system, 1_800_000_000_000_000_u64));
    let sequences = (rules(), prop::collection::vec(operation(), 1..LENGTH));
    let result = runner.run(&sequences, |(rule, operations)| {
        let (system, now) = &mut *system.borrow_mut();
        play(&mut **system, now, rule, &operations, mutant).map_err(TestCaseError::fail)
    });
    result.map_err(|error| match error {
        TestError::Fail(reason, (rule, operations)) => format!("{rule:?}\n{operations:#?}\n{reason}"),
        TestError::Abort(reason) => reason.to_string(),
    })
}

#[test]
fn limiters_on_memory_do_what_the_oracle_says() {
    run(&mut Database::open(false), 10 * CASES, None).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn limiters_on_a_file_do_what_the_oracle_says() {
    run(&mut Database::open(true), CASES, None).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn limiters_on_a_server_do_what_the_oracle_says() {
    let mut server = Server { timed: TimedServer::at(&shared().fresh_db()), ends: 0 };
    run(&mut server, CASES, None).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn every_mistake_in_the_oracle_is_noticed() {
    for mutant in [
        Mutant::BurstIsLarger,
        Mutant::WindowIsLarger,
        Mutant::IsEarly,
        Mutant::WindowIsClosed,
        Mutant::NoLine,
        Mutant::GivesAnyBack,
        Mutant::KeepsAll,
        Mutant::TriesReserve,
    ] {
        let wrong = run(&mut Database::open(false), MUTANT_CASES, Some(mutant));
        assert!(wrong.is_err(), "{mutant:?} was not noticed");
    }
}

/// Rates whose costs are no whole microseconds: never more than the limit in any time, and no more than a microsecond per take
/// less.
#[test]
fn a_rate_that_is_rounded_is_never_above_its_limit() {
    let mut database = Database::open(false);
    let mut server = Server { timed: TimedServer::at(&shared().fresh_db()), ends: 0 };
    let mut now = 1_900_000_000_000_000;
    for (most, per, burst) in
        [(3, 1_000, 2), (7, 1_000, 7), (2, 1_003, 3), (999, 1_000, 5), (2_000, 3_000, 3)]
    {
        let rule = Rule { kind: LimitKind::Gcra, most, per, burst };
        for system in [&mut database as &mut dyn System, &mut server] {
            now += 10_000_000_000;
            let name = limiter_name(&unique("limiter")).unwrap();
            let mut oracle = Oracle::new(rule, None);
            let mut taken = 0;
            for number in 0..60_u32 {
                let count = 1 + number % burst;
                let wait_most = Duration::from_secs(3_600);
                let (name, token) = (name.clone(), Some(token(number.into())));
                let take = Request::Take(Take { name, rule, count, wait_most, token });
                let Reply::Take(TakeReply::Taken(begins)) = system.perform(&take, now) else {
                    panic!("{number}")
                };
                let begins = now + u64::try_from(begins.as_micros()).unwrap();
                oracle.grants.push(oracle::Grant { begins, count, token: None });
                taken += count;
            }
            assert_eq!(oracle.excess(), None, "{rule:?}");
            let exact = (taken - burst) * u32::try_from(per).unwrap() / most;
            let lasts = oracle.grants.last().unwrap().begins - now;
            assert!(lasts <= u64::from(exact) + 61, "{rule:?}: {lasts} us, exactly it were {exact}");
        }
    }
}
