//! The queue's nouns of both faces.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use stanchion::{
    Cancelled, Claim, ClaimOptions, Consumer, DeadTasks, Enqueued, Error, EventPage, Headers, KeyInfo,
    KeyLimits, KeyPage, ListOptions, LossReason, Queue, QueueConfig, QueueStats, Queues, Receipt, Removed,
    Rescheduled, Retry, Schedule, ScheduleInfo, ScheduleOutcome, SchedulePage, Synced, Task, TaskInfo,
    TaskPage, TaskResult, TaskState, Verdict, Version, Worker, WorkerEvent, WorkerReport, blocking,
};
use tokio::sync::Notify;

use super::{AnyClient, runtime};

/// A queue of either face.
#[derive(Clone, Debug)]
pub enum AnyQueue {
    /// `stanchion::Queue`.
    Async(Queue),
    /// `stanchion::blocking::Queue`.
    Blocking(blocking::Queue),
}

/// Several queues of either face.
#[derive(Clone, Debug)]
pub enum AnyQueues {
    /// `stanchion::Queues`.
    Async(Queues),
    /// `stanchion::blocking::Queues`.
    Blocking(blocking::Queues),
}

/// A claim of either face.
#[derive(Clone, Debug)]
#[must_use = "a claim that is dropped counts as failed"]
pub enum AnyClaim {
    /// `stanchion::Claim`.
    Async(Claim),
    /// `stanchion::blocking::Claim`.
    Blocking(blocking::Claim),
}

impl AnyClient {
    /// As `Client::queue`.
    pub fn queue(&self, name: &str) -> AnyQueue {
        match self {
            Self::Async(client) => AnyQueue::Async(client.queue(name)),
            Self::Blocking(client) => AnyQueue::Blocking(client.queue(name)),
        }
    }

    /// As `Client::queues`.
    pub fn queues(&self, names: &[&str]) -> AnyQueues {
        match self {
            Self::Async(client) => AnyQueues::Async(client.queues(names)),
            Self::Blocking(client) => AnyQueues::Blocking(client.queues(names)),
        }
    }
}

impl AnyQueues {
    /// As `Queues::claim`.
    pub fn claim(&self, options: ClaimOptions) -> Result<Vec<AnyClaim>, Error> {
        match self {
            Self::Async(queues) => runtime().block_on(queues.claim(options)).map(wrapped_async),
            Self::Blocking(queues) => queues.claim(options).map(wrapped_blocking),
        }
    }
}

fn wrapped_async(claims: Vec<Claim>) -> Vec<AnyClaim> {
    claims.into_iter().map(AnyClaim::Async).collect()
}

fn wrapped_blocking(claims: Vec<blocking::Claim>) -> Vec<AnyClaim> {
    claims.into_iter().map(AnyClaim::Blocking).collect()
}

impl AnyQueue {
    /// As `Queue::name`.
    pub fn name(&self) -> &str {
        plain!(Self, self, queue => queue.name())
    }

    /// As `Queue::enqueue`.
    pub fn enqueue(&self, task: Task) -> Result<Enqueued, Error> {
        either!(Self, self, queue => queue.enqueue(task))
    }

    /// As `Queue::enqueue_many`.
    pub fn enqueue_many(
        &self,
        tasks: impl IntoIterator<Item = Task>,
    ) -> Result<Vec<Result<Enqueued, Error>>, Error> {
        either!(Self, self, queue => queue.enqueue_many(tasks))
    }

    /// As `Queue::claim`.
    pub fn claim(&self, options: ClaimOptions) -> Result<Vec<AnyClaim>, Error> {
        match self {
            Self::Async(queue) => runtime().block_on(queue.claim(options)).map(wrapped_async),
            Self::Blocking(queue) => queue.claim(options).map(wrapped_blocking),
        }
    }

    /// As `Queue::settle`.
    pub fn settle(&self, verdicts: Vec<Verdict>) -> Result<Vec<Result<(), Error>>, Error> {
        either!(Self, self, queue => queue.settle(verdicts))
    }

