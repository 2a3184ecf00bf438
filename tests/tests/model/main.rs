//! A model of one queue, and random operations on it and on the real thing: every answer, and after every
//! step everything that there is to see, must be the same. A failure shows the shortest sequence that fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod looks;
mod operations;
mod queue;
mod system;
mod terms;
mod verbs;

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use stanchion::ManualClock;
use stanchion::{Client, blocking};
use stanchion_tests::{shared, unique};
use tempfile::TempDir;

use operations::{Operation, Pace, Reference};
use system::System;
use terms::{Millis, Mutant, Tie};

/// Operations in a sequence at most.
const LENGTH: usize = 40;

/// Where the real queue is.
trait Setting: 'static {
    const PACE: Pace;
    const TIE: Tie;
    const MUTANT: Option<Mutant> = None;

    fn system() -> System;
}

/// `memory:` with a clock of its own.
struct Memory;

impl Setting for Memory {
    const PACE: Pace = Pace::Manual;
    const TIE: Tie = Tie::Serial;

    fn system() -> System {
        let clock = ManualClock::new();
        let url = format!("memory:{}", unique("model"));
        let client = Client::builder(&url).clock(&clock).open_blocking().unwrap();
        System::new(&client, Some(clock), Box::new(|_, _, _, _| unreachable!("leases end by waiting")))
    }
}

/// As [`Memory`], against a model with a mistake.
struct Mutated<const NUMBER: usize>;

const MUTANTS: [Mutant; 12] = [
    Mutant::VersionStays,
    Mutant::PutBackCounts,
    Mutant::OneAttemptMore,
    Mutant::ReplacedRunCounts,
    Mutant::EverySuccessorReplaces,
    Mutant::DebounceForgetsFirst,
    Mutant::WindowEndsWithAck,
    Mutant::NoPriorities,
    Mutant::LeaseEndSettles,
    Mutant::FullForAll,
    Mutant::NoExpiry,
    Mutant::LateAckForgotten,
];

impl<const NUMBER: usize> Setting for Mutated<NUMBER> {
    const PACE: Pace = Memory::PACE;
    const TIE: Tie = Memory::TIE;
    const MUTANT: Option<Mutant> = Some(MUTANTS[NUMBER]);

    fn system() -> System {
        Memory::system()
    }
}

/// A real server.
struct Redis;

impl Setting for Redis {
    const PACE: Pace = Pace::Real;
    const TIE: Tie = Tie::Id;

    fn system() -> System {
        static CLIENT: OnceLock<blocking::Client> = OnceLock::new();
        let client = CLIENT.get_or_init(|| blocking::Client::open(&shared().url()).unwrap());
        let mut raw = shared().raw();
        let end_lease = move |queue: &str, id: &str, origin: i64, ends: Millis| {
            let key = format!("stanchion:claimed:{{Queue:{queue}}}");
            let ends = origin + ends as i64;
            let set: u32 =
                redis::cmd("ZADD").arg(&key).arg("XX").arg("CH").arg(ends).arg(id).query(&mut raw).unwrap();
            assert_eq!(set, 1, "{id} is not among the claimed");
        };
        System::new(client, None, Box::new(end_lease))
    }
}

/// A file.
struct File;

impl Setting for File {
    const PACE: Pace = Pace::Real;
    const TIE: Tie = Tie::Serial;

    fn system() -> System {
        static STORE: OnceLock<(TempDir, blocking::Client)> = OnceLock::new();
        let (dir, client) = STORE.get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            let url = format!("sqlite:{}", dir.path().join("queue.db").display());
            (dir, blocking::Client::open(&url).unwrap())
        });
        let raw = rusqlite::Connection::open(dir.path().join("queue.db")).unwrap();
        raw.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        let end_lease = move |queue: &str, id: &str, _: i64, ends: Millis| {
            let sql = "UPDATE task SET ends = ?1 WHERE state = 2 AND id = ?2
                       AND queue = (SELECT id FROM queue WHERE key = ?3)";
            // Of the boot clock; only the order counts.
            let ends = ends as i64 - operations::START as i64;
            let set = raw.execute(sql, (ends, id, format!("Queue:{queue}"))).unwrap();
            assert_eq!(set, 1, "{id} is not claimed");
        };
        System::new(client, None, Box::new(end_lease))
    }
}

struct Model<S>(PhantomData<S>);

impl<S: Setting> ReferenceStateMachine for Model<S> {
    type State = Reference;
    type Transition = Operation;

    fn init_state() -> BoxedStrategy<Reference> {
        Just(Reference::new(S::PACE, S::TIE, S::MUTANT)).boxed()
    }

