//! What a limiter allows.

use std::time::Duration;

use crate::base::error::{Error, not_between};
use crate::protocol::{LIMIT_MAX, LIMIT_PERIODS, LimitKind, Rule, SLIDING_MAX};

/// What a burst is when none is given: the next one waits for the one before. So no more than the limit comes in any time
/// as long as the limit's.
const DEFAULT_BURST: u32 = 1;

/// So many in so long, and how that is counted. A limit is code of its callers, and travels with each call: all who use a
/// limiter should give the same.
///
/// ```
/// use std::time::Duration;
/// use stanchion::Limit;
///
/// let second = Duration::from_secs(1);
/// let evenly = Limit::rate(10, second); // one every 100 ms
/// let with_bursts = Limit::rate(10, second).burst(50); // 50 at once after a calm time, then one every 100 ms
/// let per_minute = Limit::fixed_window(600, 60 * second); // 600 in each full minute of the store's clock
/// let strictly = Limit::sliding_window(600, 60 * second); // 600 in any minute, wherever it begins
/// ```
///
/// | kind | in any time `w` no more than | remembers |
/// |---|---|---|
/// | rate | `n * w / per + burst` | one time |
/// | fixed window | `n` in each window; `2 * n` in `per` around the end of one | one time and a count |
/// | sliding window | `n` in any `per` | each time in the last `per`: some 100 bytes each |
///
/// For "so many at the same time" take a [semaphore](crate::Client::semaphore).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    kind: LimitKind,
    most: u32,
    per: Duration,
    burst: Option<u32>,
}

impl Limit {
    /// Evenly spaced: `n` in `per`, 1 to 1,000,000 in 1 ms to 365 days, and no more than one per microsecond. After a calm
    /// time [`burst`](Self::burst) of them may come at once. This is what GCRA, a leaky bucket and a token bucket are, which
    /// is one thing seen from several sides. What one take costs is rounded up to whole microseconds: take several at once
    /// where more than some 10,000 in a second are allowed.
    pub const fn rate(n: u32, per: Duration) -> Self {
        Self { kind: LimitKind::Gcra, most: n, per, burst: None }
    }

    /// `n` in each window of `per`, 1 to 1,000,000 in 1 ms to 365 days. Windows are those of the store's clock since 1970, so
    /// one of a minute is a full minute. The end of a window and the beginning of the next one are close: `2 * n` may come
    /// there at once.
    pub const fn fixed_window(n: u32, per: Duration) -> Self {
        Self { kind: LimitKind::FixedWindow, most: n, per, burst: None }
    }

    /// `n` in any window of `per`, wherever it begins: 1 to 10,000 in 1 ms to 365 days.
    pub const fn sliding_window(n: u32, per: Duration) -> Self {
        Self { kind: LimitKind::SlidingWindow, most: n, per, burst: None }
    }

    /// Of a [`rate`](Self::rate): how many may come at once after a calm time, 1 to 1,000,000 (default 1). One take has this
    /// many at most. At the limit's rate they may not take longer than 365 days.
    pub const fn burst(self, burst: u32) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// How it counts.
    pub const fn kind(&self) -> LimitKind {
        self.kind
    }

    /// The limit as the stores know it.
    pub(crate) fn checked(&self) -> Result<Rule, Error> {
        let Self { kind, most, per, burst } = *self;
        let most_allowed = if kind == LimitKind::SlidingWindow { SLIDING_MAX } else { LIMIT_MAX };
        if !(1..=most_allowed).contains(&most) {
            return Err(Error::invalid(format!(
                "the limit is {most}, which is not between 1 and {most_allowed}"
            )));
        }
        if !LIMIT_PERIODS.contains(&per) {
            return Err(Error::invalid(not_between("per", per, "1 ms")));
        }
        let per = u64::try_from(per.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        if u64::from(most) > per {
            return Err(Error::invalid("the limit allows more than one per microsecond"));
        }
        if burst.is_some() && kind != LimitKind::Gcra {
            return Err(Error::invalid("burst is for rates only: a window allows all at once"));
        }
        let burst = burst.unwrap_or(if kind == LimitKind::Gcra { DEFAULT_BURST } else { most });
        if !(1..=LIMIT_MAX).contains(&burst) {
            return Err(Error::invalid(format!("burst is {burst}, which is not between 1 and {LIMIT_MAX}")));
        }
        let rule = Rule { kind, most, per, burst };
        if kind == LimitKind::Gcra && Duration::from_micros(rule.cost(burst)) > *LIMIT_PERIODS.end() {
            return Err(Error::invalid("at this rate the burst takes over 365 days"));
        }
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_limit_is_what_the_stores_know() {
        let rule = |kind, most, burst| Rule { kind, most, per: 1_000_000, burst };
        assert_eq!(Limit::rate(10, SECOND).checked().unwrap(), rule(LimitKind::Gcra, 10, 1));
        assert_eq!(Limit::rate(10, SECOND).burst(50).checked().unwrap(), rule(LimitKind::Gcra, 10, 50));
        let window = Limit::fixed_window(10, SECOND).checked().unwrap();
        assert_eq!(window, rule(LimitKind::FixedWindow, 10, 10));
    }

    #[test]
    fn a_part_of_a_microsecond_counts_as_one() {
        let per = SECOND + Duration::from_nanos(1);
        assert_eq!(Limit::rate(1, per).checked().unwrap().per, 1_000_001);
    }

    #[test]
    fn what_is_out_of_bounds_is_invalid() {
        let year = *LIMIT_PERIODS.end();
        for limit in [
            Limit::rate(0, SECOND),
            Limit::rate(LIMIT_MAX + 1, 10 * SECOND),
            Limit::rate(1, Duration::ZERO),
            Limit::rate(1, Duration::from_micros(999)),
            Limit::rate(1, year + SECOND),
            Limit::rate(1_001, Duration::from_millis(1)),
            Limit::rate(1, SECOND).burst(0),
            Limit::rate(1, SECOND).burst(LIMIT_MAX + 1),
            Limit::rate(1, year).burst(2),
            Limit::fixed_window(1, SECOND).burst(1),
            Limit::sliding_window(SLIDING_MAX + 1, 3_600 * SECOND),
        ] {
            assert_eq!(limit.checked().unwrap_err().kind(), ErrorKind::InvalidArgument, "{limit:?}");
        }
        for limit in [
            Limit::rate(1_000, Duration::from_millis(1)),
            Limit::rate(LIMIT_MAX, year).burst(LIMIT_MAX),
            Limit::fixed_window(LIMIT_MAX, SECOND),
            Limit::sliding_window(SLIDING_MAX, year),
        ] {
            limit.checked().unwrap();
        }
    }
}
