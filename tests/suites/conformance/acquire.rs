//! acquire and try_acquire.

use stanchion::{ErrorKind, Fence, LockOptions};
use stanchion_tests::{on_every_store, on_every_store_of_locks, on_stores_with_foreign_lockers};

use crate::{fixed, ms, secs, timed};

on_every_store_of_locks! {
    fn one_holder_at_a_time(bench) {
        let (one, two) = (bench.client(), bench.client());
        let lease = one.lock("a").acquire(LockOptions::new()).unwrap();
        assert!(lease.is_valid());
        assert!(two.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        assert!(one.lock("a").try_acquire(LockOptions::new()).unwrap().is_none(), "not even its own client");
        lease.release().unwrap();
        assert!(two.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn locks_of_different_names_are_independent(bench) {
        let client = bench.client();
        let one = client.lock("a").acquire(LockOptions::new()).unwrap();
        let two = client.lock("b").acquire(LockOptions::new().wait(ms(0))).unwrap();
        assert!(one.is_valid() && two.is_valid());
    }

    fn a_try_on_a_busy_lock_is_none_and_joins_no_line(bench) {
        let client = bench.client();
        let _lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        for _ in 0..3 {
            assert!(bench.client().lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        }
        assert_eq!(client.lock("a").waiters(), 0);
    }

    fn acquire_ends_with_lock_timeout_after_its_wait(bench) {
        let client = bench.client();
        let _lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let (result, took) = timed(|| bench.client().lock("a").acquire(LockOptions::new().wait(ms(150))));
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert_eq!((error.operation(), error.name()), (Some("acquire"), Some("a")));
        assert!(error.is_retryable());
        assert!(took.at_least(ms(150)), "gave up after {took:?}");
        assert!(took.less_than(ms(650)), "waited {took:?}");
        assert_eq!(client.lock("a").waiters(), 0, "it left the line");
    }

    fn acquire_without_wait_ends_at_once(bench) {
        let client = bench.client();
        let _lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let (result, took) = timed(|| client.lock("a").acquire(LockOptions::new().wait(ms(0))));
        assert_eq!(result.unwrap_err().kind(), ErrorKind::LockTimeout);
        assert!(took.less_than(ms(400)), "took {took:?}");
    }

    fn fences_grow_with_every_grant_in_every_client(bench) {
        let clients = [bench.client(), bench.client(), bench.client()];
        let mut last = Fence::NONE;
        for client in clients.iter().cycle().take(12) {
            let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
            assert!(lease.fence() > last, "{} after {last}", lease.fence());
            assert!(lease.fence().get() < 1 << 53, "every language can hold it");
            last = lease.fence();
            lease.release().unwrap();
        }
    }

    fn fences_grow_past_expiry_and_break(bench) {
        let (one, two) = (bench.client(), bench.client());
        let first = one.lock("a").acquire(fixed(ms(60))).unwrap();
        let second = two.lock("a").acquire(LockOptions::new()).unwrap();
        assert!(second.fence() > first.fence());
        assert!(one.lock("a").break_lease().unwrap());
        let third = one.lock("a").acquire(LockOptions::new()).unwrap();
        assert!(third.fence() > second.fence());
    }

    fn every_lease_has_a_token_of_its_own(bench) {
        let client = bench.client();
        let one = client.lock("a").acquire(LockOptions::new()).unwrap();
        let two = client.lock("b").acquire(LockOptions::new()).unwrap();
        assert_ne!(one.token(), two.token());
        assert!(one.token().as_str().starts_with("9999999999999999"));
        assert!(!format!("{one:?}").contains(one.token().as_str()), "Debug shows no secret");
        assert_eq!(one.name(), "a");
    }

    fn strange_names_are_different_locks(bench) {
        let client = bench.client();
        let names = ["a:meta", "a b", "A", "größe", "x*", "x?", "%", "\\", "'", "\"", "stanchion:meta", "a{b}c"];
        let leases: Vec<_> =
            names.iter().map(|name| client.lock(name).acquire(LockOptions::new().wait(ms(0))).unwrap()).collect();
        assert!(leases.iter().all(stanchion_tests::faces::AnyLease::is_valid));
        for name in names {
            assert_eq!(client.lock(name).holder().unwrap().map(|holder| holder.waiters), Some(0), "{name}");
        }
    }

    fn prefixes_keep_programs_apart(bench) {
        let one = bench.open(bench.builder().lock_prefix("one:"));
        let two = bench.open(bench.builder().lock_prefix("two:"));
        let joined = if bench.url().contains('?') { '&' } else { '?' };
        let url = format!("{}{joined}lock_prefix=one:", bench.url());
        let by_url = bench.open(stanchion::Client::builder(&url));
        let lease = one.lock("a").acquire(LockOptions::new()).unwrap();
        assert!(two.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
        assert!(by_url.lock("a").try_acquire(LockOptions::new()).unwrap().is_none(), "the same prefix, by URL");
        lease.release().unwrap();
        assert!(by_url.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn fail_fast_gives_up_at_once_when_the_holder_outlasts_the_wait(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(30))).unwrap();
        let (result, took) =
            timed(|| bench.client().lock("a").acquire(LockOptions::new().wait(secs(5)).fail_fast(true)));
        assert_eq!(result.unwrap_err().kind(), ErrorKind::LockTimeout);
        assert!(took.less_than(secs(1)), "took {took:?}");
        assert_eq!(client.lock("a").waiters(), 0);
        drop(lease);
    }

    fn fail_fast_waits_when_the_holder_ends_in_time(bench) {
        let client = bench.client();
        let _lease = client.lock("a").acquire(fixed(ms(150))).unwrap();
        let lease = bench.client().lock("a").acquire(LockOptions::new().wait(secs(5)).fail_fast(true)).unwrap();
        assert!(lease.is_valid());
    }
}

// Those who wait in line, and how a URL ends.
on_every_store! {
    fn fail_fast_gives_up_when_the_holder_prolongs_its_lease_meanwhile(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(3))).unwrap();
        let lock = bench.client().lock("a");
        let waiting = stanchion_tests::wait::task(move || {
            timed(|| lock.acquire(LockOptions::new().wait(secs(8)).fail_fast(true)).map(drop))
        });
        stanchion_tests::wait::eventually(secs(5), || client.lock("a").waiters() == 1);
        lease.extend(secs(60)).unwrap();
        let (result, took) = waiting.join();
        assert_eq!(result.unwrap_err().kind(), ErrorKind::LockTimeout);
        assert!(took.less_than(secs(3)), "gave up only after {took:?}");
        assert_eq!(client.lock("a").waiters(), 0);
        assert!(lease.is_valid());
    }

    fn names_that_differ_by_a_tag_share_nothing(bench) {
        let client = bench.client();
        let plain = client.lock("a").acquire(LockOptions::new()).unwrap();
        let tagged = client.lock("{a}").acquire(LockOptions::new().wait(ms(0))).unwrap();
        let waiting = crate::waiter(&bench.client(), "{a}");
        stanchion_tests::wait::eventually(secs(5), || client.lock("{a}").waiters() == 1);
        assert_eq!(client.lock("a").waiters(), 0);
        plain.release().unwrap();
        assert!(client.lock("{a}").is_locked().unwrap());
        assert!(!client.lock("a").is_locked().unwrap(), "the waiter of {{a}} got a");
        tagged.release().unwrap();
        waiting.join().release().unwrap();
    }

    fn the_builder_wins_over_the_url(bench) {
        let url = format!("{}?lock_prefix=url:", bench.url());
        let client = bench.open(stanchion::Client::builder(&url).lock_prefix("builder:"));
        let _lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let other = bench.open(bench.builder().lock_prefix("builder:"));
        assert!(other.lock("a").is_locked().unwrap());
        assert!(!bench.open(bench.builder().lock_prefix("url:")).lock("a").is_locked().unwrap());
    }

    fn without_fail_fast_a_long_holder_is_waited_for(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(30))).unwrap();
        let (lock, other) = (client.lock("a"), bench.client());
        let waiting = stanchion_tests::wait::task(move || {
            other.lock("a").acquire(LockOptions::new().wait(secs(5)))
        });
        stanchion_tests::wait::eventually(secs(5), || lock.waiters() == 1);
        lease.release().unwrap();
        assert!(waiting.join().unwrap().is_valid());
    }
}

on_stores_with_foreign_lockers! {
    /// Whatever the store has forgotten, a client remembers the fences that it has seen itself.
    fn fences_grow_for_a_client_even_if_the_store_forgot_a_larger_one(bench) {
        let client = bench.client();
        let mut raw = bench.raw();
        let far: u64 = (1 << 53) - 1_000;
        redis::cmd("HSET").arg("stanchion:meta:{Lock:a}").arg("fence").arg(far).exec(&mut raw).unwrap();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert_eq!(lease.fence().get(), far + 1);
        lease.release().unwrap();
        redis::cmd("FLUSHDB").exec(&mut raw).unwrap();
        assert!(client.lock("a").acquire(LockOptions::new()).unwrap().fence().get() > far + 1);
    }
}