    fn transitions(_: &Reference) -> BoxedStrategy<Operation> {
        operations::operation(S::PACE)
    }

    fn apply(state: Reference, operation: &Operation) -> Reference {
        state.apply(operation)
    }
}

struct Real<S>(PhantomData<S>);

impl<S: Setting> StateMachineTest for Real<S> {
    type SystemUnderTest = System;
    type Reference = Model<S>;

    fn init_test(_: &Reference) -> System {
        S::system()
    }

    fn apply(system: System, model: &Reference, operation: Operation) -> System {
        system.apply(model, &operation)
    }

    fn check_invariants(system: &System, model: &Reference) {
        system.compare(model);
    }
}

/// Runs so many random sequences; the shortest one that fails, and how.
fn find_difference<S: Setting>(cases: u32) -> Option<(Vec<Operation>, String)> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let sequences = Model::<S>::sequential_strategy(1..=LENGTH);
    let run = |(initial, operations, seen)| {
        Real::<S>::test_sequential(Config::default(), initial, operations, seen);
        Ok(())
    };
    match TestRunner::new(config).run(&sequences, run) {
        Ok(()) => None,
        Err(TestError::Fail(_, (_, operations, _))) => Some(shortened::<S>(operations)),
        Err(error) => panic!("{error}"),
    }
}

/// What proptest leaves, without everything that it can do without: it tries to leave out each operation but
/// once, and what is superfluous may show only later.
fn shortened<S: Setting>(mut operations: Vec<Operation>) -> (Vec<Operation>, String) {
    let mut reason = failure::<S>(&operations).expect("it fails each time");
    'again: loop {
        for shorter in (0..operations.len()).rev().flat_map(|at| without(&operations, at)) {
            if let Some(other) = failure::<S>(&shorter) {
                (operations, reason) = (shorter, other);
                continue 'again;
            }
        }
        return (operations, reason);
    }
}

/// The sequences that have less at this place: no operation there, or one item fewer in it.
fn without(operations: &[Operation], at: usize) -> Vec<Vec<Operation>> {
    let mut none = operations.to_vec();
    none.remove(at);
    let mut shorter = vec![none];
    if let Operation::Enqueue(items) = &operations[at]
        && items.len() > 1
    {
        for item in 0..items.len() {
            let mut fewer = operations.to_vec();
            let mut rest = items.clone();
            rest.remove(item);
            fewer[at] = Operation::Enqueue(rest);
            shorter.push(fewer);
        }
    }
    shorter
}

/// How the sequence fails, if it does.
fn failure<S: Setting>(operations: &[Operation]) -> Option<String> {
    let run = || {
        let initial = Reference::new(S::PACE, S::TIE, S::MUTANT);
        Real::<S>::test_sequential(Config::default(), initial, operations.to_vec(), None);
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .or_else(|| Some(String::new()))
}

#[track_caller]
fn assert_same<S: Setting>(cases: u32) {
    if let Some((operations, reason)) = find_difference::<S>(cases) {
        let lines: Vec<String> = operations.iter().map(|operation| format!("  {operation:?}")).collect();
        panic!("the store and the model differ: {reason}\nafter\n{}", lines.join("\n"));
    }
}

#[test]
fn memory_does_what_the_model_says() {
    assert_same::<Memory>(1_500);
}

#[test]
fn a_redis_server_does_what_the_model_says() {
    assert_same::<Redis>(250);
}

#[test]
fn an_sqlite_file_does_what_the_model_says() {
    assert_same::<File>(150);
}

/// A comparison that finds nothing proves nothing: each deliberate mistake in the model must be found.
macro_rules! mutants {
    ($($name:ident: $number:literal,)+) => {$(
        #[test]
        fn $name() {
            let found = find_difference::<Mutated<$number>>(5_000);
            let (operations, _) = found.unwrap_or_else(|| panic!("{:?} was not found", MUTANTS[$number]));
            assert!(operations.len() <= LENGTH / 3, "not shortened: {operations:?}");
        }
    )+};
}

mutants! {
    the_mutant_version_stays_is_found: 0,
    the_mutant_put_back_counts_is_found: 1,
    the_mutant_one_attempt_more_is_found: 2,
    the_mutant_replaced_run_counts_is_found: 3,
    the_mutant_every_successor_replaces_is_found: 4,
    the_mutant_debounce_forgets_first_is_found: 5,
    the_mutant_window_ends_with_ack_is_found: 6,
    the_mutant_no_priorities_is_found: 7,
    the_mutant_lease_end_settles_is_found: 8,
    the_mutant_full_for_all_is_found: 9,
    the_mutant_no_expiry_is_found: 10,
    the_mutant_late_ack_forgotten_is_found: 11,
}
