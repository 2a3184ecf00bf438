//! The async worker.

mod settings;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tracing::Instrument;

use crate::claim::Claim;
use crate::claim_calls::{Batch, Verdict};
use crate::engine::Dice;
use crate::error::Error;
use crate::queue::Queue;
use crate::trace;

pub(crate) use settings::{Ending, Finished, WorkerSettings, panic_message};
pub use settings::{WorkerEvent, WorkerReport};

/// How long one waiting claim lasts; then the worker looks around.
pub(crate) const IDLE_WAIT: Duration = Duration::from_secs(30);

/// Takes tasks of a queue and has a handler work on them.
///
/// Every task is under a lease that is renewed while its handler runs, for `max_run` at most; when it is
/// lost, the handler is dropped at once. A handler that returns is acked; one that fails or panics is
/// nacked with backoff. What a handler settles itself, the worker leaves alone. Verdicts travel with the
/// next claim, in one round trip.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), stanchion::Error> {
/// use stanchion::{Claim, Client, Task, Worker};
///
/// let queue = Client::open("memory:").await?.queue("emails");
/// queue.enqueue(Task::new("user:42").payload("welcome")).await?;
///
/// let send = |claim: Claim| async move {
///     println!("{} gets {:?}", claim.id(), claim.payload());
///     Ok::<(), std::io::Error>(())
/// };
/// let report = Worker::new(queue, send).concurrency(8).until_empty().run().await?;
/// assert_eq!(report.completed, 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a worker does nothing until it runs"]
pub struct Worker<H> {
    queue: Queue,
    handler: Arc<H>,
    settings: WorkerSettings,
}

impl<H, Fut, E> Worker<H>
where
    H: Fn(Claim) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + Send + 'static,
{
    /// A worker on this queue. An error of the handler is kept with the task as its reason.
    pub fn new(queue: Queue, handler: H) -> Self {
        Self { queue, handler: Arc::new(handler), settings: WorkerSettings::default() }
    }

    /// How many tasks are worked on at once: 1 to 1,000 (default 1).
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

    /// Is told of everything that happens to a task. Called on the worker's own task: it must not block.
    pub fn on_event(mut self, hook: impl Fn(WorkerEvent<'_>) + Send + Sync + 'static) -> Self {
        self.settings.hook = Some(Arc::new(hook));
        self
    }

    /// Fails if the queue's name or an option is wrong, as running it would.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check(&self) -> Result<(), Error> {
        self.queue.check()?;
        self.settings.check().map_err(|error| error.during("work", self.queue.name()))
    }

    /// Works for ever, or until the queue is empty if that was asked for.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad option; what the store refuses for good. A store that cannot be reached is
    /// asked again.
    pub async fn run(self) -> Result<WorkerReport, Error> {
        self.run_until(std::future::pending()).await
    }

    /// Works until `shutdown` completes; then takes no more tasks, and ends when those at hand are done.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<WorkerReport, Error> {
        self.check()?;
        let mut shift = Shift {
            queue: self.queue,
            handler: self.handler,
            settings: self.settings,
            running: JoinSet::new(),
            settling: JoinSet::new(),
            claiming: None,
            verdicts: Vec::new(),
            idle: false,
            beside_work: false,
            rested: true,
            stopping: false,
            pause: None,
            failures: 0,
            report: WorkerReport::default(),
            error: None,
        };
        shift.run(shutdown).await
    }
}

/// A claim on its way, with the verdicts that travel with it.
type Claiming = Pin<Box<dyn Future<Output = (Batch, Result<Vec<Claim>, Error>)> + Send>>;

/// A running worker.
struct Shift<H> {
    queue: Queue,
    handler: Arc<H>,
    settings: WorkerSettings,
    running: JoinSet<Finished>,
    settling: JoinSet<(Batch, Result<(), Error>)>,
    claiming: Option<Claiming>,
    /// Not sent yet.
    verdicts: Vec<Verdict>,
    /// The last claim found nothing: the next one waits, and verdicts do not wait for it.
    idle: bool,
    /// That claim began while there was work: when this is done, there may be nothing to wait for any more.
    beside_work: bool,
    /// Nothing was done since `Drained` was told.
    rested: bool,
    stopping: bool,
    /// Until when the store is left alone after a failure.
    pause: Option<tokio::time::Instant>,
    failures: u32,
    report: WorkerReport,
    error: Option<Error>,
}

