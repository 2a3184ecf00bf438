//! Acquire and release of a free lock.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use stanchion::LockOptions;
use stanchion_tests::redis_server::RedisServer;

use crate::baseline::{bare_pair, compare_and_delete, connect, same_calls, same_calls_pair};
use crate::report::{Report, percentile};

/// Turns of each side; the sides alternate.
pub const TURNS: usize = 60;
/// Pairs in one turn.
const PAIRS: usize = 150;
/// Tasks that acquire and release at once.
const TASKS: usize = 64;
/// Pairs of each task in one turn.
const TASK_PAIRS: usize = 60;

pub fn blocking_redis(server: &RedisServer, report: &mut Report) {
    report.section("blocking acquire + release, against SET NX PX + EVALSHA");
    let client = stanchion::blocking::Client::open(&server.url()).unwrap();
    let lock = client.lock("bench:pair");
    let (mut connection, script) = (connect(&server.url()), compare_and_delete());
    let (take, give) = same_calls();
    let (mut ours, mut bare, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        timed(&mut ours, || lock.acquire(LockOptions::new()).unwrap().release().unwrap());
        timed(&mut calls, || same_calls_pair(&mut connection, &take, &give));
        timed(&mut bare, || {
            bare_pair(&mut connection, &script, "bench:bare", "0123456789abcdef0123456789abcdef");
        });
    }
    compare_percentiles(report, "redis pair, blocking", ours, bare.clone());
    compare_percentiles(report, "the same redis.calls in bare scripts", calls, bare);
}

pub fn blocking_sqlite(url: &str, report: &mut Report) {
    report.section("blocking pair on SQLite, against two bare transactions");
    let client = stanchion::blocking::Client::open(url).unwrap();
    let lock = client.lock("bench:pair");
    let path = format!("{}-bare", url.trim_start_matches("sqlite:"));
    let mut bare_file = Connection::open(path).unwrap();
    bare_file
        .execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE l (k TEXT PRIMARY KEY, v TEXT)",
        )
        .unwrap();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        timed(&mut ours, || lock.acquire(LockOptions::new()).unwrap().release().unwrap());
        timed(&mut bare, || {
            for sql in [
                "INSERT OR IGNORE INTO l VALUES ('a', 'token')",
                "DELETE FROM l WHERE k = 'a' AND v = 'token'",
            ] {
                let transaction =
                    bare_file.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
                transaction.prepare_cached(sql).unwrap().execute([]).unwrap();
                transaction.commit().unwrap();
            }
        });
    }
    compare_percentiles(report, "sqlite pair, blocking", ours, bare);
}

pub fn async_redis(server: &RedisServer, report: &mut Report) {
    report.section("64 tasks at once, against the bare multiplexed connection");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (ours, bare) = runtime.block_on(async {
        let client = stanchion::Client::open(&server.url()).await.unwrap();
        let bare = redis::Client::open(server.url()).unwrap();
        let bare = bare.get_multiplexed_async_connection().await.unwrap();
        let (mut our_time, mut bare_time) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..TURNS {
            our_time += our_turn(&client).await;
            bare_time += bare_turn(&bare).await;
        }
        let pairs = (TURNS * TASKS * TASK_PAIRS) as f64;
        (pairs / our_time.as_secs_f64(), pairs / bare_time.as_secs_f64())
    });
    report.compare("redis pairs, 64 async tasks", ours, bare, "pairs/s");
}

/// Pairs in one turn of [`our_turn`].
pub fn turn_pairs() -> f64 {
    (TASKS * TASK_PAIRS) as f64
}

pub async fn our_turn(client: &stanchion::Client) -> Duration {
    let started = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let lock = client.lock(&format!("bench:task{task}"));
            tokio::spawn(async move {
                for _ in 0..TASK_PAIRS {
                    lock.acquire(LockOptions::new()).await.unwrap().release().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    started.elapsed()
}

async fn bare_turn(connection: &redis::aio::MultiplexedConnection) -> Duration {
    let started = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let mut connection = connection.clone();
            let script = compare_and_delete();
            let key = format!("bench:bare{task}");
            tokio::spawn(async move {
                for _ in 0..TASK_PAIRS {
                    let token = "0123456789abcdef0123456789abcdef";
                    let mut set = redis::cmd("SET");
                    set.arg(&key).arg(token).arg("NX").arg("PX").arg(30_000);
                    let set: Option<String> = set.query_async(&mut connection).await.unwrap();
                    assert!(set.is_some());
                    let deleted: i32 =
                        script.key(&key).arg(token).invoke_async(&mut connection).await.unwrap();
                    assert_eq!(deleted, 1);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    started.elapsed()
}

pub fn timed(samples: &mut Vec<Duration>, mut pair: impl FnMut()) {
    for _ in 0..PAIRS {
        let started = Instant::now();
        pair();
        samples.push(started.elapsed());
    }
}

pub fn compare_percentiles(
    report: &mut Report,
    name: &str,
    mut ours: Vec<Duration>,
    mut bare: Vec<Duration>,
) {
    for (label, part) in [("p50", 0.5), ("p99", 0.99)] {
        let micros = |samples: &mut Vec<Duration>| percentile(samples, part).as_secs_f64() * 1e6;
        report.compare(&format!("{name}, {label}"), micros(&mut ours), micros(&mut bare), "us");
    }
}
