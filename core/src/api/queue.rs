//! The async queue.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::api::claim::Claim;
use crate::base::error::Error;
use crate::driver::drive;
use crate::protocol::{self, MAX_BATCH, QueueStats, Removed, Version};
use crate::queue::claim_calls::Batch;
use crate::queue::claim_calls::{Claiming, Verdict, batches};
use crate::queue::consumer::Consumer;
use crate::queue::dead_tasks::DeadTasks;
use crate::queue::queue_calls::{QueueCalls, Rescheduled};
use crate::queue::queue_options::{ClaimOptions, ListOptions, QueueSettings};
use crate::queue::task::{Enqueued, Task, TaskInfo, TaskPage};
use crate::session::Session;

/// A named queue of tasks. Made by [`Client::queue`](crate::Client::queue); cheap to clone; no I/O to make.
#[derive(Clone)]
pub struct Queue {
    calls: QueueCalls,
}

impl Queue {
    pub(crate) fn new(session: Arc<Session>, name: &str) -> Self {
        Self { calls: QueueCalls::new(session, name) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.calls.name
    }

    /// Fails for a bad name.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.calls.checked().map(drop)
    }

    /// Puts a task in. Sent again if no answer comes, it is still put in once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), stanchion::Error> {
    /// use stanchion::{ClaimOptions, Client, Outcome, Task};
    ///
    /// let queue = Client::open("memory:").await?.queue("emails");
    /// let first = queue.enqueue(Task::new("user:42").payload("welcome")).await?;
    /// assert_eq!(first.outcome, Outcome::Added);
    /// assert_eq!(queue.enqueue(Task::new("user:42")).await?.outcome, Outcome::Kept);
    ///
    /// for claim in queue.claim(ClaimOptions::new().max(10)).await? {
    ///     assert_eq!(claim.payload(), b"welcome");
    ///     claim.ack().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueFull` if the queue has a limit and is at it; `InvalidArgument` for a bad name, id or option;
    /// `Indeterminate` if no answer came in time; `StoreUnavailable`, `Denied` or `WrongType` from the store.
    pub async fn enqueue(&self, task: Task) -> Result<Enqueued, Error> {
        let part = self.calls.enqueue_many(&[task])?.into_iter().flat_map(|part| part.to_vec()).collect();
        let result = self.calls.enqueue(part)?.run().await?;
        result.into_iter().next().unwrap_or_else(|| Err(Error::invalid("no task given")))
    }

    /// Puts many tasks in, with as few requests as possible. One result per task, in order: a full queue
    /// refuses some and takes others.
    ///
    /// # Errors
    /// If a task is bad, nothing is sent. What the store says is in the results.
    pub async fn enqueue_many(
        &self,
        tasks: impl IntoIterator<Item = Task>,
    ) -> Result<Vec<Result<Enqueued, Error>>, Error> {
        let tasks: Vec<Task> = tasks.into_iter().collect();
        let mut results = Vec::with_capacity(tasks.len());
        for part in self.calls.enqueue_many(&tasks)? {
            let size = part.len();
            match self.calls.enqueue(part)?.run().await {
                Ok(part) => results.extend(part),
                Err(error) => results.extend((0..size).map(|_| Err(error.again()))),
            }
        }
        Ok(results)
    }

    /// Takes tasks under a lease, waiting for some if asked to. Dropping the future loses no task.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name or option; `StoreUnavailable`, `Denied` or `WrongType` from the store.
    /// No task is a result, not an error.
    pub async fn claim(&self, options: ClaimOptions) -> Result<Vec<Claim>, Error> {
        let (deliveries, _) = Claiming::new(std::slice::from_ref(&self.calls), &options, None)?.run().await?;
        Ok(deliveries.into_iter().map(Claim::new).collect())
    }

