//! Small worlds, all of them: the real engine and the real `memory:` store, and everything that can happen to two or
//! three clients, one step deeper each time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod again;
#[path = "../simulator/locks/checker.rs"]
#[allow(dead_code, reason = "the simulator asks for more")]
mod checker;
mod crew;
mod locks;
mod mutant;
mod queues;
mod stage;
mod walk;
mod world;

use std::env;
use std::time::Duration;

use locks::{Locks, User};
use mutant::Mutant;
use queues::{Plan, Queues};
use walk::{Bounds, Walked, walk};
use world::{Game, Left, Wish, World};

const MS: Duration = Duration::from_millis(1);

/// In a plain test run.
const SECONDS: u64 = 20;
/// Among so many worlds they are divided.
const WORLDS: u32 = 6;
/// Nobody gets so deep.
const MOST: u32 = 40;

const FAULTS: Left = Left { doubled: 1, unsent: 1, mishaps: 1, ended: 1 };

fn one_lock(mutant: Option<Mutant>) -> World<Locks> {
    let first = User {
        ttl: MS * 300,
        renews: true,
        wait: MS * 5_000,
        weight: 1,
        locks: vec![0],
        turns: 1,
        extends: 0,
        cancels: 1,
    };
    let second = User { renews: false, extends: 1, ..first.clone() };
    Locks::world(1, None, vec![first, second], FAULTS, mutant)
}

fn two_locks(mutant: Option<Mutant>) -> World<Locks> {
    let first = User {
        ttl: MS * 100,
        renews: false,
        wait: MS * 5_000,
        weight: 1,
        locks: vec![0, 1],
        turns: 1,
        extends: 0,
        cancels: 1,
    };
    let second = User { ttl: MS * 300, locks: vec![1], ..first.clone() };
    Locks::world(2, None, vec![first, second], FAULTS, mutant)
}

fn semaphore(mutant: Option<Mutant>) -> World<Locks> {
    let user = User {
        ttl: MS * 300,
        renews: true,
        wait: MS * 5_000,
        weight: 1,
        locks: vec![0],
        turns: 1,
        extends: 0,
        cancels: 0,
    };
    let greedy = User { weight: 2, renews: false, ..user.clone() };
    Locks::world(1, Some(2), vec![user.clone(), user, greedy], FAULTS, mutant)
}

fn one_id(mutant: Option<Mutant>) -> World<Queues> {
    let plan = Plan {
        there: Vec::new(),
        enqueues: 2,
        policies: vec![0, 1, 2, 3, 4],
        workers: 2,
        claims: 2,
        verdicts: vec![Wish::Ack, Wish::AckAndClaim, Wish::Nack, Wish::PutBack],
        has_crew: false,
    };
    Queues::world(plan, Left { ended: 0, ..FAULTS }, mutant).unwrap()
}

fn hot_id(mutant: Option<Mutant>) -> World<Queues> {
    let plan = Plan {
        there: vec!["x", "y", "z"],
        enqueues: 2,
        policies: vec![0, 1, 2],
        workers: 2,
        claims: 3,
        verdicts: vec![Wish::AckAndClaim, Wish::PutBack],
        has_crew: false,
    };
    Queues::world(plan, Left { ended: 0, mishaps: 0, ..FAULTS }, mutant).unwrap()
}

/// A debounced id that fails, and is asked for again; few faults, since it takes many moves.
fn burst(mutant: Option<Mutant>) -> World<Queues> {
    let plan = Plan {
        there: Vec::new(),
        enqueues: 2,
        policies: vec![2],
        workers: 1,
        claims: 2,
        verdicts: vec![Wish::Nack],
        has_crew: false,
    };
    Queues::world(plan, Left { doubled: 0, unsent: 0, mishaps: 0, ended: 0 }, mutant).unwrap()
}

fn hung_handler(mutant: Option<Mutant>) -> World<Queues> {
    let plan = Plan {
        there: vec!["x", "y"],
        enqueues: 1,
        policies: vec![0, 1],
        workers: 1,
        claims: 0,
        verdicts: Vec::new(),
        has_crew: true,
    };
    Queues::world(plan, Left { ended: 0, ..FAULTS }, mutant).unwrap()
}

/// Seconds of one core that the worlds take in all.
fn seconds() -> u64 {
    env::var("STANCHION_WORLDS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS)
}

fn report(name: &str, walked: &Walked) {
    println!(
        "world of {name}: all {} states within {} moves are safe; from all {} within {} all goes well ({} more on the \
         way); {} moves, {} of the store, {:.1} s",
        walked.safe.states,
        walked.safe.depth,
        walked.live.states,
        walked.live.depth,
        walked.calms,
        walked.moves,
        walked.performed,
        walked.took.as_secs_f64()
    );
}

fn explore<G: Game>(name: &str, least: u32, world: &World<G>) {
    if let Ok(wanted) = env::var("STANCHION_WORLD") {
        if wanted == name {
            let path = env::var("STANCHION_PATH").expect("STANCHION_PATH has the numbers of the moves");
            let path: Vec<usize> = path.split('.').map(|number| number.parse().unwrap()).collect();
            walk::retell(world, &path).iter().for_each(|line| println!("{line}"));
        }
        return;
    }
    let walked = walk(world, Bounds { least, most: MOST, time: Duration::from_secs(seconds()) / WORLDS });
    report(name, &walked);
    if let Some(broken) = &walked.broken {
        panic!("{}", broken.told(name));
    }
    // A walk that goes nowhere proves nothing.
    assert!(walked.safe.states > 500, "only {} states", walked.safe.states);
}

/// A walk that cannot find anything proves nothing.
fn find<G: Game>(mutant: Mutant, world: &World<G>) {
    let walked = walk(world, Bounds { least: MOST, most: MOST, time: Duration::ZERO });
    let broken = walked.broken.unwrap_or_else(|| panic!("{mutant:?} was not found"));
    println!("{mutant:?}: found {} moves deep, of {}: {}", broken.path.len(), walked.moves, broken.why);
    if env::var_os("STANCHION_TRACES").is_some() {
        println!("{}", broken.told("-"));
    }
}

#[test]
fn one_lock_and_two_clients() {
    explore("one lock", 5, &one_lock(None));
}

#[test]
fn two_locks_taken_together() {
    explore("two locks", 4, &two_locks(None));
}

#[test]
fn a_semaphore_of_two_and_three_clients() {
    explore("semaphore", 4, &semaphore(None));
}

#[test]
fn one_id_and_two_workers() {
    explore("one id", 4, &one_id(None));
}

#[test]
fn a_hot_id_beside_others() {
    explore("hot id", 4, &hot_id(None));
}

#[test]
fn a_worker_whose_handler_hangs() {
    explore("hung handler", 4, &hung_handler(None));
}

#[test]
fn every_mutant_is_found() {
    for mutant in Mutant::ALL {
        match mutant {
            Mutant::EarlierLocksUnseen => find(mutant, &two_locks(Some(mutant))),
            Mutant::UnsentCounts => find(mutant, &one_lock(Some(mutant))),
            Mutant::ReplaceLosesPlace => find(mutant, &hot_id(Some(mutant))),
            Mutant::BurstOutlivesFailure => find(mutant, &burst(Some(mutant))),
            Mutant::HungHandlerUnseen => find(mutant, &hung_handler(Some(mutant))),
        }
    }
}
