//! What workers tell.

use std::ffi::c_char;
use std::mem::size_of;

use stanchion::WorkerEvent;

use crate::records::{Record, fill};

/// What happened to a task of a worker.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_event_kind {
    /// The task is done, and the store knows it.
    STANCHION_EVENT_COMPLETED = 1,
    /// The task has failed; it will be tried again, unless DEAD follows.
    STANCHION_EVENT_FAILED = 2,
    /// The task is dead: it failed for the last time, or was buried.
    STANCHION_EVENT_DEAD = 3,
    /// The claim was lost, or its verdict came too late: another may work on the task now.
    STANCHION_EVENT_LOST = 4,
    /// All tasks that were taken are settled, and there are no more for now.
    STANCHION_EVENT_EMPTY = 5,
    /// The store could not be reached, or refused something, and the worker goes on. The reason is the error. Reported once,
    /// until STORE_BACK.
    STANCHION_EVENT_STORE_FAILED = 6,
    /// The claim was lost, or the worker stops, 2 s ago, and the task was not settled since: until it is, the worker gives out
    /// one less at a time, and leaves this id to others.
    STANCHION_EVENT_STUCK = 7,
    /// The store answers again, after STORE_FAILED; the reason is after how long.
    STANCHION_EVENT_STORE_BACK = 8,
    /// Slots of the schedule with this id were missed while nobody worked on the queue: the reason says how many.
    STANCHION_EVENT_SLOTS_MISSED = 9,
}

/// Something that happened. Texts end with a NUL.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_worker_event {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// Counts deliveries of the task from one; 0 if it is about no task.
    pub attempt: i64,
    /// What happened: a stanchion_event_kind.
    pub kind: i32,
    /// Bytes of the id.
    pub id_len: i32,
    /// Bytes of the reason.
    pub reason_len: i32,
    /// The task; empty if it is about none.
    pub id: [c_char; 513],
    /// Why; what does not fit is cut off.
    pub reason: [c_char; 1025],
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_worker_event {
    const NAME: &'static str = "stanchion_worker_event";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        attempt: 0,
        kind: 0,
        id_len: 0,
        reason_len: 0,
        id: [0; 513],
        reason: [0; 1025],
    };
}

/// An event on its way to the program.
pub(crate) struct Event {
    kind: stanchion_event_kind,
    id: Box<str>,
    attempt: u32,
    reason: Box<str>,
}

impl Event {
    pub(crate) fn of(event: &WorkerEvent<'_>) -> Option<Self> {
        use stanchion_event_kind as kinds;
        let text: String;
        let (kind, id, attempt, reason) = match *event {
            WorkerEvent::Completed { id, attempt } => (kinds::STANCHION_EVENT_COMPLETED, id, attempt, ""),
            WorkerEvent::Failed { id, attempt, reason } => {
                (kinds::STANCHION_EVENT_FAILED, id, attempt, reason)
            }
            WorkerEvent::Dead { id, attempt, reason } => (kinds::STANCHION_EVENT_DEAD, id, attempt, reason),
            WorkerEvent::Lost { id, attempt } => (kinds::STANCHION_EVENT_LOST, id, attempt, ""),
            WorkerEvent::Stuck { id, attempt, .. } => (kinds::STANCHION_EVENT_STUCK, id, attempt, ""),
            WorkerEvent::Empty => (kinds::STANCHION_EVENT_EMPTY, "", 0, ""),
            WorkerEvent::SlotsMissed { schedule, missed, fired, .. } => {
                text = format!("nobody worked on the queue: {missed} slots were missed, {fired} fired late");
                (kinds::STANCHION_EVENT_SLOTS_MISSED, schedule, 0, &*text)
            }
            WorkerEvent::StoreFailed { error } => {
                text = error.to_string();
                (kinds::STANCHION_EVENT_STORE_FAILED, "", 0, &*text)
            }
            WorkerEvent::StoreBack { after } => {
                text = format!("the store answers again, after {:.1} s", after.as_secs_f64());
                (kinds::STANCHION_EVENT_STORE_BACK, "", 0, &*text)
            }
            // A hand knows what it has begun.
            _ => return None,
        };
        Some(Self { kind, id: id.into(), attempt, reason: reason.into() })
    }

    pub(crate) fn record(&self) -> stanchion_worker_event {
        let mut record = stanchion_worker_event {
            attempt: self.attempt.into(),
            kind: self.kind as i32,
            ..Record::DEFAULT
        };
        record.id_len = i32::try_from(fill(&mut record.id, &self.id)).unwrap_or(0);
        record.reason_len = i32::try_from(fill(&mut record.reason, &self.reason)).unwrap_or(0);
        record
    }
}
