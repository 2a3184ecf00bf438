//! hold: acquire, run, release.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stanchion::{ErrorKind, Fence, LockOptions};
use stanchion_tests::wait::{SOON, eventually_async, within};
use stanchion_tests::{async_on_every_store, on_every_store_of_locks};

use crate::{fixed, ms, secs};

/// Says when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

on_every_store_of_locks! {
    fn hold_gives_the_bodys_value_and_releases(bench) {
        let client = bench.client();
        let other = bench.client();
        let mut seen = Fence::NONE;
        let value = client
            .lock("a")
            .hold(LockOptions::new(), |fence| {
                seen = fence;
                7
            })
            .unwrap();
        assert_eq!(value, 7);
        assert!(seen > Fence::NONE);
        assert!(!other.lock("a").is_locked().unwrap());
    }

    fn hold_on_a_busy_lock_times_out_without_running_the_body(bench) {
        let client = bench.client();
        let _lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let mut ran = false;
        let error = client.lock("a").hold(LockOptions::new().wait(ms(60)), |_| ran = true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert!(!ran);
    }

    fn a_panic_in_the_body_releases(bench) {
        let lock = bench.client().lock("a");
        let body = || lock.hold(LockOptions::new(), |_| panic!("expected in this test"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err());
        stanchion_tests::wait::eventually(SOON, || !lock.is_locked().unwrap());
    }
}

async_on_every_store! {
    async fn hold_drops_the_body_when_the_lease_is_lost(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let dropped = Arc::new(AtomicBool::new(false));
        let flag = Flag(Arc::clone(&dropped));
        let held = client.lock("a").hold(fixed(ms(150)), |_lease| async move {
            let _flag = flag;
            std::future::pending::<()>().await;
        }).await;
        assert_eq!(held.unwrap_err().kind(), ErrorKind::LeaseExpired);
        assert!(dropped.load(Ordering::SeqCst));
    }

    async fn hold_ends_when_the_lease_is_broken(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let lock = client.lock("a");
        let options = LockOptions::new().ttl(secs(3)).renew(true);
        let held = lock.hold(options, |_lease| async {
            assert!(lock.break_lease().await.unwrap());
            std::future::pending::<()>().await;
        });
        assert_eq!(within(SOON, held).await.unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    async fn hold_ends_when_all_leases_are_released(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let lock = client.lock("a");
        let held = lock.hold(LockOptions::new(), |_lease| async {
            assert_eq!(client.release_all().await.unwrap(), 1);
            std::future::pending::<()>().await;
        });
        assert_eq!(within(secs(8), held).await.unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    async fn a_clone_of_the_lease_does_not_outlive_hold(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let lock = client.lock("a");
        let lease = lock.hold(LockOptions::new(), |lease| async move { lease }).await.unwrap();
        assert!(!lease.is_valid());
        assert!(!lock.is_locked().await.unwrap());
        assert!(lease.extend(secs(5)).await.unwrap_err().is_lost());
    }

    async fn a_dropped_hold_releases(bench) {
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let lock = client.lock("a");
        let kept = Arc::new(std::sync::Mutex::new(None));
        let keep = Arc::clone(&kept);
        let held = lock.hold(LockOptions::new(), |lease| async move {
            *keep.lock().unwrap() = Some(lease);
            std::future::pending::<()>().await;
        });
        assert!(tokio::time::timeout(ms(100), held).await.is_err());
        eventually_async(SOON, || async { !lock.is_locked().await.unwrap() }).await;
        assert!(kept.lock().unwrap().as_ref().is_some_and(|lease| !lease.is_valid()));
    }
}

/// A thread cannot be stopped: the blocking face tells the truth afterwards.
fn a_blocking_body_that_outlasts_its_lease_is_told(kind: stanchion_tests::stores::Kind) {
    let bench = stanchion_tests::stores::Bench::new(kind, stanchion_tests::faces::Face::Blocking);
    let client = stanchion::blocking::Client::open(bench.url()).unwrap();
    let lock = client.lock("a");
    let over = || !lock.is_locked().unwrap();
    let error = lock.hold(fixed(ms(80)), |_| stanchion_tests::wait::eventually(SOON, over)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseExpired);
}

#[test]
fn a_blocking_body_that_outlasts_its_lease_is_told_memory() {
    a_blocking_body_that_outlasts_its_lease_is_told(stanchion_tests::stores::Kind::Memory);
}

#[test]
fn a_blocking_body_that_outlasts_its_lease_is_told_sqlite() {
    a_blocking_body_that_outlasts_its_lease_is_told(stanchion_tests::stores::Kind::Sqlite);
}

#[test]
fn a_blocking_body_that_outlasts_its_lease_is_told_redis() {
    a_blocking_body_that_outlasts_its_lease_is_told(stanchion_tests::stores::Kind::Redis);
}
