//! Schedules to put into a queue, and when their slots are.

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;

use stanchion::{Missed, Overlap, Schedule, ScheduleOutcome};

use crate::arguments::{
    NONE, bytes, header_pairs, level, moment, option, optional_count, optional_flag, optional_span,
    stanchion_header, stanchion_text, text, wall,
};
use crate::boundary;
use crate::error::{Failure, stanchion_error};
use crate::records::{self, Record, needed, put};

/// What becomes of slots that nobody fired in time, because nobody worked on the queue.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_missed {
    /// The last of them is fired, late.
    STANCHION_MISSED_LAST = 0,
    /// None that is more than a minute late.
    STANCHION_MISSED_SKIP = 1,
    /// All, but for `missed_max` at most: the newest.
    STANCHION_MISSED_ALL = 2,
}

/// What becomes of a slot while the task of the slot before is pending or running.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_overlap {
    /// It gets its task all the same.
    STANCHION_OVERLAP_QUEUE = 0,
    /// It gets none.
    STANCHION_OVERLAP_SKIP = 1,
}

/// What became of a schedule that was put into a queue.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_schedule_outcome {
    /// Something that this header does not know.
    STANCHION_SCHEDULE_OTHERWISE = 0,
    /// It is new.
    STANCHION_SCHEDULE_ADDED = 1,
    /// It was there, and is changed.
    STANCHION_SCHEDULE_CHANGED = 2,
    /// It was there as it is.
    STANCHION_SCHEDULE_KEPT = 3,
}

/// Tasks at set times: each time is a slot, and each slot makes one task with the id `schedule@2027-01-31T02:00:00Z`.
/// Whoever claims from the queue fires what is due; the store's clock counts. -1 stands for the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_schedule {
    /// sizeof, set by stanchion_schedule_init. The same for all schedules of an array.
    pub struct_size: usize,
    /// 1 to 480 bytes of UTF-8 without control characters. A queue has one schedule of each id. It must be given.
    pub id: stanchion_text,
    /// When the slots are; it must be given. A cron text of 5 fields (minute, hour, day of month, month, day of week), or 6
    /// with seconds first, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`; `every 90s`, `every 1h 30m` (100 ms to
    /// 100 years); or `at 2027-01-31T08:00:00Z, 2027-02-28T08:00:00+01:00`.
    pub when: stanchion_text,
    /// The time zone of a cron text, by its IANA name such as `Europe/Berlin`. NULL: UTC.
    pub tz: stanchion_text,
    /// No slot before this time, in milliseconds since 1970. -1: none.
    pub starts_ms: i64,
    /// No slot after this time, in milliseconds since 1970. -1: none.
    pub ends_ms: i64,
    /// Delays all slots by the same time, which is drawn from the id and is shorter than this, a day at most. -1: 0.
    pub jitter_ms: i64,
    /// For STANCHION_MISSED_ALL: 1 to 1000.
    pub missed_max: i64,
    /// What becomes of slots that nobody fired in time: a stanchion_missed. -1: STANCHION_MISSED_LAST.
    pub missed: i32,
    /// What becomes of a slot while the task of the one before lives: a stanchion_overlap. -1: STANCHION_OVERLAP_QUEUE.
    pub overlap: i32,
    /// 1: it fires nothing for now. Only a new one begins so; one that is there stays as it is. -1: 0.
    pub paused: i32,
    /// Of each of its tasks: 0 to 255, higher ones first. -1: 0.
    pub priority: i32,
    /// What the worker gets of each of its tasks: any bytes, STANCHION_MAX_PAYLOAD at most.
    pub payload: *const c_void,
    /// How many bytes.
    pub payload_len: usize,
    /// Texts that travel along with each of its tasks.
    pub headers: *const stanchion_header,
    /// How many.
    pub header_count: usize,
    /// After so many deliveries without success a task of it is dead. -1: 20.
    pub max_attempts: i64,
    /// Do not deliver a task of it later than so long after it was made: then it is dead. -1: never.
    pub expires_ms: i64,
    /// Of each of its tasks: whose it is, as in stanchion_task. NULL: none.
    pub key: stanchion_text,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_schedule {
    const NAME: &'static str = "stanchion_schedule";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        id: stanchion_text::NONE,
        when: stanchion_text::NONE,
        tz: stanchion_text::NONE,
        starts_ms: NONE,
        ends_ms: NONE,
        jitter_ms: NONE,
        missed_max: NONE,
        missed: -1,
        overlap: -1,
        paused: -1,
        priority: -1,
        payload: ptr::null(),
        payload_len: 0,
        headers: ptr::null(),
        header_count: 0,
        max_attempts: NONE,
        expires_ms: NONE,
        key: stanchion_text::NONE,
    };
}

/// Makes a schedule without id and times, with no payload, and defaults. `struct_size` is sizeof *schedule. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_schedule_init(schedule: *mut stanchion_schedule, struct_size: usize) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(schedule, struct_size) });
}

/// When the slots after `after_ms` (milliseconds since 1970) are due, at most `count` (1 to 1000): `out` has place for so
/// many, and `found` gets how many there are, fewer if the schedule ends. One with a period begins at `after_ms`. Does no
/// I/O.
///
/// Errors: INVALID_ARGUMENT for a bad count, and for times that stanchion_queue_schedule would refuse. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_schedule_preview(
    schedule: *const stanchion_schedule,
    after_ms: i64,
    out: *mut i64,
    count: usize,
    found: *mut usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(schedule, "the schedule")?;
        needed(out, "the times")?;
        needed(found, "the count")?;
        let after = moment("after_ms", after_ms)?;
        // SAFETY: the caller passes a struct as the header says.
        let times = unsafe { records::read(schedule)?.core()? }.preview(after, count)?;
        for (index, time) in times.iter().enumerate() {
            // SAFETY: the caller has place for `count`; the core gives no more than were asked for.
            unsafe { put(out.add(index), wall(*time)) };
        }
        // SAFETY: the caller passes a place for a number.
        unsafe { put(found, times.len()) };
        Ok(0)
    })
}

