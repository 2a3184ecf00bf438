//! Workers: the core's, whose handlers pass each task on to a thread or a coroutine of Python, and wait for
//! its verdict. Threads of ours never call Python; Python's come and fetch.

mod asyncio;
mod blocking;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use stanchion::{WorkerEvent, WorkerReport};

pub(crate) use asyncio::AioWorker;
pub(crate) use blocking::Worker;

use crate::args::{Seconds, Whole};
use crate::bridge::locked;
use crate::results::{IntoPython, object};

/// What a handler said: nothing, or why it failed.
type Said = Result<(), String>;
/// What happened, the task, the attempt, and the reason.
type EventFields = (&'static str, String, u32, String);

/// Stands in the place of a task's number for "something else happened": see [`Events`].
const EVENTS: u64 = 0;
/// Events that nobody fetches are dropped, the oldest first.
const MOST_EVENTS: usize = 10_000;

/// Completed, failed, dead, lost.
impl IntoPython for WorkerReport {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.completed, self.failed, self.dead, self.lost))
    }
}

/// What happened beyond what Python's handlers see themselves, and was not fetched yet.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<VecDeque<EventFields>>>);

impl Events {
    /// Notes an event; whether it is one of those that are noted.
    fn note(&self, event: WorkerEvent<'_>) -> bool {
        let fields = match event {
            WorkerEvent::Dead { id, attempt, reason } => ("dead", id.to_owned(), attempt, reason.to_owned()),
            WorkerEvent::Lost { id, attempt } => ("lost", id.to_owned(), attempt, String::new()),
            WorkerEvent::Stuck { id, attempt, free } => {
                ("stuck", id.to_owned(), attempt, format!("{free} more tasks can run beside it"))
            }
            WorkerEvent::SlotsMissed { schedule, missed, fired, .. } => {
                let said =
                    format!("nobody worked on the queue: {missed} slots were missed, {fired} fired late");
                ("slots_missed", schedule.to_owned(), 0, said)
            }
            WorkerEvent::StoreFailed { error } => ("store_failed", String::new(), 0, error.to_string()),
            WorkerEvent::StoreBack { after } => {
                let said = format!("the store answers again, after {:.1} s", after.as_secs_f64());
                ("store_back", String::new(), 0, said)
            }
            _ => return false,
        };
        let mut events = locked(&self.0);
        if events.len() >= MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(fields);
        true
    }

    fn is_empty(&self) -> bool {
        locked(&self.0).is_empty()
    }

    fn take(&self) -> Vec<EventFields> {
        locked(&self.0).drain(..).collect()
    }
}

/// How a worker works.
#[derive(Clone)]
struct Terms {
    concurrency: Option<Whole>,
    lease: Option<Seconds>,
    max_run: Option<Seconds>,
    timeout: Option<Seconds>,
    grace: Option<Seconds>,
    until_empty: bool,
}

/// A worker of either face of the core, on these terms.
macro_rules! on_terms {
    ($worker:expr, $terms:expr) => {{
        let (mut worker, terms) = ($worker, &$terms);
        if let Some(concurrency) = terms.concurrency {
            worker = worker.concurrency(concurrency.narrow(usize::MAX));
        }
        if let Some(lease) = terms.lease {
            worker = worker.lease(lease.0);
        }
        if let Some(max_run) = terms.max_run {
            worker = worker.max_run(max_run.0);
        }
        if let Some(timeout) = terms.timeout {
            worker = worker.timeout(timeout.0);
        }
        if let Some(grace) = terms.grace {
            worker = worker.grace(grace.0);
        }
        if terms.until_empty {
            worker = worker.until_empty();
        }
        worker
    }};
}

use on_terms;
