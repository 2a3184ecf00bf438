//! The desk between the thread that directs a worker and the hands that do the work.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::Span;

use super::direct::briefly;
use crate::blocking::{Claim, Queue};
use crate::claim_calls::Verdict;
use crate::store::MAX_BATCH;
use crate::trace;
use crate::verbs::Receipt;
use crate::wake::locked;
use crate::worker::{Ending, Finished, WorkerEvent, WorkerReport, WorkerSettings, panic_message};

pub(super) struct Desk {
    pub(super) queue: Queue,
    pub(super) settings: WorkerSettings,
    pub(super) stop: Arc<AtomicBool>,
    state: Mutex<State>,
    /// For hands: a task was put on the desk, or the shift ended.
    tasks: Condvar,
    /// For the director: a hand is free.
    ended: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) claims: VecDeque<Claim>,
    /// What hands work on.
    pub(super) running: HashMap<Receipt, Claim>,
    pub(super) verdicts: Vec<Verdict>,
    /// The director waits for tasks: verdicts are settled by whoever made them.
    pub(super) idle: bool,
    /// So many hands do that now.
    settling: usize,
    /// Something was done since `Drained` was told.
    worked: bool,
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

impl State {
    pub(super) fn busy(&self) -> usize {
        self.running.len() + self.claims.len()
    }

    /// Whether there is a hand to wait for.
    pub(super) fn at_work(&self) -> bool {
        self.busy() > 0 || (self.settling > 0 && !self.over)
    }

    /// There is no hand that would take these tasks: they go back.
    fn return_unbegun(&mut self) {
        let unbegun = mem::take(&mut self.claims);
        self.verdicts.extend(unbegun.into_iter().map(Claim::returned));
    }
}

