//! So many in each window of the store's clock.

use super::Turn;
use crate::protocol::Rule;
use crate::store::sqlite::numbers::stored;

/// When so many begin; `last` is the beginning of the last window of which some were taken, plus how many were.
pub(super) fn turn(now: i64, rule: &Rule, count: u32, last: Option<i64>) -> Turn {
    let (per, count) = (stored(rule.per), i64::from(count));
    let window = now - now.rem_euclid(per);
    let at = last.map_or(window, |last| last.max(window));
    let used = at.rem_euclid(per);
    let is_full = used + count > i64::from(rule.most);
    let begins = if is_full { at - used + per } else { at - used };
    let at = if is_full { begins } else { at };
    Turn { begins: begins.max(now), at: at + count, ends: begins + per }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LimitKind;

    const NOW: i64 = 1_000_000_250;

    /// Three per 1,000 us; the window of now began 250 us ago.
    fn begins(count: u32, last: Option<i64>) -> (i64, i64) {
        let rule = Rule { kind: LimitKind::FixedWindow, most: 3, per: 1_000, burst: 3 };
        let turn = turn(NOW, &rule, count, last.map(|last| NOW - 250 + last));
        (turn.begins - NOW, turn.at - NOW + 250)
    }

    #[test]
    fn a_window_that_has_room_gives_at_once() {
        assert_eq!(begins(1, None), (0, 1));
        assert_eq!(begins(2, Some(1)), (0, 3));
        assert_eq!(begins(3, Some(-997)), (0, 3));
    }

    #[test]
    fn a_full_window_leads_to_the_next() {
        assert_eq!(begins(1, Some(3)), (750, 1_001));
        assert_eq!(begins(3, Some(1)), (750, 1_003));
        assert_eq!(begins(1, Some(1_001)), (750, 1_002));
        assert_eq!(begins(1, Some(1_003)), (1_750, 2_001));
    }

    #[test]
    fn a_window_of_as_many_as_it_has_microseconds_is_full_when_the_next_begins() {
        let rule = Rule { kind: LimitKind::FixedWindow, most: 1_000, per: 1_000, burst: 1_000 };
        let first = turn(NOW, &rule, 1_000, None);
        assert_eq!(first.at, NOW + 750);
        assert_eq!(turn(NOW, &rule, 1, Some(first.at)).begins, NOW + 750);
    }
}
