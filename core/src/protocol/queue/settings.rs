//! Verbs about a queue as a whole.

use std::time::Duration;

use crate::protocol::{Gate, Rate};

/// How many tasks there are, and what happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Due later, those of the intake included.
    pub scheduled: u64,
    /// Due now, those of the intake included.
    pub ready: u64,
    /// Claimed, lease not ended.
    pub claimed: u64,
    /// Due, and held by a limit of their keys.
    pub held: u64,
    /// How many keys wait for a time, by their rate or a throttle.
    pub keys_waiting: u64,
    /// In how long the first of them may go on; `None` if none waits.
    pub next_key: Option<Duration>,
    /// What keeps the queue from giving out tasks that are ready.
    pub gate: Gate,
    /// Dead records.
    pub dead: u64,
    /// Tasks that wait for the end of a run of the same id.
    pub successors: u64,
    /// Whether it gives out no tasks.
    pub paused: bool,
    /// How many calls wait for a task.
    pub waiters: u64,
    /// How long until the next task becomes due or lease ends; zero if something is due now.
    pub next_due: Option<Duration>,
    /// Since the queue was made or its record forgotten: enqueues accepted.
    pub enqueued: u64,
    /// Acks accepted, pops included.
    pub acked: u64,
    /// Failures that another try follows: nacks, ends of leases. The last one of a task that dies is not among them.
    pub retried: u64,
    /// Tasks that died.
    pub died: u64,
    /// The settings.
    pub settings: QueueSettings,
    /// How many schedules it has.
    pub schedules: u64,
    /// For how long the first of them has been due, and nobody has fired it; zero if none is due. More than a moment means
    /// that nobody works on the queue.
    pub schedules_late: Duration,
    /// How many flows have begun and not ended.
    pub flows: u64,
}

/// Stop, or go on, giving out tasks. Settling and extending work meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// Which of both.
    pub paused: bool,
}

/// The settings of a queue that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSettings {
    /// Live tasks at most; new ids are refused beyond it. `None`: no limit.
    pub max_len: Option<u64>,
    /// Dead records at most; the oldest go first.
    pub dead_max: u64,
    /// Dead records are dropped after so long.
    pub dead_age: Duration,
    /// Bytes of payloads in dead records at most; the oldest go first.
    pub dead_bytes: u64,
    /// Whether plain ZADDs to the queue's key are taken in (Redis only).
    pub intake: bool,
    /// How many events are kept at most; 0: none.
    pub events: u64,
    /// Claims at most; `None`: no limit.
    pub max_running: Option<u64>,
    /// Deliveries per time; `None`: no limit.
    pub rate: Option<Rate>,
    /// Tasks of each key that are in line and running at most; `None`: no limit.
    pub key_concurrency: Option<u32>,
    /// Deliveries of each key per time; `None`: no limit.
    pub key_rate: Option<Rate>,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            max_len: None,
            dead_max: crate::protocol::DEAD_MAX,
            dead_age: crate::protocol::DEAD_AGE,
            dead_bytes: crate::protocol::DEAD_BYTES,
            intake: true,
            events: 0,
            max_running: None,
            rate: None,
            key_concurrency: None,
            key_rate: None,
        }
    }
}

/// Settings to change; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configure {
    /// See [`QueueSettings::max_len`]; `Some(None)` takes the limit away.
    pub max_len: Option<Option<u64>>,
    /// See [`QueueSettings::dead_max`].
    pub dead_max: Option<u64>,
    /// See [`QueueSettings::dead_age`].
    pub dead_age: Option<Duration>,
    /// See [`QueueSettings::dead_bytes`].
    pub dead_bytes: Option<u64>,
    /// See [`QueueSettings::intake`].
    pub intake: Option<bool>,
    /// See [`QueueSettings::events`].
    pub events: Option<u64>,
    /// See [`QueueSettings::max_running`]; `Some(None)` takes the limit away.
    pub max_running: Option<Option<u64>>,
    /// See [`QueueSettings::rate`]; `Some(None)` takes the limit away.
    pub rate: Option<Option<Rate>>,
    /// See [`QueueSettings::key_concurrency`]; `Some(None)` takes the limit away.
    pub key_concurrency: Option<Option<u32>>,
    /// See [`QueueSettings::key_rate`]; `Some(None)` takes the limit away.
    pub key_rate: Option<Option<Rate>>,
}
