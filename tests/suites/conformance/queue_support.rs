//! What the queue's topics share.

use std::time::Duration;

use stanchion::{ClaimOptions, ErrorKind, Task, TaskInfo, TaskState};
use stanchion_tests::faces::{AnyClaim, AnyQueue};
use stanchion_tests::wait::{self, SOON, eventually, task};

use crate::secs;

/// A claim of one task under a lease that nothing renews.
pub(crate) fn leased(lease: Duration) -> ClaimOptions {
    ClaimOptions::new().lease(lease)
}

/// Claims at most so many, for long enough.
pub(crate) fn up_to(max: usize) -> ClaimOptions {
    leased(secs(30)).max(max)
}

/// A task whose payload is its id.
pub(crate) fn plain(id: &str) -> Task {
    Task::new(id).payload(id)
}

/// Puts tasks in, in this order.
#[track_caller]
pub(crate) fn put(queue: &AnyQueue, ids: &[&str]) {
    for result in queue.enqueue_many(ids.iter().map(|id| plain(id))).unwrap() {
        result.unwrap();
    }
}

/// The one task that is ready.
#[track_caller]
pub(crate) fn take(queue: &AnyQueue) -> AnyClaim {
    take_for(queue, secs(30))
}

/// The one task that is ready, under a lease of this time.
#[track_caller]
pub(crate) fn take_for(queue: &AnyQueue, lease: Duration) -> AnyClaim {
    let mut claims = queue.claim(leased(lease)).unwrap();
    assert_eq!(claims.len(), 1, "one task is ready");
    claims.remove(0)
}

/// Waits until a task can be taken, and takes it.
#[track_caller]
pub(crate) fn await_one(queue: &AnyQueue) -> AnyClaim {
    let mut claims = queue.claim(up_to(1).wait(SOON)).unwrap();
    assert_eq!(claims.len(), 1, "a task comes in time");
    claims.remove(0)
}

/// Fails if there is something to claim.
#[track_caller]
pub(crate) fn assert_nothing(queue: &AnyQueue) {
    let claims = queue.claim(up_to(10)).unwrap();
    assert!(claims.is_empty(), "there was something to claim: {claims:?}");
}

/// A thread that waits for a task.
pub(crate) fn claimer(queue: &AnyQueue) -> wait::Task<AnyClaim> {
    let queue = queue.clone();
    task(move || {
        let mut claims = queue.claim(up_to(1).wait(secs(30))).expect("a claim");
        assert_eq!(claims.len(), 1, "the claimer's task");
        claims.remove(0)
    })
}

/// Waits until the lease on a task has ended.
#[track_caller]
pub(crate) fn lapse(queue: &AnyQueue, id: &str) {
    eventually(SOON, || queue.task(id).state != TaskState::Claimed);
}

pub(crate) fn claimed_ids(claims: &[AnyClaim]) -> Vec<&str> {
    claims.iter().map(AnyClaim::id).collect()
}

pub(crate) fn ids(tasks: &[TaskInfo]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

/// How many are scheduled, ready, claimed and dead; stats and the lists must say the same.
#[track_caller]
pub(crate) fn census(queue: &AnyQueue) -> [usize; 4] {
    let stats = queue.stats().unwrap();
    let told = [stats.scheduled, stats.ready, stats.claimed, stats.dead].map(|count| count as usize);
    let states = [TaskState::Scheduled, TaskState::Ready, TaskState::Claimed, TaskState::Dead];
    assert_eq!(told, states.map(|state| queue.all(state).len()), "stats and lists differ");
    told
}

/// The kind of error; panics if there is none.
#[track_caller]
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, stanchion::Error>) -> ErrorKind {
    result.expect_err("it was refused").kind()
}
