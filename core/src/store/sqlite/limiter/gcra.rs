//! Evenly spaced, with bursts: a limiter is used up for a time by each take, and may be by a burst ahead.

use super::Turn;
use crate::protocol::Rule;
use crate::store::sqlite::numbers::stored;

/// When so many begin; `used` is until when it is used up.
pub(super) fn turn(now: i64, rule: &Rule, count: u32, used: Option<i64>) -> Turn {
    let used = used.map_or(now, |used| used.max(now));
    let begins = now.max(used.saturating_sub(stored(rule.slack(count))));
    let at = used.saturating_add(stored(rule.cost(count)));
    Turn { begins, at, ends: at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LimitKind;

    const NOW: i64 = 1_000_000_000;

    /// One per 10 us.
    fn begins(burst: u32, count: u32, used: Option<i64>) -> i64 {
        let rule = Rule { kind: LimitKind::Gcra, most: 1, per: 10, burst };
        turn(NOW, &rule, count, used.map(|used| NOW + used)).begins - NOW
    }

    #[test]
    fn an_idle_one_gives_its_burst_at_once() {
        assert_eq!(begins(3, 3, None), 0);
        assert_eq!(begins(3, 3, Some(-1)), 0);
        assert_eq!(begins(3, 3, Some(1)), 1);
    }

    #[test]
    fn without_a_burst_each_waits_for_the_one_before() {
        assert_eq!((begins(1, 1, Some(10)), begins(1, 1, Some(1)), begins(1, 1, Some(0))), (10, 1, 0));
    }

    #[test]
    fn what_is_left_of_the_burst_is_given_at_once() {
        assert_eq!((begins(3, 1, Some(20)), begins(3, 1, Some(21)), begins(3, 2, Some(20))), (0, 1, 10));
    }

    /// Otherwise the rounding of the cost, or of the burst, would allow one too early.
    #[test]
    fn what_is_no_whole_microsecond_is_never_early() {
        let rule = Rule { kind: LimitKind::Gcra, most: 2, per: 3, burst: 3 };
        let first = turn(NOW, &rule, 2, None);
        let second = turn(NOW, &rule, 2, Some(first.at));
        // Three at once and one more: that takes one and a half.
        assert_eq!((first.begins, second.begins), (NOW, NOW + 2));
    }
}