    /// As `Queue::settle_and_claim`.
    #[expect(clippy::type_complexity, reason = "it is the library's own type")]
    pub fn settle_and_claim(
        &self,
        verdicts: Vec<Verdict>,
        options: ClaimOptions,
    ) -> Result<(Vec<Result<(), Error>>, Vec<AnyClaim>), Error> {
        match self {
            Self::Async(queue) => {
                let (settled, claims) = runtime().block_on(queue.settle_and_claim(verdicts, options))?;
                Ok((settled, wrapped_async(claims)))
            }
            Self::Blocking(queue) => {
                let (settled, claims) = queue.settle_and_claim(verdicts, options)?;
                Ok((settled, wrapped_blocking(claims)))
            }
        }
    }

    /// As `Queue::pop`.
    pub fn pop(&self, max: usize) -> Result<Vec<TaskInfo>, Error> {
        either!(Self, self, queue => queue.pop(max))
    }

    /// As `Queue::peek`.
    pub fn peek(&self, max: usize) -> Result<Vec<TaskInfo>, Error> {
        either!(Self, self, queue => queue.peek(max))
    }

    /// As `Queue::get`.
    pub fn get(&self, id: &str) -> Result<Option<TaskInfo>, Error> {
        either!(Self, self, queue => queue.get(id))
    }

    /// As `Queue::list`.
    pub fn list(&self, options: ListOptions) -> Result<TaskPage, Error> {
        either!(Self, self, queue => queue.list(options))
    }

    /// As `Queue::remove`.
    pub fn remove(&self, id: &str, if_version: Option<Version>) -> Result<Removed, Error> {
        either!(Self, self, queue => queue.remove(id, if_version))
    }

    /// As `Queue::reschedule`.
    pub fn reschedule(&self, id: &str, due: SystemTime) -> Result<Rescheduled, Error> {
        either!(Self, self, queue => queue.reschedule(id, due))
    }

    /// As `Queue::cancel`.
    pub fn cancel(&self, id: &str) -> Result<Cancelled, Error> {
        either!(Self, self, queue => queue.cancel(id))
    }

    /// As `Queue::result`.
    pub fn result(&self, id: &str, version: Option<Version>, wait: Duration) -> Result<TaskResult, Error> {
        either!(Self, self, queue => queue.result(id, version, wait))
    }

    /// As `Queue::events`.
    pub fn events(&self, after: Option<u64>, wait: Duration) -> Result<EventPage, Error> {
        either!(Self, self, queue => queue.events(after, wait))
    }

    /// As `Queue::kick`.
    pub fn kick(&self, dead: DeadTasks) -> Result<u64, Error> {
        either!(Self, self, queue => queue.kick(dead))
    }

    /// As `Queue::remove_dead`.
    pub fn remove_dead(&self, dead: DeadTasks) -> Result<u64, Error> {
        either!(Self, self, queue => queue.remove_dead(dead))
    }

    /// As `Queue::stats`.
    pub fn stats(&self) -> Result<QueueStats, Error> {
        either!(Self, self, queue => queue.stats())
    }

    /// As `Queue::consumers`.
    pub fn consumers(&self) -> Result<Vec<Consumer>, Error> {
        either!(Self, self, queue => queue.consumers())
    }

    /// As `Queue::pause`.
    pub fn pause(&self) -> Result<(), Error> {
        either!(Self, self, queue => queue.pause())
    }

    /// As `Queue::resume`.
    pub fn resume(&self) -> Result<(), Error> {
        either!(Self, self, queue => queue.resume())
    }

    /// As `Queue::purge`.
    pub fn purge(&self) -> Result<u64, Error> {
        either!(Self, self, queue => queue.purge())
    }

    /// As `Queue::configure`.
    pub fn configure(&self, settings: QueueConfig) -> Result<(), Error> {
        either!(Self, self, queue => queue.configure(settings))
    }

    /// As `Queue::limit_key`.
    pub fn limit_key(&self, key: &str, limits: Option<KeyLimits>) -> Result<(), Error> {
        either!(Self, self, queue => queue.limit_key(key, limits))
    }

    /// As `Queue::get_key`.
    pub fn get_key(&self, key: &str) -> Result<KeyInfo, Error> {
        either!(Self, self, queue => queue.get_key(key))
    }

    /// As `Queue::list_keys`.
    pub fn list_keys(&self, from: Option<&str>, max: usize) -> Result<KeyPage, Error> {
        either!(Self, self, queue => queue.list_keys(from, max))
    }

