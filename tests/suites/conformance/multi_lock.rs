//! Several locks at once.

use stanchion::{ErrorKind, Fence, LockOptions};
use stanchion_tests::wait::{SOON, eventually, task};
use stanchion_tests::{on_every_topology, on_every_topology_of_locks};

use crate::{fixed, ms, secs};

on_every_topology_of_locks! {
    fn all_are_held_and_all_are_released(bench) {
        let (one, other) = (bench.client(), bench.client());
        let lease = one.multi_lock(&["b", "a", "c", "a"]).acquire(LockOptions::new()).unwrap();
        let names: Vec<_> = lease.fences().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(lease.fences().iter().all(|(_, fence)| *fence > Fence::NONE));
        for name in ["a", "b", "c"] {
            assert!(other.lock(name).try_acquire(LockOptions::new()).unwrap().is_none());
        }
        assert!(lease.is_valid() && lease.remaining() > secs(25));
        lease.extend(secs(60)).unwrap();
        assert!(lease.remaining() > secs(55));
        lease.release().unwrap();
        for name in ["a", "b", "c"] {
            assert!(!other.lock(name).is_locked().unwrap());
        }
    }

    /// In a cluster these are in one slot.
    fn names_with_a_hash_tag_are_taken_too(bench) {
        let (one, other) = (bench.client(), bench.client());
        let all = one.multi_lock(&["{order}:a", "{order}:b"]);
        let lease = all.acquire(LockOptions::new()).unwrap();
        assert!(other.lock("{order}:b").try_acquire(LockOptions::new()).unwrap().is_none());
        lease.release().unwrap();
        let busy = other.lock("{order}:b").acquire(LockOptions::new()).unwrap();
        assert!(all.try_acquire(LockOptions::new()).unwrap().is_none());
        assert!(!other.lock("{order}:a").is_locked().unwrap());
        busy.release().unwrap();
    }

    fn none_is_kept_if_one_is_busy(bench) {
        let (one, other) = (bench.client(), bench.client());
        let busy = other.lock("b").acquire(LockOptions::new()).unwrap();
        let all = one.multi_lock(&["a", "b", "c"]);
        assert!(all.try_acquire(LockOptions::new()).unwrap().is_none());
        assert!(!other.lock("a").is_locked().unwrap() && !other.lock("c").is_locked().unwrap());
        let error = all.acquire(LockOptions::new().wait(ms(30))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert!(!other.lock("a").is_locked().unwrap() && !other.lock("c").is_locked().unwrap());
        busy.release().unwrap();
        all.try_acquire(LockOptions::new()).unwrap().unwrap().release().unwrap();
    }

    /// A lock that was given up a moment ago is free, though the store may not know whether anybody waits.
    fn those_that_others_waited_for_are_free_when_nobody_does(bench) {
        let (one, other) = (bench.client(), bench.client());
        let held = one.lock("b").acquire(LockOptions::new()).unwrap();
        let error = other.lock("b").acquire(LockOptions::new().wait(ms(30))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        held.release().unwrap();
        let all = other.multi_lock(&["a", "b"]).try_acquire(LockOptions::new()).unwrap();
        all.expect("both are free").release().unwrap();
    }

    fn a_name_that_may_be_none_spoils_all_before_anything_is_taken(bench) {
        let client = bench.client();
        let error = client.multi_lock(&["a", "b{}"]).acquire(LockOptions::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(!client.lock("a").is_locked().unwrap());
    }

    fn two_that_want_the_same_in_any_order_both_get_it(bench) {
        let orders: [&'static [&'static str]; 2] = [&["a", "b", "c"], &["c", "b", "a"]];
        let callers: Vec<_> = orders.into_iter().map(|names| {
            let lock = bench.client().multi_lock(names);
            task(move || {
                for _ in 0..10 {
                    lock.acquire(LockOptions::new().wait(secs(30))).unwrap().release().unwrap();
                }
            })
        }).collect();
        callers.into_iter().for_each(|caller| caller.join_within(secs(60)));
    }

    fn the_loss_of_one_is_the_loss_of_all(bench) {
        let client = bench.client();
        let lease = client.multi_lock(&["a", "b"]).acquire(LockOptions::new().ttl(secs(3)).renew(true)).unwrap();
        bench.client().lock("b").break_lease().unwrap();
        assert!(lease.wait_lost(SOON));
        assert!(!lease.is_valid());
        assert_eq!(lease.loss().unwrap().name(), "broken");
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert!(!client.lock("a").is_locked().unwrap(), "the other is given back");
    }

    fn what_one_lock_can_several_cannot(bench) {
        let client = bench.client();
        let lease = client.multi_lock(&["a", "b"]).acquire(fixed(secs(20))).unwrap();
        let error = lease.detach(secs(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(lease.is_valid());
        lease.release().unwrap();
        for (names, options) in [(&[][..], LockOptions::new()), (&["a", "b"], LockOptions::new().weight(1)), (&["a", ""], LockOptions::new())] {
            let error = client.multi_lock(names).acquire(options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        let error = client.multi_lock(&["a", "b"]).reentrant("me").acquire(LockOptions::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(!client.lock("a").is_locked().unwrap());
    }

    /// The last is waited for longer than the leases last.
    fn all_are_valid_when_they_come(bench) {
        let (one, other) = (bench.client(), bench.client());
        let _busy = other.lock("b").acquire(fixed(secs(3))).unwrap();
        let lease = one.multi_lock(&["a", "b"]).acquire(fixed(ms(1_200)).wait(secs(30))).unwrap();
        assert!(lease.is_valid() && lease.remaining() > ms(600), "{:?} left", lease.remaining());
        assert!(other.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        lease.release().unwrap();
    }

    fn a_dropped_lease_gives_all_back(bench) {
        let client = bench.client();
        drop(client.multi_lock(&["a", "b"]).acquire(LockOptions::new()).unwrap());
        let other = bench.client();
        eventually(SOON, || !other.lock("a").is_locked().unwrap() && !other.lock("b").is_locked().unwrap());
    }
}

on_every_topology! {
    /// It is noticed while the next is waited for: then all are given back, and waited for anew.
    fn one_that_is_taken_away_is_waited_for_anew(bench) {
        let (one, other) = (bench.client(), bench.client());
        let (a, b) = (other.lock("a"), other.lock("b"));
        let busy = b.acquire(fixed(secs(60))).unwrap();
        let all = one.multi_lock(&["a", "b"]);
        let waiting = task(move || all.acquire(fixed(secs(2)).wait(secs(60))).unwrap());
        eventually(SOON, || b.waiters() == 1);
        a.break_lease().unwrap();
        let taken = a.acquire(fixed(secs(60)).wait(secs(10))).unwrap();
        eventually(SOON, || a.waiters() == 1 && b.waiters() == 0);
        busy.release().unwrap();
        taken.release().unwrap();
        let lease = waiting.join();
        assert!(lease.is_valid() && b.is_locked().unwrap());
        lease.release().unwrap();
    }

    /// Who was in line first is served first, also by one that takes several.
    fn nobody_in_line_is_passed(bench) {
        let (one, other) = (bench.client(), bench.client());
        let held = one.lock("b").acquire(LockOptions::new()).unwrap();
        let first = other.lock("b");
        let first = task(move || first.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || one.lock("b").waiters() == 1);
        let all = bench.client().multi_lock(&["a", "b"]);
        let second = task(move || all.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || one.lock("b").waiters() == 2);
        held.release().unwrap();
        let first = first.join();
        assert!(one.multi_lock(&["b", "c"]).try_acquire(LockOptions::new()).unwrap().is_none());
        let fence = first.fence();
        first.release().unwrap();
        let second = second.join();
        assert!(second.fences().iter().any(|(name, later)| name == "b" && *later > fence));
        second.release().unwrap();
    }

    fn a_waiting_one_goes_on_when_the_last_is_free(bench) {
        let client = bench.client();
        let held = client.lock("b").acquire(LockOptions::new()).unwrap();
        let all = bench.client().multi_lock(&["a", "b"]);
        let waiting = task(move || all.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || client.lock("b").waiters() == 1);
        held.release().unwrap();
        waiting.join().release().unwrap();
    }
}
