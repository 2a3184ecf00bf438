//! Simulated fleets: the real engine and the real code of the `memory:` store, in virtual time.
//!
//! A seed decides everything: who does what and when, which messages are lost, late, doubled or reordered,
//! which clients are cancelled, frozen or killed. After every step the invariants of a lock, or of a queue,
//! are checked. A failure prints its seed; `STANCHION_SEED=N cargo test -p stanchion-tests --test simulator --
//! lock_schedules --nocapture` (or `queue_schedules`) shows that schedule step by step.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod limiters;
mod locks;
mod queues;
mod scene;
mod schedules;
mod workers;

use std::env;
use std::fmt::Debug;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// How many schedules a plain test run plays of each kind.
const SCHEDULES: u64 = 200_000;
/// In how many schedules a mutant must be noticed.
const MUTANT_SCHEDULES: u64 = 20_000;
/// Schedules played on one store before it is thrown away.
const PER_STORE: u64 = 500;

/// Clients and their stores, used for many schedules in turn.
trait Fleet {
    /// Deliberate bugs.
    type Mutant: Copy + Debug + Sync;
    /// What happened.
    type Tally: AddAssign + Debug + Default + PartialEq + Send;

    /// Of so many schedules of a run, one is played: those of this kind take longer.
    const SHARE: u64 = 1;

    fn new() -> Self;

    /// Plays the schedule of this seed.
    fn play(&mut self, seed: u64, mutant: Option<Self::Mutant>, loud: bool) -> Result<Self::Tally, String>;
}

#[test]
fn lock_schedules() {
    let Some((count, seconds, tally)) = play::<locks::Fleet>() else { return };
    println!(
        "{count} schedules of locks in {seconds:.1} s: {} steps at the store, {} leases, {} times several, {} hand-offs, \
         {} losses, {} leases ended early, {} failovers, {} upgrades, no overlap, no fence equal or falling",
        tally.store_steps,
        tally.leases,
        tally.together,
        tally.hand_offs,
        tally.losses,
        tally.early,
        tally.failovers,
        tally.upgrades
    );
    // A simulator in which nothing happens proves nothing.
    assert!(tally.leases > count, "only {} leases in {count} schedules", tally.leases);
    assert!(tally.hand_offs > count / 4, "only {} hand-offs", tally.hand_offs);
    assert!(tally.losses > count / 100, "only {} losses", tally.losses);
    assert!(tally.together > count / 10, "only {} times several", tally.together);
    assert!(tally.early > count / 10, "only {} leases ended early", tally.early);
    assert!(tally.upgrades > count / 20, "only {} upgrades", tally.upgrades);
    assert!(tally.failovers > count / 20, "only {} failovers", tally.failovers);
}

#[test]
fn queue_schedules() {
    let Some((count, seconds, tally)) = play::<queues::Fleet>() else { return };
    println!(
        "{count} schedules of queues in {seconds:.1} s: {} steps at the store, {} messages lost and {} doubled, {} calls \
         sent again",
        tally.store_steps, tally.lost, tally.doubled, tally.resent
    );
    println!(
        "{} deliveries, {} redeliveries, {} leases lost, {} ended unheard, {} settlements late, {} stale, {} deaths, {} \
         hints: Q1 to Q10 hold",
        tally.deliveries,
        tally.redeliveries,
        tally.losses,
        tally.unheard,
        tally.late,
        tally.stale,
        tally.deaths,
        tally.hints
    );
    // A simulator in which nothing happens proves nothing.
    let often = [tally.deliveries, tally.resent, tally.hints, tally.lost];
    assert!(often.iter().all(|happened| *happened > count), "{tally:?}");
    let rare = [tally.redeliveries, tally.losses, tally.late, tally.doubled];
    assert!(rare.iter().all(|happened| *happened > count / 10), "{tally:?}");
    let rarest = [tally.unheard, tally.stale, tally.deaths];
    assert!(rarest.iter().all(|happened| *happened > count / 50), "{tally:?}");
}

#[test]
fn worker_schedules() {
    let Some((count, seconds, tally)) = play::<workers::Fleet>() else { return };
    println!(
        "{count} schedules of workers in {seconds:.1} s: {} handlers begun, {} lost their claims, {} timed out, \
         {} verdicts too late, {} were stuck; {} stops, \
         {} handlers told to end, {} left behind, {} tasks put back",
        tally.begun,
        tally.lost,
        tally.timed_out,
        tally.too_late,
        tally.stuck,
        tally.stops,
        tally.signalled,
        tally.left_behind,
        tally.put_back
    );
    // A simulator in which nothing happens proves nothing.
    assert!(tally.begun > count && tally.stops > count, "{tally:?}");
    let rare = [tally.lost, tally.timed_out, tally.stuck, tally.put_back];
    assert!(rare.iter().all(|happened| *happened > count / 4), "{tally:?}");
    let rarest = [tally.signalled, tally.left_behind, tally.too_late];
    assert!(rarest.iter().all(|happened| *happened > count / 50), "{tally:?}");
}

