//! Waiting for an event with a deadline. Tests never sleep to synchronise.

use std::future::Future;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything takes on a loaded machine: a test that reaches it has failed.
pub const SOON: Duration = Duration::from_secs(10);
/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// How often the pulse beats.
const BEAT: Duration = Duration::from_millis(5);
/// A beat that is later than this was held up: the machine stood still, or had no turn for this process.
const HELD_UP: Duration = Duration::from_millis(10);

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

/// How long ago this was, without the time during which nothing of this process could run: a bound on how long the
/// library may take says nothing about how long a virtual machine may stand still. For upper bounds only, since
/// deadlines go on meanwhile. Counted from [`feel_the_pulse`] on.
pub fn ran_since(begun: Instant) -> Duration {
    feel_the_pulse();
    let (now, pulse) = (Instant::now(), pulse());
    let current = (pulse.last, now.saturating_duration_since(pulse.last + BEAT));
    let standstills = pulse.standstills.iter().copied().chain([current]);
    let stood: Duration = standstills
        .filter(|(_, late)| *late > HELD_UP)
        .map(|(from, late)| (from + BEAT + late).saturating_duration_since(begun).min(late))
        .sum();
    now.saturating_duration_since(begun).saturating_sub(stood)
}

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// By the clock.
    pub wall: Duration,
    /// See [`ran_since`].
    pub ran: Duration,
}

impl Took {
    /// Whether it took less, as far as it could run.
    pub fn less_than(self, bound: Duration) -> bool {
        self.ran < bound
    }

    /// Whether so much time has passed.
    pub fn at_least(self, bound: Duration) -> bool {
        self.wall >= bound
    }
}

/// The value, and how long it took to get it.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    feel_the_pulse();
    let begun = Instant::now();
    let value = work();
    (value, Took { wall: begun.elapsed(), ran: ran_since(begun) })
}

/// Begins to take note of when this process cannot run.
pub fn feel_the_pulse() {
    static FELT: OnceLock<()> = OnceLock::new();
    FELT.get_or_init(|| {
        pulse().last = Instant::now();
        thread::spawn(|| {
            loop {
                thread::sleep(BEAT);
                let mut pulse = pulse();
                let (last, now) = (pulse.last, Instant::now());
                let late = now.saturating_duration_since(last + BEAT);
                if late > HELD_UP {
                    pulse.standstills.push((last, late));
                }
                pulse.last = now;
            }
        });
    });
}

/// When the pulse beat last, and after which beats the next one came how late.
struct Pulse {
    last: Instant,
    standstills: Vec<(Instant, Duration)>,
}

fn pulse() -> MutexGuard<'static, Pulse> {
    static PULSE: OnceLock<Mutex<Pulse>> = OnceLock::new();
    let pulse = PULSE.get_or_init(|| Mutex::new(Pulse { last: Instant::now(), standstills: Vec::new() }));
    pulse.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn time_without_a_standstill_counts_and_a_standstill_does_not() {
        feel_the_pulse();
        let begun = Instant::now();
        eventually(SOON, || ran_since(begun) >= Duration::from_millis(30));
        // As when the machine stands still: no beat comes.
        let (held, ran) = (pulse(), begun.elapsed());
        thread::sleep(Duration::from_millis(300));
        drop(held);
        let counted = ran_since(begun);
        assert!(begun.elapsed() >= ran + Duration::from_millis(300));
        assert!(counted < ran + Duration::from_millis(150), "{counted:?} after {ran:?} and a standstill");
        eventually(SOON, || ran_since(begun) > counted);
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
