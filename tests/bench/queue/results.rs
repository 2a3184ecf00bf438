//! Results: how soon who waits for one has it, and what a worker pays that leaves some.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, thread};

use stanchion::blocking::{Claim, Client, Queue};
use stanchion::{ClaimOptions, Enqueued, Task, TaskResult, Version};

use super::latency::push_to_pop;
use super::{BATCH, fill_with, id, queue, task};
use crate::hand_over::monotonic;
use crate::report::{Report, percentile};

/// The argument that makes this program a process that waits for results.
pub const WAITER: &str = "wait-for-results";
/// Bytes of a result.
const RESULT: [u8; 100] = [b'r'; 100];
const KEPT_FOR: Duration = Duration::from_secs(3_600);
/// Results that are waited for.
const WOKEN: usize = 300;
/// How long a task runs whose result is waited for: long enough for the question to be there.
const RUNS_FOR: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(30);
/// Tasks that are drained in one turn; the sides alternate.
const DRAINED: usize = 2_000;
/// Turns until the queue has the 10,000 results that it keeps, and as many turns at that.
const FILLING: usize = 5;
/// How often it is emptied and filled again.
const CYCLES: usize = 5;
/// Tasks in one turn that are claimed and acked one at a time.
const SINGLES: usize = 100;

/// `server` is the store's address if it is Redis: the baseline is there.
pub fn results(url: &str, server: Option<&str>, store: &str, report: &mut Report) {
    report.section(&format!("{store}: from before ack_with until who waits has the result"));
    let mut ours = ack_to_result(url);
    let millis = |samples: &mut [Duration], part| percentile(samples, part).as_secs_f64() * 1e3;
    let parts = [("p50", 0.5), ("p99", 0.99)];
    if let Some(server) = server {
        let mut bare = push_to_pop(server);
        for (label, part) in parts {
            let name = format!("{store} ack to result, {label}, against RPUSH to BLPOP");
            report.compare(&name, millis(&mut ours, part), millis(&mut bare, part), "ms");
        }
        let name = format!("{store} ack to result, p50, against a millisecond");
        report.compare(&name, millis(&mut ours, 0.5), 1.0, "ms");
    } else {
        let mut apart = ack_to_other_process(url);
        for (label, part) in parts {
            report.note(&format!("{store} ack to result, {label}"), millis(&mut ours, part), "ms");
        }
        for (label, part) in parts {
            let name = format!("{store} ack to result, two processes, {label}");
            report.note(&name, millis(&mut apart, part), "ms");
        }
    }
    cost(url, store, report);
}

/// Two clients in one process: one runs tasks, the other waits in `result`.
fn ack_to_result(url: &str) -> Vec<Duration> {
    let worker = queue(url, "bench:result");
    let waiter = Client::open(url).unwrap().queue("bench:result");
    let (ask, asked) = mpsc::channel::<Enqueued>();
    let (got, receive) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for task in asked {
                wait_for(&waiter, &task.id, Some(task.version));
                got.send(Instant::now()).unwrap();
            }
        });
        let samples = (0..WOKEN).map(|number| {
            let task = worker.enqueue(woken(number)).unwrap();
            ask.send(task).unwrap();
            let claim = run(&worker);
            let started = Instant::now();
            claim.ack_with(&RESULT).unwrap();
            receive.recv().unwrap().duration_since(started)
        });
        let samples = samples.collect();
        drop(ask);
        samples
    })
}