    /// As `Queue::schedule`.
    pub fn schedule(&self, schedule: Schedule) -> Result<ScheduleOutcome, Error> {
        either!(Self, self, queue => queue.schedule(schedule))
    }

    /// As `Queue::sync_schedules`.
    pub fn sync_schedules(
        &self,
        owner: &str,
        generation: u64,
        schedules: impl IntoIterator<Item = Schedule>,
    ) -> Result<Synced, Error> {
        either!(Self, self, queue => queue.sync_schedules(owner, generation, schedules))
    }

    /// As `Queue::get_schedule`.
    pub fn get_schedule(&self, id: &str) -> Result<Option<ScheduleInfo>, Error> {
        either!(Self, self, queue => queue.get_schedule(id))
    }

    /// As `Queue::list_schedules`.
    pub fn list_schedules(&self, from: Option<&str>, max: usize) -> Result<SchedulePage, Error> {
        either!(Self, self, queue => queue.list_schedules(from, max))
    }

    /// As `Queue::pause_schedule`.
    pub fn pause_schedule(&self, id: &str) -> Result<bool, Error> {
        either!(Self, self, queue => queue.pause_schedule(id))
    }

    /// As `Queue::resume_schedule`.
    pub fn resume_schedule(&self, id: &str) -> Result<bool, Error> {
        either!(Self, self, queue => queue.resume_schedule(id))
    }

    /// As `Queue::run_schedule`.
    pub fn run_schedule(&self, id: &str) -> Result<Option<String>, Error> {
        either!(Self, self, queue => queue.run_schedule(id))
    }

    /// As `Queue::remove_schedule`.
    pub fn remove_schedule(&self, id: &str) -> Result<bool, Error> {
        either!(Self, self, queue => queue.remove_schedule(id))
    }

    /// The schedule with this id; panics if there is none.
    #[track_caller]
    pub fn the_schedule(&self, id: &str) -> ScheduleInfo {
        self.get_schedule(id).expect("a schedule").unwrap_or_else(|| panic!("there is no schedule {id:?}"))
    }

    /// The task with this id; panics if there is none.
    #[track_caller]
    pub fn task(&self, id: &str) -> TaskInfo {
        self.get(id).expect("a task").unwrap_or_else(|| panic!("there is no task {id:?}"))
    }

    /// All pages of a state.
    pub fn all(&self, state: TaskState) -> Vec<TaskInfo> {
        self.pages(&ListOptions::new(state).max(1_000)).concat()
    }

    /// The pages of a listing, one after the other.
    pub fn pages(&self, options: &ListOptions) -> Vec<Vec<TaskInfo>> {
        let (mut pages, mut options) = (Vec::new(), options.clone());
        loop {
            let page = self.list(options.clone()).expect("a listing");
            pages.push(page.tasks);
            match page.next {
                Some(next) => options = options.page(next),
                None => return pages,
            }
        }
    }

    /// A worker whose handler may block. It is stopped by `stop`.
    pub fn worker(
        &self,
        stop: &Stop,
        handler: impl Fn(AnyClaim) -> Result<(), String> + Send + Sync + 'static,
    ) -> AnyWorker {
        AnyWorker {
            queue: self.clone(),
            stop: stop.clone(),
            handler: Arc::new(handler),
            order: Order::default(),
        }
    }
}

impl AnyClaim {
    /// As `Claim::id`.
    pub fn id(&self) -> &str {
        plain!(Self, self, claim => claim.id())
    }

    /// As `Claim::queue`.
    pub fn queue(&self) -> &str {
        plain!(Self, self, claim => claim.queue())
    }

    /// As `Claim::payload`.
    pub fn payload(&self) -> &[u8] {
        plain!(Self, self, claim => claim.payload())
    }

    /// As `Claim::headers`.
    pub fn headers(&self) -> &Headers {
        plain!(Self, self, claim => claim.headers())
    }

    /// As `Claim::kind`.
    pub fn kind(&self) -> Option<&str> {
        plain!(Self, self, claim => claim.kind())
    }

    /// As `Claim::attempt`.
    pub fn attempt(&self) -> u32 {
        plain!(Self, self, claim => claim.attempt())
    }

