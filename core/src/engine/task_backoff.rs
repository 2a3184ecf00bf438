//! How long a failed task waits for its next attempt.

use std::time::Duration;

use crate::engine::Jitter;

/// The longest pause: a task is tried several times a day for as long as it has attempts.
const MOST: Duration = Duration::from_secs(7 * 3600);

/// The pause after the attempt with this number failed: the fourth power of it in seconds, as Sidekiq has it, and
/// drawn from the upper half, so that tasks that failed together do not come back together ("equal jitter" of
/// "Exponential Backoff And Jitter", Marc Brooker, 2015). A passing disturbance costs a second; after a long one a
/// task waits for less than half as long as it lasted, where doubling would wait as long again. With the attempts
/// that a task has by default that is two days.
pub(crate) fn backoff(attempt: u32, jitter: &mut Jitter) -> Duration {
    // More than a hundred would only be cut off.
    let most = Duration::from_secs(u64::from(attempt.clamp(1, 100)).pow(4)).min(MOST);
    jitter.between(most / 2, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::DEFAULT_MAX_ATTEMPTS;

    #[test]
    fn it_grows_up_to_its_limit_and_never_overflows() {
        let mut jitter = Jitter::seeded(1);
        for (attempt, most) in
            [(0, 1), (1, 1), (2, 16), (5, 625), (12, 20_736), (13, 25_200), (u32::MAX, 25_200)]
        {
            let most = Duration::from_secs(most);
            for _ in 0..100 {
                let pause = backoff(attempt, &mut jitter);
                assert!((most / 2..=most).contains(&pause), "attempt {attempt}: {pause:?}");
            }
        }
    }

    #[test]
    fn a_task_that_always_fails_is_tried_for_two_days() {
        let mut jitter = Jitter::seeded(1);
        let pauses = || 1..DEFAULT_MAX_ATTEMPTS;
        let total = || -> Duration { pauses().map(|attempt| backoff(attempt, &mut jitter)).sum() };
        let mut totals: Vec<_> = std::iter::repeat_with(total).take(1_000).collect();
        totals.sort_unstable();
        let hours = |total: Duration| total.as_secs_f64() / 3600.0;
        assert!((46.0..53.0).contains(&hours(totals[500])), "{}", hours(totals[500]));
        assert!(hours(totals[0]) > 33.0 && hours(totals[999]) < 66.0, "{totals:?}");
    }
}
