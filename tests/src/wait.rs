//! Waiting for an event with a deadline. Tests never sleep to synchronise.

use std::future::Future;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything takes on a loaded machine: a test that reaches it has failed.
pub const SOON: Duration = Duration::from_secs(10);
/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Waits until `condition` holds; panics if it does not within `deadline`.
#[track_caller]
pub fn eventually(deadline: Duration, condition: impl FnMut() -> bool) {
    assert!(holds_within(deadline, condition), "the condition did not become true within {deadline:?}");
}

/// Waits until `look` finds something; panics if it does not within `deadline`.
#[track_caller]
pub fn eventually_some<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + deadline;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up, "nothing was found within {deadline:?}");
        thread::sleep(LOOK_EVERY);
    }
}

/// Whether `condition` becomes true within `deadline`; returns as soon as it does.
pub fn holds_within(deadline: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let give_up = Instant::now() + deadline;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= give_up {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// As [`eventually`], for a condition that has to be awaited.
pub async fn eventually_async<F: Future<Output = bool>>(
    deadline: Duration,
    mut condition: impl FnMut() -> F,
) {
    let give_up = Instant::now() + deadline;
    while !condition().await {
        assert!(Instant::now() < give_up, "the condition did not become true within {deadline:?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The future's value; panics if it takes longer than `deadline`.
pub async fn within<T>(deadline: Duration, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(deadline, future).await {
        Ok(value) => value,
        Err(_) => panic!("the future was not ready within {deadline:?}"),
    }
}

/// A thread whose end can be waited for with a deadline.
#[derive(Debug)]
#[must_use = "a task that nobody joins checks nothing"]
pub struct Task<T> {
    result: Receiver<T>,
}

/// Runs `work` on a thread of its own.
pub fn task<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Task<T> {
    let (send, result) = mpsc::channel();
    thread::spawn(move || {
        // Nobody may be listening any more.
        let _ = send.send(work());
    });
    Task { result }
}

impl<T> Task<T> {
    /// The thread's value; panics if the thread panicked or takes longer than `deadline`.
    #[track_caller]
    pub fn join_within(self, deadline: Duration) -> T {
        match self.result.recv_timeout(deadline) {
            Ok(value) => value,
            Err(RecvTimeoutError::Timeout) => panic!("the thread did not end within {deadline:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the thread panicked"),
        }
    }

    /// The thread's value; panics if it takes longer than [`SOON`].
    #[track_caller]
    pub fn join(self) -> T {
        self.join_within(SOON)
    }

    /// Whether the thread has ended; its value is lost then, so this is for asserting that it has not.
    pub fn has_ended(&self) -> bool {
        !matches!(self.result.try_recv(), Err(mpsc::TryRecvError::Empty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_looked_at_until_it_holds() {
        let mut looks = 0;
        eventually(SOON, || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    #[should_panic(expected = "did not become true")]
    fn a_condition_that_never_holds_panics() {
        eventually(Duration::from_millis(5), || false);
    }

    #[test]
    fn a_task_gives_its_value() {
        assert_eq!(task(|| 7).join(), 7);
    }

    #[test]
    #[should_panic(expected = "the thread panicked")]
    fn a_panic_in_a_task_is_seen() {
        task(|| panic!("expected in this test")).join();
    }
}
