//! Renewal, deadlines, and losses announced in time.

use std::time::Instant;

use stanchion::{ErrorKind, LockOptions, LossReason};
use stanchion_tests::wait::{SOON, eventually, ran_since};
use stanchion_tests::{async_on_every_store, on_every_store_of_locks, on_stores_with_foreign_lockers};

use crate::{fixed, ms, renewed, secs, timed};

on_every_store_of_locks! {
    fn renewal_keeps_a_lease_past_its_ttl(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(renewed(ms(2_400))).unwrap();
        assert!(!lease.wait_lost(ms(3_400)), "lost: {:?}", lease.loss());
        assert!(lease.is_valid());
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        lease.release().unwrap();
    }

    fn many_leases_of_one_client_are_renewed(bench) {
        let client = bench.client();
        let leases: Vec<_> = (0..20)
            .map(|number| client.lock(&format!("a{number}")).acquire(renewed(ms(2_400))).unwrap())
            .collect();
        assert!(!leases[0].wait_lost(ms(3_400)));
        assert!(leases.iter().all(stanchion_tests::faces::AnyLease::is_valid));
    }

    fn without_options_a_lease_is_renewed_and_has_thirty_seconds(bench) {
        let lease = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        assert!(lease.remaining() <= stanchion::DEFAULT_TTL);
        assert!(lease.remaining() > secs(27));
    }

    fn max_hold_ends_a_renewed_lease_with_its_own_reason(bench) {
        let client = bench.client();
        let started = Instant::now();
        let lease = client.lock("a").acquire(renewed(secs(2)).max_hold(ms(2_500))).unwrap();
        assert!(lease.wait_lost(SOON));
        assert!(started.elapsed() > ms(2_400), "it ended after {:?}", started.elapsed());
        assert!(ran_since(started) < ms(2_900), "it ended only after {:?}", ran_since(started));
        assert_eq!(lease.loss(), Some(LossReason::MaxHold));
        assert_eq!(lease.extend(secs(5)).unwrap_err().kind(), ErrorKind::LeaseExpired);
        eventually(SOON, || !client.lock("a").is_locked().unwrap());
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseExpired);
    }

    /// Whoever waits for the loss is told when the store says so, two thirds of the ttl before the deadline.
    fn a_refused_renewal_is_told_before_the_deadline(bench) {
        let client = bench.client();
        let started = Instant::now();
        let lease = client.lock("a").acquire(renewed(secs(6))).unwrap();
        assert!(client.lock("a").break_lease().unwrap());
        assert!(lease.wait_lost(SOON));
        let told = ran_since(started);
        assert!(told < secs(5), "told only after {told:?}");
        assert_eq!(lease.loss(), Some(LossReason::Broken));
    }

    fn a_fixed_lease_is_lost_at_its_deadline(bench) {
        let client = bench.client();
        // A machine that is busy with others may be late once; a library that is late is so each time.
        let late = |_| {
            let begun = Instant::now();
            let lease = client.lock("a").acquire(fixed(ms(300))).unwrap();
            let left = lease.remaining();
            let deadline = Instant::now() + left;
            assert!(left < ms(300) && left + begun.elapsed() > ms(290), "{left:?}");
            let (lost, took) = timed(|| lease.wait_lost(SOON));
            let late = ran_since(deadline);
            assert!(lost);
            assert!(took.at_least(left.saturating_sub(ms(3))), "announced after {took:?}, {left:?} were left");
            assert!(!lease.is_valid());
            assert_eq!(lease.remaining(), ms(0));
            assert_eq!(lease.loss(), Some(LossReason::Expired));
            late
        };
        let late: Vec<_> = (0..3).map(late).collect();
        assert!(late.iter().any(|late| *late < ms(60)), "announced so late: {late:?}");
    }

    /// The holder stops believing before anybody else can get the lock.
    fn the_deadline_comes_before_the_stores(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(ms(400))).unwrap();
        let next = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        assert!(!lease.is_valid(), "two holders");
        assert!(next.is_valid());
    }

    fn remaining_falls_and_validity_is_computed_at_the_call(bench) {
        let lease = bench.client().lock("a").acquire(fixed(ms(150))).unwrap();
        let first = lease.remaining();
        eventually(SOON, || lease.remaining() < first);
        assert!(lease.is_valid() || lease.remaining().is_zero());
        eventually(SOON, || !lease.is_valid());
        assert_eq!(lease.remaining(), ms(0));
    }

    fn a_lease_that_is_held_is_not_lost(bench) {
        let lease = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        let (lost, took) = timed(|| lease.wait_lost(ms(80)));
        assert!(!lost);
        assert!(took.at_least(ms(80)));
        assert_eq!(lease.loss(), None);
    }
}

