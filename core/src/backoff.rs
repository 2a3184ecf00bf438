//! How long a failed task waits for its next attempt.

use std::time::Duration;

use crate::engine::Dice;

/// The pause after the first failure, before jitter: long enough for a passing disturbance.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause: a task is tried several times a day for as long as it has attempts.
const MOST: Duration = Duration::from_secs(3600);

/// The pause after the attempt with this number failed: it doubles every time, and is drawn from the upper
/// half, so that tasks that failed together do not come back together.
/// After "Exponential Backoff And Jitter" (Marc Brooker, 2015), "equal jitter".
pub(crate) fn backoff(attempt: u32, dice: &mut Dice) -> Duration {
    let doublings = attempt.saturating_sub(1).min(20);
    let most = FIRST.saturating_mul(1 << doublings).min(MOST);
    dice.between(most / 2, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_its_limit_and_never_overflows() {
        let mut dice = Dice::seeded(1);
        for (attempt, most) in [(0, 1), (1, 1), (2, 2), (5, 16), (13, 3600), (u32::MAX, 3600)] {
            let most = Duration::from_secs(most);
            for _ in 0..100 {
                let pause = backoff(attempt, &mut dice);
                assert!((most / 2..=most).contains(&pause), "attempt {attempt}: {pause:?}");
            }
        }
    }
}
