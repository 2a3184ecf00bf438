//! adopt_unexpiring: taking over what another program left for ever.

use std::time::Instant;

use redis::Connection;
use stanchion::{ErrorKind, LockOptions};
use stanchion_tests::on_stores_with_foreign_lockers;
use stanchion_tests::wait::{SOON, eventually, eventually_some, ran_since, task};

use crate::{PlainLocker, ms, secs, timed};

fn set(raw: &mut Connection, value: &str) {
    redis::cmd("SET").arg("Lock:a").arg(value).exec(raw).unwrap();
}

fn adopting(grace: u64) -> LockOptions {
    LockOptions::new().wait(secs(20)).adopt_unexpiring(ms(grace))
}

on_stores_with_foreign_lockers! {
    fn a_value_without_ttl_is_taken_over_after_the_grace(bench) {
        set(&mut bench.raw(), "crashed");
        let client = bench.client();
        let (lease, took) = timed(|| client.lock("a").acquire(adopting(400)).unwrap());
        assert!(took.at_least(ms(400)), "taken over after {took:?}");
        assert!(took.less_than(ms(1_300)), "taken over only after {took:?}");
        assert!(lease.is_valid());
        let mut old = PlainLocker::new(bench, "crashed");
        assert!(!old.unlock(), "its owner, back again, cannot delete ours");
        assert!(lease.is_valid());
        lease.release().unwrap();
    }

    fn without_the_option_it_is_never_taken_over(bench) {
        set(&mut bench.raw(), "crashed");
        let client = bench.client();
        for options in [LockOptions::new().wait(ms(300)), adopting(5_000).wait(ms(300))] {
            let error = client.lock("a").acquire(options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LockTimeout);
        }
        assert_eq!(PlainLocker::new(bench, "").get().as_deref(), Some("crashed"));
    }

    /// The older PHP class gave EXPIRE a Unix time, which is a ttl of more than fifty years.
    fn a_ttl_over_a_year_counts_as_none(bench) {
        let mut raw = bench.raw();
        set(&mut raw, "crashed");
        redis::cmd("EXPIRE").arg("Lock:a").arg(1_700_000_000u64).exec(&mut raw).unwrap();
        let (lease, took) = timed(|| bench.client().lock("a").acquire(adopting(300)).unwrap());
        assert!(took.at_least(ms(300)) && lease.is_valid(), "taken over after {took:?}");
    }

    fn a_ttl_under_a_year_is_waited_for(bench) {
        let mut raw = bench.raw();
        set(&mut raw, "alive");
        redis::cmd("EXPIRE").arg("Lock:a").arg(364 * 24 * 3_600).exec(&mut raw).unwrap();
        let error = bench.client().lock("a").acquire(adopting(50).wait(ms(900))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert_eq!(PlainLocker::new(bench, "").get().as_deref(), Some("alive"));
    }

    fn a_changed_value_starts_the_grace_again(bench) {
        let mut raw = bench.raw();
        set(&mut raw, "first");
        let client = bench.client();
        let lock = client.lock("a");
        let started = Instant::now();
        let waiting = task(move || (lock.acquire(adopting(3_000)).unwrap(), Instant::now()));
        eventually(SOON, || client.lock("a").waiters() == 1);
        eventually(SOON, || started.elapsed() >= ms(1_000));
        let changing = Instant::now();
        set(&mut raw, "second");
        let changed = Instant::now();
        let (lease, granted) = waiting.join();
        let took = ran_since(changed);
        assert!(lease.is_valid());
        assert!(granted - changing >= ms(3_000), "taken over {:?} after the change", granted - changing);
        assert!(took < ms(4_600), "taken over only {took:?} after the change");
    }

    fn tries_of_one_client_share_their_sighting(bench) {
        set(&mut bench.raw(), "crashed");
        let client = bench.client();
        let started = Instant::now();
        let lease = eventually_some(SOON, || client.lock("a").try_acquire(adopting(300)).unwrap());
        assert!(started.elapsed() >= ms(300), "taken over after {:?}", started.elapsed());
        assert!(lease.is_valid());
        // Another client has not seen anything yet, so it starts anew.
        lease.release().unwrap();
        set(&mut bench.raw(), "crashed");
        assert!(bench.client().lock("a").try_acquire(adopting(300)).unwrap().is_none());
    }

    /// In between the lock was free: the same value again is another holder's.
    fn a_value_that_went_away_is_seen_anew(bench) {
        let mut raw = bench.raw();
        let client = bench.client();
        set(&mut raw, "worker");
        let first_seen = Instant::now();
        assert!(client.lock("a").try_acquire(adopting(600)).unwrap().is_none());
        eventually(SOON, || first_seen.elapsed() >= ms(400));
        redis::cmd("DEL").arg("Lock:a").exec(&mut raw).unwrap();
        client.lock("a").try_acquire(adopting(600)).unwrap().unwrap().release().unwrap();
        set(&mut raw, "worker");
        let seen_anew = Instant::now();
        let lease = eventually_some(SOON, || client.lock("a").try_acquire(adopting(600)).unwrap());
        assert!(seen_anew.elapsed() >= ms(600), "taken over after {:?}", seen_anew.elapsed());
        lease.release().unwrap();
    }

    fn our_own_lease_is_never_adopted(bench) {
        let holder = bench.client().lock("a").acquire(LockOptions::new()).unwrap();
        redis::cmd("PERSIST").arg("Lock:a").exec(&mut bench.raw()).unwrap();
        let error = bench.client().lock("a").acquire(adopting(50).wait(ms(900))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert!(holder.is_valid());
        holder.release().unwrap();
    }
}
