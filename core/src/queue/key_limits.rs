//! Rates, the limits of keys, and what is known of a key.

use std::time::Duration;

use crate::base::error::{Error, ErrorKind};
use crate::base::name::TaskKey;
use crate::protocol::{
    KEY_LIMITS_MAX, KeyRecord, LimitKey, ListKeys, ListKeysReply, OwnLimits, Place, QueueReply, QueueVerb,
    RATE_MOST, RATE_SPAN_MOST, Rate, WEIGHT_MOST,
};
use crate::queue::queue_calls::{Ask, QueueCalls};
use crate::queue::queue_options::checked_count;

/// Keys on a page at most.
const PAGE_MOST: u32 = 100;

impl Rate {
    /// So many per time, one at once: over any time `per` at most `count + 1`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use stanchion::Rate;
    ///
    /// let rate = Rate::new(20, Duration::from_secs(1)).burst(5);
    /// assert_eq!((rate.count, rate.burst), (20, 5));
    /// ```
    pub const fn new(count: u32, per: Duration) -> Self {
        Self { count, per, burst: 1 }
    }

    /// How many may come at once after a pause (default 1).
    pub const fn burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }

    /// Checks it. No I/O.
    pub(crate) fn check(self, option: &str) -> Result<Self, Error> {
        let Self { count, per, burst } = self;
        let wrong = |problem: String| Err(Error::invalid(format!("{option}: {problem}")));
        if !(Duration::from_millis(1)..=RATE_SPAN_MOST).contains(&per) || per.subsec_nanos() % 1_000_000 != 0
        {
            return wrong(format!("per {per:?} is not whole milliseconds, from 1 ms to 366 days"));
        }
        let millis = u64::try_from(per.as_millis()).unwrap_or(u64::MAX);
        if count == 0 || u64::from(count) > millis.saturating_mul(RATE_MOST) {
            return wrong(format!("{count} per {per:?} is not between 1 and {RATE_MOST} per millisecond"));
        }
        if burst == 0 || per.as_nanos() * u128::from(burst) / u128::from(count) > RATE_SPAN_MOST.as_nanos() {
            return wrong(format!("a burst of {burst} is not between 1 and what comes in 366 days"));
        }
        Ok(self)
    }
}

/// Limits that a key has of its own, instead of those that the queue gives each key.
///
/// ```
/// use std::time::Duration;
/// use stanchion::{KeyLimits, Rate};
///
/// let limits = KeyLimits::new().concurrency(10).rate(Rate::new(100, Duration::from_secs(60))).weight(3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyLimits {
    /// How many of its tasks are in line and running at most; `None`: as the queue has it.
    pub concurrency: Option<u32>,
    /// How many of its tasks are delivered per time; `None`: as the queue has it.
    pub rate: Option<Rate>,
    /// How many of its tasks stand in line at once: its share beside other keys.
    pub weight: u32,
}

impl Default for KeyLimits {
    fn default() -> Self {
        Self { concurrency: None, rate: None, weight: 1 }
    }
}

impl KeyLimits {
    /// Those of the queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many of its tasks are in line and running at most: 1 or more (default: as the queue has it).
    pub fn concurrency(mut self, most: u32) -> Self {
        self.concurrency = Some(most);
        self
    }

    /// How many of its tasks are delivered per time (default: as the queue has it).
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Its share beside other keys: 1 to 100 (default 1). A key of weight 3 gets three tasks done while one of weight 1 gets one.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    fn checked(self) -> Result<OwnLimits, Error> {
        let Self { concurrency, rate, weight } = self;
        if concurrency == Some(0) {
            return Err(Error::invalid("concurrency 0 would hold its tasks for ever"));
        }
        if !(1..=WEIGHT_MOST).contains(&weight) {
            return Err(Error::invalid(format!("weight {weight} is not between 1 and {WEIGHT_MOST}")));
        }
        Ok(OwnLimits { concurrency, rate: rate.map(|rate| rate.check("rate")).transpose()?, weight })
    }
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInfo {
    /// The key.
    pub key: String,
    /// How many of its tasks are claimed.
    pub running: u64,
    /// How many stand in line.
    pub in_line: u64,
    /// How many are due, and held by its limits.
    pub held: u64,
    /// In how long its rate, or a throttle, lets more of it go; `None` if neither is in the way.
    pub opens_in: Option<Duration>,
    /// What it has of its own.
    pub limits: Option<KeyLimits>,
}

/// Some of the keys of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyPage {
    /// The keys.
    pub keys: Vec<KeyInfo>,
    /// What the next page is asked for with; `None` if this is the last.
    pub next: Option<String>,
}

