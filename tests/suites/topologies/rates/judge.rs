//! What was delivered, and whether it is what a rate promises.

use std::collections::HashSet;
use std::thread;

use stanchion::Rate;
use stanchion_tests::RedisServer;
use stanchion_tests::wait::holds_within;

use super::{LIMITED, SECOND};
use crate::load::GETS_ON;

/// For how long what is delivered is compared with what may be, ms.
const STRETCH: u64 = 3_000;
/// The machine stood still if a server that is asked every millisecond answers so late, ms. What is less, a burst makes up for.
const STOOD_STILL: u64 = 30;
/// Of what may be delivered while there is work, so much is: per cent.
const LEAST: u64 = 98;

/// A queue or a key that has a rate; its tasks' ids begin with its name.
#[derive(Debug)]
pub(super) struct Limited {
    pub(super) name: &'static str,
    pub(super) queue: &'static str,
    pub(super) key: Option<&'static str>,
    pub(super) rate: Rate,
}

/// A task is given to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Delivery {
    pub(super) id: String,
    pub(super) attempt: u32,
    /// By the clock of the store, ms.
    pub(super) at: u64,
}

/// A stretch in which a master serves and nothing is killed, by its own clock; without the times in which it stood still.
#[derive(Debug)]
pub(super) struct Stretch {
    from: u64,
    to: u64,
    steady: u64,
}

/// Asks a server for the time again and again, until it has answered for long enough without a pause. On a machine that hardly
/// runs it ends before, and there is less to judge.
pub(super) fn steady(server: &RedisServer) -> Stretch {
    let mut raw = server.raw();
    let mut time = || {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut raw).unwrap();
        seconds * 1_000 + micros / 1_000
    };
    let from = time();
    let mut stretch = Stretch { from, to: from, steady: 0 };
    let _ = holds_within(GETS_ON, || {
        let now = time();
        let since = now - std::mem::replace(&mut stretch.to, now);
        stretch.steady += if since < STOOD_STILL { since } else { 0 };
        stretch.steady >= STRETCH
    });
    stretch
}

/// `history` is what the last master knows, `seen` what workers were given, `ends` when masters were killed.
pub(super) fn judge(history: &[Delivery], seen: &[Delivery], stretches: &[Stretch], ends: &[u64]) {
    let reign_of = |delivery: &Delivery| ends.iter().filter(|end| **end < delivery.at).count();
    let known: HashSet<_> = history.iter().map(|found| (&found.id, found.attempt, reign_of(found))).collect();
    let is_forgotten = |found: &&Delivery| !known.contains(&(&found.id, found.attempt, reign_of(found)));
    let forgotten: Vec<_> = seen.iter().filter(is_forgotten).cloned().collect();
    println!("{} deliveries, and {} that were forgotten", history.len(), forgotten.len());
    let all = [history, &forgotten].concat();
    for limited in &LIMITED {
        // What is known is kept together, over all masters.
        assert_kept(limited.rate, &times_of(history, limited));
        for reign in 0..=ends.len() {
            let of_reign: Vec<_> = all.iter().filter(|found| reign_of(found) == reign).cloned().collect();
            assert_kept(limited.rate, &times_of(&of_reign, limited));
        }
        let times = times_of(&all, limited);
        stretches.iter().for_each(|stretch| assert_used(limited, &times, stretch));
    }
}

pub(super) fn times_of(deliveries: &[Delivery], limited: &Limited) -> Vec<u64> {
    let own = deliveries.iter().filter(|delivery| delivery.id.starts_with(limited.name));
    let mut times: Vec<_> = own.map(|delivery| delivery.at).collect();
    times.sort_unstable();
    times
}

/// Over any time `per`, and any number of them, there are no more than it allows.
#[track_caller]
fn assert_kept(rate: Rate, times: &[u64]) {
    let per = u64::try_from(rate.per.as_millis()).unwrap();
    let whole = times.last().map_or(0, |last| last - times[0]);
    for pers in 1..=whole / per + 1 {
        let most = pers * u64::from(rate.count) + u64::from(rate.burst);
        for (index, first) in times.iter().enumerate() {
            let within = times[index..].partition_point(|time| *time < first + pers * per) as u64;
            assert!(within <= most, "{within} in {pers} times {per} ms, from {first} on, of {most}");
        }
    }
}

/// No less than 98 % of what it allows, but for the burst that may still be unused at the end.
#[track_caller]
fn assert_used(limited: &Limited, times: &[u64], stretch: &Stretch) {
    let Rate { count, per, burst, .. } = limited.rate;
    let within = times.iter().filter(|time| (stretch.from..stretch.to).contains(*time)).count() as u64;
    let allowed = stretch.steady * u64::from(count) / u64::try_from(per.as_millis()).unwrap();
    println!("{}: {within} of {allowed} in {stretch:?}", limited.name);
    assert!(
        (within + u64::from(burst)) * 100 >= allowed * LEAST,
        "{within} of {allowed}, {limited:?}, {stretch:?}"
    );
}

/// The judge can say no, and says it only if there are too many.
#[test]
fn one_too_many_is_found() {
    let rate = Rate::new(10, SECOND).burst(2);
    let mut times: Vec<u64> = (0..40).map(|number| number * 100).collect();
    times.splice(0..0, [0, 0]);
    assert_kept(rate, &times);
    times.insert(0, 0);
    let found = thread::spawn(move || assert_kept(rate, &times)).join();
    assert!(found.is_err(), "13 in a second");
}
