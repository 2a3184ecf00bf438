//! `stanchion work`: a command for every task.

mod attend;
mod pauses;
mod stderr;
mod tally;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use stanchion::blocking::{Claim, Client, Queue, Worker};
use stanchion::{DEFAULT_GRACE, DEFAULT_MAX_HOLD, DEFAULT_TTL, Error, MAX_TTL};

use crate::arguments::{Globals, WorkOrder};
use crate::exit;
use crate::failure::Failure;
use crate::metrics::MetricsFile;
use crate::process::{End, Nursery, OF_WORK, Signals};
use crate::report::Report;
use crate::store;
use pauses::Pauses;
use tally::Tally;

/// How often it is looked whether all work is done. Signals and ends of commands are noticed at once.
const LOOK: Duration = Duration::from_millis(50);

/// Work goes on.
const AT_WORK: u8 = 0;
/// No more tasks; running commands have their grace.
const DRAINING: u8 = 1;
/// The grace is over: running commands are stopped.
const HURRYING: u8 = 2;
/// Running commands are killed.
const KILLING: u8 = 3;

/// A killed command may take a moment to be reaped.
const REAPED_WITHIN: Duration = Duration::from_secs(10);

/// What the threads of one `stanchion work` share.
struct Crew {
    order: WorkOrder,
    report: Report,
    nursery: Nursery,
    stage: AtomicU8,
    /// Why the work cannot go on.
    fault: Mutex<Option<Failure>>,
    tally: Arc<Tally>,
}

/// Works until it is told to end, or until the queues are empty if that was asked for.
pub fn work(order: &WorkOrder, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    if BTreeSet::from_iter(&order.queues).len() < order.queues.len() {
        return Err(Failure::usage("a queue is named twice", "name it once"));
    }
    let client = store::open(globals, report)?;
    let queues: Vec<Queue> = order.queues.iter().map(|name| client.queue(name)).collect();
    let pauses = Pauses::tell(&queues, report);
    let file = order.metrics_file.as_deref();
    let mut file = file.map(|path| MetricsFile::begin(&client, path)).transpose()?;
    // From here on a signal is ours to handle; until here it simply ended this process.
    let signals = Signals::catch(&OF_WORK)?;
    let crew = Arc::new(Crew {
        order: order.clone(),
        report: report.clone(),
        nursery: Nursery::default(),
        stage: AtomicU8::new(AT_WORK),
        fault: Mutex::default(),
        tally: Arc::new(Tally::new(queues.len())),
    });
    let killed_by = thread::scope(|scope| {
        let (_end, ended) = channel();
        scope.spawn(move || pauses.watch(&ended));
        let mut killed_by = crew.work_on_all(&queues, &signals, &mut file);
        // One queue's tasks may have put new ones into another that was empty already.
        while order.until_empty && queues.len() > 1 && crew.is_at_work() && !all_empty(&queues)? {
            killed_by = crew.work_on_all(&queues, &signals, &mut file);
        }
        Ok::<_, Failure>(killed_by)
    })?;
    report.end_count();
    crew.tally.summary(&queues, report);
    file.map(|file| file.write()).transpose()?;
    end(&crew, client, killed_by)
}

/// The exit code. The client goes first: what abandoned calls left undone is finished then.
fn end(crew: &Crew, client: Client, killed_by: Option<Signal>) -> Result<u8, Failure> {
    drop(client);
    match (crew.fault.lock().unwrap_or_else(PoisonError::into_inner).take(), killed_by) {
        (Some(fault), _) => Err(fault),
        (None, Some(signal)) => Ok(End::Signal(signal).code()),
        (None, None) => Ok(exit::DONE),
    }
}

fn all_empty(queues: &[Queue]) -> Result<bool, Error> {
    for queue in queues {
        let stats = queue.stats()?;
        if stats.ready + stats.claimed > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Crew {
    /// A worker for each queue; this thread looks after signals and processes. The last signal that came after the
    /// first, if one did.
    fn work_on_all(
        self: &Arc<Self>,
        queues: &[Queue],
        signals: &Signals,
        file: &mut Option<MetricsFile<'_>>,
    ) -> Option<Signal> {
        let mut killed_by = None;
        thread::scope(|scope| {
            let work = |(place, queue): (usize, &Queue)| {
                let queue = queue.clone();
                scope.spawn(move || self.work_on(place, queue))
            };
            let workers: Vec<_> = queues.iter().enumerate().map(work).collect();
            while workers.iter().any(|worker| !worker.is_finished()) {
                match signals.next(LOOK) {
                    Some(caught) if caught.signal == Signal::SIGCHLD => self.nursery.reap(),
                    Some(caught) if caught.signal == Signal::SIGTSTP => self.nursery.suspend(),
                    Some(_) if self.is_at_work() => self.drain(),
                    Some(caught) => {
                        killed_by = Some(caught.signal);
                        let next = self.stage().saturating_add(1).min(KILLING);
                        self.stage.store(next, Ordering::Release);
                        self.nursery.wake();
                    }
                    None => {}
                }
                if let Some(file) = file {
                    file.write_if_due(&self.report);
                }
            }
        });
        killed_by
    }

    fn work_on(self: &Arc<Self>, place: usize, queue: Queue) {
        let lease = self.order.lease.unwrap_or(DEFAULT_TTL);
        // The command is stopped before its claim is given up.
        let max_run = self.max_run() + self.order.kill_after + lease;
        let crew = Arc::clone(self);
        let mut worker = Worker::new(queue.clone(), move |claim: &Claim| crew.attend(claim))
            .concurrency(self.order.jobs)
            .lease(lease)
            .max_run(max_run.min(MAX_TTL))
            .grace(self.order.grace.unwrap_or(DEFAULT_GRACE))
            .patience(self.order.kill_after + REAPED_WITHIN);
        if let Some(timeout) = self.order.run_timeout {
            worker = worker.timeout(timeout);
        }
        if self.order.until_empty {
            worker = worker.until_empty();
        }
        let (tally, report, name) = (Arc::clone(&self.tally), self.report.clone(), queue.name().to_owned());
        worker = worker.on_event(move |event| tally.event(&name, event, &report));
        let stopper = worker.stopper();
        let mut left =
            self.tally.watch_left(place, queue, self.order.until_empty && self.report.has_counter());
        let worked = worker.run_while(&mut || {
            left(&self.report);
            if self.stage() >= HURRYING {
                stopper.hurry();
            }
            if self.is_at_work() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if let Err(error) = worked {
            self.end_with(error.into());
        }
    }

    fn max_run(&self) -> Duration {
        self.order.max_run.unwrap_or(DEFAULT_MAX_HOLD)
    }

    fn stage(&self) -> u8 {
        self.stage.load(Ordering::Acquire)
    }

    fn is_at_work(&self) -> bool {
        self.stage() == AT_WORK
    }

    fn is_killing(&self) -> bool {
        self.stage() == KILLING
    }

    fn drain(&self) {
        self.stage.fetch_max(DRAINING, Ordering::AcqRel);
    }

    /// Ends the work because of this; the first reason counts.
    fn end_with(&self, failure: Failure) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.drain();
    }
}
