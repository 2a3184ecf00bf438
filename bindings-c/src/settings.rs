//! Queues as a whole: counts and settings.

use std::ffi::c_char;
use std::mem::{offset_of, size_of};

use stanchion::{Gate, QueueConfig, QueueStats};

use crate::arguments::{NONE, millis, number, optional_count, optional_flag, optional_span};
use crate::boundary;
use crate::client::stanchion_client;
use crate::consumers::{self, stanchion_consumers};
use crate::error::{Failure, stanchion_error};
use crate::limits::{small, stanchion_rate};
use crate::queue::queue;
use crate::records::{self, Record, needed, put};

/// What keeps a queue from giving out tasks that are ready.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "for the header")]
pub enum stanchion_gate {
    /// Something that this header does not know.
    STANCHION_GATE_OTHERWISE = 0,
    /// Nothing.
    STANCHION_GATE_OPEN = 1,
    /// It is paused.
    STANCHION_GATE_PAUSED = 2,
    /// As many run as may at once.
    STANCHION_GATE_MAX_RUNNING = 3,
    /// Its rate.
    STANCHION_GATE_RATE = 4,
    /// A throttle.
    STANCHION_GATE_THROTTLED = 5,
}

fn gate_number(gate: Gate) -> i32 {
    let gate = match gate {
        Gate::Open => stanchion_gate::STANCHION_GATE_OPEN,
        Gate::Paused => stanchion_gate::STANCHION_GATE_PAUSED,
        Gate::MaxRunning => stanchion_gate::STANCHION_GATE_MAX_RUNNING,
        Gate::Rate(_) => stanchion_gate::STANCHION_GATE_RATE,
        Gate::Throttled(_) => stanchion_gate::STANCHION_GATE_THROTTLED,
        _ => stanchion_gate::STANCHION_GATE_OTHERWISE,
    };
    gate as i32
}

/// How many tasks there are, what happened so far, and the settings.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_stats {
    /// sizeof, set by the caller.
    pub struct_size: usize,
    /// Due later, those of the intake included.
    pub scheduled: i64,
    /// Due now, those of the intake included.
    pub ready: i64,
    /// Claimed, lease not ended.
    pub claimed: i64,
    /// Dead records.
    pub dead: i64,
    /// Tasks that wait for the end of a run of the same id.
    pub successors: i64,
    /// How long until the next task becomes due or a lease ends; 0 if something is due now; -1 if there is nothing.
    pub next_due_ms: i64,
    /// Since the queue was made or its record forgotten: enqueues accepted.
    pub enqueued: i64,
    /// Acks accepted, pops included.
    pub acked: i64,
    /// Failures that another try follows: nacks, ends of leases. The last one of a task that dies is not among them.
    pub retried: i64,
    /// Tasks that died.
    pub died: i64,
    /// The queue's settings: live tasks at most. -1: no limit.
    pub max_len: i64,
    /// Dead tasks kept at most.
    pub dead_max: i64,
    /// For how long dead tasks are kept.
    pub dead_age_ms: i64,
    /// Bytes of dead tasks' payloads kept at most.
    pub dead_bytes: i64,
    /// 1 if plain ZADDs to the queue's key are taken in (Redis only).
    pub intake: i32,
    /// 1 if the queue gives out no tasks.
    pub paused: i32,
    /// How many calls wait for a task.
    pub waiters: i64,
    /// How many schedules there are.
    pub schedules: i64,
    /// For how long the first of them has been due, by the store's clock: more than a moment means that nobody works on the
    /// queue. 0 if none is.
    pub schedules_late_ms: i64,
    /// The settings again: events kept at most, for stanchion_queue_events. 0: none.
    pub events: i64,
    /// The settings again: tasks that run at once at most. -1: no limit.
    pub max_running: i64,
    /// Deliveries per time. With a count of -1: no limit.
    pub rate: stanchion_rate,
    /// Tasks of each key that are in line and running at most. -1: no limit.
    pub key_concurrency: i64,
    /// Deliveries of each key per time. With a count of -1: no limit.
    pub key_rate: stanchion_rate,
    /// Due, and held by the limits of their keys.
    pub held: i64,
    /// How many keys wait for a time, by their rate or a throttle.
    pub keys_waiting: i64,
    /// In how long the first of them may go on; -1 if none waits.
    pub next_key_ms: i64,
    /// Of STANCHION_GATE_RATE and STANCHION_GATE_THROTTLED, in how long it opens; -1 otherwise.
    pub opens_in_ms: i64,
    /// What keeps the queue from giving out tasks that are ready: a stanchion_gate.
    pub gate: i32,
    /// How many flows have begun and not ended.
    pub flows: i64,
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_stats {
    const NAME: &'static str = "stanchion_stats";
    /// What comes behind was not there at first.
    const LEAST: usize = offset_of!(Self, schedules);
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        scheduled: 0,
        ready: 0,
        claimed: 0,
        dead: 0,
        successors: 0,
        next_due_ms: NONE,
        enqueued: 0,
        acked: 0,
        retried: 0,
        died: 0,
        max_len: NONE,
        dead_max: 0,
        dead_age_ms: 0,
        dead_bytes: 0,
        intake: 0,
        paused: 0,
        waiters: 0,
        schedules: 0,
        schedules_late_ms: 0,
        events: 0,
        max_running: NONE,
        rate: stanchion_rate::NONE,
        key_concurrency: NONE,
        key_rate: stanchion_rate::NONE,
        held: 0,
        keys_waiting: 0,
        next_key_ms: NONE,
        opens_in_ms: NONE,
        gate: 0,
        flows: 0,
    };
}

