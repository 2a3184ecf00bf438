//! What the queue's faults share.

use std::time::Duration;

use stanchion::{ClaimOptions, Task, TaskState};
use stanchion_tests::faces::{AnyClaim, AnyClient, AnyQueue, Face};
use stanchion_tests::probe::Probe;
use stanchion_tests::proxy::Proxy;
use stanchion_tests::wait::{self, SOON, task};
use stanchion_tests::{shared, unique};

use crate::{ms, open};

/// A queue seen through a proxy, and the same one without.
pub(crate) struct Stage {
    pub(crate) proxy: Proxy,
    pub(crate) name: String,
    pub(crate) queue: AnyQueue,
    pub(crate) truth: AnyQueue,
    _client: AnyClient,
}

impl Stage {
    pub(crate) fn new(face: Face) -> Self {
        Self::with(face, "")
    }

    /// One whose calls wait for a second at most.
    pub(crate) fn impatient(face: Face) -> Self {
        Self::with(face, "?timeout=1")
    }

    fn with(face: Face, options: &str) -> Self {
        let proxy = Proxy::start(shared());
        let client = open(face, &format!("{}{options}", proxy.url()));
        let name = unique("queue");
        let queue = client.queue(&name);
        let truth = open(Face::Blocking, &shared().url()).queue(&name);
        Self { proxy, name, queue, truth, _client: client }
    }

    pub(crate) fn probe(&self) -> Probe {
        Probe::open(&shared().url())
    }

    #[track_caller]
    pub(crate) fn assert_faults_used(&self) {
        assert_eq!(self.proxy.faults_left(), 0, "the fault did not come to pass");
    }
}

/// A claim under a lease that nothing renews; in milliseconds.
pub(crate) fn leased(lease: u64) -> ClaimOptions {
    ClaimOptions::new().lease(ms(lease))
}

pub(crate) fn plain(id: &str) -> Task {
    Task::new(id).payload(id)
}

#[track_caller]
pub(crate) fn put(queue: &AnyQueue, ids: &[&str]) {
    for result in queue.enqueue_many(ids.iter().map(|id| plain(id))).unwrap() {
        result.unwrap();
    }
}

/// The one task that comes within a time.
#[track_caller]
pub(crate) fn await_one(queue: &AnyQueue, within: Duration) -> AnyClaim {
    let mut claims = queue.claim(leased(30_000).wait(within)).unwrap();
    assert_eq!(claims.len(), 1, "a task comes within {within:?}");
    claims.remove(0)
}

#[track_caller]
pub(crate) fn take(queue: &AnyQueue) -> AnyClaim {
    await_one(queue, Duration::ZERO)
}

/// A thread that waits for a task.
pub(crate) fn claimer(queue: &AnyQueue) -> wait::Task<AnyClaim> {
    let queue = queue.clone();
    task(move || await_one(&queue, 3 * SOON))
}

/// How many are scheduled, ready, claimed and dead.
pub(crate) fn census(queue: &AnyQueue) -> [u64; 4] {
    let stats = queue.stats().unwrap();
    [stats.scheduled, stats.ready, stats.claimed, stats.dead]
}

/// Waits until the lease on a task has ended.
#[track_caller]
pub(crate) fn lapse(queue: &AnyQueue, id: &str) {
    wait::eventually(SOON, || queue.task(id).state != TaskState::Claimed);
}
