//! Schedules: when their slots are, and which of them are to be fired.
//!
//! A schedule has a *cursor*, the last slot that was seen to, and all that follows is computed from it and from the store's
//! clock: so whoever fires, and whatever his own clock says, each slot is the same one. The store compares the cursor
//! before it takes a new one, and so fires each slot once.

mod cron;
mod plan;
mod rounds;
#[cfg(test)]
mod tests;
mod when;

use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};

use crate::protocol::WallMillis;
pub(crate) use plan::Plan;
pub use rounds::FiredSchedule;
pub(crate) use rounds::Rounds;
use when::When;

/// The most by which a schedule's slots are delayed: a day.
pub(crate) const MAX_JITTER: Duration = Duration::from_secs(86_400);

/// The time part of a schedule as it is stored. A field that is not known here is one of a newer version's: such a
/// schedule is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimingText {
    /// "0 3 * * *", "every 90s", "at 2027-01-01T00:00:00Z".
    pub(crate) when: String,
    /// Name of the time zone.
    pub(crate) tz: String,
    /// Milliseconds in which the schedule's delay is drawn; 0: no delay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) jitter: u64,
    /// No slot before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) starts: Option<WallMillis>,
    /// No slot after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ends: Option<WallMillis>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The time part, checked.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    when: When,
    zone: TimeZone,
    jitter: u64,
    starts: Option<WallMillis>,
    ends: Option<WallMillis>,
}

impl Timing {
    /// Checks it; the error names the part that is wrong.
    pub(crate) fn new(text: &TimingText) -> Result<Self, String> {
        let when = When::parse(&text.when).map_err(|problem| format!("when: {problem}"))?;
        let zone = zone(&text.tz)?;
        if u128::from(text.jitter) > MAX_JITTER.as_millis() {
            return Err(format!("jitter: {} ms is more than a day", text.jitter));
        }
        if let (Some(starts), Some(ends)) = (text.starts, text.ends)
            && ends < starts
        {
            return Err("ends: it is before starts".into());
        }
        let timing = Self { when, zone, jitter: text.jitter, starts: text.starts, ends: text.ends };
        if timing.next(0).is_none() {
            return Err("ends: no slot comes between starts and ends".into());
        }
        Ok(timing)
    }

    /// Reads what is stored; `None` if this version does not understand it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::new(&serde_json::from_str(text).ok()?).ok()
    }

    /// The first slot after the cursor.
    pub(crate) fn next(&self, cursor: WallMillis) -> Option<WallMillis> {
        let next = match (self.starts, &self.when) {
            (Some(starts), When::Every(_)) if cursor < starts => starts,
            (Some(starts), when) if cursor < starts => when.next(&self.zone, starts.saturating_sub(1))?,
            (_, when) => when.next(&self.zone, cursor)?,
        };
        self.ends.is_none_or(|ends| next <= ends).then_some(next)
    }

    /// The last slot after the cursor and up to this time.
    fn last(&self, cursor: WallMillis, until: WallMillis) -> Option<WallMillis> {
        let until = until.min(self.ends.unwrap_or(until));
        match (self.starts, &self.when) {
            (Some(starts), _) if until < starts => None,
            (Some(starts), When::Every(period)) if cursor < starts => Some(until - (until - starts) % period),
            (Some(starts), when) if cursor < starts => when.last(&self.zone, starts.saturating_sub(1), until),
            (_, when) => when.last(&self.zone, cursor, until),
        }
    }

    /// When the next slots after this time are due, at most so many.
    pub(crate) fn preview(&self, id: &str, cursor: WallMillis, count: usize) -> Vec<WallMillis> {
        let slots = std::iter::successors(self.next(cursor), |slot| self.next(*slot));
        slots.take(count).map(|slot| slot + self.delay(id)).collect()
    }

    /// By how much the slots of the schedule with this id are delayed: always the same, so that none is lost.
    pub(crate) fn delay(&self, id: &str) -> u64 {
        if self.jitter == 0 { 0 } else { fnv(id) % self.jitter }
    }
}

/// The id of a slot's task.
pub(crate) fn slot_id(id: &str, slot: WallMillis) -> String {
    match cron::time(slot) {
        Some(time) => format!("{id}@{time}"),
        None => format!("{id}@{slot}"),
    }
}

/// The zone of this name, of the data that this library brings along: the system's may be of another year.
fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZoneDatabase::bundled().get(name).map_err(|_| {
        format!(
            "tz: {name:?} is no time zone of the IANA database; it takes a name such as Europe/Berlin or UTC"
        )
    })
}

/// FNV-1a, the same in every version and on every machine.
/// G. Fowler, L. C. Noll, K.-P. Vo, "The FNV Non-Cryptographic Hash Algorithm".
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
