//! Rates of a queue and of keys, while masters are killed, connections are cut, and workers die with tasks in their hands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use stanchion::{ClaimOptions, Client, Happened, QueueConfig, Rate, Task};
use stanchion_tests::actor::Actor;
use stanchion_tests::faces::{AnyClaim, AnyQueue, Face};
use stanchion_tests::sentinel::Sentinels;
use stanchion_tests::wait::{self, SOON, eventually, eventually_some, task};

use crate::load::{GETS_ON, Trouble};
use crate::{ms, open};

mod judge;

use judge::{Delivery, Limited, judge, steady, times_of};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const KEY_RATE: Rate = Rate::new(50, SECOND).burst(5);
/// What has a rate.
const LIMITED: [Limited; 3] = [
    Limited { name: "q", queue: "plain", key: None, rate: Rate::new(200, SECOND).burst(10) },
    Limited { name: "a", queue: "keyed", key: Some("a"), rate: KEY_RATE },
    Limited { name: "b", queue: "keyed", key: Some("b"), rate: KEY_RATE },
];
/// Workers of each queue, with a client each.
const WORKERS: usize = 3;
/// Tasks that wait at least: there is always work.
const BACKLOG: u64 = 200;
/// Longer than a busy machine stands still: no Sentinel replaces a master that nobody has killed.
const PATIENT: &str = "sentinel down-after-milliseconds mymaster 5000";
/// The lease of the worker that dies, ms.
const LEASE: u64 = 2_000;

on_both_faces! {
    /// No master lets more go than the rate, nor do they together but for what a replica had not got; and while one serves, no
    /// less than 98 % of it is delivered.
    fn a_rate_is_kept_and_used_through_failovers_and_kills(face) {
        let group = Sentinels::start_with(2, 3, |server| server, PATIENT);
        let work = Work::begin(face, &group.url());
        let (mut stretches, mut ends) = (vec![steady(&group.servers[0])], Vec::new());

        for kind in ["normal", "pubsub"] {
            group.servers[0].cli(&["CLIENT", "KILL", "TYPE", kind]);
        }
        work.wait_for_progress();
        die_with_claims(face, &group.url(), &work);

        for _ in 0..2 {
            let master = eventually_some(GETS_ON, || group.master());
            group.servers[master].kill9();
            // All servers have the clock of this machine.
            ends.push(now());
            let other = || group.master().filter(|other| *other != master);
            let next = eventually_some(GETS_ON, other);
            work.wait_for_progress();
            stretches.push(steady(&group.servers[next]));
        }
        let seen = work.end();
        let client = open(face, Client::builder(&group.url()));
        let history = ["plain", "keyed"].map(|name| started(&client.queue(name))).concat();
        judge(&history, &seen, &stretches, &ends);
    }
}

/// What the replica had not got may go once more, and no more than that: here so much that it shows in a `per`.
#[test]
fn a_failover_forgets_what_the_replica_had_not_got() {
    const RATE: Rate = Rate::new(10, HOUR).burst(20);
    const SEEN: usize = 5;
    let group = Sentinels::start_with(1, 1, |server| server, "");
    let (master, replica) = (&group.servers[0], &group.servers[1]);
    let client = open(Face::Blocking, Client::builder(&group.url()));
    let queue = client.queue("q");
    queue.configure(QueueConfig::new().rate(Some(RATE))).unwrap();
    put(&queue, (0..100).map(|number| Task::new(format!("t{number}")))).unwrap();
    let take = |max| {
        let claims = queue.claim(ClaimOptions::new().max(max)).unwrap();
        queue.settle(claims.iter().map(AnyClaim::acked).collect()).unwrap();
        claims.len()
    };
    assert_eq!(take(SEEN), SEEN);
    eventually(SOON, || master.cli(&["WAIT", "1", "100"]) == "1");
    // A password that the master does not know keeps the replica from coming back.
    replica.config_set("masterauth", "c4n4ry");
    master.cli(&["CLIENT", "KILL", "TYPE", "replica"]);
    eventually(SOON, || master.cli(&["INFO", "replication"]).contains("connected_slaves:0"));
    let burst = usize::try_from(RATE.burst).unwrap();
    assert_eq!((take(100), take(100)), (burst - SEEN, 0));

    master.kill9();
    eventually(GETS_ON, || group.master() == Some(1));
    let again = eventually_some(GETS_ON, || Some(take(100)).filter(|taken| *taken > 0));
    assert_eq!((again, take(100)), (burst - SEEN, 0), "it knows of the first ones");
    let most = usize::try_from(RATE.count).unwrap() + burst;
    assert!(burst + again > most, "no more than {most} in an hour: this shows nothing");
}

/// Workers that take what they are allowed, and producers that have always more for them.
struct Work {
    over: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Delivery>>>,
    threads: Vec<wait::Task<()>>,
}