    /// Settles claims of this queue together. One result per verdict, in order, as from [`Claim::ack`].
    ///
    /// # Errors
    /// If a verdict is on a claim of another queue, nothing is sent. What the store says is in the results.
    pub async fn settle(&self, verdicts: Vec<Verdict>) -> Result<Vec<Result<(), Error>>, Error> {
        let mut results = Vec::with_capacity(verdicts.len());
        for mut batch in batches(&self.calls, verdicts)? {
            let error = self.settle_batch(&mut batch).await.err();
            results.extend(outcomes(batch, error.as_ref()));
        }
        Ok(results)
    }

    pub(crate) async fn settle_batch(&self, batch: &mut Batch) -> Result<(), Error> {
        let Some(mut machine) = batch.machine(&self.calls)? else { return Ok(()) };
        let answer = drive(self.calls.session.live()?, &mut machine, None).await;
        batch.answered(answer)
    }

    /// Settles claims (1,000 at most) and takes new tasks, in one round trip if there are any.
    ///
    /// # Errors
    /// As [`Queue::claim`]; `Indeterminate` if the settlements may or may not have been carried out.
    pub async fn settle_and_claim(
        &self,
        verdicts: Vec<Verdict>,
        options: ClaimOptions,
    ) -> Result<(Vec<Result<(), Error>>, Vec<Claim>), Error> {
        let mut batch = self.one_batch(verdicts)?;
        let claims = self.settle_batch_and_claim(&mut batch, options).await?;
        Ok((outcomes(batch, None).collect(), claims))
    }

    pub(crate) fn one_batch(&self, verdicts: Vec<Verdict>) -> Result<Batch, Error> {
        if verdicts.len() > MAX_BATCH {
            let message = format!("{} verdicts are more than {MAX_BATCH}", verdicts.len());
            return Err(Error::invalid(message).during("settle_and_claim", self.name()));
        }
        Batch::new(&self.calls, verdicts)
    }

    pub(crate) async fn settle_batch_and_claim(
        &self,
        batch: &mut Batch,
        options: ClaimOptions,
    ) -> Result<Vec<Claim>, Error> {
        let claiming = Claiming::new(std::slice::from_ref(&self.calls), &options, batch.request())?;
        let claimed = claiming.run().await.inspect_err(|error| batch.failed(error));
        let (deliveries, claimed) = claimed?;
        batch.settled(&claimed.settled, false);
        Ok(deliveries.into_iter().map(Claim::new).collect())
    }

    /// Settles these in the background, for a caller that cannot wait.
    pub(crate) fn settle_later(&self, verdicts: Vec<Verdict>) {
        for batch in batches(&self.calls, verdicts).unwrap_or_default() {
            if let Some(settle) = batch.request() {
                self.repeat_later(settle);
            }
        }
    }

    /// The same, for settlements that may have been sent before.
    pub(crate) fn repeat_later(&self, settle: protocol::Settle) {
        if let (Ok(live), Ok(queue)) = (self.calls.session.live(), self.calls.checked()) {
            let verb = protocol::QueueVerb::Settle(settle);
            live.keeper.errand(protocol::Request::Queue(protocol::QueueRequest { queue, verb }));
        }
    }

    /// Takes tasks for good, without a lease: if this process dies, they are lost. Sent once.
    ///
    /// # Errors
    /// `Indeterminate` if no answer came: the tasks may be gone. Otherwise as [`Queue::claim`].
    pub async fn pop(&self, max: usize) -> Result<Vec<TaskInfo>, Error> {
        self.calls.pop(max)?.run().await
    }

    /// The tasks that would be claimed next, at most `max` (1 to 1,000).
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn peek(&self, max: usize) -> Result<Vec<TaskInfo>, Error> {
        self.calls.peek(max)?.run().await
    }

