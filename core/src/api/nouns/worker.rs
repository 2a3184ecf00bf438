//! The options of a worker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::face::{Worker, either};
use crate::api::worker::WorkerEvent;
use crate::base::error::Error;

impl<H> Worker<H> {
    /// How many tasks are worked on at once: 1 to 1,000 (default 1).
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.settings.concurrency = concurrency;
        self
    }

    /// How long the store keeps a claim without renewal: 50 ms to 365 days (default 30 s). If the worker dies, its tasks are
    /// delivered again after this time.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// How long a handler may run: the lease to 365 days (default 1 h). Then its claim is lost, and the attempt has failed.
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.settings.max_run = max_run;
        self
    }

    /// How long a run of a task may take that does not say so itself: see [`ClaimOptions::timeout`](crate::ClaimOptions::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// End when no task is ready or claimed any more, by this worker or another. Tasks due later stay.
    pub fn until_empty(mut self) -> Self {
        self.settings.until_empty = true;
        self
    }

    /// How long handlers go on after a stop (default 25 s).
    #[doc = either!(
        "Then they are dropped, and their tasks go back without counting an attempt.",
        "Then their claims count as lost to them: see [`Stopper::stop`](super::super::Stopper::stop)."
    )]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// A callback for everything that happens to a task. If it panics, the panic is counted, and the worker goes on. It is called
    #[doc = either!(
        "on the worker's own task, and must not block.",
        "on whichever thread it happens."
    )]
    pub fn on_event(mut self, hook: impl Fn(WorkerEvent<'_>) + Send + Sync + 'static) -> Self {
        self.settings.hook = Some(Arc::new(hook));
        self
    }

    /// Checks the queue's name and all options, as `run` does.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check(&self) -> Result<(), Error> {
        self.queue.check()?;
        self.settings.check().map_err(|error| error.during("work", self.queue.name()))
    }
}

impl<H> fmt::Debug for Worker<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Worker({:?}, {:?})", self.queue, self.settings)
    }
}
