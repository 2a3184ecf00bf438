//! The worker on threads.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};

use pyo3::prelude::*;
use stanchion::blocking;

use super::{EVENTS, EventFields, Events, Said, Terms, on_terms};
use crate::args::{Seconds, Whole};
use crate::bridge::locked;
use crate::call::{call, turn};
use crate::claim::Claim;
use crate::error::raise;
use crate::queue::Queue;
use crate::results::IntoPython;

/// A worker on threads.
#[pyclass(frozen)]
pub(crate) struct Worker {
    queue: blocking::Queue,
    terms: Terms,
    counter: Arc<Counter>,
    /// Stopped before it ran, it ends at once.
    stopped: AtomicBool,
    stopper: Mutex<Option<blocking::Stopper>>,
}

#[pymethods]
impl Worker {
    #[new]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, Queue>,
        concurrency: Option<Whole>,
        lease: Option<Seconds>,
        max_run: Option<Seconds>,
        burst: bool,
    ) -> PyResult<Self> {
        let (queue, terms) = (queue.get().0.clone(), Terms { concurrency, lease, max_run, burst });
        let idle = |_: &blocking::Claim| Said::Ok(());
        let worker = on_terms!(blocking::Worker::new(queue.clone(), idle), terms);
        worker.check().map_err(|error| raise(py, &error))?;
        Ok(Self {
            queue,
            terms,
            counter: Arc::default(),
            stopped: AtomicBool::new(false),
            stopper: Mutex::default(),
        })
    }

    /// Works until it is stopped. Runs signal handlers meanwhile; what they raise ends it.
    fn run(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (counter, numbers) = (Arc::clone(&self.counter), AtomicU64::new(EVENTS + 1));
        let handler =
            move |claim: &blocking::Claim| counter.pass(numbers.fetch_add(1, Ordering::Relaxed), claim);
        let counter = Arc::clone(&self.counter);
        let worker = on_terms!(blocking::Worker::new(self.queue.clone(), handler), self.terms)
            .on_event(move |event| counter.tell(event));
        let stopper = worker.stopper();
        locked(&self.stopper).replace(stopper.clone());
        if self.stopped.load(Ordering::SeqCst) {
            stopper.stop();
        }
        let counter = Arc::clone(&self.counter);
        let mut turn = move || {
            // Handlers that still run when a signal ends the worker are not waited for.
            turn().map_break(|()| counter.close())
        };
        let result = call(py, || worker.run_while(&mut turn));
        self.counter.close();
        result?.into_python(py)
    }

    /// The next task for a thread of Python, its number and claim; no claim if there are events to fetch, and
    /// nothing at all if there will be no more.
    fn fetch(&self, py: Python<'_>) -> Option<(u64, Option<Claim>)> {
        py.detach(|| self.counter.fetch()).map(|(number, claim)| (number, claim.map(Claim)))
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
        self.counter.events.take()
    }
}

/// Where the core's handlers put tasks, and Python's threads fetch them.
#[derive(Default)]
struct Counter {
    state: Mutex<State>,
    changed: Condvar,
    events: Events,
}

#[derive(Default)]
struct State {
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

    fn tell(&self, event: stanchion::WorkerEvent<'_>) {
        if self.events.note(event) {
            // Under the lock, so that no thread is between looking and waiting.
            let _state = locked(&self.state);
            self.changed.notify_one();
        }
    }

    /// A thread's part.
    fn fetch(&self) -> Option<(u64, Option<blocking::Claim>)> {
        let mut state = locked(&self.state);
        loop {
            if let Some((number, claim)) = state.tasks.pop_front() {
                return Some((number, Some(claim)));
            }
            if state.closed {
                return None;
            }
            if !self.events.is_empty() {
                return Some((EVENTS, None));
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
