//! Keys: what a worker pays for them, what a claim pays for what they hold, and what they take in memory.

use std::time::{Duration, Instant};

use stanchion::blocking::{Claim, Queue};
use stanchion::{ClaimOptions, QueueConfig, Task};
use stanchion_tests::redis_server::RedisServer;

use super::size::{empty_server, used_memory};
use super::{BATCH, fill_with, queue, task};
use crate::report::{Report, percentile};

/// Tasks on each side of a drain.
const TASKS: usize = 100_000;
/// How many different keys they have.
const KEYS: [usize; 2] = [100_000, 1_000];
/// Tasks that one side drains before the other does.
const TURN: usize = 5_000;
/// Tasks that a key holds while others are claimed.
const HELD: usize = 1_000_000;
const ROUNDS: usize = 400;
/// Tasks per claim.
const CLAIMED: usize = 10;

/// `store` is what it is called.
pub fn keys(url: &str, store: &str, report: &mut Report) {
    report.section(&format!("{store}: tasks with keys, against tasks without"));
    for keys in KEYS {
        let (with, without) = (queue(url, "bench:keyed"), queue(url, "bench:keyless"));
        let rate = |took: Duration| TURN as f64 / took.as_secs_f64();
        let started = Instant::now();
        fill_with(&with, 0..TASKS, |number| of_key(number, keys));
        let filled = started.elapsed();
        let started = Instant::now();
        fill_with(&without, 0..TASKS, task);
        let per_second = |took: Duration| TASKS as f64 / took.as_secs_f64();
        let name = format!("{store} enqueue, {keys} keys");
        report.compare(&name, per_second(filled), per_second(started.elapsed()), "tasks/s");
        let mut turns: Vec<_> = (0..TASKS / TURN).map(|_| (drain(&with), drain(&without))).collect();
        turns.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        let (ours, theirs) = turns[turns.len() / 2];
        report.compare(&format!("{store} drain, {keys} keys"), rate(ours), rate(theirs), "tasks/s");
    }
    held(url, store, report);
}

fn ratio((ours, theirs): &(Duration, Duration)) -> f64 {
    ours.as_secs_f64() / theirs.as_secs_f64()
}

fn of_key(number: usize, keys: usize) -> Task {
    task(number).key(format!("tenant:{}", number % keys))
}

/// How long a worker takes for the next tasks.
fn drain(queue: &Queue) -> Duration {
    let options = || ClaimOptions::new().max(BATCH);
    let started = Instant::now();
    let mut claims = queue.claim(options()).unwrap();
    for _ in 1..TURN / BATCH {
        assert_eq!(claims.len(), BATCH);
        let verdicts = claims.iter().map(Claim::acked).collect();
        (_, claims) = queue.settle_and_claim(verdicts, options()).unwrap();
    }
    queue.settle(claims.iter().map(Claim::acked).collect()).unwrap();
    started.elapsed()
}

/// Claim and settle of others while a key holds a million, against none that are held.
fn held(url: &str, store: &str, report: &mut Report) {
    report.section(&format!(
        "{store}: claim + settle of {CLAIMED} while a key holds {HELD}, against none held"
    ));
    let (full, free) = (queue(url, "bench:held"), queue(url, "bench:free"));
    full.configure(QueueConfig::new().key_concurrency(Some(1))).unwrap();
    free.configure(QueueConfig::new().key_concurrency(Some(1))).unwrap();
    fill_with(&full, 0..HELD, |number| of_key(number, 1));
    let running = full.claim(ClaimOptions::new()).unwrap();
    let mut samples: [Vec<Duration>; 2] = Default::default();
    for round in 0..ROUNDS {
        for (side, queue) in [&full, &free].into_iter().enumerate() {
            fill_with(queue, HELD + round * CLAIMED..HELD + (round + 1) * CLAIMED, task);
            let started = Instant::now();
            let claims = queue.claim(ClaimOptions::new().max(CLAIMED)).unwrap();
            assert_eq!(claims.len(), CLAIMED);
            queue.settle(claims.iter().map(Claim::acked).collect()).unwrap();
            samples[side].push(started.elapsed());
        }
    }
    let [ours, none] = samples.map(|mut side| percentile(&mut side, 0.5).as_secs_f64() * 1e6);
    report.compare(&format!("{store} claim + settle, {HELD} held, p50"), ours, none, "us");
    drop(running);
    full.configure(QueueConfig::new().key_concurrency(None)).unwrap();
    full.purge().unwrap();
}

/// Bytes of the server's memory per pending task with a key of ten bytes, beside one without.
pub fn keys_memory(server: &RedisServer, report: &mut Report) {
    report.section(&format!("redis: memory of {TASKS} pending tasks with a key, against tasks without"));
    let url = server.url();
    let each = |task: &dyn Fn(usize) -> Task| {
        let before = empty_server(&url);
        let queue = queue(&url, "bench:key-memory");
        fill_with(&queue, 0..TASKS, task);
        (used_memory(&url) - before) / TASKS as f64
    };
    let without = each(&task);
    for keys in KEYS {
        let with = each(&|number| of_key(number, keys));
        report.note(&format!("redis memory of a key per pending task, {keys} keys"), with - without, "bytes");
    }
    empty_server(&url);
}