impl stanchion_stats {
    fn of(stats: &QueueStats) -> Self {
        Self {
            scheduled: number(stats.scheduled),
            ready: number(stats.ready),
            claimed: number(stats.claimed),
            dead: number(stats.dead),
            successors: number(stats.successors),
            next_due_ms: stats.next_due.map_or(NONE, millis),
            enqueued: number(stats.enqueued),
            acked: number(stats.acked),
            retried: number(stats.retried),
            died: number(stats.died),
            max_len: stats.settings.max_len.map_or(NONE, number),
            dead_max: number(stats.settings.dead_max),
            dead_age_ms: millis(stats.settings.dead_age),
            dead_bytes: number(stats.settings.dead_bytes),
            intake: stats.settings.intake.into(),
            paused: stats.paused.into(),
            waiters: number(stats.waiters),
            schedules: number(stats.schedules),
            schedules_late_ms: millis(stats.schedules_late),
            events: number(stats.settings.events),
            max_running: stats.settings.max_running.map_or(NONE, number),
            rate: stanchion_rate::of(stats.settings.rate),
            key_concurrency: stats.settings.key_concurrency.map_or(NONE, i64::from),
            key_rate: stanchion_rate::of(stats.settings.key_rate),
            held: number(stats.held),
            keys_waiting: number(stats.keys_waiting),
            next_key_ms: stats.next_key.map_or(NONE, millis),
            opens_in_ms: stats.gate.opens().map_or(NONE, millis),
            gate: gate_number(stats.gate),
            flows: number(stats.flows),
            ..Self::DEFAULT
        }
    }
}

/// How many tasks there are, what happened so far, and the settings. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_stats(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    out: *mut stanchion_stats,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and structs as the header says.
        unsafe {
            records::check(out)?;
            let stats = queue(client, queue_name, queue_len)?.stats()?;
            records::write(out, &stanchion_stats::of(&stats))?;
        }
        Ok(0)
    })
}

/// Who works on the queue: the processes of the first 1000 calls that wait for a task, and of the first 1000 claims. `out`
/// gets the list, also if nobody is in it. Of a queue without tasks, an empty list means that nobody waits; a worker that
/// is busy has claims. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_consumers(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    out: *mut stanchion_consumers,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { consumers::give(out, || queue(client, queue_name, queue_len)) }
    })
}

/// Stops giving out tasks. Claims that are out go on, can be settled and extended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_pause(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        unsafe { queue(client, queue_name, queue_len) }?.pause()?;
        Ok(0)
    })
}

/// Goes on giving out tasks. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_resume(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts as the header says.
        unsafe { queue(client, queue_name, queue_len) }?.resume()?;
        Ok(0)
    })
}

/// Drops every task, live and dead; claims that are out are lost. Settings stay. `dropped` (may be NULL) gets how many
/// there were. Sent once.
///
/// Errors: as stanchion_queue_pop. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_purge(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    dropped: *mut u64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        // SAFETY: the caller passes texts and places as the header says.
        unsafe { put(dropped, queue(client, queue_name, queue_len)?.purge()?) };
        Ok(0)
    })
}

