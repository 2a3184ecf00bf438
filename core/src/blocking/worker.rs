//! The blocking worker.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use crate::blocking::{Claim, Queue, go_on};
use crate::channel::HOST_TURN;
use crate::claim_calls::{Batch, Verdict};
use crate::engine::Dice;
use crate::error::{Error, ErrorKind};
use crate::store::MAX_BATCH;
use crate::wake::locked;
use crate::worker::{Ending, Finished, WorkerEvent, WorkerReport, WorkerSettings, panic_message};

/// Takes tasks of a queue and has a handler work on them, on threads of its own.
///
/// Every task is under a lease that is renewed while its handler runs, for `max_run` at most. A thread
/// cannot be stopped from outside: a handler that runs long should look at [`Claim::is_valid`] now and then.
/// A handler that returns is acked; one that fails or panics is nacked with backoff. What a handler settles
/// itself, the worker leaves alone. Verdicts travel with the next claim, in one round trip.
///
/// ```
/// # fn main() -> Result<(), stanchion::Error> {
/// use stanchion::blocking::{Claim, Client, Worker};
/// use stanchion::Task;
///
/// let queue = Client::open("memory:")?.queue("emails");
/// queue.enqueue(Task::new("user:42").payload("welcome"))?;
///
/// let send = |claim: &Claim| {
///     println!("{} gets {:?}", claim.id(), claim.payload());
///     Ok::<(), std::io::Error>(())
/// };
/// let report = Worker::new(queue, send).concurrency(8).until_empty().run()?;
/// assert_eq!(report.completed, 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a worker does nothing until it runs"]
pub struct Worker<H> {
    queue: Queue,
    handler: H,
    settings: WorkerSettings,
    stop: Arc<AtomicBool>,
}

/// Stops a worker from another thread or a signal handler.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<AtomicBool>);

impl Stopper {
    /// Take no more tasks; the worker ends when those at hand are done. Only sets a flag.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl<H, E> Worker<H>
where
    H: Fn(&Claim) -> Result<(), E> + Sync,
    E: fmt::Display,
{
    /// A worker on this queue. An error of the handler is kept with the task as its reason.
    pub fn new(queue: Queue, handler: H) -> Self {
        Self { queue, handler, settings: WorkerSettings::default(), stop: Arc::default() }
    }

    /// How many tasks are worked on at once, each by a thread: 1 to 1,000 (default 1).
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.settings.concurrency = concurrency;
        self
    }

    /// How long the store keeps a claim without renewal (default 30 s): so long after the worker died its
    /// tasks are given to another.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// How long a handler may run at most (default 1 h). Then its claim is lost, and the attempt has failed.
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.settings.max_run = max_run;
        self
    }

    /// End when no task is ready or claimed any more, by this worker or another. Tasks due later stay.
    pub fn until_empty(mut self) -> Self {
        self.settings.until_empty = true;
        self
    }

    /// Is told of everything that happens to a task, on whichever thread it happens.
    pub fn on_event(mut self, hook: impl Fn(WorkerEvent<'_>) + Send + Sync + 'static) -> Self {
        self.settings.hook = Some(Arc::new(hook));
        self
    }

    /// What stops this worker.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// Works until it is stopped, or until the queue is empty if that was asked for.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad option; what the store refuses for good. A store that cannot be reached is
    /// asked again.
    pub fn run(self) -> Result<WorkerReport, Error> {
        self.run_while(&mut go_on)
    }

    /// As [`Worker::run`]; `host_turn` runs about every 50 ms on this thread and may stop the worker.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub fn run_while(self, host_turn: &mut dyn FnMut() -> ControlFlow<()>) -> Result<WorkerReport, Error> {
        self.settings.check().map_err(|error| error.during("work", self.queue.name()))?;
        let shift = Shift {
            queue: &self.queue,
            handler: &self.handler,
            settings: &self.settings,
            stop: &self.stop,
            desk: Mutex::default(),
            changed: Condvar::new(),
        };
        thread::scope(|scope| {
            let result = shift.direct(scope, host_turn);
            shift.dismiss();
            result
        })
    }
}

/// A running worker: the calling thread claims and settles, the others run the handler.
struct Shift<'a, H> {
    queue: &'a Queue,
    handler: &'a H,
    settings: &'a WorkerSettings,
    stop: &'a AtomicBool,
    desk: Mutex<Desk>,
    /// A task was put on the desk, or a verdict, or the shift ended.
    changed: Condvar,
}

