//! extend.

use std::time::Instant;

use stanchion::{ErrorKind, LockOptions, LossReason};
use stanchion_tests::on_every_store_of_locks;
use stanchion_tests::wait::{SOON, eventually};

use crate::{fixed, ms, renewed, secs};

on_every_store_of_locks! {
    fn extend_prolongs_here_and_in_the_store(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(2))).unwrap();
        let first = Instant::now() + lease.remaining();
        lease.extend(secs(30)).unwrap();
        assert!(lease.remaining() > secs(28));
        assert!(client.lock("a").holder().unwrap().unwrap().remaining.unwrap() > secs(28));
        eventually(SOON, || Instant::now() > first + ms(100));
        assert!(lease.is_valid() && lease.loss().is_none(), "it outlives its first ttl");
        lease.release().unwrap();
    }

    fn extend_never_shortens(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(30))).unwrap();
        lease.extend(ms(100)).unwrap();
        assert!(lease.remaining() > secs(28));
        assert!(client.lock("a").holder().unwrap().unwrap().remaining.unwrap() > secs(28));
    }

    fn an_exact_extension_shortens_here_and_in_the_store(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(renewed(secs(30))).unwrap();
        lease.extend_exact(secs(3)).unwrap();
        assert!(lease.remaining() > secs(1) && lease.remaining() < secs(3));
        assert!(client.lock("a").holder().unwrap().unwrap().remaining.unwrap() <= secs(3));
        assert!(lease.wait_lost(SOON), "it is not renewed any more");
        assert_eq!(lease.loss(), Some(LossReason::Expired));
        eventually(SOON, || !client.lock("a").is_locked().unwrap());

        let longer = client.lock("a").acquire(fixed(secs(5))).unwrap();
        longer.extend_exact(secs(60)).unwrap();
        assert!(longer.remaining() > secs(50));
    }

    fn an_exact_extension_to_a_millisecond_ends_the_lease(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(30))).unwrap();
        let error = lease.extend_exact(ms(1)).unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::LeaseExpired, Some("extend")));
        assert!(!lease.is_valid());
        eventually(SOON, || !client.lock("a").is_locked().unwrap());
        for bad in [ms(0), std::time::Duration::from_micros(999), secs(366 * 24 * 3600)] {
            let other = client.lock("b").acquire(fixed(secs(30))).unwrap();
            assert_eq!(other.extend_exact(bad).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad:?}");
            assert!(other.remaining() > secs(20));
            other.release().unwrap();
        }
    }

    fn extend_keeps_token_and_fence(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(5))).unwrap();
        let (token, fence) = (lease.token().clone(), lease.fence());
        lease.extend(secs(30)).unwrap();
        assert_eq!((lease.token(), lease.fence()), (&token, fence));
        assert_eq!(client.lock("a").holder().unwrap().unwrap().fence, fence);
    }

    fn extend_after_expiry_revives_nothing(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(ms(60))).unwrap();
        assert!(lease.wait_lost(SOON));
        let error = lease.extend(secs(30)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LeaseExpired);
        assert_eq!((error.operation(), error.name()), (Some("extend"), Some("a")));
        assert!(!lease.is_valid());
        assert!(bench.client().lock("a").acquire(LockOptions::new().wait(secs(2))).is_ok());
    }

    fn extend_of_a_taken_lease_leaves_the_new_holder_alone(bench) {
        let old = bench.client().lock("a").acquire(fixed(ms(60))).unwrap();
        let client = bench.client();
        let new = client.lock("a").acquire(fixed(secs(5))).unwrap();
        assert!(old.extend(secs(60)).unwrap_err().is_lost());
        assert!(new.is_valid());
        let holder = client.lock("a").holder().unwrap().unwrap();
        assert_eq!(holder.fence, new.fence());
        assert!(holder.remaining.unwrap() <= secs(5));
    }

    fn extend_of_a_broken_lease_is_lost(bench) {
        let lease = bench.client().lock("a").acquire(fixed(secs(30))).unwrap();
        assert!(bench.client().lock("a").break_lease().unwrap());
        assert!(lease.is_valid(), "nobody has told it yet");
        assert_eq!(lease.extend(secs(30)).unwrap_err().kind(), ErrorKind::LeaseLost);
        assert!(!lease.is_valid());
        assert_eq!(lease.loss(), Some(LossReason::Broken));
        assert!(lease.wait_lost(ms(0)), "and signalled");
    }

    fn extend_by_a_bad_time_changes_nothing(bench) {
        let lease = bench.client().lock("a").acquire(fixed(secs(30))).unwrap();
        for bad in [ms(0), ms(49), secs(366 * 24 * 3600), std::time::Duration::MAX] {
            assert_eq!(lease.extend(bad).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad:?}");
        }
        assert!(lease.is_valid());
        assert!(lease.remaining() <= secs(30));
    }

    /// What is wrong with a call is told whatever has become of the lease.
    fn extend_by_a_bad_time_is_told_of_a_dead_lease_too(bench) {
        let lease = bench.client().lock("a").acquire(fixed(secs(5))).unwrap();
        lease.release().unwrap();
        assert_eq!(lease.extend(ms(1)).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(lease.extend(secs(5)).is_err_and(|error| error.kind() != ErrorKind::InvalidArgument));
    }
}