/// Settings of a queue to change. -1: it stays as it is.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_queue_config {
    /// sizeof, set by stanchion_queue_config_init.
    pub struct_size: usize,
    /// Refuse new ids when so many tasks are live. -2: no limit, as without settings.
    pub max_len: i64,
    /// Keep so many dead tasks at most; the oldest go first. Without settings 10000.
    pub dead_max: i64,
    /// Keep dead tasks for so long. Without settings 90 days.
    pub dead_age_ms: i64,
    /// Keep so many bytes of dead tasks' payloads at most; the oldest go first. Without settings 256 MiB.
    pub dead_bytes: i64,
    /// Whether plain ZADDs to the queue's key are taken in (Redis only). Without settings 1.
    pub intake: i32,
    /// Keep so many events, for stanchion_queue_events: 0 to 100000; the oldest go first. What processes of 0.1.0 do is not
    /// among them. Without settings 0: none.
    pub events: i64,
    /// So many tasks run at once at most, whoever runs them. -2: no limit, as without settings.
    pub max_running: i64,
    /// So many tasks are delivered per time; every delivery counts, also a retry and one that is put back. With a count of -2:
    /// no limit, as without settings.
    pub rate: stanchion_rate,
    /// So many tasks of each key (of stanchion_task) are in line and running at most, unless the key has limits of its own:
    /// stanchion_queue_limit_key. -2: no limit, as without settings.
    pub key_concurrency: i64,
    /// So many tasks of each key are delivered per time, unless the key has limits of its own. With a count of -2: no limit, as
    /// without settings.
    pub key_rate: stanchion_rate,
}

// SAFETY: numbers only.
unsafe impl Record for stanchion_queue_config {
    const NAME: &'static str = "stanchion_queue_config";
    /// What comes behind was not there at first.
    const LEAST: usize = offset_of!(Self, events);
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        max_len: NONE,
        dead_max: NONE,
        dead_age_ms: NONE,
        dead_bytes: NONE,
        intake: -1,
        events: NONE,
        max_running: NONE,
        rate: stanchion_rate::NONE,
        key_concurrency: NONE,
        key_rate: stanchion_rate::NONE,
    };
}

/// Of a limit among the settings: take it away.
const NO_LIMIT: i64 = -2;

impl stanchion_queue_config {
    fn core(&self) -> Result<QueueConfig, Failure> {
        let mut settings = QueueConfig::new();
        if self.max_len == NO_LIMIT {
            settings = settings.max_len(None);
        } else if let Some(count) = optional_count("max_len", self.max_len, u64::MAX)? {
            settings = settings.max_len(Some(count));
        }
        if let Some(count) = optional_count("dead_max", self.dead_max, u64::MAX)? {
            settings = settings.dead_max(count);
        }
        if let Some(age) = optional_span("dead_age_ms", self.dead_age_ms)? {
            settings = settings.dead_age(age);
        }
        if let Some(bytes) = optional_count("dead_bytes", self.dead_bytes, u64::MAX)? {
            settings = settings.dead_bytes(bytes);
        }
        if let Some(intake) = optional_flag("intake", self.intake)? {
            settings = settings.intake(intake);
        }
        if let Some(count) = optional_count("events", self.events, u64::MAX)? {
            settings = settings.events(count);
        }
        self.limits(settings)
    }

    fn limits(&self, mut settings: QueueConfig) -> Result<QueueConfig, Failure> {
        if self.max_running == NO_LIMIT {
            settings = settings.max_running(None);
        } else if let Some(most) = optional_count("max_running", self.max_running, u64::MAX)? {
            settings = settings.max_running(Some(most));
        }
        if self.rate.count == NO_LIMIT {
            settings = settings.rate(None);
        } else if let Some(rate) = self.rate.core("rate")? {
            settings = settings.rate(Some(rate));
        }
        if self.key_concurrency == NO_LIMIT {
            settings = settings.key_concurrency(None);
        } else if let Some(most) = small("key_concurrency", self.key_concurrency)? {
            settings = settings.key_concurrency(Some(most));
        }
        if self.key_rate.count == NO_LIMIT {
            settings = settings.key_rate(None);
        } else if let Some(rate) = self.key_rate.core("key_rate")? {
            settings = settings.key_rate(Some(rate));
        }
        Ok(settings)
    }
}

/// Makes settings that change nothing. `struct_size` is sizeof *settings. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_config_init(
    settings: *mut stanchion_queue_config,
    struct_size: usize,
) {
    // SAFETY: the caller passes NULL or a struct of this size.
    boundary::value((), || unsafe { records::init(settings, struct_size) });
}

/// Changes settings. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_queue_configure(
    client: stanchion_client,
    queue_name: *const c_char,
    queue_len: usize,
    settings: *const stanchion_queue_config,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(settings, "settings")?;
        // SAFETY: the caller passes texts and structs as the header says.
        unsafe { queue(client, queue_name, queue_len)?.configure(records::read(settings)?.core()?)? };
        Ok(0)
    })
}
