//! Workers: the core's, whose hands are the threads of the program. They poll for a task, work on it, and settle.

use std::collections::VecDeque;
use std::ffi::c_char;
use std::mem::{ManuallyDrop, size_of};
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stanchion::blocking::{Hands, Stopper, Taken};
use stanchion::{Receipt, WorkerEvent, WorkerReport, blocking};

use crate::arguments::{number, optional_count, optional_flag, optional_span, span, text};
use crate::boundary;
use crate::claim::{Claim, stanchion_claim};
use crate::client::stanchion_client;
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::events::{Event, stanchion_worker_event};
use crate::handle::{self, Kind};
use crate::options::stanchion_worker_options;
use crate::queue::queue;
use crate::records::{self, Record, needed, put};

/// Takes tasks of a queue for the threads that poll it. 0 is none. In a forked child it is the parent's.
pub type stanchion_worker = i64;

/// Events that nobody fetches are dropped, the oldest first.
const MOST_EVENTS: usize = 1_000;
/// A wait without end is a wait of this time, again and again.
const LONG: Duration = Duration::from_secs(3600);

pub(crate) struct Worker {
    /// Threads and locks of the parent's are not for a forked child to drop.
    parts: ManuallyDrop<Parts>,
    process: u32,
}

struct Parts {
    hands: Hands,
    stopper: Stopper,
    news: Arc<News>,
}

/// The events of the worker's own thread.
#[derive(Default)]
struct News {
    events: Mutex<VecDeque<Event>>,
    end: Mutex<Option<Result<(), Failure>>>,
    ended: Condvar,
}

impl Kind for Worker {
    const NAME: &'static str = "worker";
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Ok(parts) = self.parts() {
            parts.stopper.stop();
            parts.hands.interrupt();
            // SAFETY: not used after this.
            unsafe { ManuallyDrop::drop(&mut self.parts) };
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    fn open(queue: blocking::Queue, options: &stanchion_worker_options) -> Result<Self, Failure> {
        let mut worker = blocking::Worker::hosted(queue);
        if let Some(concurrency) = optional_count("concurrency", options.concurrency, usize::MAX)? {
            worker = worker.concurrency(concurrency);
        }
        if let Some(lease) = optional_span("lease_ms", options.lease_ms)? {
            worker = worker.lease(lease);
        }
        if let Some(max_run) = optional_span("max_run_ms", options.max_run_ms)? {
            worker = worker.max_run(max_run);
        }
        if let Some(timeout) = optional_span("timeout_ms", options.timeout_ms)? {
            worker = worker.timeout(timeout);
        }
        if let Some(grace) = optional_span("grace_ms", options.grace_ms)? {
            worker = worker.grace(grace);
        }
        if optional_flag("until_empty", options.until_empty)?.unwrap_or(false) {
            worker = worker.until_empty();
        }
        let news = Arc::new(News::default());
        let noted = Arc::clone(&news);
        let (direction, hands) = worker.on_event(move |event| noted.note(&event)).open()?;
        let (stopper, told) = (direction.stopper(), Arc::clone(&news));
        direction.start(move |result| told.ends(result.map(drop).map_err(Failure::from)))?;
        let parts = ManuallyDrop::new(Parts { hands, stopper, news });
        Ok(Self { parts, process: process::id() })
    }

    fn parts(&self) -> Result<&Parts, Failure> {
        if self.process == process::id() { Ok(&self.parts) } else { Err(Failure::forked("the worker")) }
    }

    /// The next task; `None` after this time.
    fn poll(&self, time: Duration) -> Result<Polled, Failure> {
        let Parts { hands, news, .. } = self.parts()?;
        let until = Instant::now().checked_add(time);
        let left = || until.map_or(LONG, |until| until.saturating_duration_since(Instant::now()));
        let mut waited = false;
        loop {
            match hands.take(waited) {
                Taken::Task(claim) => return Ok(Polled::Task(claim)),
                // Its thread tells how it ended after it has told that there are no more tasks.
                Taken::Over => return news.end(left()),
                Taken::Nothing if left().is_zero() => return Ok(Polled::Nothing),
                Taken::Nothing => hands.wait_for(left()),
            }
            waited = true;
        }
    }

    /// What became of a task.
    pub(crate) fn done(&self, receipt: Receipt, said: Result<(), String>) {
        if let Ok(Parts { hands, .. }) = self.parts()
            && let Some(unsettled) = hands.done(receipt, said)
        {
            hands.settle(unsettled);
        }
    }
}

enum Polled {
    Task(blocking::Claim),
    Nothing,
    Over,
}

impl News {
    fn note(&self, event: &WorkerEvent<'_>) {
        let Some(event) = Event::of(event) else { return };
        let mut events = locked(&self.events);
        if events.len() >= MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    }

