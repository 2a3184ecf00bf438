//! The desk between the thread that directs a worker and the hands that do the work: the engine's machine, and who
//! waits for what.

use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::Span;

use crate::api::blocking::{Claim, Queue};
use crate::api::worker::{WorkerReport, WorkerSettings, panic_message, tally};
use crate::base::clock::{Clock, Moment};
use crate::base::error::Error;
use crate::base::wake::locked;
use crate::engine::worker::{Event, HandlerEnd, Order, WorkerMachine};
use crate::protocol::Receipt;
use crate::queue::claim_calls::Verdict;
use crate::queue::delivery::Delivery;
use crate::session::trace;

/// How far a worker was stopped.
#[derive(Debug, Default)]
pub(super) struct StopFlag(AtomicU8);

impl StopFlag {
    const STOP: u8 = 1;
    const HURRY: u8 = 2;

    pub(super) fn stop(&self) {
        self.0.fetch_max(Self::STOP, Ordering::AcqRel);
    }

    pub(super) fn hurry(&self) {
        self.0.fetch_max(Self::HURRY, Ordering::AcqRel);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) >= Self::STOP
    }

    fn is_hurried(&self) -> bool {
        self.0.load(Ordering::Acquire) >= Self::HURRY
    }
}

pub(super) struct Dispatcher {
    pub(super) queue: Queue,
    pub(super) settings: WorkerSettings,
    pub(super) stop: Arc<StopFlag>,
    state: Mutex<Inner>,
    /// For hands: a task was put on the desk, or the shift ended.
    tasks: Condvar,
    /// For the director: a hand is free.
    ended: Condvar,
}

pub(super) struct Inner {
    pub(super) machine: WorkerMachine<Arc<Delivery>>,
    pub(super) report: WorkerReport,
    over: bool,
    director_waits: bool,
    /// Hands that wait for tasks.
    waiting: usize,
    /// One of them was woken for a task and has not come yet. It wakes the next one if there is more to do: so
    /// many short tasks do not wake more threads than can work on them.
    called: bool,
    /// One of them is to look around although there is no task.
    roused: bool,
    /// Why the worker ends.
    pub(super) error: Option<Error>,
}

/// What a hand finds on the desk.
#[derive(Debug)]
pub enum Taken {
    /// A task to work on.
    Task(Claim),
    /// No task at present.
    Nothing,
    /// There will be no more tasks.
    Over,
}

impl Dispatcher {
    pub(super) fn new(queue: Queue, settings: WorkerSettings, stop: Arc<StopFlag>) -> Self {
        let state = Inner {
            machine: settings.machine(1),
            report: WorkerReport::default(),
            over: false,
            director_waits: false,
            waiting: 0,
            called: false,
            roused: false,
            error: None,
        };
        Self { queue, settings, stop, state: Mutex::new(state), tasks: Condvar::new(), ended: Condvar::new() }
    }

