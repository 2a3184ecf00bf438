//! Very many tasks at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use stanchion::{ListOptions, Task, TaskState};
use stanchion_tests::RedisServer;
use stanchion_tests::faces::{AnyClaim, Face};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, ran_since, task};

use crate::open;
use crate::queue_support::{census, leased};

/// How long one request may keep the server from others. Generous: the machine is shared.
const BOUNDED: Duration = Duration::from_millis(250);

/// Asks for PING all the time, in a thread of its own; the longest that it took.
fn pings(server: &RedisServer) -> impl FnOnce() -> Duration {
    let over = Arc::new(AtomicBool::new(false));
    let (stop, mut raw) = (Arc::clone(&over), server.raw());
    let pinging = task(move || {
        let mut longest = Duration::ZERO;
        while !stop.load(Ordering::SeqCst) {
            let begun = Instant::now();
            redis::cmd("PING").exec(&mut raw).unwrap();
            longest = longest.max(ran_since(begun));
        }
        longest
    });
    move || {
        over.store(true, Ordering::SeqCst);
        pinging.join()
    }
}

/// A million tasks of plain producers are due in one millisecond: every script stays bounded.
#[test]
fn a_million_due_in_one_millisecond() {
    const MILLION: usize = 1_000_000;
    let server = RedisServer::start();
    let queue = open(Face::Blocking, &server.url()).queue("q");
    let mut raw = server.raw();
    let due = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    for first in (0..MILLION).step_by(20_000) {
        let mut add = redis::cmd("ZADD");
        add.arg("Queue:q");
        for number in first..first + 20_000 {
            add.arg(due).arg(number);
        }
        add.exec(&mut raw).unwrap();
    }
    let longest_ping = pings(&server);
    let mut longest = (Duration::ZERO, "");
    let mut note = |what: &'static str, begun: Instant| longest = longest.max((ran_since(begun), what));
    assert_eq!(queue.stats().unwrap().ready, MILLION as u64);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..30 {
        let begun = Instant::now();
        let claims = queue.claim(leased(60_000).max(1_000)).unwrap();
        note("claim", begun);
        assert_eq!(claims.len(), 1_000);
        for claim in &claims {
            assert!(seen.insert(claim.id().to_owned()), "{} came twice", claim.id());
        }
        let begun = Instant::now();
        let verdicts = claims.iter().map(AnyClaim::acked).collect();
        assert!(queue.settle(verdicts).unwrap().into_iter().all(|result| result.is_ok()));
        note("settle", begun);
        let begun = Instant::now();
        queue.stats().unwrap();
        queue.peek(10).unwrap();
        queue.list(ListOptions::new(TaskState::Ready).max(10)).unwrap();
        note("looking", begun);
    }
    assert_eq!(queue.stats().unwrap().ready, (MILLION - seen.len()) as u64);
    let begun = Instant::now();
    assert_eq!(queue.purge().unwrap(), (MILLION - seen.len()) as u64);
    note("purge", begun);
    assert_eq!(census(&queue), [0; 4]);
    let longest_ping = longest_ping();
    assert!(longest.0 < BOUNDED, "{} took {:?}", longest.1, longest.0);
    assert!(longest_ping < BOUNDED, "a PING took {longest_ping:?}");
}

/// The same with tasks of the queue's own, that all become due at once, and whose leases all end at once.
#[test]
fn very_many_tasks_and_leases_of_one_millisecond() {
    const MANY: usize = 50_000;
    let server = RedisServer::start();
    let queue = open(Face::Blocking, &server.url()).queue("q");
    let due = SystemTime::now() + Duration::from_secs(5);
    let tasks = (0..MANY).map(|number| Task::new(format!("t{number}")).due(due));
    assert!(queue.enqueue_many(tasks).unwrap().iter().all(Result::is_ok));
    eventually(2 * SOON, || census(&queue) == [0, MANY as u64, 0, 0]);
    let longest_ping = pings(&server);
    let (mut held, begun) = (Vec::new(), Instant::now());
    while held.len() < 20_000 {
        let begun = Instant::now();
        let claims = queue.claim(leased(600_000).max(1_000)).unwrap();
        assert!(ran_since(begun) < BOUNDED, "a claim took {:?}", ran_since(begun));
        assert_eq!(claims.len(), 1_000);
        held.extend(claims);
    }
    assert!(begun.elapsed() < SOON, "20,000 claims took {:?}", begun.elapsed());
    // Ten minutes pass, for the store alone.
    let end_all = "local all = redis.call('ZRANGE', KEYS[1], 0, -1)
        for i = 1, #all do redis.call('ZADD', KEYS[1], 5, all[i]) end";
    let mut raw = server.raw();
    redis::Script::new(end_all).key("stanchion:claimed:{Queue:q}").invoke::<()>(&mut raw).unwrap();
    for _ in 0..10 {
        let begun = Instant::now();
        held.extend(queue.claim(leased(600_000).max(10)).unwrap());
        assert!(ran_since(begun) < BOUNDED, "a claim took {:?}", ran_since(begun));
    }
    assert_eq!(queue.stats().unwrap().retried, 10_000, "1,000 leases are ended per call");
    assert_eq!(census(&queue)[1] + census(&queue)[2], MANY as u64, "one was lost");
    // The script above held the server, not a script of ours.
    let longest_ping = longest_ping();
    assert!(longest_ping < 2 * BOUNDED, "a PING took {longest_ping:?}");
    // Not one nack for each of them.
    queue.purge().unwrap();
    held.into_iter().for_each(std::mem::forget);
}

/// A tenant has a million tasks, and then come 99 with ten each; one worker takes one task after the other.
fn a_million_of_one_tenant(kind: Kind) {
    const FLOOD: usize = 1_000_000;
    const OTHERS: usize = 99;
    const EACH: usize = 10;
    let bench = Bench::new(kind, Face::Blocking);
    let queue = bench.client().queue("q");
    for first in (0..FLOOD).step_by(20_000) {
        let flood = (first..first + 20_000).map(|number| Task::new(format!("flood {number}")).key("flood"));
        assert!(queue.enqueue_many(flood).unwrap().iter().all(Result::is_ok));
    }
    let others = (0..OTHERS * EACH)
        .map(|number| Task::new(format!("other {number}")).key(format!("tenant {}", number % OTHERS)));
    assert!(queue.enqueue_many(others).unwrap().iter().all(Result::is_ok));
    let (mut left, mut delivered) = (OTHERS * EACH, 0);
    let mut claims = queue.claim(leased(60_000)).unwrap();
    while left > 0 {
        assert_eq!(claims.len(), 1);
        delivered += 1;
        left -= usize::from(claims[0].id().starts_with("other"));
        claims = queue.settle_and_claim(vec![claims.remove(0).acked()], leased(60_000)).unwrap().1;
    }
    queue.settle(claims.iter().map(AnyClaim::acked).collect()).unwrap();
    println!("{delivered} deliveries");
    assert!(delivered <= 2_000, "{delivered} deliveries");
    let stats = queue.stats().unwrap();
    assert_eq!((stats.ready, stats.claimed), (1, 0), "one of the flood is in line, and the rest is held");
}

#[test]
fn a_million_of_one_tenant_on_a_server() {
    a_million_of_one_tenant(Kind::Redis);
}

#[test]
fn a_million_of_one_tenant_in_a_file() {
    a_million_of_one_tenant(Kind::Sqlite);
}
