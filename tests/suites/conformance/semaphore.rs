//! Counting semaphores.

use std::sync::atomic::{AtomicU32, Ordering};

use stanchion::{ErrorKind, LockOptions};
use stanchion_tests::on_every_topology;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::{fixed, ms, secs};

on_every_topology! {
    fn there_are_as_many_holders_as_permits(bench) {
        let client = bench.client();
        let semaphore = client.semaphore("a", 3);
        let mut leases: Vec<_> =
            (0..3).map(|_| semaphore.try_acquire(LockOptions::new()).unwrap().unwrap()).collect();
        assert!(bench.client().semaphore("a", 3).try_acquire(LockOptions::new()).unwrap().is_none());
        assert!(leases.windows(2).all(|pair| pair[0].fence() < pair[1].fence()));
        leases.pop().unwrap().release().unwrap();
        assert!(bench.client().semaphore("a", 3).try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn a_weight_takes_that_many(bench) {
        let semaphore = bench.client().semaphore("a", 5);
        let three = semaphore.acquire(LockOptions::new().weight(3)).unwrap();
        assert!(semaphore.try_acquire(LockOptions::new().weight(3)).unwrap().is_none());
        let two = semaphore.try_acquire(LockOptions::new().weight(2)).unwrap().unwrap();
        assert!(semaphore.try_acquire(LockOptions::new()).unwrap().is_none());
        let mut weights: Vec<_> = semaphore.holders().unwrap().iter().map(|holder| holder.weight).collect();
        weights.sort_unstable();
        assert_eq!(weights, [2, 3]);
        three.release().unwrap();
        two.release().unwrap();
        let five = semaphore.try_acquire(LockOptions::new().weight(5)).unwrap().unwrap();
        five.release().unwrap();
        assert!(semaphore.holders().unwrap().is_empty());
    }

    fn a_permit_that_runs_out_is_free_again(bench) {
        let semaphore = bench.client().semaphore("a", 2);
        let short = semaphore.acquire(fixed(ms(60))).unwrap();
        let _long = semaphore.acquire(fixed(secs(20))).unwrap();
        let next = bench.client().semaphore("a", 2).acquire(LockOptions::new().wait(secs(20))).unwrap();
        assert!(!short.is_valid());
        assert!(semaphore.try_acquire(LockOptions::new()).unwrap().is_none());
        assert_eq!(short.release().unwrap_err().kind(), ErrorKind::LeaseExpired);
        next.release().unwrap();
    }

    fn another_number_of_permits_is_refused_while_it_is_in_use(bench) {
        let client = bench.client();
        let lease = client.semaphore("a", 3).acquire(LockOptions::new()).unwrap();
        let error = client.semaphore("a", 4).acquire(LockOptions::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("3 permits"), "{error}");
        lease.release().unwrap();
        client.semaphore("a", 4).acquire(LockOptions::new()).unwrap().release().unwrap();
    }

    /// As in a rolling deploy: the newer programs get nothing while the older ones use it, and all of it afterwards.
    fn another_number_of_permits_comes_when_the_older_users_have_gone(bench) {
        let (client, newer) = (bench.client(), bench.client());
        let (older, newer) = (client.semaphore("a", 2), newer.semaphore("a", 3));
        let refused = |wait| newer.acquire(LockOptions::new().wait(wait)).unwrap_err().kind();
        let mut leases: Vec<_> = (0..2).map(|_| older.acquire(LockOptions::new()).unwrap()).collect();
        let next = older.clone();
        let waiting = task(move || next.acquire(LockOptions::new().wait(secs(60))).unwrap());
        eventually(SOON, || older.waiters() == 1);
        assert_eq!(refused(secs(60)), ErrorKind::InvalidArgument, "not at the end of its wait");
        assert_eq!(older.waiters(), 1, "it is not in line");
        leases.pop().unwrap().release().unwrap();
        leases.push(waiting.join());
        for lease in leases {
            assert_eq!(refused(secs(0)), ErrorKind::InvalidArgument);
            lease.extend(secs(60)).unwrap();
            lease.release().unwrap();
        }
        let three = [(); 3].map(|()| newer.try_acquire(LockOptions::new()).unwrap().unwrap());
        assert_eq!(older.acquire(LockOptions::new()).unwrap_err().kind(), ErrorKind::InvalidArgument);
        for lease in three {
            lease.release().unwrap();
        }
        older.acquire(LockOptions::new()).unwrap().release().unwrap();
    }

    fn permits_out_of_range_are_invalid(bench) {
        let client = bench.client();
        let bad = [
            (0, LockOptions::new()),
            (1_000_001, LockOptions::new()),
            (3, LockOptions::new().weight(0)),
            (3, LockOptions::new().weight(4)),
        ];
        for (permits, options) in bad {
            let error = client.semaphore("a", permits).acquire(options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
        assert!(client.semaphore("a", 3).holders().unwrap().is_empty());
    }

    fn there_are_never_more_inside_than_permits(bench) {
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let semaphore = bench.client().semaphore("a", 3);
                let (inside, most) = (&inside, &most);
                scope.spawn(move || {
                    for _ in 0..5 {
                        let lease = semaphore.acquire(LockOptions::new().wait(secs(60))).unwrap();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        lease.release().unwrap();
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
        assert!(bench.client().semaphore("a", 3).holders().unwrap().is_empty());
    }

    fn a_release_of_one_gives_way_to_one(bench) {
        let client = bench.client();
        let semaphore = client.semaphore("a", 2);
        let (first, second) = (semaphore.acquire(LockOptions::new()).unwrap(), semaphore.acquire(LockOptions::new()).unwrap());
        let waits = |semaphore: stanchion_tests::faces::AnyLock| {
            task(move || semaphore.acquire(LockOptions::new().wait(secs(30))).unwrap())
        };
        let third = waits(client.semaphore("a", 2));
        eventually(SOON, || semaphore.waiters() == 1);
        let fourth = waits(client.semaphore("a", 2));
        eventually(SOON, || semaphore.waiters() == 2);
        first.release().unwrap();
        let third = third.join();
        assert_eq!(semaphore.waiters(), 1, "the other still waits");
        second.release().unwrap();
        assert!(third.fence() < fourth.join().fence());
    }
}
