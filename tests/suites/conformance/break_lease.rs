//! break_lease.

use stanchion::{ErrorKind, LockOptions, LossReason};
use stanchion_tests::wait::{SOON, eventually};
use stanchion_tests::{on_every_store, on_every_store_of_locks, on_stores_with_foreign_lockers};

use crate::{fixed, renewed, secs, waiter};

on_every_store_of_locks! {
    fn breaking_a_free_lock_does_nothing(bench) {
        let lock = bench.client().lock("a");
        assert!(!lock.break_lease().unwrap());
        let lease = lock.acquire(LockOptions::new()).unwrap();
        lease.release().unwrap();
        assert!(!lock.break_lease().unwrap(), "nor after a release");
    }

    fn breaking_frees_the_lock_and_the_fence_grows(bench) {
        let client = bench.client();
        let old = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert!(bench.client().lock("a").break_lease().unwrap());
        assert!(!client.lock("a").is_locked().unwrap());
        let new = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        assert!(new.fence() > old.fence());
    }

    fn a_renewed_holder_learns_of_it(bench) {
        let lease = bench.client().lock("a").acquire(renewed(secs(3))).unwrap();
        assert!(bench.client().lock("a").break_lease().unwrap());
        assert!(lease.wait_lost(SOON));
        assert_eq!(lease.loss(), Some(LossReason::Broken));
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn breaking_ends_a_cooldown(bench) {
        let client = bench.client();
        client.lock("a").acquire(LockOptions::new()).unwrap().release_with_cooldown(secs(30)).unwrap();
        assert!(client.lock("a").break_lease().unwrap());
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }
}

on_every_store! {
    fn breaking_twice_goes_along_the_line(bench) {
        let client = bench.client();
        let first = client.lock("a").acquire(fixed(secs(30))).unwrap();
        let second = waiter(&bench.client(), "a");
        eventually(SOON, || client.lock("a").waiters() == 1);
        let third = waiter(&bench.client(), "a");
        eventually(SOON, || client.lock("a").waiters() == 2);
        assert!(client.lock("a").break_lease().unwrap());
        let second = second.join();
        assert!(client.lock("a").break_lease().unwrap());
        let third = third.join();
        assert!(first.fence() < second.fence() && second.fence() < third.fence());
        assert!(first.release().unwrap_err().kind() != ErrorKind::LeaseExpired);
        assert_eq!(second.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        third.release().unwrap();
    }
}

on_stores_with_foreign_lockers! {
    fn breaking_removes_a_foreign_value(bench) {
        let client = bench.client();
        redis::cmd("SET").arg("Lock:a").arg("a stranger").exec(&mut bench.raw()).unwrap();
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        assert!(client.lock("a").break_lease().unwrap());
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }
}
