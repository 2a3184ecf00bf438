//! What is to be done with a schedule that is due.

use crate::engine::schedule::Timing;
use crate::engine::schedule::when::When;
use crate::protocol::{Missed, SLOTS_MAX, WallMillis};

/// A slot is missed if it is this much later than it was due, for who skips those.
const LATE: u64 = 60_000;
/// So many missed slots are counted at most.
pub(crate) const MISSED_MOST: u64 = 1_000;

/// Which slots are to be fired, and what comes after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The slots to fire, in order.
    pub(crate) slots: Vec<WallMillis>,
    /// How many are past and are not fired, [`MISSED_MOST`] at most.
    pub(crate) missed: u64,
    /// The last slot that is seen to.
    pub(crate) cursor: WallMillis,
    /// When the next one is due; `None` if none comes any more.
    pub(crate) next: Option<WallMillis>,
    /// By how much each slot is due later.
    pub(crate) delay: u64,
}

impl Timing {
    /// What is to be done at this time of the store. `is_fresh`: the slots up to now are not meant.
    pub(crate) fn plan(
        &self,
        id: &str,
        missed: Missed,
        cursor: WallMillis,
        is_fresh: bool,
        now: WallMillis,
    ) -> Plan {
        let delay = self.delay(id);
        if is_fresh {
            return self.after(Vec::new(), 0, self.fresh(cursor, now), delay);
        }
        let horizon = now.saturating_sub(delay);
        let Some(last) = self.last(cursor, horizon) else { return self.after(Vec::new(), 0, cursor, delay) };
        let slots = match missed {
            Missed::Last => vec![last],
            Missed::Skip if horizon - last <= LATE => vec![last],
            Missed::Skip => Vec::new(),
            Missed::All(max) => self.newest(cursor, last, max),
        };
        let first = slots.first().copied().unwrap_or(last + 1);
        let missed = self.count(cursor, first);
        // The rest is still due, and comes with the next request.
        let slots: Vec<_> = slots.into_iter().take(SLOTS_MAX).collect();
        let cursor = slots.last().copied().unwrap_or(last);
        self.after(slots, missed, cursor, delay)
    }

    fn after(&self, slots: Vec<WallMillis>, missed: u64, cursor: WallMillis, delay: u64) -> Plan {
        Plan { slots, missed, cursor, next: self.next(cursor).map(|slot| slot + delay), delay }
    }

    /// The cursor of one that begins, or goes on, now. A period keeps its beat.
    fn fresh(&self, cursor: WallMillis, now: WallMillis) -> WallMillis {
        match &self.when {
            When::Every(_) => self.last(cursor, now).unwrap_or(cursor),
            When::Cron(_) | When::Times(_) => cursor.max(now),
        }
    }

    /// The newest slots up to this one, in order.
    fn newest(&self, cursor: WallMillis, last: WallMillis, max: u32) -> Vec<WallMillis> {
        let before = |slot: &WallMillis| self.last(cursor, slot.checked_sub(1)?);
        let mut slots: Vec<_> = std::iter::successors(Some(last), before).take(max as usize).collect();
        slots.reverse();
        slots
    }

    /// How many slots there are between the two, without both.
    fn count(&self, cursor: WallMillis, end: WallMillis) -> u64 {
        let slots = std::iter::successors(self.next(cursor), |slot| self.next(*slot));
        slots.take_while(|slot| *slot < end).take(MISSED_MOST as usize).count() as u64
    }
}