    /// Does something with the machine, and then tells what it has to tell: a hook may call whatever it likes.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Inner, Moment) -> T) -> T {
        let (mut state, now) = self.stopped();
        let result = act(&mut state, now);
        self.leave(state);
        result
    }

    /// The state, which knows whether the worker was stopped.
    fn stopped(&self) -> (MutexGuard<'_, Inner>, Moment) {
        let mut state = locked(&self.state);
        let now = Clock::System.now();
        if self.stop.is_set() && !state.machine.is_stopping() {
            state.machine.stop(now);
        }
        if self.stop.is_hurried() {
            state.machine.hurry(now);
        }
        (state, now)
    }

    fn leave(&self, mut state: MutexGuard<'_, Inner>) {
        if state.machine.has_ready() && state.waiting > 0 && !state.called {
            state.called = true;
            self.tasks.notify_one();
        }
        let events = state.machine.events();
        // Under the mutex: whoever finds that all is done finds everything counted.
        events.iter().for_each(|event| state.report += tally(event));
        drop(state);
        self.tell(&events);
    }

    fn tell(&self, events: &[Event<Arc<Delivery>>]) {
        events.iter().for_each(|event| self.settings.happened(event));
        if events.iter().any(|event| matches!(event, Event::Lost(_) | Event::Stuck(..))) {
            self.rouse();
        }
    }

    /// A hand's part, on a thread of the worker's own.
    pub(super) fn work<E: fmt::Display>(&self, handler: impl Fn(&Claim) -> Result<(), E>) {
        let mut waited = false;
        loop {
            let claim = match self.take(waited) {
                Taken::Task(claim) => claim,
                Taken::Nothing => {
                    self.wait(None);
                    waited = true;
                    continue;
                }
                Taken::Over => return,
            };
            waited = false;
            let span = trace::work(claim.queue(), claim.id(), claim.attempt());
            let said = match catch_unwind(AssertUnwindSafe(|| span.in_scope(|| handler(&claim)))) {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(panic) => Err(panic_message(&*panic)),
            };
            if let Some(verdicts) = self.done(claim.receipt(), said, &span) {
                self.settle_alone(verdicts);
            }
        }
    }

    /// The next task; never waits. A hand says whether it has `waited` since it was here last.
    pub(super) fn take(&self, waited: bool) -> Taken {
        self.with(|state, now| {
            if waited {
                state.called = false;
            }
            if state.over {
                return Taken::Over;
            }
            let had_ready = state.machine.has_ready();
            let Some(delivery) = state.machine.begin(now) else {
                if had_ready {
                    // None to begin: the director may claim others.
                    self.call_director(state);
                }
                return Taken::Nothing;
            };
            Taken::Task(Claim::of(delivery))
        })
    }

    /// Waits until there is something to see, for `time` at most if it is given.
    pub(super) fn wait(&self, time: Option<Duration>) {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        let mut state = locked(&self.state);
        while (!state.machine.has_ready() || self.stop.is_set())
            && !state.over
            && !mem::take(&mut state.roused)
        {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return;
            }
            state.waiting += 1;
            state = match left {
                Some(left) => self.tasks.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.tasks.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.waiting -= 1;
            if !state.machine.has_ready() {
                // Called, but another was faster: the next task is another call.
                state.called = false;
            }
        }
    }

    /// What became of a task, told to the span of the work on it too. Answers the verdicts that are to be settled at
    /// once, by the hand itself.
    pub(super) fn done(
        &self,
        receipt: Receipt,
        said: Result<(), String>,
        span: &Span,
    ) -> Option<Vec<Verdict>> {
        let ending = said.map_or_else(HandlerEnd::Failed, |()| HandlerEnd::Returned);
        let (ending, alone) = self.with(|state, now| {
            // Nothing if it was left behind, or interrupted.
            let ending = state.machine.ended(receipt, ending)?;
            self.call_director(state);
            Some((ending, state.machine.settle_beside_claim(now)))
        })?;
        trace::worked(span, &ending);
        alone
    }

    /// The director's next order. If there is none, waits until a hand has something for it, for this time at most.
    pub(super) fn order(&self, most: Duration) -> Order<Arc<Delivery>> {
        let (mut state, now) = self.stopped();
        let order = state.machine.order(now);
        if let Order::Wait(until) = order
            && !state.machine.has_events()
        {
            state.director_waits = true;
            let time = until.since(now).min(most);
            state = self.ended.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
            state.director_waits = false;
        }
        self.leave(state);
        order
    }

    /// Has a hand look around.
    pub(super) fn rouse(&self) {
        let mut state = locked(&self.state);
        if !state.roused {
            state.roused = true;
            self.tasks.notify_one();
        }
    }

    /// No more tasks come: whoever waits for one may go.
    pub(super) fn dismiss(&self) {
        self.with(|state, _| state.over = true);
        self.tasks.notify_all();
    }

    /// What hands work on counts as failed; what they say of it later is not heard. What none has begun goes back.
    pub(super) fn interrupt(&self) {
        self.with(|state, now| {
            state.over = true;
            state.machine.interrupt(now, "the worker was interrupted");
            self.call_director(state);
        });
        self.tasks.notify_all();
    }

    /// Whether there will be no more tasks.
    pub(super) fn is_over(&self) -> bool {
        locked(&self.state).over
    }

    fn call_director(&self, state: &mut Inner) {
        if mem::take(&mut state.director_waits) {
            self.ended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::api::blocking::worker::direct::direct;
    use crate::api::blocking::{Client, go_on};
    use crate::protocol::TaskState;
    use crate::queue::task::Task;

    const SOON: Duration = Duration::from_secs(10);

    fn desk() -> Arc<Dispatcher> {
        let queue = Client::open("memory:").unwrap().queue("desk");
        Arc::new(Dispatcher::new(queue, WorkerSettings::default(), Arc::default()))
    }

    /// Puts a task on the desk, as if the director had claimed it.
    fn put(desk: &Dispatcher, id: &str) {
        desk.queue.enqueue(Task::new(id)).unwrap();
        let claims = desk.queue.claim(desk.settings.claim(1, Duration::ZERO)).unwrap();
        let deliveries = claims.iter().map(|claim| Arc::clone(claim.delivery())).collect();
        desk.with(|state, now| state.machine.claimed(now, deliveries));
    }

    fn until(desk: &Dispatcher, holds: impl Fn(&Inner) -> bool) {
        let deadline = Instant::now() + SOON;
        while !desk.with(|state, _| holds(state)) {
            assert!(Instant::now() < deadline, "it did not come about");
            thread::yield_now();
        }
    }

    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn a_hand_that_was_called_in_vain_is_called_again() {
        let desk = desk();
        let (send, woken) = mpsc::channel();
        let waits = Arc::clone(&desk);
        let hand = thread::spawn(move || {
            waits.wait(None);
            send.send(()).unwrap();
        });
        until(&desk, |state| state.waiting == 1);
        // As if another hand had taken the task that this one is called for.
        desk.with(|state, _| {
            state.called = true;
            desk.tasks.notify_one();
        });
        until(&desk, |state| !state.called);
        put(&desk, "a");
        woken.recv_timeout(SOON).unwrap();
        hand.join().unwrap();
    }

    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn a_hand_waits_no_longer_than_it_wants_to() {
        let desk = desk();
        desk.wait(Some(Duration::from_millis(1)));
        desk.wait(Some(Duration::ZERO));
        assert!(matches!(desk.take(true), Taken::Nothing));
        put(&desk, "a");
        desk.wait(Some(Duration::MAX));
        assert!(matches!(desk.take(true), Taken::Task(_)));
    }

    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn tasks_that_nobody_began_go_back_when_the_worker_is_stopped() {
        let desk = desk();
        put(&desk, "a");
        put(&desk, "b");
        let Taken::Task(begun) = desk.take(false) else { panic!("no task") };
        desk.stop.stop();
        assert!(matches!(desk.take(false), Taken::Nothing));
        assert!(desk.done(begun.receipt(), Ok(()), &Span::none()).is_none());
        let report = direct(&desk, &mut |_| Ok(()), &mut go_on).unwrap();
        assert_eq!(report.completed, 1);
        let left = desk.queue.get("b").unwrap().unwrap();
        assert_eq!((left.state, left.attempts), (TaskState::Ready, 0));
    }

    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn what_a_hand_says_after_an_interruption_is_not_heard() {
        let desk = desk();
        put(&desk, "a");
        let Taken::Task(claim) = desk.take(false) else { panic!("no task") };
        desk.interrupt();
        assert!(desk.done(claim.receipt(), Ok(()), &Span::none()).is_none());
        assert!(matches!(desk.take(false), Taken::Over));
        assert_eq!(direct(&desk, &mut |_| Ok(()), &mut go_on).unwrap().failed, 1);
    }

    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn an_interruption_gives_back_what_nobody_has_begun() {
        let desk = desk();
        put(&desk, "a");
        desk.interrupt();
        // As if the director had asked for it before.
        put(&desk, "b");
        direct(&desk, &mut |_| Ok(()), &mut go_on).unwrap();
        for id in ["a", "b"] {
            let left = desk.queue.get(id).unwrap().unwrap();
            assert_eq!((left.state, left.attempts), (TaskState::Ready, 0));
        }
    }
}
