//! Masters that are killed while threads write under a lock: how long nobody writes, and what the fences prevent, since
//! each time a holder stands still over the failover and writes when its lease is long over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stanchion::blocking::{Client, Lock};
use stanchion::{Fence, LockOptions};
use stanchion_tests::resource::{Log, Resource};
use stanchion_tests::sentinel::Sentinels;
use stanchion_tests::wait::{eventually, eventually_some, task};

use crate::report::{Report, percentile};

const FAILOVERS: usize = 20;
const WRITERS: usize = 4;
/// Writes that show that the work goes on.
const GOES_ON: usize = 100;
const TTL: Duration = Duration::from_secs(5);
/// Longer than a failover takes, also by Sentinels that have just stood still: those do nothing for half a minute.
const IN_TIME: Duration = Duration::from_secs(120);

/// Kills the master of one group after the other: a group that has failed over needs time to be able to again.
pub fn failover(report: &mut Report) {
    report.section(&format!("{FAILOVERS} masters killed while {WRITERS} threads write under a lock"));
    let (mut pauses, mut accepted, mut refused) = (Vec::new(), 0, 0);
    for _ in 0..FAILOVERS {
        let (killed, log) = kill_master();
        pauses.push(longest_pause(&log.accepted, killed));
        accepted += log.accepted.len();
        refused += log.refused;
    }
    let seconds = |time: Duration| time.as_secs_f64();
    report.note("time without a write, median", seconds(percentile(&mut pauses, 0.5)), "s");
    report.note("time without a write, longest", seconds(percentile(&mut pauses, 1.0)), "s");
    report.note("writes accepted", accepted as f64, "writes");
    report.note("holders that stood still past their ttl, and wrote then", FAILOVERS as f64, "writes");
    report.note("stale writes that their fences had refused", refused as f64, "writes");
    assert!(refused >= FAILOVERS, "a stale write was accepted");
}

/// When the master was killed, and what was written before and after.
fn kill_master() -> (Instant, Log) {
    let group = Sentinels::start();
    let (resource, over) = (Arc::new(Resource::default()), Arc::new(AtomicBool::new(false)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let lock = Client::open(&group.url()).unwrap().lock("bench:failover");
            let (resource, over) = (Arc::clone(&resource), Arc::clone(&over));
            task(move || {
                while !over.load(Ordering::Relaxed) {
                    write(&lock, &resource);
                }
            })
        })
        .collect();
    let goes_on = || {
        let written = resource.log().accepted.len();
        eventually(IN_TIME, || resource.log().accepted.len() >= written + GOES_ON);
    };
    goes_on();
    // It stands still from here on, until others have written after it.
    let lock = Client::open(&group.url()).unwrap().lock("bench:failover");
    let frozen = eventually_some(IN_TIME, || lock.acquire(LockOptions::new().ttl(TTL).wait(IN_TIME)).ok());
    let master = eventually_some(IN_TIME, || group.master());
    group.servers[master].kill9();
    let killed = Instant::now();
    eventually(IN_TIME, || group.master().is_some_and(|next| next != master));
    goes_on();
    eventually(IN_TIME, || !frozen.is_valid());
    assert!(!resource.write(frozen.fence()), "a stale write was accepted");
    over.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join_within(IN_TIME));
    (killed, resource.log().clone())
}

/// Takes the lock and writes. What a call says in a failover does not matter here; that a rightful holder is not
/// refused does.
fn write(lock: &Lock, resource: &Resource) {
    let before = resource.highest();
    let Ok(lease) = lock.acquire(LockOptions::new().ttl(TTL).wait(IN_TIME)) else {
        return;
    };
    assert!(lease.fence() > before, "the fence {} was given after {before}", lease.fence());
    let _ = resource.write(lease.fence());
    let _ = lease.release();
}

/// The longest time between two writes, from the last one before `from` on.
fn longest_pause(accepted: &[(Fence, Instant)], from: Instant) -> Duration {
    let first = accepted.partition_point(|(_, at)| *at < from).saturating_sub(1);
    accepted[first..].windows(2).map(|pair| pair[1].1 - pair[0].1).max().unwrap_or_default()
}
