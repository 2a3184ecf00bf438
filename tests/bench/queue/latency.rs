//! How soon a task starts, and what an idle consumer costs.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use stanchion::blocking::{Client, Queue};
use stanchion::{ClaimOptions, Task};

use super::queue;
use crate::baseline::connect;
use crate::report::{Report, percentile};

/// Tasks that an idle consumer is woken for.
const WOKEN: usize = 300;
/// Tasks that are due later.
const DELAYED: usize = 300;
/// How far apart they are.
const APART: Duration = Duration::from_millis(17);
/// How long an idle consumer is watched.
const IDLE_FOR: Duration = Duration::from_secs(6);

/// `server` is the store's address if it is Redis: the baseline and the commands are counted there.
pub fn latency(url: &str, server: Option<&str>, store: &str, report: &mut Report) {
    report.section(&format!("{store}: how soon a task starts; an idle consumer"));
    let mut ours = enqueue_to_start(url);
    let millis = |samples: &mut [Duration], part| percentile(samples, part).as_secs_f64() * 1e3;
    match server {
        Some(server) => {
            let mut bare = push_to_pop(server);
            for (label, part) in [("p50", 0.5), ("p99", 0.99)] {
                let name = format!("{store} enqueue to start, {label}, against RPUSH to BLPOP");
                report.compare(&name, millis(&mut ours, part), millis(&mut bare, part), "ms");
            }
        }
        None => report.note(&format!("{store} enqueue to start, p50"), millis(&mut ours, 0.5), "ms"),
    }
    let mut late = lateness(url);
    report.note(&format!("{store} lateness of delayed tasks, p50"), millis(&mut late, 0.5), "ms");
    report.note(&format!("{store} lateness of delayed tasks, p99"), millis(&mut late, 0.99), "ms");
    if let Some(server) = server {
        let commands = idle_commands(url, server);
        report.note(&format!("{store} idle consumer"), commands / IDLE_FOR.as_secs_f64(), "commands/s");
    }
}

/// A consumer that says when it got a task, until it gets the last one.
fn consume(queue: &Queue, count: usize, got: &mpsc::Sender<(Instant, SystemTime, SystemTime)>) {
    let options = ClaimOptions::new().max(1).wait(Duration::from_secs(30));
    for _ in 0..count {
        let claims = queue.claim(options.clone()).unwrap();
        let (instant, wall) = (Instant::now(), SystemTime::now());
        got.send((instant, wall, claims[0].due())).unwrap();
        claims[0].ack().unwrap();
    }
}

fn enqueue_to_start(url: &str) -> Vec<Duration> {
    let producer = queue(url, "bench:wake");
    let consumer = Client::open(url).unwrap().queue("bench:wake");
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| consume(&consumer, WOKEN, &send));
        (0..WOKEN)
            .map(|number| {
                // Long enough for the consumer to wait again.
                thread::sleep(Duration::from_millis(5));
                let started = Instant::now();
                producer.enqueue(Task::new(format!("wake:{number}"))).unwrap();
                receive.recv().unwrap().0.duration_since(started)
            })
            .collect()
    })
}

/// The same with a list and a consumer that blocks in BLPOP.
pub(super) fn push_to_pop(server: &str) -> Vec<Duration> {
    let (mut producer, mut consumer) = (connect(server), connect(server));
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..WOKEN {
                let _: (String, String) =
                    redis::cmd("BLPOP").arg("bare:wake").arg(30).query(&mut consumer).unwrap();
                send.send(Instant::now()).unwrap();
            }
        });
        (0..WOKEN)
            .map(|number| {
                thread::sleep(Duration::from_millis(5));
                let started = Instant::now();
                let _: i64 = redis::cmd("RPUSH").arg("bare:wake").arg(number).query(&mut producer).unwrap();
                receive.recv().unwrap().duration_since(started)
            })
            .collect()
    })
}

/// How late tasks start that are due one after the other. None may start early.
fn lateness(url: &str) -> Vec<Duration> {
    let producer = queue(url, "bench:late");
    let consumer = Client::open(url).unwrap().queue("bench:late");
    let first = SystemTime::now() + Duration::from_millis(500);
    let due = |number: usize| first + APART * u32::try_from(number).unwrap();
    let tasks = (0..DELAYED).map(|number| Task::new(format!("late:{number}")).due(due(number)));
    producer.enqueue_many(tasks).unwrap();
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| consume(&consumer, DELAYED, &send));
        (0..DELAYED)
            .map(|_| {
                let (_, started, due) = receive.recv().unwrap();
                started.duration_since(due).expect("a task started early")
            })
            .collect()
    })
}

/// Commands that one waiting consumer sends while nothing happens.
fn idle_commands(url: &str, server: &str) -> f64 {
    let queue = queue(url, "bench:idle");
    let mut connection = connect(server);
    let settled = Instant::now() + Duration::from_secs(1);
    let mut before = None;
    let mut turn = || {
        if before.is_none() && Instant::now() >= settled {
            before = Some(commands_sent(&mut connection));
        }
        match Instant::now() < settled + IDLE_FOR {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    let options = ClaimOptions::new().wait(Duration::from_secs(60));
    queue.claim_while(options, &mut turn).unwrap_err();
    // Without the goodbye.
    commands_sent(&mut connection) - before.unwrap() - 1.0
}

/// Commands that clients sent so far: scripts and what keeps connections alive, not what scripts call.
fn commands_sent(connection: &mut redis::Connection) -> f64 {
    let info: String = redis::cmd("INFO").arg("commandstats").query(connection).unwrap();
    let sent = ["eval:", "evalsha:", "ping:", "hello:", "subscribe:", "client|setinfo:"];
    let calls = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once("calls=")?;
        sent.contains(&name).then(|| rest.split(',').next()?.parse::<f64>().ok())?
    };
    info.lines().filter_map(calls).sum()
}
