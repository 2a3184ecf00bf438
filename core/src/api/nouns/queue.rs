//! The queue.

use std::fmt;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::claim::Claim;
use super::face::{Turn, both, drive, either, example};
use crate::base::error::Error;
use crate::engine::claim::Claimed;
use crate::engine::schedule::Rounds;
use crate::protocol::{Cancelled, MAX_BATCH, QueueStats, Removed, ScheduleOutcome, Version};
use crate::queue::claim_calls::{Batch, Claiming, Verdict, batches};
use crate::queue::consumer::Consumer;
use crate::queue::dead_tasks::DeadTasks;
use crate::queue::delivery::Delivery;
use crate::queue::key_limits::{KeyInfo, KeyLimits, KeyPage};
use crate::queue::queue_calls::{Ask, QueueCalls, Rescheduled};
use crate::queue::queue_options::{ClaimOptions, ListOptions, QueueConfig};
use crate::queue::schedule::{Schedule, ScheduleInfo, SchedulePage, Synced};
use crate::queue::task::{Enqueued, Task, TaskInfo, TaskPage, TaskResult};
use crate::queue::task_events::EventPage;
use crate::session::Session;

/// A named queue of tasks. Made by [`Client::queue`](super::Client::queue); cheap to clone; no I/O to make.
#[derive(Clone)]
pub struct Queue {
    pub(crate) calls: QueueCalls,
}