impl stanchion_schedule {
    /// # Safety
    /// Texts, bytes and headers are as their lengths say.
    pub(crate) unsafe fn core(&self) -> Result<Schedule, Failure> {
        // SAFETY: as the caller promises.
        let (id, when, tz) = unsafe {
            (
                text("id", self.id.data, self.id.len)?,
                text("when", self.when.data, self.when.len)?,
                option("tz", self.tz.data, self.tz.len)?,
            )
        };
        let mut schedule = Schedule::new(id, when).missed(self.missed()?).overlap(self.overlap()?);
        if let Some(tz) = tz {
            schedule = schedule.tz(tz);
        }
        if let Some(jitter) = optional_span("jitter_ms", self.jitter_ms)? {
            schedule = schedule.jitter(jitter);
        }
        if self.starts_ms != NONE {
            schedule = schedule.starts(moment("starts_ms", self.starts_ms)?);
        }
        if self.ends_ms != NONE {
            schedule = schedule.ends(moment("ends_ms", self.ends_ms)?);
        }
        if let Some(paused) = optional_flag("paused", self.paused)? {
            schedule = schedule.paused(paused);
        }
        // SAFETY: as the caller promises.
        unsafe { self.with_task(schedule) }
    }

    /// What it says of its tasks.
    ///
    /// # Safety
    /// As for [`Self::core`].
    unsafe fn with_task(&self, mut schedule: Schedule) -> Result<Schedule, Failure> {
        // SAFETY: as the caller promises.
        let (payload, headers, key) = unsafe {
            (
                bytes("payload", self.payload, self.payload_len)?,
                header_pairs(self.headers, self.header_count)?,
                option("key", self.key.data, self.key.len)?,
            )
        };
        if let Some(key) = key {
            schedule = schedule.key(key);
        }
        schedule = schedule.payload(payload);
        for (name, value) in headers {
            schedule = schedule.header(name, value);
        }
        if let Some(priority) = level(self.priority)? {
            schedule = schedule.priority(priority);
        }
        if let Some(attempts) = optional_count("max_attempts", self.max_attempts, u32::MAX)? {
            schedule = schedule.max_attempts(attempts);
        }
        if let Some(after) = optional_span("expires_ms", self.expires_ms)? {
            schedule = schedule.expires(after);
        }
        Ok(schedule)
    }

    fn missed(&self) -> Result<Missed, Failure> {
        use stanchion_missed::{STANCHION_MISSED_ALL, STANCHION_MISSED_LAST, STANCHION_MISSED_SKIP};
        let missed = self.missed;
        if missed == -1 || missed == STANCHION_MISSED_LAST as i32 {
            Ok(Missed::Last)
        } else if missed == STANCHION_MISSED_SKIP as i32 {
            Ok(Missed::Skip)
        } else if missed == STANCHION_MISSED_ALL as i32 {
            let max = optional_count("missed_max", self.missed_max, u32::MAX)?;
            max.map(Missed::All)
                .ok_or_else(|| Failure::invalid("missed_max is needed with STANCHION_MISSED_ALL"))
        } else {
            Err(Failure::invalid(format!("missed {missed} is no stanchion_missed")))
        }
    }

    fn overlap(&self) -> Result<Overlap, Failure> {
        use stanchion_overlap::{STANCHION_OVERLAP_QUEUE, STANCHION_OVERLAP_SKIP};
        let overlap = self.overlap;
        if overlap == -1 || overlap == STANCHION_OVERLAP_QUEUE as i32 {
            Ok(Overlap::Queue)
        } else if overlap == STANCHION_OVERLAP_SKIP as i32 {
            Ok(Overlap::Skip)
        } else {
            Err(Failure::invalid(format!("overlap {overlap} is no stanchion_overlap")))
        }
    }
}

/// The numbers of what becomes of missed slots; -1 and -1 for what this header does not know.
pub(crate) fn missed_numbers(missed: Option<Missed>) -> (i32, i64) {
    match missed {
        Some(Missed::Last) => (stanchion_missed::STANCHION_MISSED_LAST as i32, NONE),
        Some(Missed::Skip) => (stanchion_missed::STANCHION_MISSED_SKIP as i32, NONE),
        Some(Missed::All(max)) => (stanchion_missed::STANCHION_MISSED_ALL as i32, max.into()),
        _ => (-1, NONE),
    }
}

/// The number of an overlap; -1 for one that this header does not know.
pub(crate) fn overlap_number(overlap: Overlap) -> i32 {
    match overlap {
        Overlap::Queue => stanchion_overlap::STANCHION_OVERLAP_QUEUE as i32,
        Overlap::Skip => stanchion_overlap::STANCHION_OVERLAP_SKIP as i32,
        _ => -1,
    }
}

pub(crate) fn outcome_number(outcome: ScheduleOutcome) -> i32 {
    let outcome = match outcome {
        ScheduleOutcome::Added => stanchion_schedule_outcome::STANCHION_SCHEDULE_ADDED,
        ScheduleOutcome::Changed => stanchion_schedule_outcome::STANCHION_SCHEDULE_CHANGED,
        ScheduleOutcome::Kept => stanchion_schedule_outcome::STANCHION_SCHEDULE_KEPT,
        _ => stanchion_schedule_outcome::STANCHION_SCHEDULE_OTHERWISE,
    };
    outcome as i32
}
