//! leave: a wait that is cancelled leaves nothing behind.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use stanchion::{ErrorKind, LockOptions, blocking};
use stanchion_tests::async_on_every_store;
use stanchion_tests::faces::Face;
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, eventually_async, ran_since, task, within};

use crate::{ms, secs, timed, waiter};

async_on_every_store! {
    async fn a_dropped_waiter_leaves_the_line(bench) {
        let open = || stanchion::Client::open(bench.url());
        let (one, two, three) = (open().await.unwrap(), open().await.unwrap(), open().await.unwrap());
        let lock = one.lock("a");
        let waiters = || async { lock.holder().await.unwrap().map_or(0, |holder| holder.waiters) };
        let lease = lock.acquire(LockOptions::new()).await.unwrap();
        let dropped = two.lock("a");
        let dropped = tokio::spawn(async move { dropped.acquire(LockOptions::new()).await.map(drop) });
        eventually_async(SOON, || async { waiters().await == 1 }).await;
        let next = three.lock("a");
        let next = tokio::spawn(async move { next.acquire(LockOptions::new()).await });
        eventually_async(SOON, || async { waiters().await == 2 }).await;
        dropped.abort();
        eventually_async(SOON, || async { waiters().await == 1 }).await;
        let started = std::time::Instant::now();
        lease.release().await.unwrap();
        let lease = within(SOON, next).await.unwrap().unwrap();
        assert!(ran_since(started) < ms(350), "the hand-over took {:?}", ran_since(started));
        lease.release().await.unwrap();
    }

    /// Dropped after the offer, before the confirmation: the lock is passed on, not kept for the window.
    async fn a_waiter_dropped_while_it_is_offered_the_lock_passes_it_on(bench) {
        let one = stanchion::Client::open(bench.url()).await.unwrap();
        let two = stanchion::Client::open(bench.url()).await.unwrap();
        for round in 0.. {
            let name = format!("a{round}");
            let (lock, other) = (one.lock(&name), two.lock(&name));
            let lease = lock.acquire(LockOptions::new()).await.unwrap();
            let mut offered = Box::pin(other.acquire(LockOptions::new()));
            let registered = eventually_async(SOON, || async {
                lock.holder().await.unwrap().is_some_and(|holder| holder.waiters == 1)
            });
            tokio::select! {
                biased;
                _ = &mut offered => panic!("two holders"),
                () = registered => {}
            }
            let released = std::time::Instant::now();
            lease.release().await.unwrap();
            let is_offered = lock.is_locked().await.unwrap();
            if crate::offers_of_then_may_be_over(released) {
                continue;
            }
            assert!(is_offered, "it is offered");
            let started = std::time::Instant::now();
            drop(offered);
            eventually_async(SOON, || async { !lock.is_locked().await.unwrap() }).await;
            assert!(ran_since(started) < ms(500), "took {:?}", ran_since(started));
            break;
        }
    }

    async fn an_acquire_dropped_at_any_time_leaves_the_lock_free(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let lock = client.lock("a");
        for delay in 0..20u64 {
            let acquire = lock.acquire(LockOptions::new());
            let _ = tokio::time::timeout(std::time::Duration::from_micros(delay * 40), acquire).await.map(drop);
            eventually_async(SOON, || async { !lock.is_locked().await.unwrap() }).await;
        }
        assert!(lock.try_acquire(LockOptions::new()).await.unwrap().is_some());
    }
}

/// The host of a blocking wait ends it.
fn a_blocking_wait_ends_when_its_host_says_so(kind: Kind) {
    let bench = Bench::new(kind, Face::Blocking);
    let client = bench.client();
    let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
    static ENDS: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    let ends = &ENDS[kind as usize];
    let url = bench.url().to_owned();
    let cancelled = task(move || {
        let client = blocking::Client::open(&url).unwrap();
        let mut turn = || match ends.load(Ordering::SeqCst) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        client.lock("a").acquire_while(LockOptions::new().wait(secs(30)), &mut turn).map(drop)
    });
    eventually(SOON, || client.lock("a").waiters() == 1);
    let next = waiter(&bench.client(), "a");
    eventually(SOON, || client.lock("a").waiters() == 2);
    ends.store(true, Ordering::SeqCst);
    let (result, took) = timed(|| cancelled.join());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(took.less_than(ms(500)), "the host was asked only after {took:?}");
    eventually(SOON, || client.lock("a").waiters() == 1);
    let (lease, took) = timed(|| {
        lease.release().unwrap();
        next.join()
    });
    assert!(took.less_than(ms(350)), "the hand-over took {took:?}");
    lease.release().unwrap();
}

#[test]
fn a_blocking_wait_ends_when_its_host_says_so_memory() {
    a_blocking_wait_ends_when_its_host_says_so(Kind::Memory);
}

#[test]
fn a_blocking_wait_ends_when_its_host_says_so_sqlite() {
    a_blocking_wait_ends_when_its_host_says_so(Kind::Sqlite);
}

#[test]
fn a_blocking_wait_ends_when_its_host_says_so_redis() {
    a_blocking_wait_ends_when_its_host_says_so(Kind::Redis);
}