impl<H, Fut, E> Shift<H>
where
    H: Fn(Claim) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + Send + 'static,
{
    async fn run(&mut self, shutdown: impl Future<Output = ()>) -> Result<WorkerReport, Error> {
        tokio::pin!(shutdown);
        loop {
            // Whoever stops a worker and then lets a handler end does not see another task begin.
            if !self.stopping && is_ready(shutdown.as_mut()).await {
                self.stop();
            }
            self.rest();
            self.look_again();
            self.begin_claim()?;
            self.begin_settle()?;
            if self.is_done() {
                return self.error.take().map_or(Ok(self.report), Err);
            }
            let pause = self.pause;
            tokio::select! {
                () = &mut shutdown, if !self.stopping => self.stop(),
                Some(finished) = self.running.join_next() => {
                    self.finished(finished);
                    while let Some(finished) = self.running.try_join_next() {
                        self.finished(finished);
                    }
                }
                (batch, claims) = wait_for(&mut self.claiming) => self.claimed(batch, claims).await,
                Some(Ok((batch, result))) = self.settling.join_next() => self.settled(batch, result),
                () = sleep_until(pause) => self.pause = None,
            }
        }
    }

    fn is_done(&self) -> bool {
        self.stopping && !self.at_work() && self.claiming.is_none()
    }

    fn at_work(&self) -> bool {
        !self.running.is_empty() || !self.settling.is_empty() || !self.verdicts.is_empty()
    }

    /// One that ends when the queue is empty sees at once that its own work was the last.
    fn look_again(&mut self) {
        if self.settings.until_empty && self.beside_work && self.claiming.is_some() && !self.at_work() {
            // As in `stop`.
            self.claiming = None;
            self.idle = false;
        }
    }

    /// Tells, once, that there is nothing to do any more.
    fn rest(&mut self) {
        if self.idle && !self.at_work() && !self.rested {
            self.rested = true;
            self.settings.tell(&WorkerEvent::Drained);
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        if self.idle {
            // It carries no verdicts; dropping it loses no task.
            self.claiming = None;
        }
    }

    /// Claims as many tasks as there are hands free. While there is work, verdicts travel along.
    fn begin_claim(&mut self) -> Result<(), Error> {
        let free = self.settings.concurrency.saturating_sub(self.running.len());
        if self.stopping || self.claiming.is_some() || self.pause.is_some() || free == 0 {
            return Ok(());
        }
        let carried = if self.idle { Vec::new() } else { self.some_verdicts() };
        let mut batch = self.queue.one_batch(carried)?;
        let wait = if self.idle { self.settings.idle_wait() } else { Duration::ZERO };
        self.beside_work = self.idle && self.at_work();
        let options = self.settings.claim(free).wait(wait);
        let queue = self.queue.clone();
        self.claiming = Some(Box::pin(async move {
            let claims = queue.settle_batch_and_claim(&mut batch, options).await;
            (batch, claims)
        }));
        Ok(())
    }

    /// Settles by itself what cannot travel with a claim.
    fn begin_settle(&mut self) -> Result<(), Error> {
        let waits_for_claim = self.claiming.is_some() && !self.idle;
        if self.verdicts.is_empty() || waits_for_claim || self.pause.is_some() {
            return Ok(());
        }
        let carried = self.some_verdicts();
        let mut batch = self.queue.one_batch(carried)?;
        let queue = self.queue.clone();
        self.settling.spawn(async move {
            let result = queue.settle_batch(&mut batch).await;
            (batch, result)
        });
        Ok(())
    }

    fn some_verdicts(&mut self) -> Vec<Verdict> {
        let count = self.verdicts.len().min(crate::store::MAX_BATCH);
        self.verdicts.drain(..count).collect()
    }

    async fn claimed(&mut self, batch: Batch, claims: Result<Vec<Claim>, Error>) {
        self.claiming = None;
        match claims {
            Ok(claims) => {
                self.failures = 0;
                self.record(batch);
                let found_nothing = claims.is_empty();
                for claim in claims {
                    self.begin(claim);
                }
                if found_nothing && self.settings.until_empty && self.is_empty().await {
                    self.stopping = true;
                }
                self.idle = found_nothing;
            }
            Err(error) => self.failed(batch, error),
        }
    }

    fn settled(&mut self, batch: Batch, result: Result<(), Error>) {
        match result {
            Ok(()) => self.record(batch),
            Err(error) => self.failed(batch, error),
        }
    }

    /// Whether nothing is left to wait for.
    async fn is_empty(&mut self) -> bool {
        !self.at_work() && self.queue.stats().await.is_ok_and(|stats| stats.ready == 0 && stats.claimed == 0)
    }

    /// Has the handler work on a task.
    fn begin(&mut self, claim: Claim) {
        self.rested = false;
        self.settings.tell(&WorkerEvent::Started { id: claim.id(), attempt: claim.attempt() });
        let handler = Arc::clone(&self.handler);
        let work = claim.clone();
        let span = trace::work(claim.queue(), claim.id(), claim.attempt());
        let mut work = tokio::spawn(async move { handler(work).await }.instrument(span.clone()));
        self.running.spawn(async move {
            let ending = tokio::select! {
                biased;
                result = &mut work => ending(result),
                () = lost(&claim) => {
                    work.abort();
                    Ending::Lost
                }
            };
            // Whoever returns because the claim is lost has lost it.
            let ending = if claim.loss().is_some() { Ending::Lost } else { ending };
            trace::worked(&span, &ending);
            Finished::of(claim.delivery(), &ending)
        });
    }

    fn finished(&mut self, finished: Result<Finished, JoinError>) {
        match finished {
            Ok(finished) => self.verdicts.extend(self.settings.finish(&mut self.report, finished)),
            // The runtime is shutting down.
            Err(_) => self.stopping = true,
        }
    }

    fn record(&mut self, batch: Batch) {
        for (verdict, result) in batch.results() {
            self.settings.count(&mut self.report, &verdict, &result);
        }
    }

    /// The store did not answer: what may still be settled is tried again.
    fn failed(&mut self, batch: Batch, error: Error) {
        for (verdict, result) in batch.results() {
            match result {
                Err(_) if error.is_retryable_settle() && !verdict.is_over() => self.verdicts.push(verdict),
                result => self.settings.count(&mut self.report, &verdict, &result),
            }
        }
        self.settings.tell(&WorkerEvent::StoreFailed { error: &error });
        if error.is_retryable_settle() {
            let pause = Dice::random().backoff(self.failures);
            self.failures += 1;
            self.pause = Some(tokio::time::Instant::now() + pause);
        } else {
            self.error.get_or_insert(error);
            self.stopping = true;
        }
    }
}

/// Completes only when the claim is really lost, not when its handler has settled it.
async fn lost(claim: &Claim) {
    claim.lost().await;
    if claim.loss().is_none() {
        std::future::pending::<()>().await;
    }
}

fn ending<E: fmt::Display>(result: Result<Result<(), E>, JoinError>) -> Ending {
    match result {
        Ok(Ok(())) => Ending::Returned,
        Ok(Err(error)) => Ending::Failed(error.to_string()),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Ending::Failed(panic_message(&*panic)),
            // The runtime is shutting down: not the task's fault.
            Err(_) => Ending::Interrupted,
        },
    }
}

async fn wait_for(claiming: &mut Option<Claiming>) -> (Batch, Result<Vec<Claim>, Error>) {
    match claiming {
        Some(claiming) => claiming.await,
        None => std::future::pending().await,
    }
}

/// Whether a future is ready now.
async fn is_ready(mut future: Pin<&mut impl Future<Output = ()>>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

async fn sleep_until(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl<H> fmt::Debug for Worker<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Worker({:?}, {:?})", self.queue, self.settings)
    }
}
