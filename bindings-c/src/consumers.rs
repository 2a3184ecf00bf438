//! Those who work on a queue.

use std::ffi::c_char;
use std::mem::size_of;

use stanchion::{Consumer, blocking};

use crate::arguments::number;
use crate::boundary::{self, Answer};
use crate::error::{Failure, stanchion_error};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::records::{self, Record, fill, needed, put};

/// A list of those who work on a queue. 0 is none.
pub type stanchion_consumers = i64;

struct Consumers(Vec<Consumer>);

impl Kind for Consumers {
    const NAME: &'static str = "list of consumers";
}

/// A process that works on a queue, as the store lists it. Out of date as soon as it is read: for people and dashboards.
/// Texts end with a NUL; what does not fit is cut off.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_consumer {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// How many of its calls wait for a task.
    pub waiters: i64,
    /// How many tasks it has claimed.
    pub claims: i64,
    /// Its process id; 0 if unknown.
    pub pid: i32,
    /// Its client's label; empty if it has none.
    pub label: [c_char; 257],
    /// Its host; empty if unknown.
    pub host: [c_char; 257],
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_consumer {
    const NAME: &'static str = "stanchion_consumer";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        waiters: 0,
        claims: 0,
        pid: 0,
        label: [0; 257],
        host: [0; 257],
    };
}

impl stanchion_consumer {
    fn of(consumer: &Consumer) -> Self {
        let mut record = Self {
            waiters: number(consumer.waiters),
            claims: number(consumer.claims),
            pid: i32::try_from(consumer.pid).unwrap_or(0),
            ..Self::DEFAULT
        };
        fill(&mut record.label, &consumer.label);
        fill(&mut record.host, &consumer.host);
        record
    }
}

/// # Safety
/// The place is as the header says.
pub(crate) unsafe fn give(
    out: *mut stanchion_consumers,
    queue: impl FnOnce() -> Result<blocking::Queue, Failure>,
) -> Answer {
    needed(out, "the consumers")?;
    let consumers = handle::insert(Consumers(queue()?.consumers()?))?;
    // SAFETY: as the caller promises.
    unsafe { put(out, consumers) };
    Ok(0)
}

/// How many consumers are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_consumers_len(consumers: stanchion_consumers) -> usize {
    boundary::value(0, || handle::get::<Consumers>(consumers).map_or(0, |consumers| consumers.0.len()))
}

/// One of the consumers. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_consumers_at(
    consumers: stanchion_consumers,
    index: usize,
    out: *mut stanchion_consumer,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let consumers = handle::get::<Consumers>(consumers)?;
        let consumer = consumers.0.get(index).ok_or_else(|| beyond(index, consumers.0.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &stanchion_consumer::of(consumer)) }?;
        Ok(0)
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_consumers_free(consumers: stanchion_consumers) {
    boundary::value((), || drop(handle::take::<Consumers>(consumers)));
}
