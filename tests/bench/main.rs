//! Speed, as ratios: ours and a baseline interleaved in one run, since machines are noisy.
//!
//! `make bench` runs it. It starts a Redis server of its own, pins the server to one core and the clients
//! to another (a wake-up across two cores costs several times one within a core, and a scheduler that
//! changes its mind would measure itself), prints a table, and writes `target/bench.json`. Names of
//! sections as arguments run only those; `check` runs the short ones against `bars.json`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

mod baseline;
mod cached;
mod check;
mod crowd;
mod disk;
mod failover;
mod hand_over;
mod kinds;
mod limiter;
mod once;
mod pair;
mod queue;
mod report;
mod server_cost;
mod several;
mod web;

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::thread;

use stanchion_tests::redis_server::RedisServer;

use report::Report;

/// Measures something and adds it to the report.
type Section<'a> = &'a dyn Fn(&mut Report);

/// Set in the process that runs on the clients' core already.
const PINNED: &str = "STANCHION_BENCH_PINNED";
const SERVER_CORE: &str = "0";
const CLIENT_CORE: &str = "1";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == hand_over::CHILD) {
        hand_over::child(&arguments[1..]);
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|first| first == queue::CHILD) {
        queue::child(&arguments[1..]);
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|first| first == queue::WAITER) {
        queue::waiter(&arguments[1..]);
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|first| first == check::CHECK) {
        return check::check();
    }
    let pinned = pin_clients();
    let server = RedisServer::start();
    if pinned {
        pin_server(&server, SERVER_CORE);
        println!("redis-server runs on core {SERVER_CORE}, all clients on core {CLIENT_CORE}");
    } else {
        println!("not pinned (one core, or no taskset): the figures include the scheduler's moods");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", directory.path().join("bench.db").display());

    let redis = server.url();
    let pin = |server: &RedisServer, core: usize| {
        let core = [SERVER_CORE, CLIENT_CORE][core % 2];
        if pinned {
            pin_server(server, core);
        }
    };
    let sections: [(&str, Section<'_>); 45] = [
        ("pair", &|report| pair::blocking_redis(&server, report)),
        ("server-cost", &|report| server_cost::pairs(&server, report)),
        ("async", &|report| pair::async_redis(&server, report)),
        ("kinds", &|report| kinds::pairs(&redis, "redis", report)),
        ("quorum", &|report| several::quorum(&server, &pin, report)),
        ("cluster", &|report| several::cluster(&server, &pin, report)),
        ("failover", &|report| failover::failover(report)),
        ("names-used-once", &|report| once::names(&server, report)),
        ("sqlite-kinds", &|report| kinds::pairs(&file, "sqlite", report)),
        ("cached-hit", &|report| cached::hits(&server, report)),
        ("cached", &|report| cached::stampede(&server, report)),
        ("limiter", &|report| limiter::tries(&server, report)),
        ("takers", &|report| limiter::takers(&redis, "redis", report)),
        ("sqlite-takers", &|report| limiter::takers(&file, "sqlite", report)),
        ("sqlite-pair", &|report| pair::blocking_sqlite(&file, report)),
        ("hand-over", &|report| hand_over::redis(&server, report)),
        ("sqlite-hand-over", &|report| hand_over::sqlite(&file, report)),
        ("waiters", &|report| crowd::waiters(&server, report)),
        ("idle", &|report| crowd::idle(&server, report)),
        ("renewals", &|report| crowd::renewals(&server, report)),
        ("queue-lifecycle", &|report| queue::lifecycle(&redis, Some(&redis), "redis", report)),
        ("queue-drain", &|report| queue::drain(&redis, Some(&redis), "redis", report)),
        ("queue-latency", &|report| queue::latency(&redis, Some(&redis), "redis", report)),
        ("results", &|report| queue::results(&redis, Some(&redis), "redis", report)),
        ("queue-crash", &|report| queue::crash(&redis, "redis", report)),
        ("queue-depth", &|report| queue::depth(&redis, "redis", report)),
        ("queue-memory", &|report| queue::memory(&server, report)),
        ("keys", &|report| queue::keys(&redis, "redis", report)),
        ("queue-rate", &|report| queue::rates(&redis, "redis", report)),
        ("flows", &|report| queue::flows(&redis, "redis", report)),
        ("keys-memory", &|report| queue::keys_memory(&server, report)),
        ("queue-bytes", &|report| queue::expired(&server, report)),
        ("web", &|report| web::pages(&server, report)),
        ("schedules", &|report| queue::schedules(&server, report)),
        ("sqlite-disk", &|report| disk::disk(&file, report)),
        ("sqlite-idle", &|report| disk::idle(&file, report)),
        ("sqlite-queue-lifecycle", &|report| queue::lifecycle(&file, None, "sqlite", report)),
        ("sqlite-queue-drain", &|report| queue::drain(&file, None, "sqlite", report)),
        ("sqlite-queue-latency", &|report| queue::latency(&file, None, "sqlite", report)),
        ("sqlite-results", &|report| queue::results(&file, None, "sqlite", report)),
        ("sqlite-keys", &|report| queue::keys(&file, "sqlite", report)),
        ("sqlite-queue-rate", &|report| queue::rates(&file, "sqlite", report)),
        ("sqlite-flows", &|report| queue::flows(&file, "sqlite", report)),
        ("sqlite-queue-crash", &|report| queue::crash(&file, "sqlite", report)),
        ("sqlite-queue-depth", &|report| queue::depth(&file, "sqlite", report)),
    ];
    let mut report = Report::default();
    for (name, run) in sections {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            run(&mut report);
        }
    }
    report.finish();
    ExitCode::SUCCESS
}

/// Starts this program again on the clients' core; false if that cannot be done.
fn pin_clients() -> bool {
    if env::var_os(PINNED).is_some() {
        return true;
    }
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return false;
    }
    let program = env::current_exe().unwrap();
    // Returns only if it could not be started.
    let _ = Command::new("taskset")
        .args(["-c", CLIENT_CORE])
        .arg(program)
        .args(env::args().skip(1))
        .env(PINNED, "1")
        .exec();
    false
}

fn pin_server(server: &RedisServer, core: &str) {
    let pid = server.pid().to_string();
    let status = Command::new("taskset").args(["-a", "-c", "-p", core, &pid]).output().unwrap().status;
    assert!(status.success(), "taskset could not pin the server");
}