    fn ends(&self, result: Result<(), Failure>) {
        *locked(&self.end) = Some(result);
        self.ended.notify_all();
    }

    fn end(&self, time: Duration) -> Result<Polled, Failure> {
        let waits = |end: &mut Option<Result<(), Failure>>| end.is_none();
        let end = self.ended.wait_timeout_while(locked(&self.end), time, waits);
        match &*end.unwrap_or_else(PoisonError::into_inner).0 {
            Some(Ok(())) => Ok(Polled::Over),
            Some(Err(failure)) => Err(failure.clone()),
            None => Ok(Polled::Nothing),
        }
    }
}

/// Starts a worker on a queue: a thread of the library takes tasks and settles them, and keeps their leases alive; the
/// threads of the program poll for them. `options` may be NULL.
///
/// Errors: INVALID_ARGUMENT for a bad name or option; INTERNAL if no thread can be started. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_open(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    options: *const stanchion_worker_options,
    out: *mut stanchion_worker,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the worker")?;
        // SAFETY: the caller passes texts and structs as the header says.
        let (queue, options) = unsafe { (queue(client, queue_name, queue_len)?, records::read(options)?) };
        let worker = handle::insert(Worker::open(queue, &options)?)?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, worker) };
        Ok(0)
    })
}

/// The next task to work on. STANCHION_EMPTY: there was none for `wait_ms`. STANCHION_OVER: there will be none, since the
/// worker was stopped and everything is settled. Up to `concurrency` tasks are out at once: settle one to get the next.
///
/// Errors: what the store refuses for good, which ends the worker (a store that cannot be reached is asked again);
/// INVALID_ARGUMENT; FORKED. Any thread, also several at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_poll(
    worker: stanchion_worker,
    wait_ms: i64,
    out: *mut stanchion_claim,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the claim")?;
        let worker = handle::get::<Worker>(worker)?;
        let claim = match worker.poll(span("wait_ms", wait_ms)?)? {
            Polled::Task(claim) => claim,
            Polled::Nothing => return Ok(stanchion_status::STANCHION_EMPTY as i32),
            Polled::Over => return Ok(stanchion_status::STANCHION_OVER as i32),
        };
        let claim = handle::insert(Claim::new(claim, Some(worker)))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, claim) };
        Ok(0)
    })
}

/// # Errors
/// If it is no claim of this worker's.
fn settle(
    worker: stanchion_worker,
    claim: stanchion_claim,
    said: Result<(), String>,
) -> Result<i32, Failure> {
    let worker = handle::get::<Worker>(worker)?;
    worker.parts()?;
    let is_its = |claim: &Claim| claim.worker.as_ref().is_some_and(|its| Arc::ptr_eq(its, &worker));
    if !is_its(&*handle::get::<Claim>(claim)?) {
        return Err(Failure::invalid("the claim was not given out by this worker"));
    }
    // Only one of those who say so at once is heard.
    let claim = handle::take::<Claim>(claim)?;
    worker.done(claim.claim.receipt(), said);
    Ok(0)
}

