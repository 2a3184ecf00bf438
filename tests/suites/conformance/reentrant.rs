//! Owners that come in again.

use stanchion::{ErrorKind, LockOptions};
use stanchion_tests::wait::{SOON, eventually};
use stanchion_tests::{on_every_store, on_every_store_of_locks};

use crate::{fixed, ms};

on_every_store_of_locks! {
    fn an_owner_comes_in_again_with_the_same_fence(bench) {
        let (one, other) = (bench.client(), bench.client());
        let lock = one.lock("a").reentrant("order 7");
        let outer = lock.acquire(LockOptions::new()).unwrap();
        let inner = lock.try_acquire(LockOptions::new()).unwrap().unwrap();
        assert_eq!(outer.fence(), inner.fence());
        inner.release().unwrap();
        assert!(outer.is_valid());
        assert!(other.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        outer.release().unwrap();
        let next = other.lock("a").try_acquire(LockOptions::new()).unwrap().unwrap();
        next.release().unwrap();
        let again = lock.acquire(LockOptions::new()).unwrap();
        again.release().unwrap();
    }

    fn the_outer_may_be_released_first(bench) {
        let client = bench.client();
        let lock = client.lock("a").reentrant("me");
        let outer = lock.acquire(LockOptions::new()).unwrap();
        let inner = lock.acquire(LockOptions::new()).unwrap();
        outer.release().unwrap();
        assert!(inner.is_valid() && client.lock("a").is_locked().unwrap());
        inner.release().unwrap();
        assert!(!client.lock("a").is_locked().unwrap());
    }

    fn other_owners_and_no_owner_stay_outside(bench) {
        let client = bench.client();
        let lease = client.lock("a").reentrant("me").acquire(LockOptions::new()).unwrap();
        for outside in [client.lock("a"), client.lock("a").reentrant("you"), bench.client().lock("a").reentrant("me")] {
            assert!(outside.try_acquire(LockOptions::new()).unwrap().is_none());
        }
        lease.release().unwrap();
    }

    fn each_is_released_once(bench) {
        let client = bench.client();
        let lock = client.lock("a").reentrant("me");
        let outer = lock.acquire(LockOptions::new()).unwrap();
        let inner = lock.acquire(LockOptions::new()).unwrap();
        inner.release().unwrap();
        assert!(!inner.is_valid());
        assert_eq!(inner.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert!(outer.is_valid(), "the other time is untouched");
        drop(inner);
        assert!(client.lock("a").is_locked().unwrap());
        outer.release().unwrap();
    }

    fn dropped_as_often_as_acquired_it_is_free(bench) {
        let client = bench.client();
        let lock = client.lock("a").reentrant("me");
        let outer = lock.acquire(LockOptions::new()).unwrap();
        drop(lock.acquire(LockOptions::new()).unwrap());
        assert!(outer.is_valid());
        drop(outer);
        let other = bench.client();
        eventually(SOON, || !other.lock("a").is_locked().unwrap());
    }

    fn a_lost_lease_is_not_entered_again(bench) {
        let client = bench.client();
        let lock = client.lock("a").reentrant("me");
        let lost = lock.acquire(fixed(ms(60))).unwrap();
        assert!(lost.wait_lost(SOON));
        let fence = lost.fence();
        let next = lock.acquire(LockOptions::new()).unwrap();
        assert!(next.fence() > fence);
        assert!(lost.release().is_err());
        assert!(next.is_valid());
        next.release().unwrap();
    }

    fn a_bad_owner_is_invalid(bench) {
        let client = bench.client();
        for owner in ["", "a\nb", &"x".repeat(513)] {
            let error = client.lock("a").reentrant(owner).acquire(LockOptions::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        assert!(!client.lock("a").is_locked().unwrap());
    }
}

on_every_store! {
    fn a_reader_does_not_become_a_writer_but_a_writer_reads(bench) {
        let client = bench.client();
        let (reader, writer) = (client.reader("a").reentrant("me"), client.writer("a").reentrant("me"));
        let reads = reader.acquire(LockOptions::new()).unwrap();
        assert_eq!(writer.acquire(LockOptions::new()).unwrap_err().kind(), ErrorKind::InvalidArgument);
        reads.release().unwrap();
        let writes = writer.acquire(LockOptions::new()).unwrap();
        let reads = reader.acquire(LockOptions::new()).unwrap();
        assert_eq!(reads.fence(), writes.fence());
        reads.release().unwrap();
        writes.release().unwrap();
    }
}
