//! The worker on threads: Python's own are the hands of the core's worker, so that a task costs no switch
//! between threads as long as there is another on the desk.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use stanchion::Receipt;
use stanchion::blocking::{self, Direction, Hands, Stopper, Taken};

use super::{EventFields, Events, Terms, on_terms};
use crate::args::{Seconds, Whole};
use crate::bridge::locked;
use crate::call::{call, in_python, turn};
use crate::claim::Claim;
use crate::error::{invalid, raise};
use crate::queue::Queue;
use crate::results::IntoPython;

/// Turns for signal handlers come no closer than this; well below the 50 ms that the core waits at most.
const TURN_APART: Duration = Duration::from_millis(25);

/// A worker on threads. Runs once.
#[pyclass(frozen)]
pub(crate) struct Worker {
    direction: Mutex<Option<Direction>>,
    hands: Hands,
    stopper: Stopper,
    events: Events,
}

#[pymethods]
impl Worker {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, Queue>,
        concurrency: Option<Whole>,
        lease: Option<Seconds>,
        max_run: Option<Seconds>,
        timeout: Option<Seconds>,
        grace: Option<Seconds>,
        until_empty: bool,
    ) -> PyResult<Self> {
        let (terms, events) =
            (Terms { concurrency, lease, max_run, timeout, grace, until_empty }, Events::default());
        let noted = events.clone();
        let worker =
            on_terms!(blocking::Worker::hosted(queue.get().0.clone()), terms).on_event(move |event| {
                noted.note(event);
            });
        let (direction, hands) = worker.open().map_err(|error| raise(py, &error))?;
        let stopper = direction.stopper();
        Ok(Self { direction: Mutex::new(Some(direction)), hands, stopper, events })
    }

    /// Works until it is stopped. Runs signal handlers meanwhile; what they raise ends it. Calls `tell` when there are
    /// events to fetch: the threads that fetch tasks may all be stuck.
    fn run(&self, py: Python<'_>, tell: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let tell = tell.clone().unbind();
        let direction = locked(&self.direction).take();
        let direction =
            direction.ok_or_else(|| invalid(py, "the worker has already run; make another one"))?;
        // Handlers that still run when a signal ends the worker are not waited for.
        let mut last: Option<Instant> = None;
        let mut turn = || {
            // The core looks around after each call, and each turn waits for the GIL.
            if last.is_some_and(|last| last.elapsed() < TURN_APART) {
                return ControlFlow::Continue(());
            }
            last = Some(Instant::now());
            let told = || in_python(|py| tell.call0(py).map(drop));
            let turned = if self.events.is_empty() { turn() } else { told() };
            turned.map_break(|()| self.hands.interrupt())
        };
        call(py, || direction.run_while(&mut turn))?.into_python(py)
    }

    /// The next task for a thread of Python; no claim if there are events to fetch, and nothing at all if there
    /// will be no more.
    fn fetch(&self, py: Python<'_>) -> Option<(u64, Option<Claim>)> {
        let mut waited = false;
        loop {
            if !self.events.is_empty() {
                return Some((0, None));
            }
            // With the GIL: a thread that has it works on all tasks that are there before another gets it.
            match self.hands.take(waited) {
                Taken::Task(claim) => return Some((claim.receipt().get(), Some(Claim(claim)))),
                Taken::Nothing => py.detach(|| self.hands.wait()),
                Taken::Over => return None,
            }
            waited = true;
        }
    }

    /// What a thread says of its task: `None`, or why it failed.
    fn said(&self, py: Python<'_>, number: u64, failure: Option<String>) {
        if let Some(unsettled) = self.hands.done(Receipt::new(number), failure.map_or(Ok(()), Err)) {
            py.detach(|| self.hands.settle(unsettled));
        }
    }

    /// Take no more tasks.
    fn stop(&self) {
        self.stopper.stop();
    }

    /// The same, and handlers have no grace left.
    fn hurry(&self) {
        self.stopper.hurry();
    }

    /// No more tasks for the threads of Python.
    fn close(&self) {
        self.hands.interrupt();
    }

    /// What happened since the last call.
    fn events(&self) -> Vec<EventFields> {
        self.events.take()
    }
}
