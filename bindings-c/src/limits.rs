//! Limits: rates, and the limits of keys.

use std::ffi::c_char;
use std::mem::size_of;

use stanchion::{KeyInfo, KeyLimits, Rate};

use crate::arguments::{NONE, millis, number, option, span, stanchion_text, text};
use crate::boundary;
use crate::client::stanchion_client;
use crate::error::{Failure, stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::queue::queue;
use crate::records::{self, Record, needed, put};

/// So many per time: over any time `per_ms` at most `count + burst`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_rate {
    /// How many. -1: the rate is not given.
    pub count: i64,
    /// In how many milliseconds: 1 to 366 days.
    pub per_ms: i64,
    /// How many may come at once after a pause. -1: 1.
    pub burst: i64,
}

impl stanchion_rate {
    pub(crate) const NONE: Self = Self { count: NONE, per_ms: NONE, burst: NONE };

    pub(crate) fn of(rate: Option<Rate>) -> Self {
        rate.map_or(Self::NONE, |rate| Self {
            count: rate.count.into(),
            per_ms: millis(rate.per),
            burst: rate.burst.into(),
        })
    }

    /// `None` if it is not given.
    pub(crate) fn core(self, what: &str) -> Result<Option<Rate>, Failure> {
        let Some(count) = small(&format!("count of {what}"), self.count)? else { return Ok(None) };
        let rate = Rate::new(count, span(&format!("per_ms of {what}"), self.per_ms)?);
        let burst = small(&format!("burst of {what}"), self.burst)?;
        Ok(Some(burst.map_or(rate, |burst| rate.burst(burst))))
    }
}

/// A count of 32 bits that may be missing.
pub(crate) fn small(what: &str, value: i64) -> Result<Option<u32>, Failure> {
    if value == NONE {
        return Ok(None);
    }
    let wrong = |_| Failure::invalid(format!("{what} {value} is no count below 2^32"));
    u32::try_from(value).map(Some).map_err(wrong)
}

/// Limits of a key of its own, instead of those that the queue gives each key.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_key_limits {
    /// sizeof, set by stanchion_key_limits_init.
    pub struct_size: usize,
    /// How many of its tasks are in line and running at most. -1: as the queue has it.
    pub concurrency: i64,
    /// How many of its tasks are delivered per time. With a count of -1: as the queue has it.
    pub rate: stanchion_rate,
    /// Its share beside other keys, 1 to 100: one of weight 3 gets three tasks done while one of weight 1 gets one. -1: 1.
    pub weight: i64,
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_key_limits {
    const NAME: &'static str = "stanchion_key_limits";
    const DEFAULT: Self =
        Self { struct_size: size_of::<Self>(), concurrency: NONE, rate: stanchion_rate::NONE, weight: NONE };
}

impl stanchion_key_limits {
    fn core(&self) -> Result<KeyLimits, Failure> {
        let mut limits = KeyLimits::new();
        if let Some(most) = small("concurrency", self.concurrency)? {
            limits = limits.concurrency(most);
        }
        if let Some(rate) = self.rate.core("rate")? {
            limits = limits.rate(rate);
        }
        if let Some(weight) = small("weight", self.weight)? {
            limits = limits.weight(weight);
        }
        Ok(limits)
    }
}

/// Makes limits that are those of the queue, with the weight 1. `struct_size` is sizeof *limits. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_key_limits_init(limits: *mut stanchion_key_limits, struct_size: usize) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(limits, struct_size) });
}

/// Gives a key limits of its own, at once, also while its tasks run; those that run too many end first. NULL takes them away:
/// the key has those that the queue gives each key.
///
/// Errors: QUEUE_FULL if 100000 keys have limits of their own; INVALID_ARGUMENT for a bad key or limit; otherwise as
/// stanchion_queue_claim. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_limit_key(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    key: *const c_char,
    key_len: usize,
    limits: *const stanchion_key_limits,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and structs as the header says.
        unsafe {
            let limits = if limits.is_null() { None } else { Some(records::read(limits)?.core()?) };
            queue(client, queue_name, queue_len)?.limit_key(text("key", key, key_len)?, limits)?;
        }
        Ok(0)
    })
}

