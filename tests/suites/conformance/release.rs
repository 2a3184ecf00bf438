//! release, cooldown, and leases that are dropped.

use stanchion::{ErrorKind, HeldAs, LockOptions};
use stanchion_tests::wait::{SOON, eventually};
use stanchion_tests::{on_every_topology, on_every_topology_of_locks};

use crate::{fixed, ms, secs, timed, waiter};

on_every_topology_of_locks! {
    fn release_tells_released(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert!(client.lock("a").is_locked().unwrap());
        lease.release().unwrap();
        assert!(!client.lock("a").is_locked().unwrap());
    }

    /// A lease is shared by reference, so that the second of two calls is an error when it runs, and nothing else.
    fn a_released_lease_is_refused_and_leaves_the_next_holder_alone(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        lease.release().unwrap();
        let next = client.lock("a").acquire(LockOptions::new()).unwrap();
        for error in [lease.release().unwrap_err(), lease.extend(secs(60)).unwrap_err(), lease.check().unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::LeaseLost);
        }
        drop(lease);
        assert!(next.is_valid() && next.check().is_ok() && client.lock("a").is_locked().unwrap());
        next.release().unwrap();
    }

    fn release_tells_expired(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(ms(60))).unwrap();
        eventually(SOON, || !client.lock("a").is_locked().unwrap());
        let error = lease.release().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LeaseExpired);
        assert_eq!((error.operation(), error.name()), (Some("release"), Some("a")));
        assert!(error.is_lost());
    }

    fn release_tells_taken_and_leaves_the_new_holder_alone(bench) {
        let old = bench.client().lock("a").acquire(fixed(ms(60))).unwrap();
        let client = bench.client();
        let new = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert_eq!(old.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(client.lock("a").holder().unwrap().unwrap().fence, new.fence());
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        new.release().unwrap();
    }

    fn release_tells_broken(bench) {
        let lease = bench.client().lock("a").acquire(fixed(secs(30))).unwrap();
        assert!(bench.client().lock("a").break_lease().unwrap());
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn release_tells_broken_even_when_another_holds_it(bench) {
        let old = bench.client().lock("a").acquire(fixed(secs(30))).unwrap();
        let client = bench.client();
        assert!(client.lock("a").break_lease().unwrap());
        let new = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert_eq!(old.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(client.lock("a").holder().unwrap().unwrap().fence, new.fence());
    }

    fn a_cooldown_keeps_the_lock_closed(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new().label("worker")).unwrap();
        let fence = lease.fence();
        let (next, took) = timed(|| {
            lease.release_with_cooldown(ms(1_500)).unwrap();
            let holder = client.lock("a").holder().unwrap().unwrap();
            assert_eq!(holder.held_as, HeldAs::Cooldown);
            assert_eq!((holder.label.as_str(), holder.pid), ("", 0), "nobody holds it");
            assert!(holder.remaining.unwrap() <= ms(1_500));
            assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
            bench.client().lock("a").acquire(LockOptions::new()).unwrap()
        });
        assert!(took.at_least(ms(1_495)), "it was open after {took:?}");
        assert!(took.less_than(ms(2_400)), "it was closed for {took:?}");
        assert!(next.fence() > fence);
    }

    fn an_expired_release_brings_no_cooldown(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(ms(60))).unwrap();
        eventually(SOON, || !client.lock("a").is_locked().unwrap());
        assert_eq!(lease.release_with_cooldown(secs(30)).unwrap_err().kind(), ErrorKind::LeaseExpired);
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn a_bad_cooldown_is_refused_and_the_lease_goes_on(bench) {
        let client = bench.client();
        for bad in [ms(0), ms(49), std::time::Duration::MAX] {
            let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
            let error = lease.release_with_cooldown(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{bad:?}");
            assert!(lease.is_valid());
            lease.release().unwrap();
        }
    }

    fn a_dropped_lease_is_released(bench) {
        let client = bench.client();
        drop(client.lock("a").acquire(LockOptions::new()).unwrap());
        eventually(SOON, || !client.lock("a").is_locked().unwrap());
    }

    fn a_dropped_lease_is_released_though_its_client_is_gone(bench) {
        let lease = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        let client = bench.client();
        assert!(client.lock("a").is_locked().unwrap());
        drop(lease);
        eventually(SOON, || !client.lock("a").is_locked().unwrap());
    }

    fn release_all_releases_what_this_client_holds(bench) {
        let (mine, theirs) = (bench.client(), bench.client());
        let leases: Vec<_> =
            ["a", "b", "c"].map(|name| mine.lock(name).acquire(LockOptions::new()).unwrap()).into();
        let other = theirs.lock("d").acquire(LockOptions::new()).unwrap();
        assert_eq!(mine.release_all().unwrap(), 3);
        for lease in leases {
            assert!(!lease.is_valid());
            assert!(!theirs.lock(lease.name()).is_locked().unwrap());
        }
        assert!(other.is_valid() && theirs.lock("d").is_locked().unwrap());
        assert_eq!(mine.release_all().unwrap(), 0, "there is nothing left");
    }

    fn release_all_leaves_handles_alone(bench) {
        let client = bench.client();
        let handle = client.lock("a").acquire(LockOptions::new()).unwrap().detach(secs(30)).unwrap();
        assert_eq!(client.release_all().unwrap(), 0);
        assert!(client.resume_lease(&handle).unwrap().is_valid());
    }
}

on_every_topology! {
    fn a_cooldown_holds_for_waiters_too(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let waiting = waiter(&bench.client(), "a");
        eventually(SOON, || client.lock("a").waiters() == 1);
        let (_lease, took) = timed(|| {
            lease.release_with_cooldown(ms(300)).unwrap();
            waiting.join()
        });
        assert!(took.at_least(ms(295)), "the waiter got it after {took:?}");
    }

    fn a_dropped_lease_is_handed_over(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let waiting = waiter(&bench.client(), "a");
        eventually(SOON, || client.lock("a").waiters() == 1);
        let (_lease, took) = timed(|| {
            drop(lease);
            waiting.join()
        });
        assert!(took.less_than(ms(400)), "took {took:?}");
    }
}
