//! The blocking worker.

mod direct;
mod dispatcher;
mod hosted;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::api::blocking::{Claim, Queue, go_on};
use crate::api::worker::{WorkerReport, WorkerSettings};
use crate::base::error::{Error, ErrorKind};

pub use dispatcher::Taken;
pub use hosted::{Direction, Hands, Hosted, Unsettled};

use direct::direct;
use dispatcher::{Dispatcher, StopFlag};

/// Takes tasks of a queue and has a handler work on them, on threads of its own.
///
/// Every task is under a lease that is renewed while its handler runs, for `max_run` at most. A thread
/// cannot be stopped from outside: a handler that runs long should look at [`Claim::is_valid`] now and then. One that
/// goes on after the loss of its claim keeps its thread busy; the worker goes on with the others, tells of it
/// ([`WorkerEvent::Stuck`](crate::WorkerEvent::Stuck)), and leaves the task to others. The thread is not replaced: whatever hangs once would hang
/// again, until threads or memory run out.
///
/// A handler that returns is acked; one that fails or panics is nacked with backoff. What a handler settles
/// itself, the worker leaves alone. Verdicts travel with the next claim, in one round trip.
///
/// ```
/// # fn main() -> Result<(), stanchion::Error> {
/// use stanchion::blocking::{Claim, Client, Worker};
/// use stanchion::Task;
///
/// let queue = Client::open("memory:")?.queue("emails");
/// queue.enqueue(Task::new("user:42").payload("welcome"))?;
///
/// let send = |claim: &Claim| {
///     println!("{} gets {:?}", claim.id(), claim.payload());
///     Ok::<(), std::io::Error>(())
/// };
/// let report = Worker::new(queue, send).concurrency(8).until_empty().run()?;
/// assert_eq!(report.completed, 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a worker does nothing until it runs"]
pub struct Worker<H> {
    pub(crate) queue: Queue,
    handler: H,
    pub(crate) settings: WorkerSettings,
    stop: Arc<StopFlag>,
}

/// Stops a worker from another thread or a signal handler.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<StopFlag>);

impl Stopper {
    /// Take no more tasks. Handlers have their [`Worker::grace`]; then their claims count as lost to them, and the tasks
    /// of those that then fail go back without counting an attempt. A handler that does not end all the same is left
    /// behind 2 s later: its thread goes on, and its task comes back, uncounted, when its lease would have ended. Only
    /// sets a flag.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// As `stop`, and no grace is left. Only sets a flag.
    pub fn hurry(&self) {
        self.0.hurry();
    }
}

impl<H> Worker<H> {
    /// How long a handler that was told to end is waited for when the worker stops, if it takes longer for a reason.
    #[doc(hidden)]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// What stops this worker.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }
}

impl<H, E> Worker<H>
where
    H: Fn(&Claim) -> Result<(), E> + Send + Sync + 'static,
    E: fmt::Display,
{
    /// A worker on this queue. An error of the handler is kept with the task as its reason.
    pub fn new(queue: Queue, handler: H) -> Self {
        Self { queue, handler, settings: WorkerSettings::default(), stop: Arc::default() }
    }

    /// Middleware: `around` runs in the place of the handler, and is given the claim and the handler, as `next`. What it returns
    /// counts as what the handler returned. The last one that is added is the outermost.
    ///
    /// ```
    /// # fn main() -> Result<(), stanchion::Error> {
    /// # use stanchion::blocking::{Claim, Client, Worker};
    /// # let queue = Client::open("memory:")?.queue("emails");
    /// # queue.enqueue(stanchion::Task::new("user:42"))?;
    /// let send = |claim: &Claim| Ok::<(), std::io::Error>(println!("{}", claim.id()));
    /// let timed = Worker::new(queue, send).around(|claim, next| {
    ///     let began = std::time::Instant::now();
    ///     let result = next(claim);
    ///     println!("{} took {:?}", claim.id(), began.elapsed());
    ///     result
    /// });
    /// assert_eq!(timed.until_empty().run()?.completed, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn around<Wrong: fmt::Display>(
        self,
        around: impl Fn(&Claim, &H) -> Result<(), Wrong> + Send + Sync + 'static,
    ) -> Worker<impl Fn(&Claim) -> Result<(), Wrong> + Send + Sync + 'static> {
        let Self { queue, handler: next, settings, stop } = self;
        Worker { queue, handler: move |claim: &Claim| around(claim, &next), settings, stop }
    }

    /// Works until it is stopped, or until the queue is empty if that was asked for.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad option; what the store refuses for good. A store that cannot be reached is
    /// asked again.
    pub fn run(self) -> Result<WorkerReport, Error> {
        self.run_while(&mut go_on)
    }

    /// As [`Worker::run`]; `interrupt` runs about every 50 ms on this thread and may stop the worker.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub fn run_while(self, interrupt: &mut dyn FnMut() -> ControlFlow<()>) -> Result<WorkerReport, Error> {
        self.check()?;
        let desk = Arc::new(Dispatcher::new(self.queue, self.settings, self.stop));
        let handler = Arc::new(self.handler);
        let mut hands = Vec::new();
        let mut staff = |wanted| {
            while hands.len() < wanted {
                let (desk, handler) = (Arc::clone(&desk), Arc::clone(&handler));
                let run = move || desk.work(&*handler);
                match thread::Builder::new().name("stanchion-worker".into()).spawn(run) {
                    Ok(hand) => hands.push(hand),
                    // Fewer do as well; without any the tasks must go back.
                    Err(_) if !hands.is_empty() => break,
                    Err(error) => return Err(no_thread(error)),
                }
            }
            Ok(())
        };
        let result = direct(&desk, &mut staff, interrupt);
        desk.dismiss();
        if desk.with(|state, _| state.machine.left_behind()) == 0 {
            hands.into_iter().for_each(|hand| drop(hand.join()));
        }
        result
    }
}

