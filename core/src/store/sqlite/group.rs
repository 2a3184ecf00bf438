//! Threads of one process that write at the same time: one of them leads, and its transaction, with one wait for the
//! disk, does the work of all that came meanwhile (group commit).
//!
//! All of it happens inside the fork gate: a fork waits until nobody leads or waits here.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::base::wake::locked;
use crate::protocol::Request;
use crate::store::sqlite::step::Performed;

/// Jobs in one transaction at most, so that the first of them does not wait for a thousand.
const MOST: usize = 128;

/// Who writes to a database now, and who came meanwhile.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<Line>);

#[derive(Debug, Default)]
struct Line {
    is_led: bool,
    waiting: Vec<Arc<Job>>,
}

/// A request of another thread, which waits for its outcome.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: Request,
    /// How long a lock's row outlives its last lease, as its client wants it.
    pub(super) margin: Duration,
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Debug)]
enum Turn {
    Waits,
    Leads,
    Served(Served),
}

/// What became of a request in another's transaction.
#[derive(Debug)]
pub(super) enum Served {
    Done(Performed),
    /// Another process stood in the way.
    Busy,
    /// The transaction failed, perhaps by no fault of this request.
    Alone,
}

/// The part of a thread that came to write.
pub(super) enum Part<'a> {
    Leads(Leading<'a>),
    Served(Served),
}

/// Being the one that writes. Dropped, the next one leads.
pub(super) struct Leading<'a>(&'a Group);

/// Jobs that the leader took. Those that it answers nothing go on alone.
pub(super) struct Followers(Vec<Arc<Job>>);

impl Group {
    /// Leads, or has a leader do it. The caller is inside the fork gate.
    pub(super) fn join(&self, request: &Request, margin: Duration) -> Part<'_> {
        let job = {
            let mut line = locked(&self.0);
            if !mem::replace(&mut line.is_led, true) {
                return Part::Leads(Leading(self));
            }
            let turn = Mutex::new(Turn::Waits);
            let job = Arc::new(Job { request: request.clone(), margin, turn, changed: Condvar::new() });
            line.waiting.push(Arc::clone(&job));
            job
        };
        match job.wait() {
            Some(served) => Part::Served(served),
            None => Part::Leads(Leading(self)),
        }
    }
}

impl Leading<'_> {
    /// Takes those that have come so far.
    pub(super) fn followers(&self) -> Followers {
        let mut line = locked(&self.0.0);
        let taken = line.waiting.len().min(MOST);
        let rest = line.waiting.split_off(taken);
        Followers(mem::replace(&mut line.waiting, rest))
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let mut line = locked(&self.0.0);
        match line.waiting.is_empty() {
            true => line.is_led = false,
            false => line.waiting.remove(0).set(Turn::Leads),
        }
    }
}

impl Followers {
    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What they ask for, in their order.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.0.iter().map(|job| &**job)
    }

    /// Gives each its outcome, in their order.
    pub(super) fn serve(mut self, outcomes: impl Iterator<Item = Served>) {
        for (job, served) in self.0.drain(..).zip(outcomes) {
            job.set(Turn::Served(served));
        }
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        for job in &self.0 {
            job.set(Turn::Served(Served::Alone));
        }
    }
}

impl Job {
    fn set(&self, turn: Turn) {
        *locked(&self.turn) = turn;
        self.changed.notify_one();
    }

    /// Sleeps until it is served, or leads (`None`).
    fn wait(&self) -> Option<Served> {
        let waits = |turn: &mut Turn| matches!(turn, Turn::Waits);
        let mut turn =
            self.changed.wait_while(locked(&self.turn), waits).unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *turn, Turn::Leads) {
            Turn::Served(served) => Some(served),
            Turn::Waits | Turn::Leads => None,
        }
    }
}

#[cfg(test)]
impl Group {
    /// Waits until so many wait for a leader.
    pub(super) fn until_waiting(&self, count: usize) {
        let began = std::time::Instant::now();
        while locked(&self.0).waiting.len() < count {
            assert!(began.elapsed() < Duration::from_secs(30), "they have not come");
            std::thread::yield_now();
        }
    }
}
