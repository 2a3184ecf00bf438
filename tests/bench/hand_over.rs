//! Eight processes on one lock: how long it lies idle between two holders, and who gets it.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use stanchion::LockOptions;
use stanchion_tests::redis_server::RedisServer;

use crate::baseline::{BlpopLock, PollingLock, connect};
use crate::report::{Report, jain, percentile};

/// The first argument of a child process.
pub const CHILD: &str = "hand-over-child";

const PROCESSES: usize = 8;
const HOLD: Duration = Duration::from_millis(5);
const THINK: Duration = Duration::from_millis(10);
const LASTS: Duration = Duration::from_secs(6);

/// What one run with one kind of lock showed.
struct Run {
    gap_p50_ms: f64,
    gap_p99_ms: f64,
    share: f64,
    fairness: f64,
    grants: f64,
}

pub fn redis(server: &RedisServer, report: &mut Report) {
    report.section("hand-over on Redis, 8 processes, against a lock that blocks in BLPOP");
    let url = server.url();
    BlpopLock::prepare(&url, "bench");
    let before = scripts_run(&url);
    let ours = run("stanchion", &url);
    let round_trips = (scripts_run(&url) - before) / ours.grants;
    let blpop = run("blpop", &url);
    compare(report, "redis hand-over", &ours, &blpop);
    report.note("redis hand-over, round trips per acquisition", round_trips, "");
    report.section("the same against a lock polled for every 5 ms");
    compare(report, "redis hand-over against polling", &ours, &run("polling", &url));
}

pub fn sqlite(url: &str, report: &mut Report) {
    report.section("hand-over on SQLite, 8 processes");
    let ours = run("stanchion", url);
    report.note("sqlite hand-over, idle gap p50", ours.gap_p50_ms, "ms");
    report.note("sqlite hand-over, idle gap p99", ours.gap_p99_ms, "ms");
    report.note("sqlite hand-over, share of time held", ours.share, "");
    report.note("sqlite hand-over, Jain fairness", ours.fairness, "");
}

fn compare(report: &mut Report, name: &str, ours: &Run, other: &Run) {
    report.compare(&format!("{name}, idle gap p50"), ours.gap_p50_ms, other.gap_p50_ms, "ms");
    report.compare(&format!("{name}, idle gap p99"), ours.gap_p99_ms, other.gap_p99_ms, "ms");
    report.compare(&format!("{name}, share of time held"), ours.share, other.share, "");
    report.compare(&format!("{name}, Jain fairness"), ours.fairness, other.fairness, "");
    report.compare(&format!("{name}, grants"), ours.grants, other.grants, "");
}

/// How many scripts the server has run.
pub fn scripts_run(url: &str) -> f64 {
    let info: String = redis::cmd("INFO").arg("commandstats").query(&mut connect(url)).unwrap();
    let calls = |line: &str| {
        let (_, rest) = line.split_once("calls=")?;
        rest.split(',').next()?.parse::<f64>().ok()
    };
    info.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(calls).sum()
}

fn run(kind: &str, url: &str) -> Run {
    let program = std::env::current_exe().unwrap();
    let start = |_| {
        let mut command = Command::new(&program);
        command.args([CHILD, kind, url]).stdout(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(start).collect();
    let mut holds: Vec<(u64, u64)> = Vec::new();
    let mut counts = Vec::new();
    for mut child in children {
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        let own: Vec<(u64, u64)> = text.lines().map(parse_hold).collect();
        counts.push(own.len() as f64);
        holds.extend(own);
    }
    measure(holds, &counts)
}

fn parse_hold(line: &str) -> (u64, u64) {
    let (from, to) = line.split_once(' ').unwrap();
    (from.parse().unwrap(), to.parse().unwrap())
}

fn measure(mut holds: Vec<(u64, u64)>, counts: &[f64]) -> Run {
    holds.sort_unstable();
    // Only while all processes take part.
    let cut = holds.len() / 10;
    let holds = &holds[cut..holds.len() - cut];
    let mut gaps: Vec<Duration> = holds
        .windows(2)
        .map(|pair| {
            assert!(pair[1].0 >= pair[0].1, "two processes held the lock at once");
            Duration::from_nanos(pair[1].0 - pair[0].1)
        })
        .collect();
    let held: u64 = holds.iter().map(|(from, to)| to - from).sum();
    let total = holds[holds.len() - 1].1 - holds[0].0;
    Run {
        gap_p50_ms: percentile(&mut gaps, 0.5).as_secs_f64() * 1e3,
        gap_p99_ms: percentile(&mut gaps, 0.99).as_secs_f64() * 1e3,
        share: held as f64 / total as f64,
        fairness: jain(counts),
        grants: counts.iter().sum(),
    }
}

/// One of the processes: acquires, holds, releases, thinks, and in the end prints when it held.
pub fn child(arguments: &[String]) {
    let [kind, url] = arguments else { panic!("kind and URL") };
    let mut holds = Vec::new();
    match kind.as_str() {
        "stanchion" => {
            let client = stanchion::blocking::Client::open(url).unwrap();
            let lock = client.lock("bench:hand-over");
            repeat(&mut holds, || {
                let lease = lock.acquire(LockOptions::new()).unwrap();
                move || lease.release().unwrap()
            });
        }
        "blpop" => {
            let lock = std::cell::RefCell::new(BlpopLock::new(url, "bench"));
            repeat(&mut holds, || {
                lock.borrow_mut().acquire();
                || lock.borrow_mut().release()
            });
        }
        "polling" => {
            let lock = std::cell::RefCell::new(PollingLock::new(url, "bench"));
            repeat(&mut holds, || {
                lock.borrow_mut().acquire();
                || lock.borrow_mut().release()
            });
        }
        other => panic!("unknown kind {other}"),
    }
    let text: String = holds.iter().map(|(from, to)| format!("{from} {to}\n")).collect();
    print!("{text}");
}

fn repeat<R: FnOnce()>(holds: &mut Vec<(u64, u64)>, acquire: impl Fn() -> R) {
    let end = monotonic() + LASTS.as_nanos() as u64;
    while monotonic() < end {
        let release = acquire();
        let from = monotonic();
        thread::sleep(HOLD);
        let to = monotonic();
        release();
        holds.push((from, to));
        thread::sleep(THINK);
    }
}

/// A clock that all processes of a machine share.
pub fn monotonic() -> u64 {
    Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap()).as_nanos() as u64
}
