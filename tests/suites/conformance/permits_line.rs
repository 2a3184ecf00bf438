//! The line before a read-write lock or a semaphore.

use stanchion::{ErrorKind, HeldAs, LockOptions};
use stanchion_tests::on_every_topology;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::{fixed, ms, secs};

on_every_topology! {
    fn a_heavy_head_holds_up_lighter_ones_until_it_leaves(bench) {
        let client = bench.client();
        let semaphore = client.semaphore("a", 3);
        let held = semaphore.acquire(LockOptions::new()).unwrap();
        let heavy = client.semaphore("a", 3);
        let heavy = task(move || heavy.acquire(LockOptions::new().weight(3).wait(ms(2_500))));
        eventually(SOON, || semaphore.waiters() == 1);
        let light = client.semaphore("a", 3);
        let light = task(move || light.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || semaphore.waiters() == 2);
        assert_eq!(semaphore.holders().unwrap().len(), 1, "the light one does not pass the heavy one");
        assert_eq!(heavy.join().unwrap_err().kind(), ErrorKind::LockTimeout);
        let light = light.join();
        assert!(held.is_valid());
        assert_eq!(semaphore.holders().unwrap().len(), 2);
        light.release().unwrap();
    }

    fn the_line_shows_who_waits_for_how_many(bench) {
        let client = bench.client();
        let held = client.semaphore("a", 3).acquire(LockOptions::new().weight(3)).unwrap();
        let wait = |weight, label| {
            let semaphore = client.semaphore("a", 3);
            task(move || semaphore.acquire(LockOptions::new().weight(weight).label(label).wait(secs(30))).unwrap())
        };
        let line = || {
            let line = client.semaphore("a", 3).who_waits().unwrap();
            line.into_iter().map(|one| (one.label, one.weight, one.pid)).collect::<Vec<_>>()
        };
        assert_eq!(line(), []);
        let heavy = wait(2, "heavy");
        eventually(SOON, || line().len() == 1);
        let light = wait(1, "light");
        let pid = std::process::id();
        eventually(SOON, || line() == [("heavy".into(), 2, pid), ("light".into(), 1, pid)]);
        held.release().unwrap();
        for lease in [heavy.join(), light.join()] {
            lease.release().unwrap();
        }
        assert_eq!(line(), []);
        let reader = client.reader("a").acquire(LockOptions::new()).unwrap();
        let writer = client.writer("a");
        let writer = task(move || writer.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || client.reader("a").who_waits().unwrap().len() == 1);
        assert!(client.writer("a").who_waits().unwrap()[0].weight > 1);
        reader.release().unwrap();
        writer.join().release().unwrap();
    }

    fn a_waiter_gets_the_permits_of_one_that_ran_out(bench) {
        let client = bench.client();
        let _dies = client.semaphore("a", 1).acquire(fixed(ms(300))).unwrap();
        let next = bench.client().semaphore("a", 1).acquire(LockOptions::new().wait(secs(20))).unwrap();
        assert!(next.is_valid());
    }

    fn offers_are_shown_as_offers(bench) {
        let client = bench.client();
        let semaphore = client.semaphore("a", 2);
        let lease = semaphore.acquire(LockOptions::new().label("first")).unwrap();
        let holders = semaphore.holders().unwrap();
        assert_eq!(holders.len(), 1);
        let holder = &holders[0];
        assert_eq!((holder.held_as, &*holder.label, holder.weight), (HeldAs::Lease, "first", 1));
        assert_eq!(holder.fence, lease.fence());
        assert_eq!(holder.pid, std::process::id());
        assert!(holder.since.is_some());
        lease.release().unwrap();
    }

    fn a_try_does_not_wait_and_leaves_nothing(bench) {
        let client = bench.client();
        let writer = client.writer("a").acquire(LockOptions::new()).unwrap();
        assert!(client.reader("a").try_acquire(LockOptions::new()).unwrap().is_none());
        assert_eq!(client.writer("a").waiters(), 0);
        writer.release().unwrap();
        assert!(client.reader("a").holders().unwrap().is_empty());
    }

    fn fail_fast_gives_up_on_a_long_lease(bench) {
        let client = bench.client();
        let _writer = client.writer("a").acquire(fixed(secs(30))).unwrap();
        let error = client.reader("a").acquire(LockOptions::new().wait(secs(5)).fail_fast(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert_eq!(client.writer("a").waiters(), 0);
    }

    fn a_lost_lease_is_announced(bench) {
        let client = bench.client();
        let permit = client.semaphore("a", 1).acquire(LockOptions::new().ttl(secs(3)).renew(true)).unwrap();
        bench.client().semaphore("a", 1).break_lease().unwrap();
        assert!(permit.wait_lost(SOON));
        assert_eq!(permit.loss().unwrap().name(), "broken");
    }
}