async_on_every_store! {
    async fn everybody_who_waits_for_the_loss_is_told(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let lease = std::sync::Arc::new(client.lock("a").acquire(fixed(ms(150))).await.unwrap());
        let told: Vec<_> = (0..4)
            .map(|_| {
                let lease = std::sync::Arc::clone(&lease);
                tokio::spawn(async move { lease.lost().await })
            })
            .collect();
        for told in told {
            stanchion_tests::wait::within(SOON, told).await.unwrap();
        }
        assert!(!lease.is_valid());
    }

    /// A task that never yields does not keep the keeper from renewing.
    async fn a_blocked_runtime_thread_does_not_stop_renewal(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let lease = client.lock("a").acquire(renewed(ms(2_400))).await.unwrap();
        std::thread::sleep(ms(3_400));
        assert!(lease.is_valid(), "lost: {:?}", lease.loss());
        lease.release().await.unwrap();
    }
}

on_stores_with_foreign_lockers! {
    fn a_foreign_delete_is_noticed_at_renewal(bench) {
        let lease = bench.client().lock("a").acquire(renewed(ms(4_500))).unwrap();
        redis::cmd("DEL").arg("Lock:a").exec(&mut bench.raw()).unwrap();
        assert!(lease.wait_lost(SOON));
        assert_eq!(lease.loss(), Some(LossReason::Overwritten));
    }

    fn a_release_after_a_foreign_delete_is_lost(bench) {
        let lease = bench.client().lock("a").acquire(renewed(secs(30))).unwrap();
        redis::cmd("DEL").arg("Lock:a").exec(&mut bench.raw()).unwrap();
        assert!(lease.is_valid(), "nobody has told us yet");
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn a_foreign_overwrite_is_noticed_at_renewal_and_left_alone(bench) {
        let lease = bench.client().lock("a").acquire(renewed(ms(4_500))).unwrap();
        let mut raw = bench.raw();
        redis::cmd("SET").arg("Lock:a").arg("mine").exec(&mut raw).unwrap();
        assert!(lease.wait_lost(SOON));
        assert_eq!(lease.loss(), Some(LossReason::Overwritten));
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(redis::cmd("GET").arg("Lock:a").query::<String>(&mut raw).unwrap(), "mine");
    }

    fn a_flushed_store_is_noticed_at_renewal_and_the_next_fence_is_larger(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(renewed(ms(4_500))).unwrap();
        redis::cmd("FLUSHDB").exec(&mut bench.raw()).unwrap();
        assert!(lease.wait_lost(SOON));
        assert_eq!(lease.loss(), Some(LossReason::Forgotten));
        let next = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        assert!(next.fence() > lease.fence());
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn release_after_a_flush_is_lost_at_once(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(30))).unwrap();
        redis::cmd("FLUSHDB").exec(&mut bench.raw()).unwrap();
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn release_after_a_flush_and_a_new_grant_is_lost(bench) {
        let old = bench.client().lock("a").acquire(fixed(secs(30))).unwrap();
        redis::cmd("FLUSHDB").exec(&mut bench.raw()).unwrap();
        let new = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        assert_eq!(old.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        assert!(new.is_valid());
        new.release().unwrap();
    }
}
