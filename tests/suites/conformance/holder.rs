//! holder and is_locked.

use std::time::{SystemTime, UNIX_EPOCH};

use stanchion::{Fence, HeldAs, LockOptions};
use stanchion_tests::wait::{SOON, eventually};
use stanchion_tests::{on_every_store, on_every_store_of_locks, on_stores_with_foreign_lockers};

use crate::{fixed, ms, secs, waiter};

fn wall_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

on_every_store_of_locks! {
    fn a_free_lock_has_no_holder(bench) {
        let lock = bench.client().lock("a");
        assert_eq!(lock.holder().unwrap(), None);
        assert!(!lock.is_locked().unwrap());
    }

    fn holder_shows_the_lease(bench) {
        let client = bench.open(bench.builder().label("importer"));
        let before = wall_ms();
        let lease = client.lock("a").acquire(fixed(secs(20))).unwrap();
        let holder = bench.client().lock("a").holder().unwrap().unwrap();
        assert_eq!(holder.held_as, HeldAs::Lease);
        assert_eq!(holder.label, "importer");
        assert_eq!(holder.host, nix::unistd::gethostname().unwrap().into_string().unwrap());
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(holder.fence, lease.fence());
        // A store may keep whole seconds.
        let since = holder.since.unwrap().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        assert!((before - 1_000..=wall_ms() + 1).contains(&since), "{since} {before}");
        let remaining = holder.remaining.unwrap();
        assert!(remaining <= secs(20) && remaining > secs(15), "{remaining:?}");
        assert_eq!(holder.waiters, 0);
    }

    fn a_locks_label_wins_over_the_clients(bench) {
        let client = bench.open(bench.builder().label("client"));
        let lease = client.lock("a").acquire(LockOptions::new().label("lock with spaces")).unwrap();
        assert_eq!(client.lock("a").holder().unwrap().unwrap().label, "lock with spaces");
        lease.release().unwrap();
        let _lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert_eq!(client.lock("a").holder().unwrap().unwrap().label, "client");
    }
}

on_every_store! {
    fn holder_counts_waiters(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let mut waiters = Vec::new();
        for number in 1..4 {
            waiters.push(waiter(&bench.client(), "a"));
            eventually(SOON, || client.lock("a").waiters() == number);
        }
        lease.release().unwrap();
        for (waiter, behind) in waiters.into_iter().zip([2, 1, 0]) {
            let lease = waiter.join();
            assert_eq!(client.lock("a").waiters(), behind);
            lease.release().unwrap();
        }
        assert_eq!(client.lock("a").holder().unwrap(), None);
    }

    fn waiters_are_shown_in_their_order(bench) {
        let client = bench.client();
        assert_eq!(client.lock("a").who_waits().unwrap(), []);
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert_eq!(client.lock("a").who_waits().unwrap(), []);
        let before = wall_ms();
        let mut waiting = Vec::new();
        for (number, label) in (1..).zip(["one 1", "", "3"]) {
            waiting.push(waiter(&bench.open(bench.builder().label(label)), "a"));
            eventually(SOON, || client.lock("a").waiters() == number);
        }
        let line = client.lock("a").who_waits().unwrap();
        assert_eq!(line.iter().map(|one| &*one.label).collect::<Vec<_>>(), ["one 1", "", "3"]);
        for one in &line {
            assert_eq!(one.host, nix::unistd::gethostname().unwrap().into_string().unwrap());
            assert_eq!((one.pid, one.weight), (std::process::id(), 1));
            let since = one.since.unwrap().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
            // A manual clock has a wall time of its own, and a server's may differ a little.
            let waited = one.waiting.unwrap();
            assert!(waited < SOON, "{waited:?}");
            assert!((before - 1_000..=wall_ms() + 1_000).contains(&since), "{since} {before}");
        }
        assert!(line[0].since <= line[1].since && line[1].since <= line[2].since, "{line:?}");
        assert!(line[0].waiting >= line[2].waiting, "{line:?}");
        lease.release().unwrap();
        for (waiting, behind) in waiting.into_iter().zip([2, 1, 0]) {
            let lease = waiting.join();
            assert_eq!(client.lock("a").who_waits().unwrap().len(), behind);
            lease.release().unwrap();
        }
    }

    fn a_try_is_no_waiter_and_one_that_leaves_is_none_any_more(bench) {
        let client = bench.client();
        let _lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        assert_eq!(client.lock("a").who_waits().unwrap(), []);
        assert!(client.lock("a").acquire(LockOptions::new().wait(ms(60))).is_err());
        assert_eq!(client.lock("a").who_waits().unwrap(), []);
    }

    fn holder_follows_the_lock_to_its_next_owner(bench) {
        let one = bench.open(bench.builder().label("one"));
        let lease = one.lock("a").acquire(LockOptions::new()).unwrap();
        let waiting = waiter(&bench.open(bench.builder().label("two")), "a");
        eventually(SOON, || one.lock("a").waiters() == 1);
        lease.release().unwrap();
        let lease = waiting.join();
        let holder = one.lock("a").holder().unwrap().unwrap();
        assert_eq!((holder.label.as_str(), holder.fence, holder.waiters), ("two", lease.fence(), 0));
        assert_eq!(holder.held_as, HeldAs::Lease);
    }
}

on_stores_with_foreign_lockers! {
    fn holder_tells_foreign_values(bench) {
        let client = bench.client();
        let mut raw = bench.raw();
        redis::cmd("SET").arg("Lock:a").arg("a stranger").arg("PX").arg(5_000).exec(&mut raw).unwrap();
        let holder = client.lock("a").holder().unwrap().unwrap();
        assert_eq!(holder.held_as, HeldAs::Foreign);
        assert_eq!((holder.label.as_str(), holder.pid, holder.fence), ("", 0, Fence::NONE));
        assert!(holder.remaining.is_some_and(|left| left <= secs(5)));
        redis::cmd("PERSIST").arg("Lock:a").exec(&mut raw).unwrap();
        assert_eq!(client.lock("a").holder().unwrap().unwrap().remaining, None);
        assert!(client.lock("a").is_locked().unwrap());
    }
}