/// The same with a process that waits, which is told the ids, and says when it has the results.
fn ack_to_other_process(url: &str) -> Vec<Duration> {
    let worker = queue(url, "bench:result");
    let mut waiter = Command::new(env::current_exe().unwrap())
        .args([WAITER, url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = waiter.stdin.take().unwrap();
    let mut told = BufReader::new(waiter.stdout.take().unwrap()).lines();
    let samples = (0..WOKEN).map(|number| {
        let task = worker.enqueue(woken(number)).unwrap();
        writeln!(ask, "{}", task.id).unwrap();
        let claim = run(&worker);
        let started = monotonic();
        claim.ack_with(&RESULT).unwrap();
        let got: u64 = told.next().unwrap().unwrap().parse().unwrap();
        Duration::from_nanos(got - started)
    });
    let samples = samples.collect();
    drop(ask);
    assert!(waiter.wait().unwrap().success());
    samples
}

/// The process that waits.
pub fn waiter(arguments: &[String]) {
    let queue = Client::open(&arguments[0]).unwrap().queue("bench:result");
    for id in io::stdin().lines() {
        wait_for(&queue, &id.unwrap(), None);
        println!("{}", monotonic());
    }
}

fn woken(number: usize) -> Task {
    Task::new(id(number)).keep_result(KEPT_FOR)
}

/// Claims the task, and works on it for a while.
fn run(worker: &Queue) -> Claim {
    let claim = worker.claim(ClaimOptions::new()).unwrap().remove(0);
    thread::sleep(RUNS_FOR);
    claim
}

fn wait_for(queue: &Queue, id: &str, version: Option<Version>) {
    match queue.result(id, version, PATIENCE).unwrap() {
        TaskResult::Done { result, .. } => assert_eq!(result, RESULT),
        other => panic!("no result: {other:?}"),
    }
}

/// The same drain of the same tasks with results, which are kept for an hour as always, and without, until a queue has as many as it keeps, and when it has.
fn cost(url: &str, store: &str, report: &mut Report) {
    report.section(&format!("{store}: acks with a result of {} bytes, against acks without", RESULT.len()));
    let (with, without) = (queue(url, "bench:kept"), queue(url, "bench:not-kept"));
    let mut drains: [Vec<(Duration, Duration)>; 2] = Default::default();
    let mut singles: [Vec<Duration>; 2] = Default::default();
    for _ in 0..CYCLES {
        with.purge().unwrap();
        without.purge().unwrap();
        for turn in 0..2 * FILLING {
            drains[turn / FILLING].push((drain(&with, turn, true), drain(&without, turn, false)));
        }
        for number in 0..SINGLES {
            singles[0].push(single(&with, number, true));
            singles[1].push(single(&without, number, false));
        }
    }
    for (turns, name) in drains.into_iter().zip(["results kept", "10,000 results there"]) {
        let (ours, theirs) = middle(turns);
        let rate = |took: Duration| DRAINED as f64 / took.as_secs_f64();
        report.compare(&format!("{store} drain, {name}"), rate(ours), rate(theirs), "tasks/s");
    }
    let [ours, theirs] = singles.map(|mut each| percentile(&mut each, 0.5).as_secs_f64() * 1e6);
    report.compare(&format!("{store} claim + ack_with, 10,000 there, p50"), ours, theirs, "us");
}

/// The turn whose ratio is the median: a machine is slow and fast by turns, and both sides of one turn met the same.
fn middle(mut turns: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    turns.sort_by(|one, other| {
        let ratio = |(ours, theirs): &(Duration, Duration)| ours.as_secs_f64() / theirs.as_secs_f64();
        ratio(one).total_cmp(&ratio(other))
    });
    turns[turns.len() / 2]
}

/// How long a worker takes for the tasks of one turn, which have other ids than those of the turn before.
fn drain(queue: &Queue, turn: usize, kept: bool) -> Duration {
    let first = turn * DRAINED;
    fill_with(queue, first..first + DRAINED, task);
    let options = || ClaimOptions::new().max(BATCH);
    let started = Instant::now();
    let mut claims = queue.claim(options()).unwrap();
    let mut done = 0;
    while !claims.is_empty() {
        done += claims.len();
        let verdict = |claim: &Claim| if kept { claim.acked_with(&RESULT).unwrap() } else { claim.acked() };
        let settled;
        (settled, claims) = queue.settle_and_claim(claims.iter().map(verdict).collect(), options()).unwrap();
        assert!(settled.iter().all(Result::is_ok));
    }
    let took = started.elapsed();
    assert_eq!(done, DRAINED);
    took
}

/// One task, claimed and acked.
fn single(queue: &Queue, number: usize, kept: bool) -> Duration {
    queue.enqueue(task(2 * FILLING * DRAINED + number)).unwrap();
    let started = Instant::now();
    let claims = queue.claim(ClaimOptions::new()).unwrap();
    let settled = if kept { claims[0].ack_with(&RESULT) } else { claims[0].ack() };
    settled.unwrap();
    started.elapsed()
}
