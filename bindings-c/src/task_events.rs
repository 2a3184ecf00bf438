//! What happens to the tasks of a queue, for those who watch it.

use std::cell::Cell;
use std::ffi::c_char;
use std::mem::size_of;
use std::ops::ControlFlow;
use std::ptr;

use stanchion::blocking::with_interrupt_check;
use stanchion::{EventPage, Happened, TaskEvent};

use crate::arguments::{NONE, number, optional_count, optional_span, stanchion_text, wall};
use crate::boundary;
use crate::client::stanchion_client;
use crate::error::stanchion_error;
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::options::canceller;
use crate::queue::queue;
use crate::records::{self, Record, needed, put};

/// What happened to a task.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_happened {
    /// Something that this header does not know.
    STANCHION_HAPPENED_OTHERWISE = 0,
    /// It was put in: by an enqueue that added or replaced it or made it a successor, by a schedule, by the intake, or because
    /// it was dead and was kicked.
    STANCHION_HAPPENED_ADDED = 1,
    /// A worker was given it.
    STANCHION_HAPPENED_STARTED = 2,
    /// Its run has said how far it is.
    STANCHION_HAPPENED_PROGRESS = 3,
    /// It was acked.
    STANCHION_HAPPENED_DONE = 4,
    /// Its run failed, or its lease ended; it will be tried again.
    STANCHION_HAPPENED_FAILED = 5,
    /// It was given up: it had failed for the last time, was buried, or had expired.
    STANCHION_HAPPENED_DEAD = 6,
    /// It was cancelled, and is gone.
    STANCHION_HAPPENED_CANCELLED = 7,
    /// It was removed.
    STANCHION_HAPPENED_REMOVED = 8,
    /// Its run ended without having failed; it will be tried again.
    STANCHION_HAPPENED_PUT_BACK = 9,
}

fn happened_number(what: Happened) -> i32 {
    use stanchion_happened as happened;
    let what = match what {
        Happened::Added => happened::STANCHION_HAPPENED_ADDED,
        Happened::Started => happened::STANCHION_HAPPENED_STARTED,
        Happened::Progress => happened::STANCHION_HAPPENED_PROGRESS,
        Happened::Done => happened::STANCHION_HAPPENED_DONE,
        Happened::Failed => happened::STANCHION_HAPPENED_FAILED,
        Happened::Dead => happened::STANCHION_HAPPENED_DEAD,
        Happened::Cancelled => happened::STANCHION_HAPPENED_CANCELLED,
        Happened::Removed => happened::STANCHION_HAPPENED_REMOVED,
        Happened::PutBack => happened::STANCHION_HAPPENED_PUT_BACK,
        _ => happened::STANCHION_HAPPENED_OTHERWISE,
    };
    what as i32
}

/// Something that happened to a task. Its texts live as long as the handle of the list.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_task_event {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// One more than that of the event before.
    pub number: i64,
    /// When, by the clock of the store, in milliseconds since 1970.
    pub at_ms: i64,
    /// Which task.
    pub id: stanchion_text,
    /// Of its enqueue, as in stanchion_enqueued.
    pub version: i64,
    /// Which attempt it was; 0 before the first.
    pub attempt: i64,
    /// Why, if it failed or is dead; else NULL.
    pub reason: stanchion_text,
    /// What: a stanchion_happened.
    pub what: i32,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_task_event {
    const NAME: &'static str = "stanchion_task_event";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        number: 0,
        at_ms: 0,
        id: stanchion_text::NONE,
        version: 0,
        attempt: 0,
        reason: stanchion_text::NONE,
        what: 0,
    };
}

impl stanchion_task_event {
    fn of(event: &TaskEvent) -> Self {
        Self {
            number: number(event.number),
            at_ms: wall(event.at),
            id: stanchion_text::of(&event.id),
            version: number(event.version.get()),
            attempt: event.attempt.into(),
            reason: event.reason.as_deref().map_or(stanchion_text::NONE, stanchion_text::of),
            what: happened_number(event.what),
            ..Self::DEFAULT
        }
    }
}

