//! Many waiters on one lock, and many leases with one keeper.

use std::time::{Duration, Instant};

use stanchion::LockOptions;
use stanchion_tests::redis_server::RedisServer;
use tokio::task::JoinSet;

use crate::baseline::connect;
use crate::hand_over::scripts_run;
use crate::report::{Report, cpu_time};

const WAITERS: usize = 1_000;
/// Waiters that nothing happens to, and for how long that is watched.
const IDLE: usize = 500;
const WATCHED_FOR: Duration = Duration::from_secs(20);
/// All of them got in line by then, and those far back have found out that they are.
const SETTLED_AFTER: Duration = Duration::from_secs(20);
const LEASES: usize = 10_000;
/// How long the leases are renewed while it is measured.
const RENEWED_FOR: Duration = Duration::from_secs(12);
/// With this ttl each lease is renewed every two seconds.
const LEASE_TTL: Duration = Duration::from_secs(6);

pub fn waiters(server: &RedisServer, report: &mut Report) {
    report.section("1,000 tasks of one process wait for one lock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (commands, cpu, started) = (commands_run(server), cpu_time(), Instant::now());
    runtime.block_on(async {
        let client = stanchion::Client::open(&server.url()).await.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..WAITERS {
            let lock = client.lock("bench:crowd");
            tasks.spawn(async move {
                let options = LockOptions::new().wait(Duration::from_secs(60));
                lock.acquire(options).await.unwrap().release().await.unwrap();
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
    finish(report, server, "1,000 waiters", commands, cpu, started);
}

pub fn idle(server: &RedisServer, report: &mut Report) {
    report.section("500 tasks of one process wait for a lock that stays held");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = stanchion::Client::open(&server.url()).await.unwrap();
        let lock = client.lock("bench:idle");
        let holder = lock.acquire(LockOptions::new().ttl(Duration::from_secs(600))).await.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..IDLE {
            let lock = client.lock("bench:idle");
            tasks.spawn(async move {
                let _ = lock.acquire(LockOptions::new().wait(Duration::from_secs(600))).await;
            });
        }
        tokio::time::sleep(SETTLED_AFTER).await;
        let (scripts, cpu, started) = (scripts_run(&server.url()), cpu_time(), Instant::now());
        tokio::time::sleep(WATCHED_FOR).await;
        let time = started.elapsed().as_secs_f64();
        let waiting = lock.waiters().await.unwrap().len();
        assert_eq!(waiting, 100, "as many as are told");
        report.note(
            "500 idle waiters, scripts per second",
            (scripts_run(&server.url()) - scripts) / time,
            "1/s",
        );
        report.note(
            "500 idle waiters, processor time of the client",
            (cpu_time() - cpu).as_secs_f64() / time,
            "s/s",
        );
        tasks.shutdown().await;
        holder.release().await.unwrap();
    });
}

pub fn renewals(server: &RedisServer, report: &mut Report) {
    report.section("10,000 leases of 6 s renewed by one keeper for 12 s");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = stanchion::Client::open(&server.url()).await.unwrap();
        let mut tasks = JoinSet::new();
        for number in 0..LEASES {
            let lock = client.lock(&format!("bench:lease{number}"));
            tasks.spawn(
                async move { lock.acquire(LockOptions::new().ttl(LEASE_TTL).renew(true)).await.unwrap() },
            );
        }
        let mut leases = Vec::new();
        while let Some(lease) = tasks.join_next().await {
            leases.push(lease.unwrap());
        }
        let (commands, cpu, started) = (commands_run(server), cpu_time(), Instant::now());
        tokio::time::sleep(RENEWED_FOR).await;
        let valid = leases.iter().filter(|lease| lease.is_valid()).count();
        report.note("10,000 leases, still valid", valid as f64, "");
        finish(report, server, "10,000 leases", commands, cpu, started);
        client.release_all().await.unwrap();
    });
}

fn finish(
    report: &mut Report,
    server: &RedisServer,
    name: &str,
    commands: f64,
    cpu: Duration,
    started: Instant,
) {
    let time = started.elapsed().as_secs_f64();
    let commands = commands_run(server) - commands;
    report.note(&format!("{name}, time"), time, "s");
    report.note(&format!("{name}, processor time of the client"), (cpu_time() - cpu).as_secs_f64(), "s");
    report.note(&format!("{name}, commands per second"), commands / time, "1/s");
}

/// Commands that clients sent so far, without those that scripts call.
fn commands_run(server: &RedisServer) -> f64 {
    let info: String = redis::cmd("INFO").arg("stats").query(&mut connect(&server.url())).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:")).unwrap();
    line.trim().parse().unwrap()
}
