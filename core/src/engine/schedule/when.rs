//! When a schedule's slots are: the part of it that says the times.

use std::time::Duration;

use croner::Cron;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::engine::schedule::cron;
use crate::protocol::WallMillis;

/// The shortest period: a slot is a task, and each is fired by a request of its own or with others.
const LEAST_PERIOD: Duration = Duration::from_millis(100);
/// The longest one: a hundred years.
const MOST_PERIOD: Duration = Duration::from_secs(100 * 366 * 86_400);
/// So many times at most in a list.
const MAX_TIMES: usize = 1_000;

/// When the slots are, but for zone, beginning and end.
#[derive(Clone, Debug)]
pub(super) enum When {
    Cron(Box<Cron>),
    /// So many milliseconds after the slot before: elapsed time, whatever clocks on walls do.
    Every(u64),
    /// These, in order.
    Times(Vec<WallMillis>),
}

impl When {
    /// "0 3 * * *", "@daily", "every 36h", "at 2027-01-01T00:00:00Z, ...".
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text.split_once(char::is_whitespace) {
            Some(("every" | "@every", period)) => period_of(period.trim()).map(Self::Every),
            Some(("at", times)) => times_of(times).map(Self::Times),
            _ if text.is_empty() => {
                Err("the text is empty; give one such as \"0 3 * * *\" or \"every 90s\"".into())
            }
            _ => cron::parse(text).map(|cron| Self::Cron(Box::new(cron))),
        }
    }

    /// The first slot after `cursor`, which is a slot, or when the schedule was made.
    pub(super) fn next(&self, zone: &TimeZone, cursor: WallMillis) -> Option<WallMillis> {
        match self {
            Self::Cron(cron) => cron::next(cron, zone, cursor),
            Self::Every(period) => cursor.checked_add(*period),
            Self::Times(times) => times.get(times.partition_point(|time| *time <= cursor)).copied(),
        }
    }

    /// The last slot after `cursor` and up to `until`.
    pub(super) fn last(&self, zone: &TimeZone, cursor: WallMillis, until: WallMillis) -> Option<WallMillis> {
        let last = match self {
            Self::Cron(cron) => cron::last(cron, zone, until)?,
            Self::Every(period) => until - until.checked_sub(cursor)? % period,
            Self::Times(times) => *times.get(times.partition_point(|time| *time <= until).checked_sub(1)?)?,
        };
        (last > cursor).then_some(last)
    }
}

fn period_of(text: &str) -> Result<u64, String> {
    let wrong = |problem: String| format!("every {text:?}: {problem}");
    let period: SignedDuration = text.parse().map_err(|_| {
        wrong("it takes hours, minutes, seconds and milliseconds, such as 36h, 1h 30m, 90s, 500ms".into())
    })?;
    let period = Duration::try_from(period).map_err(|_| wrong("it is negative".into()))?;
    if !(LEAST_PERIOD..=MOST_PERIOD).contains(&period) {
        return Err(wrong("it is not between 100ms and 100 years".into()));
    }
    if period.subsec_nanos() % 1_000_000 != 0 {
        return Err(wrong("it is no whole number of milliseconds".into()));
    }
    u64::try_from(period.as_millis()).map_err(|_| wrong("it is too long".into()))
}

fn times_of(text: &str) -> Result<Vec<WallMillis>, String> {
    let mut times = Vec::new();
    for (at, text) in text.split(',').map(str::trim).enumerate() {
        let time: Timestamp = text.parse().map_err(|_| {
            format!("time {} of the list is {text:?}; it takes one such as 2027-01-31T08:00:00Z or 2027-01-31T08:00:00+01:00", at + 1)
        })?;
        let millis =
            cron::millis(time).ok_or_else(|| format!("time {} of the list is before 1970", at + 1))?;
        times.push(millis);
    }
    if times.len() > MAX_TIMES {
        return Err(format!("a list has at most {MAX_TIMES} times, this one {}", times.len()));
    }
    times.sort_unstable();
    times.dedup();
    Ok(times)
}
