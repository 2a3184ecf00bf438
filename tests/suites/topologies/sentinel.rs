//! The master changes: by order, by its death, and while it is frozen.

use std::time::Instant;

use stanchion::{Client, ErrorKind};
use stanchion_tests::faces::{AnyLease, Face};
use stanchion_tests::sentinel::{self, Sentinels};
use stanchion_tests::wait::{SOON, eventually, eventually_some, task};

use crate::load::{GETS_ON, Load, Trouble};
use crate::{fixed, ms, open, renewed, use_it};

on_both_faces! {
    fn sentinels_lead_to_the_master(face) {
        let client = open(face, Client::builder(&sentinel::shared().fresh_db()));
        use_it(&client, "a");
        assert_eq!(client.queue_names(None).unwrap().names, ["a"]);
        let _lease = client.lock("b").acquire(fixed(30_000, 0)).unwrap();
        assert_eq!(client.all_locks(), ["b"]);
    }

    /// First by order, then by kill -9 of the new master; then the last one is alone.
    fn failover_under_load(face) {
        let group = Sentinels::start();
        let client = open(face, Client::builder(&group.url()));
        let load = Load::begin(&client, &["a", "b"].map(String::from), Trouble::Failover);
        let held = client.lock("held").acquire(renewed(180_000, 0)).unwrap();
        let waiter = client.lock("held");
        let waiting = task(move || waiter.acquire(fixed(5_000, 300_000)).unwrap().release().unwrap());
        eventually(SOON, || client.lock("held").waiters() == 1);

        group.fail_over();
        load.wait_for_progress();
        // Who was master soon writes no more, and nobody asks it.
        let refuses = || {
            // It closes connections when it learns that it is no master any more.
            let raw = group.servers[0].try_raw();
            let write = raw.and_then(|mut raw| redis::cmd("SET").arg("a").arg("b").exec(&mut raw));
            write.is_err_and(|error| error.code() == Some("READONLY"))
        };
        eventually(GETS_ON, refuses);
        load.wait_for_progress();

        let second = group.master().unwrap();
        group.servers[second].kill9();
        eventually(GETS_ON, || group.master().is_some_and(|master| master != second));
        load.wait_for_progress();

        // The lease was replicated long ago, so it is still there, and so is who waits for it.
        assert!(held.is_valid(), "{:?}", held.loss());
        held.release().unwrap();
        waiting.join();
        load.end();
        use_it(&client, "new");
    }
}

/// While nobody is master, calls end in time with an error that says to try again.
#[test]
fn no_master_for_a_while() {
    let group = Sentinels::start_with(0, 1, |server| server, "");
    // What must succeed has more time than what must not.
    let patient = open(Face::Blocking, Client::builder(&group.url())).lock("job");
    let lock = open(Face::Blocking, Client::builder(&group.url()).timeout(ms(700))).lock("job");
    let lease = patient.acquire(fixed(60_000, 0)).unwrap();
    group.servers[0].kill9();
    let error = lock.holder().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.is_retryable());
    let waiting = task(move || patient.acquire(fixed(5_000, 60_000)).unwrap().release().unwrap());
    group.servers[0].start_again();
    // It has come back empty.
    waiting.join();
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
}

/// A frozen master is left for the one that took its place; when it goes on, nobody believes it.
#[test]
fn a_frozen_master_that_comes_back() {
    let group = Sentinels::start();
    let client = open(Face::Blocking, Client::builder(&group.url()));
    let lock = client.lock("job");
    // Several idle connections to the same master.
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let lock = lock.clone();
            task(move || lock.acquire(fixed(5_000, 30_000)).unwrap().release().unwrap())
        })
        .collect();
    calls.into_iter().for_each(|call| call.join());
    group.servers[0].stop_signal();
    let frozen = Instant::now();
    let lease = lock.acquire(fixed(60_000, 60_000)).unwrap();
    assert!(frozen.elapsed() < GETS_ON);
    group.servers[0].cont_signal();
    let others: Vec<_> = (0..4)
        .map(|_| {
            let lock = lock.clone();
            task(move || lock.try_acquire(fixed(5_000, 0)).unwrap().is_none())
        })
        .collect();
    assert!(others.into_iter().all(wait_for), "the lock was given twice");
    lease.release().unwrap();
}

/// A connection that was idle all the while: the former master would renew a lease that the new one lets end.
#[test]
fn a_lease_is_renewed_by_the_new_master() {
    // Again if there was no master for so long that the lease may have ended.
    let (group, master, _client, lease) = eventually_some(2 * GETS_ON, || {
        let group = Sentinels::start();
        let client = open(Face::Async, Client::builder(&group.url()));
        let lease = client.lock("job").acquire(renewed(15_000, 0)).unwrap();
        // Its own connection has the thread that renews.
        wait_for_renewal(&lease);
        group.servers[0].stop_signal();
        let frozen = Instant::now();
        client.lock("other").acquire(fixed(60_000, 120_000)).unwrap().release().unwrap();
        let master = eventually_some(GETS_ON, || group.master());
        group.servers[0].cont_signal();
        (frozen.elapsed() < ms(9_000)).then_some((group, master, client, lease))
    });
    wait_for_renewal(&lease);
    let life: u64 = group.servers[master].cli(&["PTTL", "Lock:job"]).parse().unwrap();
    assert!(life > 12_000, "the new master keeps the lock for {life} ms");
    lease.release().unwrap();
}

fn wait_for_renewal(lease: &AnyLease) {
    let mut last = lease.remaining();
    eventually(SOON, || lease.remaining() > std::mem::replace(&mut last, lease.remaining()));
}

fn wait_for<T>(task: stanchion_tests::wait::Task<T>) -> T {
    task.join()
}
