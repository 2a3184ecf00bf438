//! Sentinels and clusters: real servers that are moved, killed and frozen under load.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

/// Makes a test per face of a function that gets a [`Face`].
macro_rules! on_both_faces {
    ($($(#[doc = $doc:literal])* fn $name:ident($face:ident) $body:block)+) => {$(
        $(#[doc = $doc])*
        mod $name {
            use super::*;
            fn run($face: Face) $body
            #[test]
            fn blocking() {
                run(Face::Blocking);
            }
            #[test]
            fn asynchronous() {
                run(Face::Async);
            }
        }
    )+};
}

mod addresses;
mod cluster;
mod load;
mod quorum;
mod rates;
mod replicas;
mod resharding;
mod sentinel;

use std::time::Duration;

use stanchion::{Client, ClientBuilder, ErrorKind, LockOptions, Task};
use stanchion_tests::faces::{AnyClient, Face};
use stanchion_tests::wait::{SOON, eventually, task};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A lease of `ttl` that is not renewed, waited for `wait`; both in milliseconds.
fn fixed(ttl: u64, wait: u64) -> LockOptions {
    LockOptions::new().ttl(ms(ttl)).wait(ms(wait))
}

/// The same, renewed until its release.
fn renewed(ttl: u64, wait: u64) -> LockOptions {
    fixed(ttl, wait).renew(true)
}

fn open(face: Face, builder: ClientBuilder) -> AnyClient {
    AnyClient::open(face, builder).unwrap_or_else(|error| panic!("{face:?}: {error}"))
}

/// The error of a store that cannot be opened; it says what to do.
#[track_caller]
fn refused(face: Face, url: &str, kind: ErrorKind, says: &str) {
    let builder = Client::builder(url).timeout(ms(1_000));
    let error = AnyClient::open(face, builder).expect_err("the store was opened");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    assert!(!error.to_string().contains("c4n4ry"), "{error}");
}

/// What a client does in an ordinary day, with this lock and this queue.
fn use_it(client: &AnyClient, name: &str) {
    let lock = client.lock(name);
    let lease = lock.acquire(fixed(30_000, 0)).unwrap();
    let waiter = lock.clone();
    let waiting = task(move || waiter.acquire(renewed(10_000, 30_000)).unwrap());
    eventually(SOON, || lock.waiters() == 1);
    lease.extend(ms(40_000)).unwrap();
    lease.release().unwrap();
    let lease = waiting.join();
    let handle = lease.detach(ms(5_000)).unwrap();
    client.resume_lease(&handle).unwrap().release().unwrap();
    assert!(!lock.is_locked().unwrap());

    let queue = client.queue(name);
    queue.enqueue(Task::new("a").payload("1")).unwrap();
    let claim = queue.claim(stanchion::ClaimOptions::new()).unwrap().remove(0);
    assert_eq!(claim.payload(), b"1");
    claim.extend(ms(30_000)).unwrap();
    claim.ack().unwrap();
    assert_eq!(queue.stats().unwrap().acked, 1);
}
