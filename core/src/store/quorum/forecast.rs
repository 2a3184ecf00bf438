//! Which fence all servers will agree on.
//!
//! Each server would take its own time for a fence, and so each another one, which would then have to be written to
//! the others: a round trip more in every grant. A fence that is asked for, and that is a little ahead of all their
//! clocks, is the same on all of them at once.

use std::sync::Mutex;
use std::time::Duration;

use crate::base::clock::{Clock, Moment};
use crate::base::wake::locked;
use crate::protocol::Fence;

/// After this time the servers are asked for fences of their own again, so that what was ahead does not stay so.
const GOOD_FOR: Duration = Duration::from_secs(10);
/// A fence further from this machine's time was not made of a time.
const NEAR_US: u64 = 1_000_000;

/// The servers' clocks, as far as their fences show them.
#[derive(Debug, Default)]
pub(super) struct Forecast(Mutex<Option<Seen>>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    fence: Fence,
    /// When it was asked for: counted from then on, it is ahead by part of a round trip.
    asked: Moment,
    first: Moment,
}

impl Forecast {
    /// The fence to ask for; [`Fence::NONE`] if none can be predicted.
    pub(super) fn propose(&self, clock: &Clock) -> Fence {
        let now = clock.now();
        let seen = *locked(&self.0);
        seen.filter(|seen| now.since(seen.first) < GOOD_FOR).map_or(Fence::NONE, |seen| {
            let passed = u64::try_from(now.since(seen.asked).as_micros()).unwrap_or(0);
            Fence::new(seen.fence.get() + passed)
        })
    }

    /// Takes in the fence of a grant that was asked for with this proposal.
    pub(super) fn learn(&self, clock: &Clock, asked: Moment, proposed: Fence, fence: Fence) {
        if fence == proposed || fence.get().abs_diff(clock.wall_micros()) > NEAR_US {
            return;
        }
        let mut seen = locked(&self.0);
        let first = match *seen {
            // Too little was asked for, while another has asked for more.
            Some(seen) if proposed > Fence::NONE => seen.first,
            _ => clock.now(),
        };
        *seen = Some(Seen { fence, asked, first });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::ManualClock;

    #[test]
    fn a_proposal_goes_with_the_time_and_ends() {
        let manual = ManualClock::new();
        let clock = Clock::Manual(manual.clone());
        let forecast = Forecast::default();
        assert_eq!(forecast.propose(&clock), Fence::NONE);
        let fence = clock.wall_micros() + 70;
        let later = |micros| Fence::new(fence + micros);
        forecast.learn(&clock, clock.now(), Fence::NONE, later(0));
        manual.advance(Duration::from_millis(1));
        assert_eq!(forecast.propose(&clock), later(1_000));
        forecast.learn(&clock, clock.now(), later(1_000), later(1_000));
        forecast.learn(&clock, clock.now(), later(1_000), later(1_500));
        assert_eq!(forecast.propose(&clock), later(1_500));
        manual.advance(GOOD_FOR);
        assert_eq!(forecast.propose(&clock), Fence::NONE);
    }

    #[test]
    fn one_locks_fence_from_the_far_future_is_not_for_others() {
        let clock = Clock::Manual(ManualClock::new());
        let forecast = Forecast::default();
        forecast.learn(&clock, clock.now(), Fence::NONE, Fence::new(clock.wall_micros() + NEAR_US + 1));
        assert_eq!(forecast.propose(&clock), Fence::NONE);
    }
}
