//! Leases that several hold a reference to, as objects of other languages are, and the end of a program.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use stanchion::blocking::Client;
use stanchion::{ErrorKind, LockOptions, ManualClock};
use stanchion_tests::RedisServer;

fn memory() -> (Client, ManualClock) {
    let clock = ManualClock::new();
    (Client::builder("memory:").clock(&clock).open_blocking().unwrap(), clock)
}

fn options() -> LockOptions {
    LockOptions::new().ttl(Duration::from_secs(30)).wait(Duration::ZERO)
}

#[test]
fn released_by_another_thread_and_again() {
    let (client, _) = memory();
    let lock = client.lock("a");
    let lease = Arc::new(lock.acquire(options()).unwrap());
    let other = Arc::clone(&lease);
    thread::spawn(move || other.release().unwrap()).join().unwrap();
    assert!(!lock.is_locked().unwrap() && !lease.is_valid());
    let next = lock.acquire(options()).unwrap();
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    assert_eq!(lease.check().unwrap_err().kind(), ErrorKind::LeaseLost);
    assert!(next.is_valid() && lock.is_locked().unwrap(), "the next holder was released");
}

#[test]
fn released_with_a_cooldown() {
    let (client, clock) = memory();
    let lock = client.lock("a");
    lock.acquire(options()).unwrap().release_with_cooldown(Duration::from_secs(5)).unwrap();
    assert!(lock.try_acquire(options()).unwrap().is_none());
    clock.advance(Duration::from_secs(6));
    assert!(lock.try_acquire(options()).unwrap().is_some());
    let lease = client.lock("b").acquire(options()).unwrap();
    let error = lease.release_with_cooldown(Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(lease.is_valid(), "a bad argument ended the lease");
}

#[test]
fn detached_while_others_hold_it() {
    let (client, _) = memory();
    let lock = client.lock("a");
    let lease = lock.acquire(options()).unwrap();
    assert_eq!(lease.detach(Duration::ZERO).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(lease.is_valid(), "a bad argument ended the lease");
    let handle = lease.detach(Duration::from_secs(60)).unwrap();
    assert!(!lease.is_valid() && lock.is_locked().unwrap());
    assert_eq!(lease.detach(Duration::from_secs(60)).unwrap_err().kind(), ErrorKind::LeaseLost);
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    drop(lease);
    let resumed = client.resume_lease(&handle).unwrap();
    assert!(resumed.remaining() > Duration::from_secs(50));
    resumed.release().unwrap();
}

#[test]
fn checked_as_time_goes_by() {
    let (client, clock) = memory();
    let lease = client.lock("a").acquire(options()).unwrap();
    lease.check().unwrap();
    clock.advance(Duration::from_secs(31));
    assert_eq!(lease.check().unwrap_err().kind(), ErrorKind::LeaseExpired);
}

#[test]
fn let_go_before_the_end_of_the_program() {
    let server = RedisServer::start();
    let client = Client::open(&server.url()).unwrap();
    assert!(client.linger(Duration::ZERO), "there is nothing to wait for");
    let leases: Vec<_> =
        (0..20).map(|n| client.lock(&format!("job{n}")).acquire(options()).unwrap()).collect();
    leases.iter().for_each(stanchion::blocking::Lease::let_go);
    assert!(client.linger(Duration::from_secs(10)));
    assert!(client.locks(None).unwrap().names.is_empty());
    assert_eq!(leases[0].release().unwrap_err().kind(), ErrorKind::LeaseLost);

    let lease = client.lock("job").acquire(options()).unwrap();
    server.stop_signal();
    lease.let_go();
    assert!(!client.linger(Duration::from_millis(100)), "a frozen server released it");
    server.cont_signal();
    assert!(client.linger(Duration::from_secs(10)));
    assert!(!client.lock("job").is_locked().unwrap());
}

#[tokio::test]
async fn the_same_without_blocking() {
    let client = stanchion::Client::open("memory:").await.unwrap();
    let lock = client.lock("a");
    let lease = Arc::new(lock.acquire(options()).await.unwrap());
    lease.check().unwrap();
    let handle = lease.detach(Duration::from_secs(60)).await.unwrap();
    assert_eq!(lease.check().unwrap_err().kind(), ErrorKind::LeaseLost);
    let resumed = client.resume_lease(&handle).await.unwrap();
    resumed.release().await.unwrap();
    assert_eq!(resumed.release().await.unwrap_err().kind(), ErrorKind::LeaseLost);
    lock.acquire(options()).await.unwrap().let_go();
    assert!(client.linger(Duration::from_secs(10)).await);
    assert!(!lock.is_locked().await.unwrap());
}
