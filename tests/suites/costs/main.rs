//! What a call costs the thread that makes it, counted instead of timed: the numbers are the same on every machine, and
//! a change that raises one has to say why. What other threads do is not in them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

use std::ops::RangeInclusive;
use std::time::Duration;

use allocation_counter::measure;
use stanchion::{ClaimOptions, Client, Limit, LockOptions, Taken, Task, blocking};
use stanchion_tests::{host, redis_server};

/// Before these, scripts are loaded, connections made, and lists grown.
const WARM_UP: usize = 50;
const TIMES: usize = 100;

/// Allocations of one time, rounded up.
fn allocations(mut once: impl FnMut()) -> u64 {
    (0..WARM_UP).for_each(|_| once());
    let counted = measure(|| (0..TIMES).for_each(|_| once()));
    counted.count_total.div_ceil(TIMES as u64)
}

/// Whoever needs fewer than the least lowers both.
fn holds(what: &str, counted: u64, usual: RangeInclusive<u64>) {
    println!("{what}: {counted} allocations");
    assert!(usual.contains(&counted), "{what}: {counted} allocations, instead of {usual:?}");
}

#[test]
fn a_pair_on_a_thread() {
    let client = blocking::Client::open(&redis_server::shared().fresh_db()).unwrap();
    let lock = client.lock("a");
    let counted = allocations(|| lock.acquire(LockOptions::new()).unwrap().release().unwrap());
    holds("acquire and release on Redis, blocking", counted, 32..=34);
}

#[test]
fn a_pair_on_a_hosts_event_loop() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _context = runtime.enter();
    let client = host::block_on(Client::open(&redis_server::shared().fresh_db())).unwrap();
    let lock = client.lock("a");
    let counted = allocations(|| {
        host::block_on(async { lock.acquire(LockOptions::new()).await.unwrap().release().await.unwrap() });
    });
    // Those of the loop of the test, too, which may wake up once more.
    holds("acquire and release on Redis, on a host's event loop", counted, 44..=58);
}

#[test]
fn a_pair_in_memory() {
    let client = blocking::Client::open("memory:").unwrap();
    let lock = client.lock("a");
    let counted = allocations(|| lock.acquire(LockOptions::new()).unwrap().release().unwrap());
    holds("acquire and release in memory", counted, 30..=32);
}

#[test]
fn a_task_on_a_thread() {
    let client = blocking::Client::open(&redis_server::shared().fresh_db()).unwrap();
    let queue = client.queue("a");
    let counted = allocations(|| {
        queue.enqueue(Task::new("payload")).unwrap();
        queue.claim(ClaimOptions::new()).unwrap().pop().unwrap().ack().unwrap();
    });
    holds("enqueue, claim and ack on Redis, blocking", counted, 68..=72);
}

#[test]
fn a_take_on_a_thread() {
    let client = blocking::Client::open(&redis_server::shared().fresh_db()).unwrap();
    let limit = Limit::rate(1, Duration::from_secs(1)).burst(1_000);
    let limiter = client.limiter("a", limit).unwrap();
    let allowed = allocations(|| assert_eq!(limiter.try_take(1).unwrap(), Taken::Allowed));
    holds("a try of a limiter on Redis, blocking", allowed, 5..=7);
}
