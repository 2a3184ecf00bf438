//! Simulated fleets: the real engine and the real code of the `memory:` store, in virtual time.
//!
//! A seed decides everything: who acquires what and when, which messages are lost, late, doubled or
//! reordered, which clients are cancelled, frozen or killed. After every step the invariants of a lock
//! are checked. A failure prints its seed; `STANCHION_SEED=N cargo test -p stanchion-tests --test
//! simulator -- schedules --nocapture` shows that schedule step by step.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod checker;
mod client;
mod world;

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use world::{Fleet, Mutant};

/// How many schedules a plain test run plays.
const SCHEDULES: u64 = 200_000;
/// Schedules played on one store before it is thrown away.
const PER_STORE: u64 = 500;

#[test]
fn schedules() {
    if let Ok(seed) = env::var("STANCHION_SEED") {
        let seed = seed.parse().expect("STANCHION_SEED is a number");
        if let Err(broken) = Fleet::new().play(seed, None, true) {
            panic!("seed {seed}: {broken}");
        }
        return;
    }
    let count =
        env::var("STANCHION_SCHEDULES").ok().and_then(|count| count.parse().ok()).unwrap_or(SCHEDULES);
    let started = Instant::now();
    let tally = play_all(count, None).unwrap_or_else(|(seed, broken)| panic!("seed {seed}: {broken}"));
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{count} schedules in {seconds:.1} s: {} steps at the store, {} leases, {} hand-offs, {} losses, no overlap, \
         no fence equal or falling",
        tally.store_steps, tally.leases, tally.hand_offs, tally.losses
    );
    // A simulator in which nothing happens proves nothing.
    assert!(tally.leases > count, "only {} leases in {count} schedules", tally.leases);
    assert!(tally.hand_offs > count / 4, "only {} hand-offs", tally.hand_offs);
    assert!(tally.losses > count / 100, "only {} losses", tally.losses);
}

/// Each deliberate bug must be noticed: a checker that cannot fail checks nothing.
#[test]
fn every_mutant_is_caught() {
    for mutant in Mutant::ALL {
        let caught = play_all(20_000, Some(mutant));
        let Err((seed, broken)) = caught else { panic!("{mutant:?} was not noticed in 20,000 schedules") };
        println!("{mutant:?}: caught at seed {seed}: {}", broken.lines().next().unwrap_or_default());
    }
}

#[test]
fn a_seed_repeats_exactly() {
    for seed in 0..50 {
        let first = Fleet::new().play(seed, None, false).unwrap();
        let second = Fleet::new().play(seed, None, false).unwrap();
        assert_eq!(first, second, "seed {seed}");
    }
}

/// Plays the schedules on all cores; the failure with the smallest seed found, or what happened in all.
fn play_all(count: u64, mutant: Option<Mutant>) -> Result<world::Tally, (u64, String)> {
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let play = || {
        let mut tally = world::Tally::default();
        loop {
            let first = next.fetch_add(PER_STORE, Ordering::SeqCst);
            if first >= count {
                return Ok(tally);
            }
            let mut fleet = Fleet::new();
            for seed in first..(first + PER_STORE).min(count) {
                match fleet.play(seed, mutant, false) {
                    Ok(played) => tally += played,
                    Err(broken) => {
                        next.store(count, Ordering::SeqCst);
                        return Err((seed, broken));
                    }
                }
            }
        }
    };
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(play)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let mut total = world::Tally::default();
    for result in results {
        total += result?;
    }
    Ok(total)
}
