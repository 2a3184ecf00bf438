//! One of the servers: whether it answers, and which requests it still has to get.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::base::clock::{Clock, Moment};
use crate::base::error::ErrorKind;
use crate::base::sigmask::spawn_quietly;
use crate::base::wake::locked;
use crate::protocol::{Failure, FailureKind, Request};
use crate::store::Store;
use crate::store::redis::life::Life;

/// How long a server that did not answer may take to answer when it is asked whether it is back.
const CHECK_WITHIN: Duration = Duration::from_secs(1);
/// Pauses between such questions.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long a cleanup is kept for a server that does not answer, and how many of them.
const DEBT_FOR: Duration = Duration::from_secs(600);
const DEBTS_MOST: usize = 1_024;

/// A server, as it is known to one client.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) store: Arc<dyn Store>,
    life: Life,
    clock: Clock,
    state: Mutex<Presence>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Presence {
    /// Why it is left out: it did not answer. A thread of its own asks it until it does.
    absent: Option<Failure>,
    /// How often it has come back.
    returns: u64,
    debts: VecDeque<(Request, Moment)>,
    closed: bool,
}

impl Presence {
    /// Forgets the oldest debts, if there are too many.
    fn trim(&mut self) {
        let too_many = self.debts.len().saturating_sub(DEBTS_MOST);
        self.debts.drain(..too_many);
    }
}

impl Member {
    pub(super) fn new(store: Arc<dyn Store>, life: Life, clock: Clock) -> Arc<Self> {
        Arc::new(Self { store, life, clock, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Which server, for messages.
    pub(super) fn place(&self) -> &str {
        self.life.place()
    }

    /// Why it is not asked now, if it is not.
    pub(super) fn absence(&self) -> Option<Failure> {
        locked(&self.state).absent.clone()
    }

    /// How often it has come back: failures of requests sent before that mean nothing any more.
    pub(super) fn returns(&self) -> u64 {
        locked(&self.state).returns
    }

    /// Takes in what became of a request that was made when it had come back so often.
    pub(super) fn note<T>(self: &Arc<Self>, returns: u64, result: &Result<T, Failure>) {
        if let Err(failure) = result
            && (matches!(failure.kind, FailureKind::NotSent | FailureKind::Lost)
                || is_set_up_wrongly(failure))
        {
            let state = locked(&self.state);
            if state.returns == returns {
                self.leave_out(state, failure);
            }
        }
    }

    /// Tells it later.
    pub(super) fn owe(self: &Arc<Self>, request: Request) {
        let mut state = locked(&self.state);
        state.debts.push_back((request, self.clock.now() + DEBT_FOR));
        state.trim();
        let failure = Failure::new(FailureKind::NotSent, format!("{} did not answer", self.place()));
        self.leave_out(state, &failure);
    }

    fn leave_out(self: &Arc<Self>, mut state: MutexGuard<'_, Presence>, failure: &Failure) {
        if state.absent.is_some() || state.closed {
            return;
        }
        // It is not asked at all from now on.
        state.absent = Some(Failure { kind: FailureKind::NotSent, ..failure.clone() });
        drop(state);
        let member = Arc::clone(self);
        if spawn_quietly("stanchion-quorum", move || member.look_after()).is_err() {
            // Out of threads: it is asked as before.
            locked(&self.state).absent = None;
        }
    }

    /// Polls it until it answers, and sends it what it has missed.
    fn look_after(self: &Arc<Self>) {
        // What was owed meanwhile ends leases that nobody has any more: it holds up nobody.
        if self.comes_back()
            && let Err(failure) = self.settle()
        {
            self.leave_out(locked(&self.state), &failure);
        }
    }

    /// Waits until it is back; false if it is not asked any more.
    fn comes_back(&self) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            // It is known how long it stays out: asking earlier would be of no use.
            let rest = self.life.rest();
            let answer = match rest.is_zero() {
                true => Some(self.store.check(self.until()).and_then(|()| self.settle())),
                false => None,
            };
            let mut state = locked(&self.state);
            match answer {
                _ if state.closed => return false,
                Some(Ok(())) => {
                    state.absent = None;
                    state.returns += 1;
                    return true;
                }
                Some(Err(failure)) => state.absent = Some(Failure { kind: FailureKind::NotSent, ..failure }),
                None => {}
            }
            drop(self.changed.wait_timeout(state, rest.max(pause)).unwrap_or_else(PoisonError::into_inner));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn until(&self) -> Moment {
        self.clock.now() + CHECK_WITHIN
    }

    fn settle(&self) -> Result<(), Failure> {
        let now = self.clock.now();
        let debts: Vec<_> = locked(&self.state).debts.drain(..).filter(|(_, until)| now < *until).collect();
        if debts.is_empty() {
            return Ok(());
        }
        let requests: Vec<_> = debts.iter().map(|(request, _)| request.clone()).collect();
        let mut unpaid = Vec::new();
        let mut last = Ok(());
        self.store.perform_all(&requests, self.until(), &mut |number, result| {
            if let Err(failure) = result
                && failure.is_retryable()
            {
                unpaid.push(number);
                last = Err(failure);
            }
        });
        let mut state = locked(&self.state);
        for number in unpaid.into_iter().rev() {
            state.debts.push_front(debts[number].clone());
        }
        state.trim();
        last
    }

    /// Ends its thread.
    pub(super) fn close(&self) {
        locked(&self.state).closed = true;
        self.changed.notify_all();
    }
}

/// Whether asking again does not help: the address leads to another member's server, for one.
pub(super) fn is_set_up_wrongly(failure: &Failure) -> bool {
    failure.kind == FailureKind::Final(ErrorKind::InvalidArgument)
}

#[cfg(test)]
pub(super) mod tests;