/// Some of the events of a queue, in order. 0 is none.
pub type stanchion_task_events = i64;

struct Page(EventPage);

impl Kind for Page {
    const NAME: &'static str = "list of events";
}

/// What happens to the tasks of the queue, if it keeps events (`events` of stanchion_queue_config): the first ones after the
/// event with the number `after`, 500 at most. 0 begins with the oldest that is kept, -1 with the next one that happens. Waits
/// up to `wait_ms` (365 days at most; 0 or -1: only looks) while there are none. `out` gets the list, also if nothing
/// happened; go on with its stanchion_task_events_cursor.
///
/// `cancel` ends the wait when the number there is not 0, within 50 ms: the error is CANCELLED. It may be set by another thread
/// or a signal handler, and must live until the call returns. NULL: nothing does.
///
/// A task is added, started, and then done, failed, dead, cancelled, removed or put back; one that failed or was put back is
/// started again. stanchion_queue_purge tells of none. Events tell that something happened, and not what is: a program that acts
/// on tasks claims them, or asks for them (stanchion_queue_get, stanchion_queue_result).
///
/// Errors: UNSUPPORTED if the queue keeps no events; CANCELLED; else as stanchion_queue_claim. Any thread; others go on
/// meanwhile, with the same client, too.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_events(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    after: i64,
    wait_ms: i64,
    cancel: *const i32,
    out: *mut stanchion_task_events,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the events")?;
        let after = optional_count("after", after, u64::MAX)?;
        let wait = optional_span("wait_ms", wait_ms)?.unwrap_or_default();
        // SAFETY: the caller passes a text and a number as the header says.
        let page = unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            cancellable(cancel, || queue.events(after, wait))?
        };
        let events = handle::insert(Page(page))?;
        // SAFETY: the caller passes a place for a handle.
        unsafe { put(out, events) };
        Ok(0)
    })
}

thread_local! {
    /// The number that the call of this thread looks at.
    static CANCEL: Cell<*const i32> = const { Cell::new(ptr::null()) };
}

/// Runs a call that ends with an error when the number is set.
///
/// # Safety
/// `cancel` is NULL or points to a number that lives until this returns.
unsafe fn cancellable<T>(cancel: *const i32, call: impl FnOnce() -> T) -> T {
    fn look() -> ControlFlow<()> {
        // SAFETY: it is set only below, while the number lives.
        unsafe { canceller(CANCEL.get()) }.map_or(ControlFlow::Continue(()), |mut look| look())
    }
    if cancel.is_null() {
        return call();
    }
    CANCEL.set(cancel);
    // Also after a panic nobody looks any more: only what runs within looks.
    let result = with_interrupt_check(look, call);
    CANCEL.set(ptr::null());
    result
}

/// How many events are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_task_events_len(events: stanchion_task_events) -> usize {
    boundary::value(0, || handle::get::<Page>(events).map_or(0, |page| page.0.events.len()))
}

/// One of the events. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_task_events_at(
    events: stanchion_task_events,
    index: usize,
    out: *mut stanchion_task_event,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let page = handle::get::<Page>(events)?;
        let event = page.0.events.get(index).ok_or_else(|| beyond(index, page.0.events.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &stanchion_task_event::of(event)) }?;
        Ok(0)
    })
}

/// 1 if some are not kept any more that came between these and the one after which was asked; 0 if not, or if this is no
/// handle of such a list. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_task_events_missed(events: stanchion_task_events) -> i32 {
    boundary::value(0, || handle::get::<Page>(events).map_or(0, |page| page.0.missed.into()))
}

/// Ask stanchion_queue_events for what comes after this; also if the list is empty. -1 if this is no handle of a list. Does no
/// I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_task_events_cursor(events: stanchion_task_events) -> i64 {
    boundary::value(NONE, || handle::get::<Page>(events).map_or(NONE, |page| number(page.0.cursor)))
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_task_events_free(events: stanchion_task_events) {
    boundary::value((), || drop(handle::take::<Page>(events)));
}
