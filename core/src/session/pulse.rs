//! Whether the store is awake: it answered quickly a moment ago.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::clock::Moment;

/// How long after a quick answer the store counts as awake.
const AWAKE: Duration = Duration::from_millis(100);
/// An answer within this is quick: a store that takes longer is not asked in a way that gives up soon.
const QUICK: Duration = Duration::from_millis(20);
/// How long the host goes without a turn if the store stops answering all the same: with the usual 50 ms, a signal is
/// noticed within 0.2 s.
const BRIEFLY: Duration = Duration::from_millis(100);

/// When the store last answered quickly. Handing a request to another thread and back takes longer than a round
/// trip; a store that answered a moment ago is asked on the host's own thread, for a moment. If it does not
/// answer in that time, the request is sent again by the helper, as it would be after any lost answer.
#[derive(Debug, Default)]
pub(crate) struct Pulse(AtomicU64);

impl Pulse {
    /// The store answered what was sent at `sent`.
    pub(crate) fn answered(&self, sent: Moment, now: Moment) {
        let beat = if now.since(sent) <= QUICK { now.as_micros() } else { 0 };
        self.0.store(beat, Ordering::Relaxed);
    }

    /// Until when it may be asked on the host's own thread; `None` if it may be asleep, or is slow.
    pub(crate) fn awake_until(&self, now: Moment) -> Option<Moment> {
        let silence = now.as_micros().saturating_sub(self.0.load(Ordering::Relaxed));
        (u128::from(silence) < AWAKE.as_micros()).then(|| now + BRIEFLY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::channel::INTERRUPT_CHECK;

    #[test]
    fn a_store_is_awake_for_a_moment_after_its_answer() {
        let (pulse, now) = (Pulse::default(), Moment::from_nanos(5_000_000_000));
        assert_eq!(pulse.awake_until(now), None);
        pulse.answered(now - QUICK, now);
        assert_eq!(pulse.awake_until(now), Some(now + BRIEFLY));
        assert_eq!(pulse.awake_until(now + AWAKE), None);
    }

    #[test]
    fn a_slow_store_is_never_asked_for_a_moment_only() {
        let (pulse, now) = (Pulse::default(), Moment::from_nanos(5_000_000_000));
        pulse.answered(now - QUICK, now);
        let later = now + Duration::from_millis(30);
        pulse.answered(now, later);
        assert_eq!(pulse.awake_until(later), None);
    }

    #[test]
    fn a_signal_is_noticed_within_the_promised_time() {
        let overshoot = Duration::from_millis(12);
        assert!(BRIEFLY + INTERRUPT_CHECK + overshoot <= Duration::from_millis(200));
    }
}