impl QueueCalls {
    pub(crate) fn limit_key(&self, key: &str, limits: Option<KeyLimits>) -> Result<Ask<bool>, Error> {
        let wrong = |error: Error| error.during("limit_key", &self.name);
        let key = TaskKey::parse(key).map_err(wrong)?;
        let limits = limits.map(KeyLimits::checked).transpose().map_err(wrong)?;
        self.ask(QueueVerb::LimitKey(LimitKey { key, limits }), |reply| match reply {
            QueueReply::LimitKey(is_set) => Some(is_set),
            _ => None,
        })
    }

    /// The error of one more that has limits of its own.
    pub(crate) fn too_many_keys(&self) -> Error {
        let most = KEY_LIMITS_MAX;
        let error = Error::new(ErrorKind::QueueFull, format!("{most} keys have limits of their own already"));
        error.during("limit_key", &self.name)
    }

    pub(crate) fn get_key(&self, key: &str) -> Result<Ask<KeyInfo>, Error> {
        let key = TaskKey::parse(key).map_err(|error| error.during("get_key", &self.name))?;
        self.ask(QueueVerb::ListKeys(ListKeys::One(key)), |reply| match reply {
            QueueReply::ListKeys(ListKeysReply { mut keys, .. }) => keys.pop().map(KeyInfo::from),
            _ => None,
        })
    }

    pub(crate) fn list_keys(&self, from: Option<&str>, max: usize) -> Result<Ask<KeyPage>, Error> {
        let page = page(from, max).map_err(|error| error.during("list_keys", &self.name))?;
        self.ask(QueueVerb::ListKeys(page), |reply| match reply {
            QueueReply::ListKeys(ListKeysReply { keys, next }) => Some(KeyPage {
                keys: keys.into_iter().map(KeyInfo::from).collect(),
                next: next.map(|place| place.text()),
            }),
            _ => None,
        })
    }
}

fn page(from: Option<&str>, max: usize) -> Result<ListKeys, Error> {
    let max = checked_count("max", max)?.min(PAGE_MOST);
    let parse = |text: &str| {
        let place = Place::parse(text).filter(|place| matches!(place.part, Place::HELD | Place::LIMITED));
        place.ok_or_else(|| Error::invalid("from is not what a page gave as its next"))
    };
    Ok(ListKeys::Page { from: from.map(parse).transpose()?, max })
}

impl From<KeyRecord> for KeyInfo {
    fn from(record: KeyRecord) -> Self {
        let KeyRecord { key, running, in_line, held, opens, limits } = record;
        let own = |OwnLimits { concurrency, rate, weight }| KeyLimits { concurrency, rate, weight };
        let key = key.as_str().to_owned();
        Self { key, running, in_line, held, opens_in: opens, limits: limits.map(own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_checked() {
        let second = Duration::from_secs(1);
        for good in [
            Rate::new(1, Duration::from_millis(1)),
            Rate::new(100_000, second).burst(1_000_000),
            Rate::new(1, RATE_SPAN_MOST),
        ] {
            assert!(good.check("rate").is_ok(), "{good:?}");
        }
        for bad in [
            Rate::new(0, second),
            Rate::new(100_001, second),
            Rate::new(1, Duration::ZERO),
            Rate::new(1, Duration::from_micros(1_500)),
            Rate::new(1, RATE_SPAN_MOST + second),
            Rate::new(1, second).burst(0),
            Rate::new(1, RATE_SPAN_MOST).burst(2),
        ] {
            assert_eq!(bad.check("rate").unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad:?}");
        }
    }

    #[test]
    fn limits_of_keys_are_checked() {
        let second = Duration::from_secs(1);
        let new = KeyLimits::new;
        for bad in
            [new().concurrency(0), new().weight(0), new().weight(101), new().rate(Rate::new(0, second))]
        {
            assert_eq!(bad.checked().unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad:?}");
        }
        assert_eq!(new().checked().unwrap(), OwnLimits { concurrency: None, rate: None, weight: 1 });
    }
}