    /// One task: the live one with this id, else the newest dead one.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn get(&self, id: &str) -> Result<Option<TaskInfo>, Error> {
        self.calls.get(id)?.run().await
    }

    /// The tasks of one state, a page at a time. A page costs the same wherever it is.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn list(&self, options: ListOptions) -> Result<TaskPage, Error> {
        self.calls.list(&options)?.run().await
    }

    /// Drops a task, also while it is claimed: its claim is lost then. With a version, only if it is still
    /// the task's. Sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`].
    pub async fn remove(&self, id: &str, if_version: Option<Version>) -> Result<Removed, Error> {
        self.calls.remove(id, if_version)?.run().await
    }

    /// Gives a waiting task another due time.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn reschedule(&self, id: &str, due: SystemTime) -> Result<Rescheduled, Error> {
        self.calls.reschedule(id, due)?.run().await
    }

    /// Moves dead tasks back to ready, with all their attempts, unless their ids live; says how many. Each step is
    /// about 1,000 at most, and sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`]; what earlier steps have moved stays moved.
    pub async fn kick(&self, dead: DeadTasks) -> Result<u64, Error> {
        let mut sweep = self.calls.sweep("kick", &dead)?;
        while let Some(next) = sweep.next() {
            sweep.swept(self.calls.kick(next)?.run().await?);
        }
        Ok(sweep.count())
    }

    /// Drops dead tasks; says how many. Each step is about 1,000 at most, and sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`]; what earlier steps have dropped is gone.
    pub async fn remove_dead(&self, dead: DeadTasks) -> Result<u64, Error> {
        let mut sweep = self.calls.sweep("remove_dead", &dead)?;
        while let Some(next) = sweep.next() {
            sweep.swept(self.calls.remove_dead(next)?.run().await?);
        }
        Ok(sweep.count())
    }

    /// How many tasks there are, and the settings.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn stats(&self) -> Result<QueueStats, Error> {
        self.calls.stats()?.run().await
    }

    /// Who works on the queue: the processes of the first thousand calls that wait for a task, and of the first thousand
    /// claims. Of a queue without tasks, an empty answer means that nobody waits; a worker that is busy has claims.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn consumers(&self) -> Result<Vec<Consumer>, Error> {
        self.calls.consumers()?.run().await
    }

    /// Stops giving out tasks. Claims that are out go on, can be settled and extended.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn pause(&self) -> Result<(), Error> {
        self.calls.pause(true)?.run().await
    }

    /// Goes on giving out tasks.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn resume(&self) -> Result<(), Error> {
        self.calls.pause(false)?.run().await
    }

    /// Drops every task, live and dead; claims that are out are lost. Settings stay. Sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`].
    pub async fn purge(&self) -> Result<u64, Error> {
        self.calls.purge()?.run().await
    }

    /// Changes settings.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn configure(&self, settings: QueueSettings) -> Result<(), Error> {
        self.calls.configure(&settings)?.run().await
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?})", self.name())
    }
}

/// The public results of a batch; those that were not answered have the error of the request.
pub(crate) fn outcomes(batch: Batch, error: Option<&Error>) -> impl Iterator<Item = Result<(), Error>> {
    batch.results().map(move |(_, result)| match (result, error) {
        (Err(unknown), Some(error)) if unknown.operation().is_none() => Err(error.again()),
        (result, _) => result.map(drop),
    })
}

/// Several queues that are claimed from in the order given.
#[derive(Clone)]
pub struct Queues {
    calls: Vec<QueueCalls>,
}

impl Queues {
    pub(crate) fn new(session: &Arc<Session>, names: &[&str]) -> Self {
        let calls = names.iter().map(|name| QueueCalls::new(Arc::clone(session), name)).collect();
        Self { calls }
    }

    /// Takes tasks of the first queue that has some, as [`Queue::claim`]. One round trip per queue.
    ///
    /// # Errors
    /// As [`Queue::claim`]; `InvalidArgument` if there is no queue.
    pub async fn claim(&self, options: ClaimOptions) -> Result<Vec<Claim>, Error> {
        let (deliveries, _) = Claiming::new(&self.calls, &options, None)?.run().await?;
        Ok(deliveries.into_iter().map(Claim::new).collect())
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.calls.iter().map(|calls| &*calls.name)).finish()
    }
}
