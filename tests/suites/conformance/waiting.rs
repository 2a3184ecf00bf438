//! The waiting line: order, hand-over, and waiters that go away.

use std::sync::{Arc, Mutex};

use stanchion::{ErrorKind, HeldAs, LockOptions};
use stanchion_tests::wait::{SOON, eventually, ran_since, task};
use stanchion_tests::{async_on_every_store, on_every_topology};

use crate::{fixed, ms, renewed, secs, timed, waiter};

on_every_topology! {
    fn waiters_in_different_clients_are_served_in_order(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut waiters = Vec::new();
        for number in 0..5u64 {
            let (lock, served) = (bench.client().lock("a"), Arc::clone(&served));
            waiters.push(task(move || {
                let lease = lock.acquire(LockOptions::new().wait(secs(30))).unwrap();
                served.lock().unwrap().push((number, lease.fence()));
                lease.release().unwrap();
            }));
            eventually(SOON, || client.lock("a").waiters() == number + 1);
        }
        lease.release().unwrap();
        waiters.into_iter().for_each(stanchion_tests::wait::Task::join);
        let served = served.lock().unwrap();
        assert_eq!(served.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(served.is_sorted_by(|one, two| one.1 < two.1), "fences grow along the line: {served:?}");
    }

    fn waiters_of_one_client_are_served_in_order(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let first = waiter(&client, "a");
        eventually(SOON, || client.lock("a").waiters() == 1);
        let second = waiter(&client, "a");
        eventually(SOON, || client.lock("a").waiters() == 2);
        lease.release().unwrap();
        let lease = first.join();
        assert!(!second.has_ended());
        lease.release().unwrap();
        second.join().release().unwrap();
    }

    /// The waiter has just polled, so without a hint it would ask again after half a second at the earliest.
    fn a_release_hands_over_without_waiting_for_the_poll(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let waiting = waiter(&bench.client(), "a");
        eventually(SOON, || client.lock("a").waiters() == 1);
        let (lease, took) = timed(|| {
            lease.release().unwrap();
            waiting.join()
        });
        assert!(took.less_than(ms(350)), "the hand-over took {took:?}");
        assert!(lease.is_valid());
    }

    fn a_broken_lease_is_handed_over_at_once_too(bench) {
        let client = bench.client();
        let old = client.lock("a").acquire(LockOptions::new()).unwrap();
        let waiting = waiter(&bench.client(), "a");
        eventually(SOON, || client.lock("a").waiters() == 1);
        let (new, took) = timed(|| {
            assert!(bench.client().lock("a").break_lease().unwrap());
            waiting.join()
        });
        assert!(took.less_than(ms(350)), "the hand-over took {took:?}");
        assert!(new.fence() > old.fence());
    }

    fn a_waiter_gets_the_lock_of_a_holder_that_ran_out(bench) {
        let lease = bench.client().lock("a").acquire(fixed(ms(200))).unwrap();
        let (next, took) = timed(|| bench.client().lock("a").acquire(LockOptions::new()).unwrap());
        assert!(took.less_than(secs(1)), "took {took:?}");
        assert!(!lease.is_valid() && next.is_valid());
        assert!(next.fence() > lease.fence());
    }

    fn a_waiter_that_gave_up_does_not_hold_up_the_line(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let lock = bench.client().lock("a");
        let impatient = task(move || lock.acquire(LockOptions::new().wait(ms(2_500))).map(drop));
        eventually(SOON, || client.lock("a").waiters() == 1);
        let patient = waiter(&bench.client(), "a");
        eventually(SOON, || client.lock("a").waiters() == 2);
        assert_eq!(impatient.join().unwrap_err().kind(), ErrorKind::LockTimeout);
        assert_eq!(client.lock("a").waiters(), 1);
        let (_lease, took) = timed(|| {
            lease.release().unwrap();
            patient.join()
        });
        assert!(took.less_than(ms(350)), "the hand-over took {took:?}");
    }

    fn nobody_barges_in_while_others_wait(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let waiting = waiter(&bench.client(), "a");
        eventually(SOON, || client.lock("a").waiters() == 1);
        lease.release().unwrap();
        // The lock is offered or confirmed by now, and stays the waiter's while it holds it.
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        waiting.join().release().unwrap();
    }

    fn a_waiter_waits_through_renewals(bench) {
        let lease = bench.client().lock("a").acquire(renewed(ms(2_400))).unwrap();
        let result = bench.client().lock("a").acquire(LockOptions::new().wait(ms(3_400)));
        assert_eq!(result.unwrap_err().kind(), ErrorKind::LockTimeout);
        assert!(lease.is_valid());
    }
}

async_on_every_store! {
    /// A waiter that is frozen cannot confirm its offer: after the grant window it is passed over.
    async fn an_offer_nobody_confirms_blocks_only_for_its_window(bench) {
        let one = stanchion::Client::open(bench.url()).await.unwrap();
        let two = stanchion::Client::open(bench.url()).await.unwrap();
        for round in 0.. {
            let name = format!("a{round}");
            let (lock, frozen_lock) = (one.lock(&name), two.lock(&name));
            let lease = lock.acquire(LockOptions::new()).await.unwrap();
            let mut frozen = Box::pin(frozen_lock.acquire(LockOptions::new()));
            let registered = stanchion_tests::wait::eventually_async(SOON, || async {
                lock.holder().await.unwrap().is_some_and(|holder| holder.waiters == 1)
            });
            tokio::select! {
                biased;
                _ = &mut frozen => panic!("two holders"),
                () = registered => {}
            }
            // From here on the waiter's future is not polled.
            let released = std::time::Instant::now();
            lease.release().await.unwrap();
            let holder = lock.holder().await.unwrap();
            let barged_in = lock.try_acquire(LockOptions::new()).await.unwrap().is_some();
            if crate::offers_of_then_may_be_over(released) {
                continue;
            }
            let holder = holder.unwrap();
            assert_eq!(holder.held_as, HeldAs::Offer);
            assert_eq!((holder.label.as_str(), holder.pid), ("", 0), "an offer has no owner yet");
            assert!(holder.remaining.unwrap() <= secs(1));
            assert!(!barged_in);
            let started = std::time::Instant::now();
            let lease = lock.acquire(LockOptions::new()).await.unwrap();
            assert!(ran_since(started) < ms(2_200), "took {:?}", ran_since(started));
            lease.release().await.unwrap();
            // It kept its place, and gets the lock as soon as it asks.
            let late = stanchion_tests::wait::within(SOON, frozen).await.unwrap();
            assert!(late.is_valid());
            break;
        }
    }
}