/// What is known of a key. Its text lives as long as the handle of the list.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_key_info {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// The key.
    pub key: stanchion_text,
    /// How many of its tasks are claimed.
    pub running: i64,
    /// How many stand in line.
    pub in_line: i64,
    /// How many are due, and held by its limits.
    pub held: i64,
    /// In how long its rate, or a throttle, lets more of it go; -1 if neither is in the way.
    pub opens_in_ms: i64,
    /// Of its own: how many of its tasks are in line and running at most; -1: as the queue has it.
    pub concurrency: i64,
    /// Of its own: how many are delivered per time; with a count of -1: as the queue has it.
    pub rate: stanchion_rate,
    /// Of its own: its share beside other keys; -1 if it has no limits of its own.
    pub weight: i64,
}

// SAFETY: numbers and pointers only.
unsafe impl Record for stanchion_key_info {
    const NAME: &'static str = "stanchion_key_info";
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        key: stanchion_text::NONE,
        running: 0,
        in_line: 0,
        held: 0,
        opens_in_ms: NONE,
        concurrency: NONE,
        rate: stanchion_rate::NONE,
        weight: NONE,
    };
}

impl stanchion_key_info {
    fn of(info: &KeyInfo) -> Self {
        let own = info.limits;
        Self {
            key: stanchion_text::of(&info.key),
            running: number(info.running),
            in_line: number(info.in_line),
            held: number(info.held),
            opens_in_ms: info.opens_in.map_or(NONE, millis),
            concurrency: own.and_then(|own| own.concurrency).map_or(NONE, i64::from),
            rate: stanchion_rate::of(own.and_then(|own| own.rate)),
            weight: own.map_or(NONE, |own| own.weight.into()),
            ..Self::DEFAULT
        }
    }
}

/// A list of keys. 0 is none.
pub type stanchion_keys = i64;

struct Keys {
    keys: Vec<KeyInfo>,
    /// The next page, if this is one and not the last.
    next: Option<String>,
}

impl Kind for Keys {
    const NAME: &'static str = "list of keys";
}

/// What is known of a key, as a list of one, also if the queue has no task of it: how many of its tasks run, stand in line and
/// are held, and what limits it has of its own. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_get_key(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    key: *const c_char,
    key_len: usize,
    out: *mut stanchion_keys,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the key")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe {
            let found = queue(client, queue_name, queue_len)?.get_key(text("key", key, key_len)?)?;
            put(out, handle::insert(Keys { keys: vec![found], next: None })?);
        }
        Ok(0)
    })
}

/// The keys that hold tasks, then those that have limits of their own and hold none: a page of at most `max` (1 to 1000, and
/// never more than 100). `page` is NULL first, then what stanchion_keys_next gave for the last one. `out` gets the page, also
/// if there is no key in it. Any thread.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "each is needed")]
pub unsafe extern "C" fn stanchion_queue_list_keys(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    page: *const c_char,
    page_len: usize,
    max: usize,
    out: *mut stanchion_keys,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the keys")?;
        // SAFETY: the caller passes texts and places as the header says.
        unsafe {
            let queue = queue(client, queue_name, queue_len)?;
            let found = queue.list_keys(option("page", page, page_len)?, max)?;
            put(out, handle::insert(Keys { keys: found.keys, next: found.next })?);
        }
        Ok(0)
    })
}

/// How many keys are in the list; 0 if this is no handle of one. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_keys_len(keys: stanchion_keys) -> usize {
    boundary::value(0, || handle::get::<Keys>(keys).map_or(0, |list| list.keys.len()))
}

/// One of the keys. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_keys_at(
    keys: stanchion_keys,
    index: usize,
    out: *mut stanchion_key_info,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let list = handle::get::<Keys>(keys)?;
        let key = list.keys.get(index).ok_or_else(|| beyond(index, list.keys.len()))?;
        // SAFETY: the caller passes a struct as the header says.
        unsafe { records::write(out, &stanchion_key_info::of(key)) }?;
        Ok(0)
    })
}

/// The page after this one, for stanchion_queue_list_keys; it lives as long as the handle of the list. STANCHION_ABSENT: this
/// was the last, or is no page; `out` is not written. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_keys_next(
    keys: stanchion_keys,
    out: *mut stanchion_text,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the next page")?;
        let list = handle::get::<Keys>(keys)?;
        let Some(next) = &list.next else { return Ok(stanchion_status::STANCHION_ABSENT as i32) };
        // SAFETY: the caller passes a place for a text.
        unsafe { put(out, stanchion_text::of(next)) };
        Ok(0)
    })
}

/// Frees the list. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_keys_free(keys: stanchion_keys) {
    boundary::value((), || drop(handle::take::<Keys>(keys)));
}
