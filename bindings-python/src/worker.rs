//! Workers: the core's, whose handlers pass each task on to a thread or a coroutine of Python, and wait for
//! its verdict. Threads of ours never call Python; Python's come and fetch.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use pyo3::prelude::*;
use stanchion::{Error, WorkerEvent, WorkerReport, blocking};
use tokio::sync::{Notify, mpsc as tasks, oneshot};

use crate::bridge::{Bridge, locked};
use crate::call::{call, turn};
use crate::claim::{AioClaim, Claim};
use crate::convert::{Seconds, Whole};

/// What a handler said: nothing, or why it failed.
type Said = Result<(), String>;
/// Completed, failed, dead, lost.
type ReportFields = (u64, u64, u64, u64);
/// What happened, the task, the attempt, and the reason.
type EventFields = (&'static str, String, u32, String);

fn report(report: WorkerReport) -> ReportFields {
    (report.completed, report.failed, report.dead, report.lost)
}

/// What happened and was not fetched yet.
type Events = Arc<Mutex<VecDeque<EventFields>>>;

/// Events that nobody fetches are dropped, the oldest first.
const MOST_EVENTS: usize = 10_000;

fn keep(events: &Events, event: WorkerEvent<'_>) {
    let fields = match event {
        WorkerEvent::Dead { id, attempt, reason } => ("dead", id.to_owned(), attempt, reason.to_owned()),
        WorkerEvent::Lost { id, attempt } => ("lost", id.to_owned(), attempt, String::new()),
        WorkerEvent::Failed { id, attempt, reason } => ("failed", id.to_owned(), attempt, reason.to_owned()),
        WorkerEvent::StoreFailed { error } => ("store_failed", String::new(), 0, error.to_string()),
        // Python sees these itself, and they are many.
        _ => return,
    };
    let mut events = locked(events);
    if events.len() >= MOST_EVENTS {
        events.pop_front();
    }
    events.push_back(fields);
}

/// How a worker works.
#[derive(Clone)]
struct Terms {
    concurrency: Option<Whole>,
    lease: Option<Seconds>,
    max_run: Option<Seconds>,
    burst: bool,
}

macro_rules! configured {
    ($worker:expr, $terms:expr) => {{
        let (mut worker, terms) = ($worker, $terms);
        if let Some(concurrency) = terms.concurrency {
            worker = worker.concurrency(concurrency.narrow(usize::MAX));
        }
        if let Some(lease) = terms.lease {
            worker = worker.lease(lease.0);
        }
        if let Some(max_run) = terms.max_run {
            worker = worker.max_run(max_run.0);
        }
        if terms.burst {
            worker = worker.until_empty();
        }
        worker
    }};
}

/// Where the core's handlers put tasks, and Python's threads fetch them.
#[derive(Default)]
struct Counter {
    state: Mutex<CounterState>,
    changed: Condvar,
}

#[derive(Default)]
struct CounterState {
    tasks: VecDeque<(u64, blocking::Claim)>,
    replies: HashMap<u64, mpsc::Sender<Said>>,
    closed: bool,
}

impl Counter {
    /// A handler's part: waits for the verdict of a thread of Python.
    fn pass(&self, number: u64, claim: &blocking::Claim) -> Said {
        let (reply, said) = mpsc::channel();
        let mut state = locked(&self.state);
        if state.closed {
            return Err("the worker was interrupted".into());
        }
        state.tasks.push_back((number, claim.clone()));
        state.replies.insert(number, reply);
        drop(state);
        self.changed.notify_one();
        said.recv().unwrap_or_else(|_| Err("the worker was interrupted".into()))
    }

    /// A thread's part: the next task; none if there will be no more.
    fn fetch(&self) -> Option<(u64, blocking::Claim)> {
        let mut state = locked(&self.state);
        loop {
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        let mut state = locked(&self.state);
        state.closed = true;
        state.tasks.clear();
        state.replies.clear();
        drop(state);
        self.changed.notify_all();
    }
}

/// A worker on threads.
#[pyclass(frozen)]
pub(crate) struct Worker {
    queue: blocking::Queue,
    terms: Terms,
    counter: Arc<Counter>,
    events: Events,
    /// Stopped before it ran, it ends at once.
    stopped: AtomicBool,
    stopper: Mutex<Option<blocking::Stopper>>,
}

#[pymethods]
impl Worker {
    #[new]
    fn new(
        queue: &Bound<'_, crate::queue::Queue>,
        concurrency: Option<Whole>,
        lease: Option<Seconds>,
        max_run: Option<Seconds>,
        burst: bool,
    ) -> Self {
        let terms = Terms { concurrency, lease, max_run, burst };
        let queue = queue.get().0.clone();
        Self {
            queue,
            terms,
            counter: Arc::default(),
            events: Arc::default(),
            stopped: AtomicBool::new(false),
            stopper: Mutex::default(),
        }
    }

    /// Works until it is stopped. Runs signal handlers meanwhile; what they raise ends it.
    fn run(&self, py: Python<'_>) -> PyResult<ReportFields> {
        let (counter, numbers) = (Arc::clone(&self.counter), AtomicU64::new(1));
        let handler =
            move |claim: &blocking::Claim| counter.pass(numbers.fetch_add(1, Ordering::Relaxed), claim);
        let events = Arc::clone(&self.events);
        let worker = blocking::Worker::new(self.queue.clone(), handler);
        let worker = configured!(worker, self.terms.clone()).on_event(move |event| keep(&events, event));
        let interrupted = Arc::clone(&self.counter);
        let stopper = worker.stopper();
        locked(&self.stopper).replace(stopper.clone());
        if self.stopped.load(Ordering::SeqCst) {
            stopper.stop();
        }
        let mut turn = move || {
            let turn = turn();
            if turn.is_break() {
                // Handlers that still run are not waited for.
                interrupted.close();
            }
            turn
        };
        let result = call(py, || worker.run_while(&mut turn));
        self.counter.close();
        result.map(report)
    }

    /// The next task for a thread of Python; `None` if there will be no more.
    fn fetch(&self, py: Python<'_>) -> Option<(u64, Claim)> {
        py.detach(|| self.counter.fetch()).map(|(number, claim)| (number, Claim(claim)))
    }

    /// What a thread says of its task: `None`, or why it failed.
    fn said(&self, number: u64, failure: Option<String>) {
        let reply = locked(&self.counter.state).replies.remove(&number);
        if let Some(reply) = reply {
            let _ = reply.send(failure.map_or(Ok(()), Err));
        }
    }

    /// Take no more tasks.
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        if let Some(stopper) = &*locked(&self.stopper) {
            stopper.stop();
        }
    }

    /// No more tasks for the threads of Python.
    fn close(&self) {
        self.counter.close();
    }

    /// What happened since the last call.
    fn events(&self) -> Vec<EventFields> {
        locked(&self.events).drain(..).collect()
    }
}

/// What a worker for asyncio tells the loop.
enum News {
    Task(u64, stanchion::Claim, oneshot::Sender<Said>),
    /// The claim was lost: nobody waits for the verdict any more.
    Gone(u64),
}

/// Tells that a handler of the core was dropped before it had a verdict.
struct Waits(Option<u64>, tasks::UnboundedSender<News>);

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            let _ = self.1.send(News::Gone(number));
        }
    }
}