#[both]
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
    #[doc = example!("enqueue")]
    ///
    /// # Errors
    /// `QueueFull` if the queue has a limit and is at it; `InvalidArgument` for a bad name, id or option;
    /// `Indeterminate` if no answer came in time; `StoreUnavailable`, `Denied` or `WrongType` from the store.
    pub async fn enqueue(&self, task: Task) -> Result<Enqueued, Error> {
        let part = self.calls.enqueue_many(&[task])?.into_iter().flat_map(|part| part.to_vec()).collect();
        let result = ask(self.calls.enqueue(part)?).await?;
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
            match ask(self.calls.enqueue(part)?).await {
                Ok(part) => results.extend(part),
                Err(error) => results.extend((0..size).map(|_| Err(error.again()))),
            }
        }
        Ok(results)
    }

    /// Takes tasks under a lease, waiting for some if asked to.
    #[doc = either!("Dropping the future loses no task.", "")]
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name or option; `StoreUnavailable`, `Denied` or `WrongType` from the store.
    /// No task is a result, not an error.
    pub async fn claim(&self, options: ClaimOptions) -> Result<Vec<Claim>, Error> {
        let found = claim(Claiming::new(from_ref(&self.calls), &options, None)?, None).await;
        claims(from_ref(&self.calls), found)
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
        let answer = drive(self.calls.session.live()?, &mut machine, None, None).await;
        batch.answered(answer)
    }

    /// Settles claims (1,000 at most) and takes new tasks, in one round trip if there are any, and
    /// their results have no more than 4 MiB together.
    ///
    /// # Errors
    /// As [`Queue::claim`]; `Indeterminate` if the settlements may or may not have been carried out.
    #[allow(clippy::type_complexity, reason = "two lists, as the name says; an alias would only hide them")]
    pub async fn settle_and_claim(
        &self,
        verdicts: Vec<Verdict>,
        options: ClaimOptions,
    ) -> Result<(Vec<Result<(), Error>>, Vec<Claim>), Error> {
        if verdicts.len() > MAX_BATCH {
            let message = format!("{} verdicts are more than {MAX_BATCH}", verdicts.len());
            return Err(Error::invalid(message).during("settle_and_claim", self.name()));
        }
        // What is too large for one request goes before.
        let mut parts = batches(&self.calls, verdicts)?;
        let mut last = parts.pop().map_or_else(|| Batch::new(&self.calls, Vec::new()), Ok)?;
        let mut results = Vec::new();
        for mut batch in parts {
            let error = self.settle_batch(&mut batch).await.err();
            results.extend(outcomes(batch, error.as_ref()));
        }
        let claims = self.settle_batch_and_claim(&mut last, options, None).await?;
        results.extend(outcomes(last, None));
        Ok((results, claims))
    }

    pub(crate) fn one_batch(&self, verdicts: Vec<Verdict>) -> Result<Batch, Error> {
        Batch::new(&self.calls, verdicts)
    }

    pub(crate) async fn settle_batch_and_claim(
        &self,
        batch: &mut Batch,
        options: ClaimOptions,
        turn: Turn<'_>,
    ) -> Result<Vec<Claim>, Error> {
        let claiming = Claiming::new(from_ref(&self.calls), &options, batch.request())?;
        let claimed = claim(claiming, turn).await.inspect_err(|error| batch.failed(error));
        let (deliveries, claimed) = claimed?;
        batch.settled(&claimed.settled, false);
        batch.fired = claimed.fired.into_iter().map(|(_, fired)| fired).collect();
        Ok(deliveries.into_iter().map(Claim::new).collect())
    }

    /// Takes tasks for good, without a lease: if this process dies, they are lost. Sent once.
    ///
    /// # Errors
    /// `Indeterminate` if no answer came: the tasks may be gone. Otherwise as [`Queue::claim`].
    pub async fn pop(&self, max: usize) -> Result<Vec<TaskInfo>, Error> {
        ask(self.calls.pop(max)?).await
    }

    /// The tasks that would be claimed next, at most `max` (1 to 1,000).
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn peek(&self, max: usize) -> Result<Vec<TaskInfo>, Error> {
        ask(self.calls.peek(max)?).await
    }

    /// One task: the live one with this id, else the newest dead one.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn get(&self, id: &str) -> Result<Option<TaskInfo>, Error> {
        ask(self.calls.get(id)?).await
    }

    /// The tasks of one state, a page at a time. A page costs the same wherever it is.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn list(&self, options: ListOptions) -> Result<TaskPage, Error> {
        ask(self.calls.list(&options)?).await
    }

    /// Drops a task, also while it is claimed: its claim is lost then. With a version, only if it is still
    /// the task's. Sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`].
    pub async fn remove(&self, id: &str, if_version: Option<Version>) -> Result<Removed, Error> {
        ask(self.calls.remove(id, if_version)?).await
    }

    /// Ends a task. One that waits is dropped, as by [`Queue::remove`]. One that runs is told at the next renewal of its claim,
    /// which is lost then ([`LossReason::Cancelled`](crate::LossReason::Cancelled)): after a third of its lease at the latest.
    /// An ack of that run is still accepted; whatever else it ends with, the task is not tried again. What comes after the run
    /// goes, too; what is enqueued later is a new task. Sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`].
    pub async fn cancel(&self, id: &str) -> Result<Cancelled, Error> {
        ask(self.calls.cancel(id)?).await
    }

    /// What became of a task: its result ([`Claim::ack_with`]), or why it is dead. `version` is that of
    /// [`Enqueued`], and asks about that task or a later one of the id; without it, about any. Waits up to `wait` (365 days at
    /// most; zero only looks) while the task is not done, and returns `Pending` if it still is not.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn result(
        &self,
        id: &str,
        version: Option<Version>,
        wait: Duration,
    ) -> Result<TaskResult, Error> {
        let mut asking = self.calls.result(id, version, wait)?;
        let reply = drive(&asking.live, &mut asking.machine, Some(&asking.place), None).await;
        reply.map(TaskResult::from)
    }

    /// What happens to the tasks of the queue, if it keeps events ([`QueueConfig::events`]): the first ones after the event with
    /// the number `after`, 500 at most. 0 begins with the oldest that is kept; `None` with the next one that happens. Waits up to
    /// `wait` (365 days at most; zero only looks) while there are none. Go on with the page's `cursor`.
    ///
    /// A task is added, started, and then done, failed, dead, cancelled, removed or put back; one that failed or was put back is
    /// started again. [`Queue::purge`] tells of none. Events tell that something happened, and not what is: a program that acts
    /// on tasks works on them ([`Queue::claim`]) or asks for them ([`Queue::get`], [`Queue::result`]).
    ///
    /// # Errors
    /// `Unsupported` if the queue keeps no events, and as [`Queue::claim`].
    pub async fn events(&self, after: Option<u64>, wait: Duration) -> Result<EventPage, Error> {
        let mut asking = self.calls.events(after, wait)?;
        let found = drive(&asking.live, &mut asking.machine, Some(&asking.place), None).await;
        found.map(EventPage::from)
    }

    /// Gives a waiting task another due time.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn reschedule(&self, id: &str, due: SystemTime) -> Result<Rescheduled, Error> {
        ask(self.calls.reschedule(id, due)?).await
    }

    /// Moves dead tasks back to ready, with all their attempts, unless their ids live; says how many. Each step is
    /// about 1,000 at most, and sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`]; what earlier steps have moved stays moved.
    pub async fn kick(&self, dead: DeadTasks) -> Result<u64, Error> {
        let mut sweep = self.calls.sweep("kick", &dead)?;
        while let Some(next) = sweep.next() {
            sweep.swept(ask(self.calls.kick(next)?).await?);
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
            sweep.swept(ask(self.calls.remove_dead(next)?).await?);
        }
        Ok(sweep.count())
    }

    /// How many tasks there are, and the settings.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn stats(&self) -> Result<QueueStats, Error> {
        ask(self.calls.stats()?).await
    }

    /// Who works on the queue: the processes of the first thousand calls that wait for a task, and of the first thousand
    /// claims. Of a queue without tasks, an empty answer means that nobody waits; a worker that is busy has claims.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn consumers(&self) -> Result<Vec<Consumer>, Error> {
        ask(self.calls.consumers()?).await
    }

    /// Stops giving out tasks. Claims that are out go on, can be settled and extended.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn pause(&self) -> Result<(), Error> {
        ask(self.calls.pause(true)?).await
    }

    /// Goes on giving out tasks.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn resume(&self) -> Result<(), Error> {
        ask(self.calls.pause(false)?).await
    }

    /// Drops every task, live and dead; claims that are out are lost. Settings stay. Sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`].
    pub async fn purge(&self) -> Result<u64, Error> {
        ask(self.calls.purge()?).await
    }

    /// Adds a schedule, or changes the one with its id: its slots go on as they are, unless what says when they are is
    /// another. Sent once.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad id, time or option, and if no slot comes any more; otherwise as [`Queue::pop`].
    pub async fn schedule(&self, schedule: Schedule) -> Result<ScheduleOutcome, Error> {
        let outcome = ask(self.calls.schedule(&schedule)?).await?;
        self.set_going().await;
        Ok(outcome)
    }

    /// Makes these all the schedules of this owner, an application for example, 1,000 at most: adds what is new, changes
    /// what is other, removes what the owner has no more. What others have put stays. To be called at each start, with a
    /// number that grows with each deploy: a list of an older generation changes nothing, so that programs of the old
    /// deploy that still run, or start once more, do no harm.
    ///
    /// # Errors
    /// As [`Queue::claim`], and as [`Queue::schedule`] for a bad one; then nothing is sent.
    pub async fn sync_schedules(
        &self,
        owner: &str,
        generation: u64,
        schedules: impl IntoIterator<Item = Schedule>,
    ) -> Result<Synced, Error> {
        let schedules: Vec<Schedule> = schedules.into_iter().collect();
        let synced = ask(self.calls.sync_schedules(owner, generation, &schedules)?).await?;
        self.set_going().await;
        Ok(synced)
    }

    /// Finds out when the next slots of new schedules are. If it fails, whoever claims does it.
    async fn set_going(&self) {
        let mut rounds = Rounds::fresh();
        while let Some(verb) = rounds.request() {
            let Ok(round) = self.calls.round(verb) else { return };
            match ask(round).await {
                Ok(reply) => rounds.replied(reply),
                Err(_) => return,
            }
        }
    }

    /// One schedule.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn get_schedule(&self, id: &str) -> Result<Option<ScheduleInfo>, Error> {
        ask(self.calls.get_schedule(id)?).await
    }

    /// The schedules, a page of at most `max` at a time (1 to 1,000, and never more than 100). `from`: what the page before
    /// gave as its `next`.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn list_schedules(&self, from: Option<&str>, max: usize) -> Result<SchedulePage, Error> {
        ask(self.calls.list_schedules(from, max)?).await
    }

    /// Lets a schedule fire nothing until it is resumed; whether there is such a schedule.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn pause_schedule(&self, id: &str) -> Result<bool, Error> {
        ask(self.calls.pause_schedule(id, true)?).await
    }

    /// Lets a schedule go on; whether there is such a schedule. The slots of the pause are not fired.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn resume_schedule(&self, id: &str) -> Result<bool, Error> {
        let found = ask(self.calls.pause_schedule(id, false)?).await?;
        self.set_going().await;
        Ok(found)
    }

    /// Makes a task of a schedule now, also if it is paused; its slots stay as they are. The task's id, or `None` if
    /// there is no such schedule.
    ///
    /// # Errors
    /// `QueueFull` if the queue has a limit and is at it; otherwise as [`Queue::pop`].
    pub async fn run_schedule(&self, id: &str) -> Result<Option<String>, Error> {
        loop {
            let Some((record, now)) = ask(self.calls.find_schedule(id)?).await? else { return Ok(None) };
            // If somebody has fired or changed it meanwhile, once more.
            if let Some(ran) = ask(self.calls.run_schedule(record, now)?.once()).await? {
                return ran.map(Some);
            }
        }
    }

    /// Drops a schedule; whether there was one. The tasks that it has made stay. Sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`].
    pub async fn remove_schedule(&self, id: &str) -> Result<bool, Error> {
        ask(self.calls.remove_schedule(id)?).await
    }

    /// Gives a key limits of its own instead of those that the queue gives each key, or takes them away (`None`). At once, also
    /// while its tasks run; those that run too many end first.
    ///
    /// # Errors
    /// `QueueFull` if 100,000 keys have limits of their own; `InvalidArgument` for a bad key or limit; otherwise as
    /// [`Queue::claim`].
    pub async fn limit_key(&self, key: &str, limits: Option<KeyLimits>) -> Result<(), Error> {
        match ask(self.calls.limit_key(key, limits)?).await? {
            true => Ok(()),
            false => Err(self.calls.too_many_keys()),
        }
    }

    /// What is known of a key: how many of its tasks run, stand in line and are held, and what limits it has of its own.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn get_key(&self, key: &str) -> Result<KeyInfo, Error> {
        ask(self.calls.get_key(key)?).await
    }

    /// The keys that hold tasks, then those that have limits of their own and hold none, a page of at most `max` at a time (1 to
    /// 1,000, and never more than 100). `from`: what the page before gave as its `next`.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn list_keys(&self, from: Option<&str>, max: usize) -> Result<KeyPage, Error> {
        ask(self.calls.list_keys(from, max)?).await
    }

    /// Changes settings.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn configure(&self, settings: QueueConfig) -> Result<(), Error> {
        ask(self.calls.configure(&settings)?).await
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?})", self.name())
    }
}

