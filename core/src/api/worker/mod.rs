//! The async worker: tasks of the runtime run the handlers of the engine's machine.

mod crew;
mod settings;
mod shift;

use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;

use crate::api::asynchronous::{Claim, Queue};
use crate::base::error::Error;

pub use settings::{DEFAULT_GRACE, WorkerEvent, WorkerReport};
pub(crate) use settings::{WorkerSettings, panic_message, tally};

use shift::Shift;

/// Takes tasks of a queue and has a handler work on them.
///
/// Every task is under a lease that is renewed while its handler runs, for `max_run` at most; when it is
/// lost, the handler is dropped at once. A handler that returns is acked; one that fails or panics is
/// nacked with backoff. What a handler settles itself, the worker leaves alone. Verdicts travel with the
/// next claim, in one round trip. A handler that blocks its thread cannot be dropped: the worker goes on with its
/// other handlers, reports it ([`WorkerEvent::Stuck`]), and leaves the task to others.
///
/// A future of a worker that is dropped drops its handlers; their tasks go back without counting an attempt.
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
    pub(crate) queue: Queue,
    handler: Arc<H>,
    pub(crate) settings: WorkerSettings,
    drops: bool,
}

impl<H, Fut, E> Worker<H>
where
    H: Fn(Claim) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + Send + 'static,
{
    /// A worker on this queue. An error of the handler is kept with the task as its reason.
    pub fn new(queue: Queue, handler: H) -> Self {
        Self { queue, handler: Arc::new(handler), settings: WorkerSettings::default(), drops: true }
    }

    /// Middleware: `around` runs in the place of the handler, and is given the claim and the handler, as `next`. What it returns
    /// counts as what the handler returned. The last one that is added is the outermost.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), stanchion::Error> {
    /// # use stanchion::{Claim, Client, Task, Worker};
    /// # let queue = Client::open("memory:").await?.queue("emails");
    /// # queue.enqueue(Task::new("user:42")).await?;
    /// let send = |claim: Claim| async move { Ok::<(), std::io::Error>(drop(claim)) };
    /// let timed = Worker::new(queue, send).around(|claim, next| async move {
    ///     let began = std::time::Instant::now();
    ///     let result = next(claim.clone()).await;
    ///     println!("{} took {:?}", claim.id(), began.elapsed());
    ///     result
    /// });
    /// assert_eq!(timed.until_empty().run().await?.completed, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn around<A, Running, Wrong>(
        self,
        around: A,
    ) -> Worker<impl Fn(Claim) -> Running + Send + Sync + 'static>
    where
        A: Fn(Claim, Arc<H>) -> Running + Send + Sync + 'static,
        Running: Future<Output = Result<(), Wrong>> + Send + 'static,
        Wrong: fmt::Display + Send + 'static,
    {
        let Self { queue, handler: next, settings, drops } = self;
        let handler = Arc::new(move |claim| around(claim, Arc::clone(&next)));
        Worker { queue, handler, settings, drops }
    }

    /// Handlers are not dropped: they end by themselves when `Claim::lost` completes. For hosts whose handlers are not
    /// Rust's, and end in their own time.
    #[doc(hidden)]
    pub fn undropped(mut self) -> Self {
        self.drops = false;
        self
    }

    /// Works for ever, or until the queue is empty if that was asked for.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad option; what the store refuses for good. A store that cannot be reached is
    /// asked again.
    pub async fn run(self) -> Result<WorkerReport, Error> {
        self.run_until(pending()).await
    }

    /// Works until `shutdown` completes; then takes no more tasks. Handlers go on for [`Worker::grace`]; those that are
    /// still at work then are dropped, and their tasks go back at once, without counting an attempt.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<WorkerReport, Error> {
        self.run_until_or(shutdown, pending()).await
    }

    /// As [`Worker::run_until`]; when `hurry` completes, the worker stops, and no grace is left.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub async fn run_until_or(
        self,
        shutdown: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<WorkerReport, Error> {
        self.check()?;
        Shift::new(self.queue, self.handler, self.settings, self.drops).run(shutdown, hurry).await
    }
}