impl Work {
    fn begin(face: Face, url: &str) -> Self {
        let queue = |name| open(face, Client::builder(url)).queue(name);
        let events = QueueConfig::new().events(100_000);
        queue("plain").configure(events.clone().rate(Some(LIMITED[0].rate))).unwrap();
        queue("keyed").configure(events.key_rate(Some(KEY_RATE))).unwrap();
        let mut work = Self { over: Arc::default(), seen: Arc::default(), threads: Vec::new() };
        for limited in &LIMITED {
            let (queue, mut number) = (queue(limited.queue), 0);
            work.repeat(move || produce(&queue, limited, &mut number));
        }
        for name in ["plain", "keyed"] {
            for _ in 0..WORKERS {
                let (queue, seen) = (queue(name), Arc::clone(&work.seen));
                work.repeat(move || consume(&queue, &seen));
            }
        }
        work.wait_for_progress();
        work
    }

    fn repeat(&mut self, mut step: impl FnMut() + Send + 'static) {
        let over = Arc::clone(&self.over);
        self.threads.push(task(move || {
            while !over.load(Ordering::SeqCst) {
                step();
            }
        }));
    }

    /// Waits until each of them had several deliveries from now on.
    #[track_caller]
    fn wait_for_progress(&self) {
        let counts = || LIMITED.each_ref().map(|limited| times_of(&self.seen.lock().unwrap(), limited).len());
        let before = counts();
        eventually(GETS_ON, || counts().iter().zip(before).all(|(count, before)| *count >= before + 20));
    }

    /// Ends it; all that workers were given.
    fn end(self) -> Vec<Delivery> {
        self.over.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join_within(GETS_ON));
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

fn produce(queue: &AnyQueue, limited: &Limited, number: &mut u64) {
    let waiting = match limited.key {
        None => queue.stats().map(|stats| stats.ready),
        Some(key) => queue.get_key(key).map(|key| key.held),
    };
    if Trouble::Failover.survives(waiting).is_some_and(|waiting| waiting < BACKLOG) {
        let tasks = (*number..*number + BACKLOG).map(|number| {
            let task = Task::new(format!("{}-{number}", limited.name));
            match limited.key {
                Some(key) => task.key(key),
                None => task,
            }
        });
        Trouble::Failover.survives(put(queue, tasks));
        *number += BACKLOG;
    }
    // The pace of the producer.
    thread::sleep(ms(50));
}

fn put(queue: &AnyQueue, tasks: impl Iterator<Item = Task>) -> Result<(), stanchion::Error> {
    queue.enqueue_many(tasks)?.into_iter().try_for_each(|result| result.map(drop))
}

fn consume(queue: &AnyQueue, seen: &Mutex<Vec<Delivery>>) {
    let options = ClaimOptions::new().max(20).lease(ms(40_000)).wait(ms(1_000));
    let claims = Trouble::Failover.survives(queue.claim(options)).unwrap_or_default();
    let delivery = |claim: &AnyClaim| Delivery {
        id: claim.id().to_owned(),
        attempt: claim.attempt(),
        // Receipts are times of the store, in microseconds.
        at: claim.receipt().get() / 1_000,
    };
    seen.lock().unwrap().extend(claims.iter().map(delivery));
    Trouble::Failover.survives(queue.settle(claims.iter().map(AnyClaim::acked).collect()));
}

/// A worker in a process of its own takes some and is killed; they come again when its leases end.
fn die_with_claims(face: Face, url: &str, work: &Work) {
    let face = if face == Face::Blocking { "blocking" } else { "async" };
    for name in ["plain", "keyed"] {
        let mut worker = Actor::connected(env!("CARGO_BIN_EXE_actor"), url, face);
        worker.order(&format!("claim {name} 10 {LEASE} 60000 fixed"));
        let claims = worker.reply_within(GETS_ON)["claims"].clone();
        worker.kill9();
        let id = claims[0]["id"].as_str().unwrap();
        let came_again = |delivery: &Delivery| delivery.id == id && delivery.attempt == 2;
        eventually(GETS_ON, || work.seen.lock().unwrap().iter().any(came_again));
    }
}

/// All deliveries of a queue that its master knows of.
fn started(queue: &AnyQueue) -> Vec<Delivery> {
    let (mut found, mut cursor) = (Vec::new(), 0);
    loop {
        let page = queue.events(Some(cursor), Duration::ZERO).unwrap();
        if page.events.is_empty() {
            return found;
        }
        cursor = page.cursor;
        let started = page.events.into_iter().filter(|event| event.what == Happened::Started);
        found.extend(started.map(|event| Delivery {
            id: event.id,
            attempt: event.attempt,
            at: since_1970(event.at),
        }));
    }
}

fn since_1970(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn now() -> u64 {
    since_1970(SystemTime::now())
}
