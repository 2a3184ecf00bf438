//! The verbs of limiters.

use std::time::Duration;

use crate::base::name::LimiterName;
use crate::base::token::Token;

/// How a limiter counts. Each kind has a namespace of its own: two limiters of one name and different kinds know nothing
/// of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// Evenly spaced, with bursts: a leaky bucket, or a token bucket, whichever you call it.
    Gcra,
    /// So many in each window of the store's clock: in each full minute, say.
    FixedWindow,
    /// So many in any window, wherever it begins.
    SlidingWindow,
}

impl LimitKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Gcra, Self::FixedWindow, Self::SlidingWindow];

    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gcra => "gcra",
            Self::FixedWindow => "fixed-window",
            Self::SlidingWindow => "sliding-window",
        }
    }
}

/// A limit, checked: so many in so long. All times are whole microseconds, and every sum of them with the time of a store
/// is exact in a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How it counts.
    pub kind: LimitKind,
    /// How many, 1 or more. No more than one per microsecond.
    pub most: u32,
    /// In how many microseconds.
    pub per: u64,
    /// Of [`LimitKind::Gcra`], how many may come at once; of windows the same as `most`.
    pub burst: u32,
}

impl Rule {
    /// Of [`LimitKind::Gcra`]: for how many microseconds so many use it up. Rounded up, so that never more than the limit
    /// is allowed.
    pub fn cost(&self, count: u32) -> u64 {
        self.scaled(count).div_ceil(u128::from(self.most)).try_into().unwrap_or(u64::MAX)
    }

    /// Of [`LimitKind::Gcra`]: how many microseconds before all is used up so many may begin. Nothing if they are the whole
    /// burst: those begin when nothing is used up.
    pub fn slack(&self, count: u32) -> u64 {
        let tolerance = self.scaled(self.burst) / u128::from(self.most);
        u64::try_from(tolerance).unwrap_or(u64::MAX).saturating_sub(self.cost(count))
    }

    fn scaled(&self, count: u32) -> u128 {
        u128::from(count) * u128::from(self.per)
    }
}

/// Take so many: at once, or by a reservation that begins later.
#[derive(Clone, Debug)]
pub struct Take {
    /// Of which limiter.
    pub name: LimiterName,
    /// What it allows.
    pub rule: Rule,
    /// How many, no more than the burst.
    pub count: u32,
    /// Reserve nothing that begins later than this.
    pub wait_most: Duration,
    /// Whose reservation it is, if its caller may give it back. The same for every copy of the request.
    pub token: Option<Token>,
}

/// The answer to [`Take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeReply {
    /// Taken. It begins so long after the store answered.
    Taken(Duration),
    /// Nothing was changed. A try would succeed so long after the store answered, if nobody else took any meanwhile.
    Refused(Duration),
}

/// Give a reservation back that was not used, if nobody has reserved after it: given back from the middle of the line, what
/// was taken before it and what was reserved after it would be too close.
#[derive(Clone, Debug)]
pub struct GiveBack {
    /// To which limiter.
    pub name: LimiterName,
    /// What it allows.
    pub rule: Rule,
    /// How many were reserved.
    pub count: u32,
    /// Whose reservation it was.
    pub token: Token,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(most: u32, per: u64, burst: u32) -> Rule {
        Rule { kind: LimitKind::Gcra, most, per, burst }
    }

    #[test]
    fn what_is_no_whole_microsecond_counts_as_one_more() {
        let thirds = rule(3, 1_000_000, 2);
        assert_eq!([1, 2].map(|count| thirds.cost(count)), [333_334, 666_667]);
        assert_eq!([1, 2].map(|count| thirds.slack(count)), [666_666 - 333_334, 0]);
    }

    #[test]
    fn one_at_a_time_has_no_slack() {
        assert_eq!((rule(1, 1_000, 1).cost(1), rule(1, 1_000, 1).slack(1)), (1_000, 0));
    }

    #[test]
    fn the_largest_limit_does_not_overflow() {
        let year = 365 * 24 * 3_600 * 1_000_000_u64;
        let largest = rule(1_000_000, year, 1_000_000);
        assert_eq!((largest.cost(1_000_000), largest.slack(1)), (year, year - year / 1_000_000));
    }
}