fn no_thread(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Internal, "no thread could be started").with_source(error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::api::blocking::Client;
    use crate::{ClaimOptions, Task, WorkerEvent};

    /// Waits for something that comes at once or not at all.
    fn until(done: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_millis(500);
        while !done() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn a_task_that_is_settled_while_the_worker_stops_is_counted() {
        let queue = Client::open("memory:").unwrap().queue("q");
        queue.enqueue(Task::new("a")).unwrap();
        let turns = Arc::new(AtomicUsize::new(0));
        let (waits, seen) = (Arc::clone(&turns), Arc::clone(&turns));
        // The handler ends when the worker waits for tasks, so that its thread settles.
        let worker = Worker::new(queue, move |_: &Claim| {
            until(|| waits.load(Ordering::SeqCst) > 3);
            Ok::<(), String>(())
        });
        let stopper = worker.stopper();
        let worker = worker.concurrency(2).on_event(move |event| {
            if matches!(event, WorkerEvent::Completed { .. }) {
                stopper.stop();
                let before = seen.load(Ordering::SeqCst);
                until(|| seen.load(Ordering::SeqCst) > before + 1);
            }
        });
        let mut turn = || {
            turns.fetch_add(1, Ordering::SeqCst);
            ControlFlow::Continue(())
        };
        assert_eq!(worker.run_while(&mut turn).unwrap().completed, 1);
    }

    #[test]
    #[cfg_attr(not(feature = "sqlite"), ignore = "needs a store in memory")]
    fn a_host_that_ends_the_worker_when_its_last_task_is_settled_is_heard() {
        let queue = Client::open("memory:").unwrap().queue("q");
        queue.enqueue(Task::new("a")).unwrap();
        queue.enqueue(Task::new("b")).unwrap();
        let _another_works_on = queue.claim(ClaimOptions::new().max(1)).unwrap();
        let (turns, empty) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (waits, seen) = (Arc::clone(&turns), Arc::clone(&empty));
        // The handler ends while the worker waits for tasks.
        let worker = Worker::new(queue, move |_: &Claim| {
            until(|| waits.load(Ordering::SeqCst) > 3);
            Ok::<(), String>(())
        });
        let worker = worker.concurrency(2).until_empty().on_event(move |event| {
            if matches!(event, WorkerEvent::Empty) {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        });
        let (mut said, mut unheard) = (false, 0);
        let mut turn = || {
            unheard += usize::from(said);
            if turns.fetch_add(1, Ordering::SeqCst) > 3 && !said {
                until(|| empty.load(Ordering::SeqCst) > 0);
                said = true;
                return ControlFlow::Break(());
            }
            // Said again only so that the test ends.
            if unheard > 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert_eq!(worker.run_while(&mut turn).unwrap().completed, 1);
        assert!(unheard <= 20, "it went on");
    }
}
