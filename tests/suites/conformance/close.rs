//! close: what is held is given back, what waits ends, and nothing begins any more.

use stanchion::{ClaimOptions, ErrorKind, LockOptions, Task};
use stanchion_tests::faces::Stop;
use stanchion_tests::wait::{SOON, eventually, task};
use stanchion_tests::{on_every_store, on_every_topology, on_every_topology_of_locks};

use crate::secs;

on_every_topology_of_locks! {
    fn a_closed_client_has_given_everything_back_and_makes_no_calls(bench) {
        let (mine, other) = (bench.client(), bench.client());
        let leases = ["a", "b"].map(|name| mine.lock(name).acquire(LockOptions::new()).unwrap());
        assert_eq!(mine.close().unwrap(), 2);
        for lease in &leases {
            assert!(!lease.is_valid());
            assert!(!other.lock(lease.name()).is_locked().unwrap());
        }
        let refused = |kind: ErrorKind| assert_eq!(kind, ErrorKind::Closed);
        refused(mine.lock("a").acquire(LockOptions::new()).unwrap_err().kind());
        refused(mine.lock("a").holder().unwrap_err().kind());
        refused(mine.release_all().unwrap_err().kind());
        let granted = "stanchion_lock_acquires_total{outcome=\"granted\"}";
        assert_eq!(mine.metrics().get(granted), Some(2.0), "they stay readable");
        assert_eq!(mine.close().unwrap(), 0);
        assert!(other.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }
}

on_every_topology! {
    fn who_waits_when_the_client_is_closed_hears_of_it_and_leaves_the_line(bench) {
        let (mine, other) = (bench.client(), bench.client());
        let _held = other.lock("a").acquire(LockOptions::new()).unwrap();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let lock = mine.lock("a");
                task(move || lock.acquire(LockOptions::new().wait(secs(60))).map(drop))
            })
            .collect();
        eventually(SOON, || other.lock("a").waiters() == 3);
        assert_eq!(mine.close().unwrap(), 0);
        assert_eq!(other.lock("a").waiters(), 0);
        for waiting in waiting {
            let error = waiting.join().unwrap_err();
            assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Closed, Some("acquire"), Some("a")));
        }
    }
}

on_every_store! {
    fn a_claim_is_put_back_and_one_that_waits_ends_when_its_client_is_closed(bench) {
        let (mine, other) = (bench.client(), bench.client());
        other.queue("q").enqueue(Task::new("a")).unwrap();
        let claims = mine.queue("q").claim(ClaimOptions::new().renew(true)).unwrap();
        let queue = mine.queue("none");
        let waiting = task(move || queue.claim(ClaimOptions::new().wait(secs(60))).map(drop));
        assert_eq!(mine.close().unwrap(), 0);
        assert_eq!(waiting.join().unwrap_err().kind(), ErrorKind::Closed);
        assert!(!claims[0].is_valid());
        assert_eq!(claims[0].ack().unwrap_err().kind(), ErrorKind::Closed);
        let again = other.queue("q").claim(ClaimOptions::new()).unwrap();
        assert_eq!((again[0].id(), again[0].attempt()), ("a", 1));
        again[0].ack().unwrap();
    }

    /// It is told so, and its worker ends; what it worked on goes to others.
    fn a_worker_whose_client_is_closed_ends(bench) {
        let (mine, other) = (bench.client(), bench.client());
        let queue = mine.queue("q");
        let running = task(move || queue.worker(&Stop::default(), |_| Ok(())).run());
        other.queue("q").enqueue(Task::new("a")).unwrap();
        eventually(SOON, || other.queue("q").get("a").unwrap().is_none());
        mine.close().unwrap();
        assert_eq!(running.join().unwrap_err().kind(), ErrorKind::Closed);
    }
}
