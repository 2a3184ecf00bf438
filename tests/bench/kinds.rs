//! The other kinds of locks, against the exclusive lock.

use std::time::Duration;

use stanchion::LockOptions;
use stanchion::blocking::{Client, Lock};

use crate::pair::{TURNS, compare_percentiles, timed};
use crate::report::Report;

/// Acquire and release of a free lock of each kind.
pub fn pairs(url: &str, store: &str, report: &mut Report) {
    report.section(&format!("pairs of other kinds on {store}, against the exclusive lock"));
    let client = Client::open(url).unwrap();
    let exclusive = client.lock("bench:kinds");
    let rw = client.rw_lock("bench:kinds");
    let kinds: [(&str, Lock); 4] = [
        ("reader", rw.read().clone()),
        ("writer", rw.write().clone()),
        ("semaphore of 10", client.semaphore("bench:kinds", 10)),
        ("multi-lock of 2", client.multi_lock(&["bench:kinds:1", "bench:kinds:2"])),
    ];
    let mut ours: [Vec<Duration>; 4] = Default::default();
    let mut baseline = Vec::new();
    for _ in 0..TURNS {
        timed(&mut baseline, || pair(&exclusive));
        for ((_, lock), samples) in kinds.iter().zip(&mut ours) {
            timed(samples, || pair(lock));
        }
    }
    for ((name, _), samples) in kinds.iter().zip(ours) {
        compare_percentiles(report, &format!("{store} pair, {name}"), samples, baseline.clone());
    }
}

fn pair(lock: &Lock) {
    lock.acquire(LockOptions::new()).unwrap().release().unwrap();
}
