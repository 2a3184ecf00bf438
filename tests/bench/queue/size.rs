//! What a million pending tasks cost: in time, and in memory.

use std::time::{Duration, Instant};

use stanchion::ClaimOptions;
use stanchion::blocking::{Claim, Queue};
use stanchion_tests::redis_server::RedisServer;

use super::bare::BareQueue;
use super::{PAYLOAD, fill, id, queue, task};
use crate::baseline::connect;
use crate::report::{Report, percentile};

const MANY: usize = 1_000_000;
const FEW: usize = 1_000;
/// Claims measured on each side; the sides alternate.
const ROUNDS: usize = 400;
/// Tasks per claim.
const CLAIMED: usize = 10;
/// Tasks whose memory is measured.
const MEASURED: usize = 200_000;

/// Claim and settle with a million pending against a thousand.
pub fn depth(url: &str, store: &str, report: &mut Report) {
    report
        .section(&format!("{store}: claim + settle of {CLAIMED} with {MANY} pending, against {FEW} pending"));
    let (many, few) = (queue(url, "bench:many"), queue(url, "bench:few"));
    fill(&many, MANY);
    fill(&few, FEW);
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        ours.push(turn(&many));
        baseline.push(turn(&few));
        // As many as were taken, so that both stay as deep as they were.
        let again = (0..CLAIMED).map(|part| task(MANY + round * CLAIMED + part));
        few.enqueue_many(again.clone()).unwrap();
        many.enqueue_many(again).unwrap();
    }
    let micros = |samples: &mut [Duration]| percentile(samples, 0.5).as_secs_f64() * 1e6;
    report.compare(&format!("{store} claim + settle, p50"), micros(&mut ours), micros(&mut baseline), "us");
    let started = Instant::now();
    many.purge().unwrap();
    few.purge().unwrap();
    report.note(&format!("{store} purge of {MANY}"), started.elapsed().as_secs_f64() * 1e3, "ms");
}

fn turn(queue: &Queue) -> Duration {
    let started = Instant::now();
    let claims = queue.claim(ClaimOptions::new().max(CLAIMED)).unwrap();
    assert_eq!(claims.len(), CLAIMED);
    queue.settle(claims.iter().map(Claim::acked).collect()).unwrap();
    started.elapsed()
}

/// Bytes of the server's memory per pending task, against a hash and a set.
pub fn memory(server: &RedisServer, report: &mut Report) {
    report.section(&format!("redis: memory of {MEASURED} pending tasks with a 100-byte payload"));
    let url = server.url();
    let before = empty_server(&url);
    let queue = queue(&url, "bench:memory");
    fill(&queue, MEASURED);
    let ours = used_memory(&url) - before;
    let before = empty_server(&url);
    let mut bare = BareQueue::new(&url, "memory");
    for first in (0..MEASURED).step_by(1_000) {
        bare.enqueue(&(first..first + 1_000).map(id).collect::<Vec<_>>(), &PAYLOAD);
    }
    let theirs = used_memory(&url) - before;
    empty_server(&url);
    let each = |bytes: f64| bytes / MEASURED as f64;
    report.compare("redis memory per pending task", each(ours), each(theirs), "bytes");
}

/// Drops everything, waits until the server has freed it all, and says what it uses then.
pub(crate) fn empty_server(url: &str) -> f64 {
    let _: () = redis::cmd("FLUSHALL").arg("SYNC").query(&mut connect(url)).unwrap();
    while info(url, "lazyfree_pending_objects:") > 0.0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    used_memory(url)
}

pub(crate) fn used_memory(url: &str) -> f64 {
    info(url, "used_memory:")
}

fn info(url: &str, field: &str) -> f64 {
    let info: String = redis::cmd("INFO").arg("memory").query(&mut connect(url)).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().parse().unwrap()
}