/// What the threads pass to each other.
#[derive(Default)]
struct Desk {
    claims: VecDeque<Claim>,
    verdicts: Vec<Verdict>,
    /// Handlers at work.
    running: usize,
    hands: usize,
    /// Verdicts that their threads settle.
    settling: usize,
    /// Something was done since `Drained` was told.
    worked: bool,
    /// The calling thread waits for tasks: verdicts are settled by whoever made them.
    idle: bool,
    over: bool,
    report: WorkerReport,
}

impl<H, E> Shift<'_, H>
where
    H: Fn(&Claim) -> Result<(), E> + Sync,
    E: fmt::Display,
{
    /// The calling thread's part.
    fn direct<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        host_turn: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<WorkerReport, Error> {
        let mut failures = 0;
        loop {
            let (verdicts, free, at_work) = self.look(self.stop.load(Ordering::Acquire));
            // After the look, which may wait: nothing is claimed once somebody has stopped the worker.
            if host_turn().is_break() {
                self.stop.store(true, Ordering::Release);
            }
            let stopping = self.stop.load(Ordering::Acquire);
            if stopping && !at_work && verdicts.is_empty() {
                return Ok(locked(&self.desk).report);
            }
            let free = if stopping { 0 } else { free };
            let carried = !verdicts.is_empty();
            let mut batch = self.queue.one_batch(verdicts)?;
            let claims = match (free, carried) {
                (0, false) => continue,
                (0, true) => self.queue.settle_batch(&mut batch).map(|()| None),
                _ => self.queue.settle_batch_and_claim(&mut batch, self.settings.claim(free), None).map(Some),
            };
            let failed = claims.is_err();
            let again = self.record(batch, claims.as_ref().err());
            locked(&self.desk).verdicts.extend(again);
            match claims {
                Ok(Some(claims)) if claims.is_empty() => self.idle(scope, free, host_turn)?,
                Ok(claims) => self.hand_out(scope, claims.unwrap_or_default())?,
                Err(error) => self.trouble(&error, failures)?,
            }
            failures = if failed { failures + 1 } else { 0 };
        }
    }

    /// Waits until there is something to do: the verdicts to settle, how many hands are free, whether
    /// handlers are at work.
    fn look(&self, stopping: bool) -> (Vec<Verdict>, usize, bool) {
        let mut desk = locked(&self.desk);
        let busy = |desk: &Desk| desk.running + desk.claims.len();
        if desk.verdicts.is_empty()
            && (stopping || busy(&desk) >= self.settings.concurrency)
            && busy(&desk) > 0
        {
            let waited = self.changed.wait_timeout(desk, HOST_TURN);
            desk = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = desk.verdicts.len().min(MAX_BATCH);
        let verdicts = desk.verdicts.drain(..count).collect();
        (verdicts, self.settings.concurrency.saturating_sub(busy(&desk)), busy(&desk) > 0)
    }

    /// Waits for tasks. Meanwhile the handlers' threads settle for themselves.
    fn idle<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        free: usize,
        host_turn: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.rest();
        {
            let mut desk = locked(&self.desk);
            if !desk.verdicts.is_empty() {
                return Ok(());
            }
            if self.settings.until_empty && desk.running == 0 && desk.claims.is_empty() {
                drop(desk);
                if self.queue.stats().is_ok_and(|stats| stats.ready == 0 && stats.claimed == 0) {
                    self.stop.store(true, Ordering::Release);
                    return Ok(());
                }
                desk = locked(&self.desk);
            }
            desk.idle = true;
        }
        let mut turn = || {
            host_turn()?;
            if self.stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = self.settings.claim(free).wait(self.settings.idle_wait());
        let claims = self.queue.claim_while(options, &mut turn);
        locked(&self.desk).idle = false;
        match claims {
            Ok(claims) => self.hand_out(scope, claims),
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                self.stop.store(true, Ordering::Release);
                Ok(())
            }
            // A pause between two tries is in the claim itself.
            Err(error) => self.trouble(&error, 0),
        }
    }

    /// Puts tasks on the desk, and sees to it that there are enough hands.
    fn hand_out<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        claims: Vec<Claim>,
    ) -> Result<(), Error> {
        let mut desk = locked(&self.desk);
        desk.claims.extend(claims);
        let wanted = (desk.claims.len() + desk.running).min(self.settings.concurrency);
        while desk.hands < wanted {
            let started =
                thread::Builder::new().name("stanchion-worker".into()).spawn_scoped(scope, || self.work());
            match started {
                Ok(_) => desk.hands += 1,
                // Fewer do as well; without any the tasks must go back.
                Err(_) if desk.hands > 0 => break,
                Err(error) => {
                    return Err(
                        Error::new(ErrorKind::Internal, "no thread could be started").with_source(error)
                    );
                }
            }
        }
        self.changed.notify_all();
        Ok(())
    }

    /// A handler thread's part.
    fn work(&self) {
        loop {
            let mut desk = locked(&self.desk);
            let claim = loop {
                if let Some(claim) = desk.claims.pop_front() {
                    break claim;
                }
                if desk.over {
                    return;
                }
                desk = self.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
            };
            desk.running += 1;
            desk.worked = true;
            drop(desk);
            let finished = self.attend(&claim);
            let mut report = WorkerReport::default();
            let verdict = self.settings.finish(&mut report, finished);
            let mut desk = locked(&self.desk);
            desk.running -= 1;
            desk.report += report;
            let idle = desk.idle;
            let alone = verdict.and_then(|verdict| match idle {
                true => Some(verdict),
                false => {
                    desk.verdicts.push(verdict);
                    None
                }
            });
            desk.settling += usize::from(alone.is_some());
            drop(desk);
            self.changed.notify_all();
            if let Some(verdict) = alone {
                self.settle_alone(verdict);
                self.end_settling();
            }
        }
    }

    fn attend(&self, claim: &Claim) -> Finished {
        self.settings.tell(&WorkerEvent::Started { id: claim.id(), attempt: claim.attempt() });
        let ending = match catch_unwind(AssertUnwindSafe(|| (self.handler)(claim))) {
            _ if claim.loss().is_some() => Ending::Lost,
            Ok(Ok(())) => Ending::Returned,
            Ok(Err(error)) => Ending::Failed(error.to_string()),
            Err(panic) => Ending::Failed(panic_message(&*panic)),
        };
        Finished::of(claim.delivery(), &ending)
    }

    fn end_settling(&self) {
        let mut desk = locked(&self.desk);
        desk.settling -= 1;
        let idle = desk.idle;
        drop(desk);
        if idle {
            self.rest();
        }
    }

    /// Tells, once, that there is nothing to do any more: the store had nothing, and all is settled.
    fn rest(&self) {
        let mut desk = locked(&self.desk);
        let at_work = desk.running + desk.settling + desk.claims.len() + desk.verdicts.len();
        if at_work > 0 || !desk.worked {
            return;
        }
        desk.worked = false;
        drop(desk);
        self.settings.tell(&WorkerEvent::Drained);
    }

    /// Settles one verdict while the calling thread waits for tasks.
    fn settle_alone(&self, verdict: Verdict) {
        let mut verdicts = vec![verdict];
        let mut failures = 0;
        while !verdicts.is_empty() {
            let Ok(mut batch) = self.queue.one_batch(std::mem::take(&mut verdicts)) else { return };
            let error = self.queue.settle_batch(&mut batch).err();
            verdicts = self.record(batch, error.as_ref());
            if let Some(error) = error
                && self.trouble(&error, failures).is_err()
            {
                self.stop.store(true, Ordering::Release);
            }
            failures += 1;
        }
    }

    /// Counts what became of verdicts; gives back those that may still be settled after this error.
    fn record(&self, batch: Batch, error: Option<&Error>) -> Vec<Verdict> {
        let may_pass = error.is_some_and(Error::is_retryable_settle);
        let (mut report, mut again) = (WorkerReport::default(), Vec::new());
        for (verdict, result) in batch.results() {
            match result {
                Err(_) if may_pass && !verdict.is_over() => again.push(verdict),
                result => self.settings.count(&mut report, &verdict, &result),
            }
        }
        locked(&self.desk).report += report;
        again
    }

    fn trouble(&self, error: &Error, failures: u32) -> Result<(), Error> {
        self.settings.tell(&WorkerEvent::StoreFailed { error });
        if !error.is_retryable_settle() {
            return Err(error.again());
        }
        thread::sleep(Dice::random().backoff(failures));
        Ok(())
    }

    /// No more tasks come: whoever waits for one may go. Tasks nobody began go back.
    fn dismiss(&self) {
        let mut desk = locked(&self.desk);
        desk.over = true;
        let unbegun: Vec<Claim> = desk.claims.drain(..).collect();
        drop(desk);
        self.changed.notify_all();
        let _ = self.queue.settle(unbegun.into_iter().map(Claim::returned).collect());
    }
}

impl<H> fmt::Debug for Worker<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Worker({:?}, {:?})", self.queue, self.settings)
    }
}
