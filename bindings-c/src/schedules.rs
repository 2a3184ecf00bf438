//! Schedules as they are found in a queue.

use std::mem::size_of;

use stanchion::ScheduleInfo;

use crate::arguments::{NONE, millis, number, stanchion_text, wall};
use crate::boundary;
use crate::error::{stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::records::{self, Record, needed, put};
use crate::schedule::{missed_numbers, overlap_number};

/// A schedule as it is in a queue. Its texts live as long as the handle of the list.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_schedule_info {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// Its id.
    pub id: stanchion_text,
    /// When its slots are. If a newer version has put it, what that has stored: it is left alone by this one.
    pub when: stanchion_text,
    /// The time zone.
    pub tz: stanchion_text,
    /// Whose list it is in; empty if it is in none.
    pub owner: stanchion_text,
    /// The id of the last task that it made; empty if it has made none.
    pub last_task: stanchion_text,
    /// No slot before, in milliseconds since 1970; -1 if that is not set.
    pub starts_ms: i64,
    /// No slot after, in milliseconds since 1970; -1 if that is not set.
    pub ends_ms: i64,
    /// By how much its slots are delayed at most.
    pub jitter_ms: i64,
    /// When its next slot is due, in milliseconds since 1970; -1 if it is paused, or none comes any more.
    pub next_ms: i64,
    /// For how long that has been due, by the store's clock: more than a moment means that nobody works on the queue.
    pub late_ms: i64,
    /// How many tasks it has made.
    pub fired: i64,
    /// How many slots got no task: the one before was running, or the queue was full.
    pub skipped: i64,
    /// How many slots were past and were not fired.
    pub missed_slots: i64,
    /// With STANCHION_MISSED_ALL how many are fired at most; otherwise -1.
    pub missed_max: i64,
    /// Of its tasks.
    pub max_attempts: i64,
    /// Of its tasks; -1 if they do not expire.
    pub expires_ms: i64,
    /// Bytes of its tasks' payload and headers, as stored.
    pub size: i64,
    /// What becomes of missed slots: a stanchion_missed; -1 if a newer version has put it.
    pub missed: i32,
    /// What becomes of a slot while the task of the one before lives: a stanchion_overlap; -1 if this header does not know it.
    pub overlap: i32,
    /// 1 if it fires nothing.
    pub paused: i32,
    /// Of its tasks.
    pub priority: i32,
    /// Of its tasks; NULL if they have none.
    pub key: stanchion_text,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_schedule_info {
    const NAME: &'static str = "stanchion_schedule_info";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        id: stanchion_text::NONE,
        when: stanchion_text::NONE,
        tz: stanchion_text::NONE,
        owner: stanchion_text::NONE,
        last_task: stanchion_text::NONE,
        starts_ms: NONE,
        ends_ms: NONE,
        jitter_ms: 0,
        next_ms: NONE,
        late_ms: 0,
        fired: 0,
        skipped: 0,
        missed_slots: 0,
        missed_max: NONE,
        max_attempts: 0,
        expires_ms: NONE,
        size: 0,
        missed: -1,
        overlap: -1,
        paused: 0,
        priority: 0,
        key: stanchion_text::NONE,
    };
}

impl stanchion_schedule_info {
    fn of(schedule: &ScheduleInfo) -> Self {
        let text = |text: &Option<String>| stanchion_text::of(text.as_deref().unwrap_or_default());
        let (missed, missed_max) = missed_numbers(schedule.missed);
        Self {
            id: stanchion_text::of(&schedule.id),
            when: stanchion_text::of(&schedule.when),
            tz: stanchion_text::of(&schedule.tz),
            owner: text(&schedule.owner),
            last_task: text(&schedule.last_task),
            starts_ms: schedule.starts.map_or(NONE, wall),
            ends_ms: schedule.ends.map_or(NONE, wall),
            jitter_ms: millis(schedule.jitter),
            next_ms: schedule.next.map_or(NONE, wall),
            late_ms: millis(schedule.late),
            fired: number(schedule.fired),
            skipped: number(schedule.skipped),
            missed_slots: number(schedule.missed_slots),
            missed_max,
            max_attempts: schedule.max_attempts.into(),
            expires_ms: schedule.expires.map_or(NONE, millis),
            size: number(schedule.size),
            missed,
            overlap: overlap_number(schedule.overlap),
            paused: schedule.paused.into(),
            priority: schedule.priority.into(),
            key: schedule.key.as_deref().map_or(stanchion_text::NONE, stanchion_text::of),
            ..Self::DEFAULT
        }
    }
}

/// A list of schedules. 0 is none.
pub type stanchion_schedules = i64;

pub(crate) struct Schedules {
    schedules: Vec<ScheduleInfo>,
    /// The next page, if this is one and not the last.
    next: Option<String>,
}

impl Kind for Schedules {
    const NAME: &'static str = "list of schedules";
}

impl Schedules {
    pub(crate) fn new(schedules: Vec<ScheduleInfo>, next: Option<String>) -> Self {
        Self { schedules, next }
    }
}

/// How many schedules are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_schedules_len(schedules: stanchion_schedules) -> usize {
    boundary::value(0, || handle::get::<Schedules>(schedules).map_or(0, |list| list.schedules.len()))
}

/// One of the schedules. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_schedules_at(
    schedules: stanchion_schedules,
    index: usize,
    out: *mut stanchion_schedule_info,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let list = handle::get::<Schedules>(schedules)?;
        let schedule = list.schedules.get(index).ok_or_else(|| beyond(index, list.schedules.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &stanchion_schedule_info::of(schedule)) }?;
        Ok(0)
    })
}

/// The page after this one, for stanchion_queue_list_schedules; it lives as long as the handle of the list.
/// STANCHION_ABSENT: this was the last, or is no page; `out` is not written. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_schedules_next(
    schedules: stanchion_schedules,
    out: *mut stanchion_text,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the next page")?;
        let list = handle::get::<Schedules>(schedules)?;
        let Some(next) = &list.next else { return Ok(stanchion_status::STANCHION_ABSENT as i32) };
        // SAFETY: the caller passes a place for a text.
        unsafe { put(out, stanchion_text::of(next)) };
        Ok(0)
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_schedules_free(schedules: stanchion_schedules) {
    boundary::value((), || drop(handle::take::<Schedules>(schedules)));
}