/// The public results of a batch; those that were not answered have the error of the request.
fn outcomes(batch: Batch, error: Option<&Error>) -> impl Iterator<Item = Result<(), Error>> {
    batch.results().map(move |(_, result)| match (result, error) {
        (Err(unknown), Some(error)) if unknown.operation().is_none() => Err(error.again()),
        (result, _) => result.map(drop),
    })
}

/// One request.
#[both]
pub(super) async fn ask<T>(mut ask: Ask<T>) -> Result<T, Error> {
    let answer = drive(&ask.live, &mut ask.machine, None, None).await;
    ask.finish(answer.map(|answer| answer.reply))
}

/// One claim, of one or several queues.
#[both]
pub(crate) async fn claim(mut claiming: Claiming, turn: Turn<'_>) -> Result<(Vec<Delivery>, Claimed), Error> {
    let claimed = drive(&claiming.live, &mut claiming.machine, Some(&claiming.place), turn).await;
    claiming.finish(claimed)
}

/// What a claim of these queues comes to.
pub(crate) fn claims(
    queues: &[QueueCalls],
    found: Result<(Vec<Delivery>, Claimed), Error>,
) -> Result<Vec<Claim>, Error> {
    let name = if let [one] = queues { &*one.name } else { "" };
    let (deliveries, _) = found.map_err(|error| error.during("claim", name))?;
    Ok(deliveries.into_iter().map(Claim::new).collect())
}

/// Several queues that are claimed from in the order given.
#[derive(Clone)]
pub struct Queues {
    pub(crate) calls: Vec<QueueCalls>,
}

#[both]
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
        let found = claim(Claiming::new(&self.calls, &options, None)?, None).await;
        claims(&self.calls, found)
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.calls.iter().map(|calls| &*calls.name)).finish()
    }
}
