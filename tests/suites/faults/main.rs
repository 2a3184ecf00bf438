//! Faults, provoked on purpose, on real stores. Each test is named after the failure.
//!
//! Bounds come from the protocol: the lease's ttl, the grant window (1 s), the longest poll (0.75 s), the
//! time after which an unanswered request is sent again (1 s).

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

/// Makes a test per face, and per store that processes can share, of a function that gets a [`Bench`].
macro_rules! on_shared_stores {
    ($($(#[doc = $doc:literal])* fn $name:ident($bench:ident) $body:block)+) => {$(
        $(#[doc = $doc])*
        mod $name {
            use super::*;
            fn run($bench: &Bench) $body
            #[test]
            fn redis_blocking() {
                run(&Bench::new(Kind::Redis, Face::Blocking));
            }
            #[test]
            fn redis_async() {
                run(&Bench::new(Kind::Redis, Face::Async));
            }
            #[test]
            fn sqlite_blocking() {
                run(&Bench::new(Kind::Sqlite, Face::Blocking));
            }
            #[test]
            fn sqlite_async() {
                run(&Bench::new(Kind::Sqlite, Face::Async));
            }
        }
    )+};
}

mod cancelled;
mod channel;
mod fuzz;
mod garbled;
mod giving_up;
mod grid;
mod holders;
mod keys;
mod limiter;
mod queue_cancelled;
mod queue_floods;
mod queue_keys;
mod queue_replies;
mod queue_servers;
mod queue_support;
mod queue_workers;
mod replies;
mod rights;
mod servers;
mod transports;
mod waiters;

use std::time::{Duration, Instant};

use stanchion::{Client, LockOptions};
use stanchion_tests::actor::Actor;
use stanchion_tests::faces::{AnyClient, AnyLease, Face};
use stanchion_tests::stores::Bench;
use stanchion_tests::wait::{SOON, eventually, ran_since};

/// The longest pause between two polls of a waiter.
const POLL: Duration = Duration::from_millis(750);
/// An unanswered request is sent again after this time.
const RESEND: Duration = Duration::from_secs(1);
/// What a loaded machine with two cores may add to any of the bounds, apart from standing still.
const SLACK: Duration = Duration::from_millis(300);

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

fn open(face: Face, url: &str) -> AnyClient {
    AnyClient::open(face, Client::builder(url)).unwrap_or_else(|error| panic!("{face:?}: {error}"))
}

/// A process of its own with a client of the bench's store and face.
fn actor(bench: &Bench) -> Actor {
    actor_at(bench.url(), bench.face)
}

fn actor_at(url: &str, face: Face) -> Actor {
    let face = match face {
        Face::Blocking => "blocking",
        Face::Async => "async",
    };
    Actor::connected(env!("CARGO_BIN_EXE_actor"), url, face)
}

/// Waits until the keeper has prolonged the lease.
#[track_caller]
fn wait_for_renewal(lease: &AnyLease) {
    let mut last = lease.remaining();
    eventually(SOON, || lease.remaining() > std::mem::replace(&mut last, lease.remaining()));
}

/// Fails unless at most `bound` and the machine's slack have passed.
#[track_caller]
fn assert_within(bound: Duration, since: Instant) {
    let took = ran_since(since);
    assert!(took <= bound + SLACK, "took {took:?}, more than {bound:?} and a slack of {SLACK:?}");
}