    /// As `Claim::max_attempts`.
    pub fn max_attempts(&self) -> u32 {
        plain!(Self, self, claim => claim.max_attempts())
    }

    /// As `Claim::receipt`.
    pub fn receipt(&self) -> Receipt {
        plain!(Self, self, claim => claim.receipt())
    }

    /// As `Claim::version`.
    pub fn version(&self) -> Version {
        plain!(Self, self, claim => claim.version())
    }

    /// As `Claim::priority`.
    pub fn priority(&self) -> u8 {
        plain!(Self, self, claim => claim.priority())
    }

    /// As `Claim::due`.
    pub fn due(&self) -> SystemTime {
        plain!(Self, self, claim => claim.due())
    }

    /// As `Claim::remaining`.
    pub fn remaining(&self) -> Duration {
        plain!(Self, self, claim => claim.remaining())
    }

    /// As `Claim::deadline`.
    pub fn deadline(&self) -> Instant {
        plain!(Self, self, claim => claim.deadline())
    }

    /// As `Claim::is_valid`.
    pub fn is_valid(&self) -> bool {
        plain!(Self, self, claim => claim.is_valid())
    }

    /// As `Claim::loss`.
    pub fn loss(&self) -> Option<LossReason> {
        plain!(Self, self, claim => claim.loss())
    }

    /// Waits for the loss signal; true if it came within `time`.
    pub fn wait_lost(&self, time: Duration) -> bool {
        match self {
            Self::Async(claim) => {
                runtime().block_on(async { tokio::time::timeout(time, claim.lost()).await.is_ok() })
            }
            Self::Blocking(claim) => claim.wait_lost(time),
        }
    }

    /// As `Claim::ack`.
    pub fn ack(&self) -> Result<(), Error> {
        either!(Self, self, claim => claim.ack())
    }

    /// As `Claim::ack_with`.
    pub fn ack_with(&self, result: &[u8]) -> Result<(), Error> {
        either!(Self, self, claim => claim.ack_with(result))
    }

    /// As `Claim::progress`.
    pub fn progress(&self, progress: &[u8]) -> Result<(), Error> {
        either!(Self, self, claim => claim.progress(progress))
    }

    /// As `Claim::nack`.
    pub fn nack(&self, retry: Retry, reason: &str) -> Result<(), Error> {
        either!(Self, self, claim => claim.nack(retry, reason))
    }

    /// As `Claim::nack`, to be tried again at once.
    pub fn nack_now(&self, reason: &str) -> Result<(), Error> {
        self.nack(Retry::After(Duration::ZERO), reason)
    }

    /// As `Claim::bury`.
    pub fn bury(&self, reason: &str) -> Result<(), Error> {
        either!(Self, self, claim => claim.bury(reason))
    }

    /// As `Claim::put_back`, at once.
    pub fn put_back(&self) -> Result<(), Error> {
        self.put_back_after(Duration::ZERO)
    }

    /// As `Claim::put_back`.
    pub fn put_back_after(&self, delay: Duration) -> Result<(), Error> {
        either!(Self, self, claim => claim.put_back(delay))
    }

    /// As `Claim::throttle`.
    pub fn throttle(&self, time: Duration) -> Result<(), Error> {
        either!(Self, self, claim => claim.throttle(time))
    }

    /// As `Claim::extend`.
    pub fn extend(&self, lease: Duration) -> Result<(), Error> {
        either!(Self, self, claim => claim.extend(lease))
    }

    /// As `Claim::key`.
    pub fn key(&self) -> Option<&str> {
        plain!(Self, self, claim => claim.key())
    }

    /// As `Claim::acked`.
    pub fn acked(&self) -> Verdict {
        plain!(Self, self, claim => claim.acked())
    }

    /// As `Claim::acked_with`.
    pub fn acked_with(&self, result: &[u8]) -> Result<Verdict, Error> {
        plain!(Self, self, claim => claim.acked_with(result))
    }

    /// As `Claim::nacked`.
    pub fn nacked(&self, retry: Retry, reason: &str) -> Result<Verdict, Error> {
        plain!(Self, self, claim => claim.nacked(retry, reason))
    }

    /// As `Claim::buried`.
    pub fn buried(&self, reason: &str) -> Verdict {
        plain!(Self, self, claim => claim.buried(reason))
    }

