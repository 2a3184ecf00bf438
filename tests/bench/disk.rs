//! What SQLite writes to the disk for a task, what threads that wait for the disk together gain, and what idle
//! workers cost.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use rusqlite::Connection;
use stanchion::blocking::{Client, Queue};
use stanchion::{ClaimOptions, Task};

use crate::report::Report;

/// Tasks whose bytes in the log are counted: too few for SQLite to begin the log anew.
const COUNTED: usize = 40;
/// Threads that enqueue at once.
const THREADS: usize = 64;
/// How long each side of the threads runs in one turn; the sides alternate.
const TURN: Duration = Duration::from_millis(500);
const TURNS: usize = 4;
/// Bytes of a large payload, and how many such tasks go through.
const LARGE: usize = 1 << 20;
const LARGE_TASKS: usize = 40;
/// How long an idle consumer is watched.
const IDLE_FOR: Duration = Duration::from_secs(8);

/// The part of a core that a consumer takes while nothing happens.
pub fn idle(url: &str, report: &mut Report) {
    report.section("sqlite: an idle consumer");
    let queue = Client::open(url).unwrap().queue("bench:idle");
    queue.purge().unwrap();
    // It waits on its own thread, and reads the hints there.
    let took = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let before = took();
    assert!(queue.claim(ClaimOptions::new().wait(IDLE_FOR)).unwrap().is_empty());
    let used = took() - before;
    report.note("sqlite idle consumer", used.as_secs_f64() / IDLE_FOR.as_secs_f64() * 100.0, "% of a core");
}

pub fn disk(url: &str, report: &mut Report) {
    report.section("sqlite: bytes in the log for a task without a payload, against two pages of 4 KiB");
    let queue = Client::open(url).unwrap().queue("bench:disk");
    queue.purge().unwrap();
    let path = url.trim_start_matches("sqlite:");
    let claim = || {
        let claims = queue.claim(ClaimOptions::new()).unwrap();
        claims[0].ack().unwrap();
    };
    let enqueue = |number: usize| {
        queue.enqueue(Task::new(format!("{number}"))).unwrap();
    };
    // With pages that are in use, and the counter of calls.
    (0..COUNTED).for_each(enqueue);
    let enqueued = logged(path, || (COUNTED..2 * COUNTED).for_each(enqueue));
    let done = logged(path, || (0..COUNTED).for_each(|_| claim()));
    report.compare("sqlite enqueue, bytes", enqueued, 8_192.0, "B");
    report.compare("sqlite claim + ack, bytes", done, 8_192.0, "B");
    queue.purge().unwrap();

    report.section("sqlite: 64 threads that enqueue one task at a time, against one");
    let (mut many, mut one) = (0.0, 0.0);
    for _ in 0..TURNS {
        many += enqueued_by(&queue, THREADS);
        one += enqueued_by(&queue, 1);
        queue.purge().unwrap();
    }
    let turns = TURNS as f64;
    report.compare("sqlite enqueue, 64 threads", many / turns, one / turns, "tasks/s");

    report.section("sqlite: tasks with a payload of 1 MiB");
    let started = Instant::now();
    for number in 0..LARGE_TASKS {
        queue.enqueue(Task::new(format!("{number}")).payload(vec![b'x'; LARGE])).unwrap();
    }
    let enqueued = started.elapsed();
    (0..LARGE_TASKS).for_each(|_| claim());
    let each = |time: Duration| time.as_secs_f64() * 1e3 / LARGE_TASKS as f64;
    report.note("sqlite enqueue of 1 MiB", each(enqueued), "ms");
    report.note("sqlite claim + ack of 1 MiB", each(started.elapsed() - enqueued), "ms");
}

/// Bytes of the log that each of the [`COUNTED`] calls in `body` takes.
fn logged(path: &str, body: impl FnOnce()) -> f64 {
    let bare = Connection::open(path).unwrap();
    bare.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    body();
    let log = fs::metadata(Path::new(&format!("{path}-wal"))).unwrap().len();
    log as f64 / COUNTED as f64
}

/// Tasks per second that so many threads put in, each one at a time.
fn enqueued_by(queue: &Queue, threads: usize) -> f64 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let started = Instant::now();
    let counts: Vec<usize> = thread::scope(|scope| {
        let each = || {
            let mut count = 0;
            while started.elapsed() < TURN {
                queue.enqueue(Task::new(format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed)))).unwrap();
                count += 1;
            }
            count
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(each)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    counts.iter().sum::<usize>() as f64 / started.elapsed().as_secs_f64()
}
