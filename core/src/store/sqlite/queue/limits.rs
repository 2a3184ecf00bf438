//! What a queue lets go and run at most, and how a rate is kept. Times are quarters of microseconds of wall time, as rates are.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::protocol::{Configure, Gate, QueueSettings, RATE_SLACK, Rate};
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::step::{Step, between, millis};

/// Quarters of a microsecond.
pub(super) type Quarters = i64;

/// A rate as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredRate {
    pub(super) count: u32,
    /// Milliseconds.
    pub(super) per: i64,
    pub(super) burst: u32,
}

/// The limits of a queue that has some, or had tasks with keys; see LIMIT_FIELDS of the Redis store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Limits {
    pub(super) max_running: Option<i64>,
    pub(super) rate: Option<StoredRate>,
    /// When the next delivery would be due by the rate.
    tat: Quarters,
    /// Nothing goes before, in milliseconds.
    pub(super) held_until: i64,
    pub(super) key_concurrency: Option<u32>,
    pub(super) key_rate: Option<StoredRate>,
    /// How many keys have limits of their own.
    pub(super) keys_set: i64,
    /// After which key those that hold tasks are looked at, since a limit has changed.
    pub(super) sweep: Option<Box<str>>,
    /// Whether a key has, or had, a time before which nothing of it goes.
    pub(super) timed: bool,
    /// Whether a key has, or had, a concurrency: then the end of a run makes room.
    pub(super) counts_runs: bool,
}

impl StoredRate {
    pub(super) fn new(rate: Rate) -> Self {
        Self { count: rate.count, per: millis(rate.per), burst: rate.burst }
    }

    pub(super) fn rate(self) -> Rate {
        Rate { count: self.count, per: Duration::from_millis(number(self.per)), burst: self.burst }
    }

    /// Like `pace` of rate.lua: between two of them, and how much earlier than its time one may come.
    pub(super) fn pace(self) -> (Quarters, Quarters) {
        let (count, burst) = (i64::from(self.count.max(1)), i64::from(self.burst));
        let gap = (4_000 * self.per).unsigned_abs().div_ceil(count.unsigned_abs()).cast_signed().max(1);
        (gap, (burst - 1) * gap + (gap * 9 / 10).min(millis(RATE_SLACK) * 4_000))
    }
}

impl StoredRate {
    /// The time of a rate that may have been slower before, or kept by a clock that was ahead: the next use waits for no more than
    /// one gap of what it is now.
    pub(super) fn tat(self, tat: Quarters, now: Quarters) -> Quarters {
        let (gap, slack) = self.pace();
        tat.min(now.saturating_add(slack).saturating_add(gap))
    }
}

impl Limits {
    /// Those of the queue with this key.
    pub(super) fn find(connection: &Connection, key: &str) -> rusqlite::Result<Self> {
        let text: Option<String> = connection
            .prepare_cached("SELECT limits FROM queue_limit WHERE queue = ?1")?
            .query_row([key], |row| row.get(0))
            .optional()?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    pub(super) fn save(&self, step: &Step<'_>, key: &str) -> rusqlite::Result<()> {
        let text = serde_json::to_string(self).unwrap_or_default();
        let set = "INSERT INTO queue_limit (queue, limits) VALUES (?1, ?2)
                   ON CONFLICT DO UPDATE SET limits = excluded.limits";
        step.change(set, &[&key, &text]).map(drop)
    }

    /// Whether somebody has set one.
    pub(super) fn are_set(&self) -> bool {
        self.max_running.is_some()
            || self.rate.is_some()
            || self.key_concurrency.is_some()
            || self.key_rate.is_some()
            || self.keys_set > 0
    }

    /// Changes what the request names; whether it names anything.
    pub(super) fn configure(&mut self, request: &Configure, holds: bool, wall: i64) -> bool {
        let Configure { max_running, rate, key_concurrency, key_rate, .. } = *request;
        if max_running.is_none() && rate.is_none() && key_concurrency.is_none() && key_rate.is_none() {
            return false;
        }
        self.max_running = max_running.map_or(self.max_running, |most| most.map(stored));
        self.rate = rate.map_or(self.rate, |rate| rate.map(StoredRate::new));
        if let Some(rate) = rate.and(self.rate) {
            self.tat = rate.tat(self.tat, wall.saturating_mul(4));
        }
        self.key_concurrency = key_concurrency.unwrap_or(self.key_concurrency);
        self.counts_runs |= self.key_concurrency.is_some();
        self.key_rate = key_rate.map_or(self.key_rate, |rate| rate.map(StoredRate::new));
        // Each key that holds tasks is looked at by the next claims.
        self.sweep = holds.then(|| "".into());
        true
    }

    /// Writes them into settings.
    pub(super) fn tell(&self, settings: &mut QueueSettings) {
        settings.max_running = self.max_running.map(number);
        settings.rate = self.rate.map(StoredRate::rate);
        settings.key_concurrency = self.key_concurrency;
        settings.key_rate = self.key_rate.map(StoredRate::rate);
    }

    /// Like `gate` of gate.lua: how many tasks may go while so many claims are there, and what is in the way if none may.
    pub(super) fn gate(&self, wall: i64, claimed: i64) -> (i64, Gate) {
        let now = wall.saturating_mul(4);
        if self.held_until > wall / 1_000 {
            return (0, Gate::Throttled(between(wall, self.held_until.saturating_mul(1_000))));
        }
        let (mut free, mut gate) = (i64::MAX, Gate::Open);
        if let Some(rate) = self.rate {
            let ((gap, slack), tat) = (rate.pace(), rate.tat(self.tat, now));
            free = ((now + slack - tat.max(now)).div_euclid(gap) + 1).max(0);
            if free == 0 {
                gate = Gate::Rate(micros_up(tat - slack - now));
            }
        }
        if let Some(most) = self.max_running {
            let left = most - claimed;
            if left <= 0 {
                return (0, Gate::MaxRunning);
            }
            free = free.min(left);
        }
        (free, gate)
    }

    /// So many tasks went.
    pub(super) fn pass(&mut self, wall: i64, count: usize) {
        if let Some(rate) = self.rate.filter(|_| count > 0) {
            let (count, now) = (i64::try_from(count).unwrap_or(i64::MAX), wall.saturating_mul(4));
            self.tat = rate.tat(self.tat, now).max(now).saturating_add(rate.pace().0.saturating_mul(count));
        }
    }
}

/// Whole microseconds, and no shorter.
pub(super) fn micros_up(quarters: Quarters) -> Duration {
    Duration::from_micros(number(quarters).div_ceil(4))
}