impl Desk {
    pub(super) fn new(queue: Queue, settings: WorkerSettings, stop: Arc<AtomicBool>) -> Self {
        Self { queue, settings, stop, state: Mutex::default(), tasks: Condvar::new(), ended: Condvar::new() }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut locked(&self.state))
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
            if let Some(verdict) = self.done(claim.receipt(), said, &span) {
                self.settle_alone(verdict);
            }
        }
    }

    /// The next task; never waits. A hand says whether it has `waited` since it was here last.
    pub(super) fn take(&self, waited: bool) -> Taken {
        let mut state = locked(&self.state);
        if waited {
            state.called = false;
        }
        if state.over {
            return Taken::Over;
        }
        if self.stop.load(Ordering::Acquire) {
            return Taken::Nothing;
        }
        let Some(claim) = self.next_claim(&mut state) else { return Taken::Nothing };
        state.running.insert(claim.receipt(), claim.clone());
        state.worked = true;
        self.call_hand(&mut state);
        drop(state);
        self.settings.tell(&WorkerEvent::Started { id: claim.id(), attempt: claim.attempt() });
        Taken::Task(claim)
    }

    /// Waits until there is something to see, for `time` at most if it is given.
    pub(super) fn wait(&self, time: Option<Duration>) {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        let mut state = locked(&self.state);
        while (state.claims.is_empty() || self.stop.load(Ordering::Acquire))
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
            if state.claims.is_empty() {
                // Called, but another was faster: the next task is another call.
                state.called = false;
            }
        }
    }

    /// What became of a task, told to the span of the work on it too. Answers the verdict if it is to be settled at
    /// once, by the hand itself.
    pub(super) fn done(&self, receipt: Receipt, said: Result<(), String>, span: &Span) -> Option<Verdict> {
        let claim = locked(&self.state).running.get(&receipt)?.clone();
        let ending = match said {
            _ if claim.loss().is_some() => Ending::Lost,
            Ok(()) => Ending::Returned,
            Err(reason) => Ending::Failed(reason),
        };
        trace::worked(span, &ending);
        let mut report = WorkerReport::default();
        let verdict = self.settings.finish(&mut report, Finished::of(claim.delivery(), &ending));
        let mut state = locked(&self.state);
        // Gone if it was interrupted meanwhile.
        let _kept = state.running.remove(&receipt)?;
        state.report += report;
        let alone = if state.idle {
            state.settling += usize::from(verdict.is_some());
            verdict
        } else {
            state.verdicts.extend(verdict);
            None
        };
        self.call_director(&mut state);
        alone
    }

    /// A hand has settled a verdict by itself.
    pub(super) fn settled(&self) {
        let mut state = locked(&self.state);
        state.settling -= 1;
        self.call_director(&mut state);
        let is_idle = state.idle && !state.over;
        drop(state);
        if is_idle {
            self.rest();
        }
    }

    /// Tells, once, that there is nothing to do any more: the store had nothing, and all is settled.
    pub(super) fn rest(&self) {
        let mut state = locked(&self.state);
        if !state.worked || state.busy() + state.settling + state.verdicts.len() > 0 {
            return;
        }
        state.worked = false;
        drop(state);
        self.settings.tell(&WorkerEvent::Drained);
    }

    /// Puts tasks on the desk.
    pub(super) fn put(&self, claims: Vec<Claim>) {
        let mut state = locked(&self.state);
        state.claims.extend(claims);
        if state.over {
            state.return_unbegun();
        }
        self.call_hand(&mut state);
    }

    /// Has a hand look around.
    pub(super) fn rouse(&self) {
        let mut state = locked(&self.state);
        if !state.roused {
            state.roused = true;
            self.tasks.notify_one();
        }
    }

    /// Waits until there is something to do for the director: the verdicts to settle, how many hands are free,
    /// whether hands are at work.
    pub(super) fn look(&self, stopping: bool, time: Duration) -> (Vec<Verdict>, usize, bool) {
        let mut state = locked(&self.state);
        let concurrency = self.settings.concurrency;
        if state.verdicts.is_empty() && (stopping || state.busy() >= concurrency) && state.at_work() {
            state.director_waits = true;
            state = self.ended.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
            state.director_waits = false;
        }
        let count = state.verdicts.len().min(MAX_BATCH);
        let verdicts = state.verdicts.drain(..count).collect();
        (verdicts, concurrency.saturating_sub(state.busy()), state.at_work())
    }

    /// Tasks that nobody began go back with the next verdicts.
    pub(super) fn return_unbegun(&self) {
        locked(&self.state).return_unbegun();
    }

    /// No more tasks come: whoever waits for one may go. Tasks nobody began go back.
    pub(super) fn dismiss(&self) {
        let mut state = locked(&self.state);
        let interrupted = mem::replace(&mut state.over, true);
        state.idle = true;
        let unbegun: Vec<Claim> = state.claims.drain(..).collect();
        drop(state);
        self.tasks.notify_all();
        let unbegun = unbegun.into_iter().map(Claim::returned).collect();
        let _ = briefly(interrupted, || self.queue.settle(unbegun));
    }

    /// What hands work on counts as failed; what they say of it later is not heard. What none has begun goes back.
    pub(super) fn interrupt(&self) {
        let mut state = locked(&self.state);
        state.over = true;
        state.return_unbegun();
        let running = mem::take(&mut state.running);
        for claim in running.values() {
            let finished =
                Finished::of(claim.delivery(), &Ending::Failed("the worker was interrupted".into()));
            let mut report = WorkerReport::default();
            let verdict = self.settings.finish(&mut report, finished);
            state.report += report;
            state.verdicts.extend(verdict);
        }
        self.call_director(&mut state);
        drop(state);
        self.tasks.notify_all();
    }

    /// Whether there will be no more tasks.
    pub(super) fn is_over(&self) -> bool {
        locked(&self.state).over
    }

    /// The next claim that is still ours: it may have lain here for long.
    fn next_claim(&self, state: &mut State) -> Option<Claim> {
        loop {
            let claim = state.claims.pop_front()?;
            if claim.loss().is_none() {
                return Some(claim);
            }
            let lost = Finished::of(claim.delivery(), &Ending::Lost);
            let _nothing_to_settle = self.settings.finish(&mut state.report, lost);
            self.call_director(state);
        }
    }

    fn call_hand(&self, state: &mut State) {
        if !state.claims.is_empty() && state.waiting > 0 && !state.called {
            state.called = true;
            self.tasks.notify_one();
        }
    }

    fn call_director(&self, state: &mut State) {
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
    use crate::blocking::worker::direct::direct;
    use crate::blocking::{Client, go_on};
    use crate::task::Task;
    use crate::verbs::{self, TaskState};

    const SOON: Duration = Duration::from_secs(10);

    fn desk() -> Arc<Desk> {
        let queue = Client::open("memory:").unwrap().queue("desk");
        Arc::new(Desk::new(queue, WorkerSettings::default(), Arc::default()))
    }

    fn claimed(desk: &Desk, id: &str) -> Vec<Claim> {
        desk.queue.enqueue(Task::new(id)).unwrap();
        desk.queue.claim(desk.settings.claim(1)).unwrap()
    }

    fn until(desk: &Desk, holds: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + SOON;
        while !desk.with(|state| holds(state)) {
            assert!(Instant::now() < deadline, "it did not come about");
            thread::yield_now();
        }
    }

    #[test]
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
        desk.with(|state| {
            state.called = true;
            desk.tasks.notify_one();
        });
        until(&desk, |state| !state.called);
        desk.put(claimed(&desk, "a"));
        woken.recv_timeout(SOON).unwrap();
        hand.join().unwrap();
    }

    #[test]
    fn a_hand_waits_no_longer_than_it_wants_to() {
        let desk = desk();
        desk.wait(Some(Duration::from_millis(1)));
        desk.wait(Some(Duration::ZERO));
        assert!(matches!(desk.take(true), Taken::Nothing));
        desk.put(claimed(&desk, "a"));
        desk.wait(Some(Duration::MAX));
        assert!(matches!(desk.take(true), Taken::Task(_)));
    }

    #[test]
    fn tasks_that_nobody_began_go_back_when_the_worker_is_stopped() {
        let desk = desk();
        desk.put(claimed(&desk, "a"));
        desk.put(claimed(&desk, "b"));
        let Taken::Task(begun) = desk.take(false) else { panic!("no task") };
        desk.stop.store(true, Ordering::Release);
        assert!(matches!(desk.take(false), Taken::Nothing));
        let hand = Arc::clone(&desk);
        let hand = thread::spawn(move || {
            until(&hand, |state| state.claims.is_empty());
            assert!(hand.done(begun.receipt(), Ok(()), &Span::none()).is_none());
        });
        let report = direct(&desk, &mut |_| Ok(()), &mut go_on).unwrap();
        hand.join().unwrap();
        assert_eq!(report.completed, 1);
        let left = desk.queue.get("b").unwrap().unwrap();
        assert_eq!((left.state, left.attempts), (TaskState::Ready, 0));
    }

    #[test]
    fn a_claim_that_was_lost_while_it_lay_ready_is_not_begun() {
        let desk = desk();
        desk.queue.enqueue(Task::new("a")).unwrap();
        let short = desk.settings.claim(1).lease(Duration::from_millis(50)).renew(false);
        let claims = desk.queue.claim(short).unwrap();
        assert!(claims[0].wait_lost(SOON));
        desk.put(claims);
        assert!(matches!(desk.take(false), Taken::Nothing));
        assert_eq!(desk.with(|state| state.report.lost), 1);
    }

    #[test]
    fn what_a_hand_says_after_an_interruption_is_not_heard() {
        let desk = desk();
        desk.put(claimed(&desk, "a"));
        let Taken::Task(claim) = desk.take(false) else { panic!("no task") };
        desk.interrupt();
        assert!(desk.done(claim.receipt(), Ok(()), &Span::none()).is_none());
        let (verdicts, _, at_work) = desk.look(true, Duration::ZERO);
        assert_eq!((verdicts.len(), at_work), (1, false));
        assert!(matches!(desk.take(false), Taken::Over));
    }

    #[test]
    fn an_interruption_gives_back_what_nobody_has_begun() {
        let desk = desk();
        desk.put(claimed(&desk, "a"));
        desk.interrupt();
        // As if the director had asked for it before.
        desk.put(claimed(&desk, "b"));
        let (verdicts, _, at_work) = desk.look(true, Duration::ZERO);
        assert!(verdicts.iter().all(|verdict| matches!(verdict.verdict(), verbs::Verdict::PutBack)));
        assert_eq!((verdicts.len(), at_work), (2, false));
    }
}