    /// As `Claim::returned`, at once.
    pub fn returned(&self) -> Verdict {
        self.returned_after(Duration::ZERO).expect("a delay that is allowed")
    }

    /// As `Claim::returned`.
    pub fn returned_after(&self, delay: Duration) -> Result<Verdict, Error> {
        plain!(Self, self, claim => claim.returned(delay))
    }

    /// As `Claim::throttled`.
    pub fn throttled(&self, time: Duration) -> Result<Verdict, Error> {
        plain!(Self, self, claim => claim.throttled(time))
    }
}

/// Stops workers, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(AtomicBool, Notify)>);

impl Stop {
    /// Take no more tasks.
    pub fn stop(&self) {
        self.0.0.store(true, Ordering::SeqCst);
        self.0.1.notify_waiters();
    }

    async fn stopped(&self) {
        let notified = self.0.1.notified();
        if !self.0.0.load(Ordering::SeqCst) {
            notified.await;
        }
    }
}

type Handler = Arc<dyn Fn(AnyClaim) -> Result<(), String> + Send + Sync>;
type Hook = Arc<dyn Fn(&WorkerEvent<'_>) + Send + Sync>;

/// A worker of either face.
pub struct AnyWorker {
    queue: AnyQueue,
    stop: Stop,
    handler: Handler,
    order: Order,
}

#[derive(Default)]
struct Order {
    concurrency: Option<usize>,
    lease: Option<Duration>,
    max_run: Option<Duration>,
    timeout: Option<Duration>,
    grace: Option<Duration>,
    until_empty: bool,
    hook: Option<Hook>,
}

/// Passes the order on to a worker of either face.
macro_rules! ordered {
    ($worker:expr, $order:expr) => {{
        let (mut worker, order) = ($worker, $order);
        if let Some(concurrency) = order.concurrency {
            worker = worker.concurrency(concurrency);
        }
        if let Some(lease) = order.lease {
            worker = worker.lease(lease);
        }
        if let Some(max_run) = order.max_run {
            worker = worker.max_run(max_run);
        }
        if let Some(timeout) = order.timeout {
            worker = worker.timeout(timeout);
        }
        if let Some(grace) = order.grace {
            worker = worker.grace(grace);
        }
        if order.until_empty {
            worker = worker.until_empty();
        }
        if let Some(hook) = order.hook {
            worker = worker.on_event(move |event| hook(&event));
        }
        worker
    }};
}

impl AnyWorker {
    /// As `Worker::concurrency`.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.order.concurrency = Some(concurrency);
        self
    }

    /// As `Worker::lease`.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.order.lease = Some(lease);
        self
    }

    /// As `Worker::max_run`.
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.order.max_run = Some(max_run);
        self
    }

    /// As `Worker::timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.order.timeout = Some(timeout);
        self
    }

    /// As `Worker::grace`.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.order.grace = Some(grace);
        self
    }

    /// As `Worker::until_empty`.
    pub fn until_empty(mut self) -> Self {
        self.order.until_empty = true;
        self
    }

    /// As `Worker::on_event`.
    pub fn on_event(mut self, hook: impl Fn(&WorkerEvent<'_>) + Send + Sync + 'static) -> Self {
        self.order.hook = Some(Arc::new(hook));
        self
    }

    /// As `Worker::run`.
    pub fn run(self) -> Result<WorkerReport, Error> {
        let Self { queue, stop, handler, order } = self;
        match queue {
            AnyQueue::Async(queue) => {
                let handle = move |claim: Claim| {
                    let handler = Arc::clone(&handler);
                    async move {
                        let work = tokio::task::spawn_blocking(move || handler(AnyClaim::Async(claim)));
                        work.await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
                    }
                };
                let worker = ordered!(Worker::new(queue, handle), order);
                runtime().block_on(worker.run_until(async move { stop.stopped().await }))
            }
            AnyQueue::Blocking(queue) => {
                let handle = move |claim: &blocking::Claim| handler(AnyClaim::Blocking(claim.clone()));
                let worker = ordered!(blocking::Worker::new(queue, handle), order);
                worker.run_while(&mut || match stop.0.0.load(Ordering::SeqCst) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
            }
        }
    }
}

impl std::fmt::Debug for AnyWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AnyWorker({:?})", self.queue)
    }
}
