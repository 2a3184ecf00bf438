//! The state machines behind every call. They do no I/O, start no thread and read no clock: a driver
//! passes them the time and the replies, and carries out the steps that they return.

use std::time::Duration;

use crate::base::clock::Moment;
pub use crate::base::clock::NAP_MOST;
use crate::base::error::Error;
use crate::protocol::{Failure, Reply, Request};

pub mod acquire;
pub mod ask;
pub mod call;
pub mod claim;
pub mod events;
pub(crate) mod flow;
pub mod lease;
pub mod leased;
pub mod loss;
pub(crate) mod reentrancy;
pub mod release;
pub mod result;
pub mod schedule;
pub mod settle;
pub mod several;
pub(crate) mod single_flight;
pub(crate) mod sweep;
pub mod take;
pub(crate) mod task_backoff;
pub mod worker;

/// A request unanswered for this long is sent again.
pub const RESEND_AFTER: Duration = Duration::from_secs(1);
/// Even a call whose time is nearly up waits this long for an answer.
const LEAST_PATIENCE: Duration = Duration::from_millis(10);
/// First pause after a request that could not be sent; it doubles with every further failure.
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// Longest such pause.
const BACKOFF_MOST: Duration = Duration::from_millis(500);

/// An answer that took longer was perhaps given long before it came.
const SLOW_ANSWER: Duration = Duration::from_millis(10);

/// What a machine wants done next.
#[derive(Debug)]
pub enum Step<T> {
    /// Send a request, and pass its reply to [`Machine::reply`] under the same number.
    Send(Call),
    /// Open the channel of hints, and report that with [`Machine::listening`].
    Listen,
    /// Wait until then, or until a hint if `hints`.
    Wait {
        /// When to ask again.
        until: Moment,
        /// Whether a hint ends the wait.
        hints: bool,
    },
    /// The outcome; the machine is not asked again.
    Done(Result<T, Error>),
}

/// A request to send.
#[derive(Debug)]
pub struct Call {
    /// The number of this sending.
    pub number: u32,
    /// What to send.
    pub request: Request,
    /// Until when to wait for the reply.
    pub until: Moment,
}

/// One call of the user, as a state machine.
pub trait Machine {
    /// What the call results in.
    type Output;

    /// What it is about.
    fn subject(&self) -> Subject<'_>;

    /// What an outcome that is no error is called.
    fn told(_outcome: &Self::Output) -> &'static str {
        "ok"
    }

    /// What to do now.
    fn step(&mut self, now: Moment) -> Step<Self::Output>;

    /// The reply to a sending, or why there is none. May come late, twice, or never.
    fn reply(&mut self, now: Moment, number: u32, result: Result<Reply, Failure>);

    /// A hint has come.
    fn hint(&mut self) {}

    /// The channel of hints is open, or cannot be opened.
    fn listening(&mut self) {}

    /// Whether the end of the present wait is a matter of less than a millisecond.
    fn is_exact(&self) -> bool {
        false
    }

    /// Whether what may have been carried out is sent again if no answer comes: it does no more the second time.
    fn may_repeat(&self) -> bool {
        true
    }

    /// Whether it only gives back what is held: it goes on while its client is closed.
    fn gives_back(&self) -> bool {
        false
    }

    /// The call ends here, with or without an outcome. Returns the requests that clean up after it, one at a
    /// time, which somebody else has to send.
    fn abandon(&mut self) -> Option<Request>;
}

/// What a call is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What is done.
    pub verb: &'static str,
    /// The lock's or queue's name.
    pub name: &'a str,
    /// The kind of lock, or "queue".
    pub kind: &'static str,
}

/// A source of jitter. Seeded, so that simulations repeat.
#[derive(Clone, Debug)]
pub struct Jitter(fastrand::Rng);

impl Jitter {
    /// A sequence that the seed determines.
    pub fn seeded(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A sequence nobody can foretell.
    pub fn random() -> Self {
        Self(fastrand::Rng::new())
    }

    /// Another sequence, that this one determines.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.0.fork())
    }

    /// A time in the range.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + (most - least).mul_f64(self.0.f64())
    }

    /// The pause after the n-th failure in a row.
    pub(crate) fn backoff(&mut self, failures: u32) -> Duration {
        let most = BACKOFF_FIRST.saturating_mul(1 << failures.min(10)).min(BACKOFF_MOST);
        self.between(most / 2, most)
    }
}

/// The local deadline of a lease whose ttl was reported in answer to a request sent at `sent`.
pub(crate) fn deadline(sent: Moment, ttl: Duration) -> Moment {
    sent + ttl.saturating_sub(margin(ttl))
}

/// What the deadline leaves off the ttl. It covers clocks that run at different speeds.
pub(crate) fn margin(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(2)
}

/// The moment from which the times in a reply count: when it came, or, if that took long, when the request was sent. Asking
/// again too early costs a request; too late costs time. On a clock that `stands` until a test moves it, too late is never:
/// it may have been moved for the last time while the answer was on its way.
pub(crate) fn told_at(sent: Moment, received: Moment, stands: bool) -> Moment {
    if stands || received.since(sent) > SLOW_ANSWER { sent } else { received }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_earlier_than_the_stores() {
        let sent = Moment::from_nanos(0);
        assert_eq!(deadline(sent, Duration::from_secs(10)).since(sent), Duration::from_millis(9_898));
        assert_eq!(deadline(sent, Duration::from_millis(1)), sent);
    }

    #[test]
    fn backoff_grows_to_its_limit() {
        let mut jitter = Jitter::seeded(1);
        assert!(jitter.backoff(0) <= BACKOFF_FIRST);
        for failures in 0..100 {
            assert!(jitter.backoff(failures) <= BACKOFF_MOST);
        }
        assert!(jitter.backoff(40) >= BACKOFF_MOST / 2);
    }
}