/// A worker for asyncio.
#[pyclass(frozen)]
pub(crate) struct AioWorker {
    queue: stanchion::Queue,
    terms: Terms,
    send: tasks::UnboundedSender<News>,
    news: Arc<tokio::sync::Mutex<tasks::UnboundedReceiver<News>>>,
    replies: Arc<Mutex<HashMap<u64, oneshot::Sender<Said>>>>,
    events: Events,
    stop: Arc<Notify>,
}

#[pymethods]
impl AioWorker {
    #[new]
    fn new(
        queue: &Bound<'_, crate::queue::AioQueue>,
        concurrency: Option<Whole>,
        lease: Option<Seconds>,
        max_run: Option<Seconds>,
        burst: bool,
    ) -> Self {
        let terms = Terms { concurrency, lease, max_run, burst };
        let (send, news) = tasks::unbounded_channel();
        Self {
            queue: queue.get().0.clone(),
            terms,
            send,
            news: Arc::new(tokio::sync::Mutex::new(news)),
            replies: Arc::default(),
            events: Arc::default(),
            stop: Arc::default(),
        }
    }

    fn run(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        let (send, numbers) = (self.send.clone(), Arc::new(AtomicU64::new(1)));
        let handler = move |claim: stanchion::Claim| {
            let (send, number) = (send.clone(), numbers.fetch_add(1, Ordering::Relaxed));
            async move {
                let (reply, said) = oneshot::channel();
                let mut waits = Waits(Some(number), send.clone());
                let _ = send.send(News::Task(number, claim, reply));
                let said = said.await;
                waits.0 = None;
                said.unwrap_or_else(|_| Err("the worker was interrupted".into()))
            }
        };
        let events = Arc::clone(&self.events);
        let worker = stanchion::Worker::new(self.queue.clone(), handler);
        let worker = configured!(worker, self.terms.clone()).on_event(move |event| keep(&events, event));
        let stop = Arc::clone(&self.stop);
        let work = async move { worker.run_until(async move { stop.notified().await }).await };
        bridge
            .get()
            .start(py, future, work, |py, done| Ok(report(done).into_pyobject(py)?.into_any().unbind()))
    }

    /// The next task (its number and claim), or the number of one that was lost (with `None`).
    fn fetch(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        let (news, replies) = (Arc::clone(&self.news), Arc::clone(&self.replies));
        let work = async move {
            // This worker holds a sender, so the channel never ends.
            let Some(news) = news.lock().await.recv().await else { return Ok((0, None)) };
            Ok::<_, Error>(match news {
                News::Task(number, claim, reply) => {
                    locked(&replies).insert(number, reply);
                    (number, Some(claim))
                }
                News::Gone(number) => {
                    locked(&replies).remove(&number);
                    (number, None)
                }
            })
        };
        bridge.get().start(py, future, work, |py, (number, claim)| {
            Ok((number, claim.map(AioClaim)).into_pyobject(py)?.into_any().unbind())
        })
    }

    /// What a coroutine says of its task: `None`, or why it failed.
    fn said(&self, number: u64, failure: Option<String>) {
        if let Some(reply) = locked(&self.replies).remove(&number) {
            let _ = reply.send(failure.map_or(Ok(()), Err));
        }
    }

    /// Take no more tasks.
    fn stop(&self) {
        self.stop.notify_one();
    }

    /// What happened since the last call.
    fn events(&self) -> Vec<EventFields> {
        locked(&self.events).drain(..).collect()
    }
}
