//! Code of the program's that panics on threads of the library. A process of its own: the subscriber is everybody's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

use std::sync::Once;
use std::time::Duration;

use stanchion::blocking::{Claim, Client, Worker};
use stanchion::{LockOptions, Task};
use stanchion_tests::wait::{SOON, eventually};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Panics whenever it is told something.
struct Broken;

impl Subscriber for Broken {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, _: &Event<'_>) {
        panic!("a subscriber panics");
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn client() -> Client {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Broken).unwrap());
    Client::open("memory:").unwrap()
}

fn counted(client: &Client, name: &str) -> f64 {
    client.metrics().unwrap().get(&format!("stanchion_{name}")).unwrap()
}

/// It is told of each loss, by the thread that renews all other leases.
#[test]
fn renewal_goes_on_when_a_subscriber_panics() {
    let client = client();
    let ttl = |millis| LockOptions::new().ttl(Duration::from_millis(millis));
    let renewed = client.lock("renewed").acquire(ttl(2_000).renew(true)).unwrap();
    let _lost = client.lock("lost").acquire(ttl(50)).unwrap();
    eventually(SOON, || counted(&client, "contained_panics_total") > 0.0);
    let ok = "renewals_total{outcome=\"ok\"}";
    let before = counted(&client, ok);
    // As many as take longer than the ttl.
    eventually(SOON, || counted(&client, ok) >= before + 4.0);
    assert!(renewed.is_valid());
    renewed.release().unwrap();
}

#[test]
fn a_worker_goes_on_when_its_hook_panics() {
    let client = client();
    let queue = client.queue("q");
    for id in ["a", "b", "c"] {
        queue.enqueue(Task::new(id)).unwrap();
    }
    let worker = Worker::new(queue, |_: &Claim| Ok::<(), String>(()));
    let report = worker.until_empty().on_event(|_| panic!("a hook panics")).run().unwrap();
    assert_eq!(report.completed, 3);
    assert!(counted(&client, "contained_panics_total") >= 3.0);
}

/// On the program's own threads it is the program's.
#[test]
fn a_body_that_panics_gives_the_lock_back_and_panics() {
    let client = client();
    let lock = client.lock("a");
    let hold = || lock.hold(LockOptions::new(), |_| panic!("a body panics"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(hold)).is_err());
    eventually(SOON, || !lock.is_locked().unwrap());
}
