//! Workers whose hands are threads of a host language.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::Span;

use super::direct::direct;
use super::dispatcher::{Dispatcher, Taken};
use super::{Stopper, Worker, no_thread};
use crate::api::blocking::{Queue, go_on};
use crate::api::worker::{WorkerReport, WorkerSettings};
use crate::base::error::Error;
use crate::base::sigmask::spawn_quietly;
use crate::base::wake::locked;
use crate::engine::worker::HandlerEnd;
use crate::protocol::Receipt;
use crate::queue::claim_calls::Verdict;
use crate::session::trace;

/// In the place of a handler: the work is done by [`Hands`].
#[derive(Clone, Copy, Debug)]
pub struct Hosted;

#[doc(hidden)]
impl Worker<Hosted> {
    /// A worker on this queue whose hands are threads of the host: for languages into which no other thread may
    /// call, or whose threads take turns, so that each call from outside would cost two switches.
    ///
    /// ```
    /// # fn main() -> Result<(), stanchion::Error> {
    /// use std::ops::ControlFlow;
    /// use stanchion::Task;
    /// use stanchion::blocking::{Client, Taken, Worker};
    ///
    /// let queue = Client::open("memory:")?.queue("emails");
    /// queue.enqueue(Task::new("user:42"))?;
    /// let (direction, hands) = Worker::hosted(queue).until_empty().open()?;
    /// let hand = std::thread::spawn(move || {
    ///     let mut waited = false;
    ///     loop {
    ///         match hands.take(waited) {
    ///             Taken::Task(claim) => {
    ///                 if let Some(unsettled) = hands.done(claim.receipt(), Ok(())) {
    ///                     hands.settle(unsettled);
    ///                 }
    ///             }
    ///             Taken::Nothing => hands.wait(),
    ///             Taken::Over => return,
    ///         }
    ///         waited = true;
    ///     }
    /// });
    /// let report = direction.run_while(&mut || ControlFlow::Continue(()))?;
    /// assert_eq!(report.completed, 1);
    /// # hand.join().unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn hosted(queue: Queue) -> Self {
        Self { queue, handler: Hosted, settings: WorkerSettings::default(), stop: Arc::default() }
    }

    /// The two parts of the worker: one thread directs, up to `concurrency` others are its hands.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad option.
    pub fn open(self) -> Result<(Direction, Hands), Error> {
        self.check()?;
        let desk = Arc::new(Dispatcher::new(self.queue, self.settings, self.stop));
        Ok((Direction(Arc::clone(&desk)), Hands { desk, spans: Arc::default() }))
    }
}

/// Claims tasks for [`Hands`], and settles what they finish.
#[must_use = "hands get no tasks before it runs"]
pub struct Direction(Arc<Dispatcher>);

impl Direction {
    /// What stops this worker.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.0.stop))
    }

    /// As [`Worker::run_while`].
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub fn run_while(self, interrupt: &mut dyn FnMut() -> ControlFlow<()>) -> Result<WorkerReport, Error> {
        let desk = self.0;
        let result = direct(&desk, &mut |_| Ok(()), interrupt);
        desk.dismiss();
        result
    }

    /// Runs it on a thread of its own, with all signals blocked, which calls `ended` with the result: for hosts
    /// that have no thread to spare.
    ///
    /// # Errors
    /// `Internal` if no thread could be started.
    pub fn start(
        self,
        ended: impl FnOnce(Result<WorkerReport, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let run = move || ended(self.run_while(&mut go_on));
        spawn_quietly("stanchion-worker", run).map(drop).map_err(no_thread)
    }
}

impl fmt::Debug for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Direction({:?}, {:?})", self.0.queue, self.0.settings)
    }
}

/// What the threads of a host call, each in a loop, to work for a [`Direction`].
#[derive(Clone)]
pub struct Hands {
    desk: Arc<Dispatcher>,
    /// Of the work on tasks, if anybody listens. Told and dropped outside of the mutex.
    spans: Arc<Mutex<HashMap<Receipt, Span>>>,
}

/// Verdicts that nobody else settles.
#[must_use = "the tasks come back when their leases end"]
#[derive(Debug)]
pub struct Unsettled(Vec<Verdict>);

impl Hands {
    /// The next task, if one lies ready. Never waits and does no I/O. `waited`: whether this thread has called
    /// [`Hands::wait`] since its last task.
    pub fn take(&self, waited: bool) -> Taken {
        let taken = self.desk.take(waited);
        if let Taken::Task(claim) = &taken {
            let span = trace::work(claim.queue(), claim.id(), claim.attempt());
            if !span.is_disabled() {
                locked(&self.spans).insert(claim.receipt(), span);
            }
        }
        taken
    }

    /// Waits until it is worth while to look again: for a task, the end, or an event of interest.
    pub fn wait(&self) {
        self.desk.wait(None);
    }

    /// As [`Hands::wait`], for `time` at most. Look again in any case.
    pub fn wait_for(&self, time: Duration) {
        self.desk.wait(Some(time));
    }

    /// What the worker has done so far.
    pub fn report(&self) -> WorkerReport {
        self.desk.with(|state, _| state.report)
    }

    /// What became of a task: done, or why it failed. Does no I/O: usually the verdict travels with the next
    /// claim. While the director waits for tasks it cannot; then it is given back, for [`Hands::settle`].
    pub fn done(&self, receipt: Receipt, said: Result<(), String>) -> Option<Unsettled> {
        let span = locked(&self.spans).remove(&receipt).unwrap_or_else(Span::none);
        self.desk.done(receipt, said, &span).map(Unsettled)
    }

    /// Settles a verdict. Waits for the store.
    pub fn settle(&self, unsettled: Unsettled) {
        self.desk.settle_alone(unsettled.0);
    }

    /// Ends the shift without waiting for the hands: what they work on counts as failed.
    pub fn interrupt(&self) {
        self.desk.interrupt();
        let spans = mem::take(&mut *locked(&self.spans));
        spans.values().for_each(|span| trace::worked(span, &HandlerEnd::Interrupted));
    }
}

impl fmt::Debug for Hands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hands({:?})", self.desk.queue)
    }
}