#[test]
fn schedule_schedules() {
    let Some((count, seconds, tally)) = play::<schedules::Fleet>() else { return };
    println!(
        "{count} runs of queues with schedules in {seconds:.1} s: {} slots fired, {} skipped, {} missed; {} fires came too \
         late, {} lists were too old, {} messages lost: each slot once, none lost, all in time",
        tally.fired, tally.skipped, tally.missed, tally.stale, tally.older, tally.lost
    );
    // A simulator in which nothing happens proves nothing.
    assert!(tally.fired > 5 * count && tally.lost > count, "{tally:?}");
    let rare = [tally.stale, tally.missed];
    assert!(rare.iter().all(|happened| *happened > count / 4), "{tally:?}");
    let rarest = [tally.skipped, tally.older];
    assert!(rarest.iter().all(|happened| *happened > count / 50), "{tally:?}");
}

#[test]
fn limiter_schedules() {
    let Some((count, seconds, tally)) = play::<limiters::Fleet>() else { return };
    println!(
        "{count} schedules of limiters in {seconds:.1} s: {} takes, {} used, {} of them after a wait, {} refused, {} given \
         back, {} messages lost: never above the limit, none too early, none too late",
        tally.taken, tally.used, tally.waited, tally.refused, tally.given_back, tally.lost
    );
    // A simulator in which nothing happens proves nothing.
    assert!([tally.used, tally.waited, tally.refused].iter().all(|happened| *happened > count), "{tally:?}");
    assert!(tally.taken - tally.used > count / 2 && tally.lost > count, "{tally:?}");
    assert!(tally.given_back > count / 10, "{tally:?}");
}

#[test]
fn every_mutant_of_limiters_is_caught() {
    catch::<limiters::Fleet>(&limiters::Mutant::ALL);
}

#[test]
fn every_mutant_of_schedules_is_caught() {
    catch::<schedules::Fleet>(&schedules::Mutant::ALL);
}

#[test]
fn every_mutant_of_workers_is_caught() {
    catch::<workers::Fleet>(&workers::Mutant::ALL);
}

#[test]
fn every_mutant_of_queues_is_caught() {
    catch::<queues::Fleet>(&queues::Mutant::ALL);
}

#[test]
fn every_mutant_of_locks_is_caught() {
    catch::<locks::Fleet>(&locks::Mutant::ALL);
}

#[test]
fn a_seed_repeats_exactly() {
    for seed in 0..50 {
        assert_repeats::<locks::Fleet>(seed);
        assert_repeats::<queues::Fleet>(seed);
        assert_repeats::<workers::Fleet>(seed);
        assert_repeats::<schedules::Fleet>(seed);
        assert_repeats::<limiters::Fleet>(seed);
    }
}

fn assert_repeats<F: Fleet>(seed: u64) {
    let first = F::new().play(seed, None, false).unwrap();
    let mut used = F::new();
    used.play(seed + 1, None, false).unwrap();
    let second = used.play(seed, None, false).unwrap();
    assert_eq!(first, second, "seed {seed}");
}

/// One kind of schedules at a time, on all cores.
static TURN: Mutex<()> = Mutex::new(());

/// Plays one schedule if a seed is given; otherwise all of them, and tells their number, the time, and what
/// happened.
fn play<F: Fleet>() -> Option<(u64, f64, F::Tally)> {
    if let Ok(seed) = env::var("STANCHION_SEED") {
        let seed = seed.parse().expect("STANCHION_SEED is a number");
        if let Err(broken) = F::new().play(seed, None, true) {
            panic!("seed {seed}: {broken}");
        }
        return None;
    }
    let count =
        env::var("STANCHION_SCHEDULES").ok().and_then(|count| count.parse().ok()).unwrap_or(SCHEDULES)
            / F::SHARE;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let started = Instant::now();
    let tally = play_all::<F>(count, None).unwrap_or_else(|(seed, broken)| panic!("seed {seed}: {broken}"));
    Some((count, started.elapsed().as_secs_f64(), tally))
}

/// Each deliberate bug must be noticed: a checker that cannot fail checks nothing.
fn catch<F: Fleet>(mutants: &[F::Mutant]) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for mutant in mutants {
        let caught = play_all::<F>(MUTANT_SCHEDULES, Some(*mutant));
        let Err((seed, broken)) = caught else {
            panic!("{mutant:?} was not noticed in {MUTANT_SCHEDULES} schedules");
        };
        println!("{mutant:?}: caught at seed {seed}: {}", broken.lines().next().unwrap_or_default());
    }
}

/// Plays the schedules on all cores; the failure with the smallest seed found, or what happened in all.
fn play_all<F: Fleet>(count: u64, mutant: Option<F::Mutant>) -> Result<F::Tally, (u64, String)> {
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let play = || {
        let mut tally = F::Tally::default();
        loop {
            let first = next.fetch_add(PER_STORE, Ordering::SeqCst);
            if first >= count {
                return Ok(tally);
            }
            let mut fleet = F::new();
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
    let mut total = F::Tally::default();
    for result in results {
        total += result?;
    }
    Ok(total)
}
