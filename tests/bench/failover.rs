//! Masters that are killed while threads write under a lock: how long nobody writes, and what the fences prevent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stanchion::blocking::{Client, Lock};
use stanchion::{Fence, LockOptions};
use stanchion_tests::resource::Resource;
use stanchion_tests::sentinel::Sentinels;
use stanchion_tests::wait::{eventually, eventually_some, task};

use crate::report::{Report, percentile};

const FAILOVERS: usize = 20;
const WRITERS: usize = 4;
/// Writes that show that the work goes on.
const GOES_ON: usize = 100;
/// Longer than a failover takes.
const IN_TIME: Duration = Duration::from_secs(60);

/// Kills the master of a group again and again.
pub fn failover(report: &mut Report) {
    report.section(&format!("{FAILOVERS} masters killed while {WRITERS} threads write under a lock"));
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
    let kills: Vec<Instant> = (0..FAILOVERS).map(|_| kill_master(&group, &resource)).collect();
    over.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join_within(IN_TIME));
    let log = resource.log();
    let ends = kills[1..].iter().copied().chain([Instant::now()]);
    let mut pauses: Vec<_> =
        kills.iter().zip(ends).map(|(killed, end)| longest_pause(&log.accepted, *killed, end)).collect();
    let seconds = |time: Duration| time.as_secs_f64();
    report.note("time without a write, median", seconds(percentile(&mut pauses, 0.5)), "s");
    report.note("time without a write, longest", seconds(percentile(&mut pauses, 1.0)), "s");
    let stale = log.accepted.windows(2).filter(|pair| pair[1].0 <= pair[0].0).count();
    report.note("writes accepted", log.accepted.len() as f64, "writes");
    report.note("stale writes accepted", stale as f64, "writes");
    report.note("stale writes refused", log.refused as f64, "writes");
}

/// Takes the lock and writes. What a call says in a failover does not matter here; that a rightful holder is not
/// refused does.
fn write(lock: &Lock, resource: &Resource) {
    let before = resource.highest();
    let Ok(lease) = lock.acquire(LockOptions::new().ttl(Duration::from_secs(5)).wait(IN_TIME)) else {
        return;
    };
    assert!(lease.fence() > before, "the fence {} was given after {before}", lease.fence());
    let _ = resource.write(lease.fence());
    let _ = lease.release();
}

/// Kills the master, waits until the work goes on, and brings the server back as a replica. When it was killed.
fn kill_master(group: &Sentinels, resource: &Resource) -> Instant {
    let master = eventually_some(IN_TIME, || group.master());
    let whole = |master: usize| {
        group.servers[master].cli(&["INFO", "replication"]).matches("state=online").count()
            == group.servers.len() - 1
    };
    eventually(IN_TIME, || whole(master));
    group.servers[master].kill9();
    let killed = Instant::now();
    let next = eventually_some(IN_TIME, || group.master().filter(|next| *next != master));
    let written = resource.log().accepted.len();
    eventually(IN_TIME, || resource.log().accepted.len() >= written + GOES_ON);
    group.servers[master].start_again();
    group.servers[master].cli(&["REPLICAOF", "127.0.0.1", &group.servers[next].port().to_string()]);
    killed
}

/// The longest time between two writes, from the last one before `from` on.
fn longest_pause(accepted: &[(Fence, Instant)], from: Instant, until: Instant) -> Duration {
    let first = accepted.partition_point(|(_, at)| *at < from).saturating_sub(1);
    let pauses = accepted[first..].windows(2).take_while(|pair| pair[0].1 < until);
    pauses.map(|pair| pair[1].1 - pair[0].1).max().unwrap_or_default()
}