/// The task is done: acked, usually together with the next claim, and the handle of the claim is freed. A claim that was
/// settled otherwise, with a result for example, stays as it was. stanchion_worker_get_event reports whether the store accepted it. Any thread.
///
/// Errors: INVALID_ARGUMENT if the claim is not this worker's; FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_complete(
    worker: stanchion_worker,
    claim: stanchion_claim,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || settle(worker, claim, Ok(())))
}

/// The task has failed: tried again after the pause of stanchion_claim_nack, or dead after its last attempt; the handle of the claim is
/// freed. The reason (1 KiB at most; may be NULL) is kept with it. A claim that was settled otherwise stays as it was. Any thread.
///
/// Errors: as stanchion_worker_complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_fail(
    worker: stanchion_worker,
    claim: stanchion_claim,
    reason: *const c_char,
    reason_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        let reason = unsafe { text("reason", reason, reason_len) }?;
        settle(worker, claim, Err(reason.to_owned()))
    })
}

/// Take no more tasks. Those that are out go on for grace_ms. Then stanchion_claim_loss answers STANCHION_LOSS_STOPPED for
/// them, and those that fail go back without counting an attempt. What has not ended 2 s later is left behind: its task
/// comes back when its lease would have ended, uncounted too. When all are settled or left behind, stanchion_worker_poll
/// answers STANCHION_OVER. Does no I/O. Any thread, but no signal handler: set a flag there, and look at it between polls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_stop(
    worker: stanchion_worker,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        handle::get::<Worker>(worker)?.parts()?.stopper.stop();
        Ok(0)
    })
}

/// As stanchion_worker_stop, and no grace is left. Does no I/O. Any thread, but no signal handler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_hurry(
    worker: stanchion_worker,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        handle::get::<Worker>(worker)?.parts()?.stopper.hurry();
        Ok(0)
    })
}

/// What a worker has done so far.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_worker_report {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// Tasks acked.
    pub completed: i64,
    /// Attempts that failed, those that killed the task included.
    pub failed: i64,
    /// Tasks that died.
    pub dead: i64,
    /// Claims that were lost.
    pub lost: i64,
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_worker_report {
    const NAME: &'static str = "stanchion_worker_report";
    const DEFAULT: Self = Self { struct_size: size_of::<Self>(), completed: 0, failed: 0, dead: 0, lost: 0 };
}

/// What the worker has done so far. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_get_report(
    worker: stanchion_worker,
    out: *mut stanchion_worker_report,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let WorkerReport { completed, failed, dead, lost, .. } =
            handle::get::<Worker>(worker)?.parts()?.hands.report();
        let report = stanchion_worker_report {
            completed: number(completed),
            failed: number(failed),
            dead: number(dead),
            lost: number(lost),
            ..Record::DEFAULT
        };
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &report) }?;
        Ok(0)
    })
}

/// The oldest thing that happened and was not fetched yet, of 1000 at most; STANCHION_EMPTY if there is none. Each is
/// reported once. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_worker_get_event(
    worker: stanchion_worker,
    out: *mut stanchion_worker_event,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::check(out) }?;
        let worker = handle::get::<Worker>(worker)?;
        let Some(event) = locked(&worker.parts()?.news.events).pop_front() else {
            return Ok(stanchion_status::STANCHION_EMPTY as i32);
        };
        // SAFETY: as above.
        unsafe { records::write(out, &event.record()) }?;
        Ok(0)
    })
}

/// Frees the handle and ends the worker without waiting: what is still worked on counts as failed. To drain it, stop it and
/// poll until STANCHION_OVER first. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_worker_free(worker: stanchion_worker) {
    boundary::value((), || {
        if let Ok(worker) = handle::take::<Worker>(worker)
            && let Ok(parts) = worker.parts()
        {
            // Now, even if claims of it are still about.
            parts.stopper.stop();
            parts.hands.interrupt();
        }
    });
}
