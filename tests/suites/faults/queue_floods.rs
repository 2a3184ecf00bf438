//! Very many tasks at once.

use std::fs;
use std::time::{Duration, SystemTime};

use stanchion::{ListOptions, Task, TaskState};
use stanchion_tests::RedisServer;
use stanchion_tests::faces::{AnyClaim, Face};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually};

use crate::open;
use crate::queue_support::{census, leased};

/// For how long one call may keep the server from others: the time that its thread works, as a machine that is shared makes
/// everything else late.
const BOUNDED: Duration = Duration::from_millis(250);
/// The kernel counts in these.
const TICK: Duration = Duration::from_millis(10);

/// For how long the server's thread has worked so far.
fn worked(server: &RedisServer) -> Duration {
    let pid = server.pid();
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    TICK * (fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap())
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
    let mut longest = (Duration::ZERO, "");
    let mut note =
        |what: &'static str, begun: Duration| longest = longest.max((worked(&server) - begun, what));
    assert_eq!(queue.stats().unwrap().ready, MILLION as u64);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..30 {
        let begun = worked(&server);
        let claims = queue.claim(leased(60_000).max(1_000)).unwrap();
        note("claim", begun);
        assert_eq!(claims.len(), 1_000);
        for claim in &claims {
            assert!(seen.insert(claim.id().to_owned()), "{} came twice", claim.id());
        }
        let begun = worked(&server);
        let verdicts = claims.iter().map(AnyClaim::acked).collect();
        assert!(queue.settle(verdicts).unwrap().into_iter().all(|result| result.is_ok()));
        note("settle", begun);
        let begun = worked(&server);
        queue.stats().unwrap();
        queue.peek(10).unwrap();
        queue.list(ListOptions::new(TaskState::Ready).max(10)).unwrap();
        note("looking", begun);
    }
    assert_eq!(queue.stats().unwrap().ready, (MILLION - seen.len()) as u64);
    let begun = worked(&server);
    assert_eq!(queue.purge().unwrap(), (MILLION - seen.len()) as u64);
    note("purge", begun);
    assert_eq!(census(&queue), [0; 4]);
    assert!(longest.0 < BOUNDED, "{} took {:?}", longest.1, longest.0);
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
    let mut held = Vec::new();
    while held.len() < 20_000 {
        let begun = worked(&server);
        let claims = queue.claim(leased(600_000).max(1_000)).unwrap();
        let took = worked(&server) - begun;
        assert!(took < BOUNDED, "a claim took {took:?}");
        assert_eq!(claims.len(), 1_000);
        held.extend(claims);
    }
    // Ten minutes pass, for the store alone.
    let end_all = "local all = redis.call('ZRANGE', KEYS[1], 0, -1)
        for i = 1, #all do redis.call('ZADD', KEYS[1], 5, all[i]) end";
    let mut raw = server.raw();
    redis::Script::new(end_all).key("stanchion:claimed:{Queue:q}").invoke::<()>(&mut raw).unwrap();
    for _ in 0..10 {
        let begun = worked(&server);
        held.extend(queue.claim(leased(600_000).max(10)).unwrap());
        let took = worked(&server) - begun;
        assert!(took < BOUNDED, "a claim took {took:?}");
    }
    assert_eq!(queue.stats().unwrap().retried, 10_000, "1,000 leases are ended per call");
    assert_eq!(census(&queue)[1] + census(&queue)[2], MANY as u64, "one was lost");
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
