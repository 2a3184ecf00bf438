//! How long a failed task waits for its next attempt.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::engine::Jitter;

/// The longest pause of a task that has no back-off of its own: it is tried several times a day for as long as it has
/// attempts.
const MOST: Duration = Duration::from_secs(7 * 3600);
/// The longest pause that a back-off may ask for.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// So many pauses of a list at most.
const MAX_PAUSES: usize = 100;
/// The growth by which no pause is reached that a smaller one would not reach soon.
const MAX_FACTOR: f64 = 1_000.0;

/// How long a task waits after each failed attempt. It travels with the task, so workers in every language obey it.
///
/// As text it is JSON, in milliseconds: `[1000,60000]`, or `{"base":1000,"factor":2,"max":60000,"jitter":0.5}`.
///
/// ```
/// use std::time::Duration;
/// use stanchion::{Backoff, Task};
///
/// let second = Duration::from_secs(1);
/// let soon_then_hourly = Backoff::list([second, second * 60, second * 3600]);
/// let doubling = Backoff::exponential(second).max(second * 600);
/// let task = Task::new("charge:42").backoff(soon_then_hourly);
/// assert_eq!(doubling.to_string().parse::<Backoff>()?, doubling);
/// # Ok::<(), stanchion::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff(Kind);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Kind {
    List(Vec<u64>),
    Exponential(Exponential),
}

/// Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exponential {
    base: u64,
    #[serde(default = "two")]
    factor: f64,
    #[serde(default = "most")]
    max: u64,
    #[serde(default = "half")]
    jitter: f64,
}

fn two() -> f64 {
    2.0
}

fn half() -> f64 {
    0.5
}

fn most() -> u64 {
    millis(MOST)
}

/// Rounded up: nobody waits for less than was asked for.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl Backoff {
    /// After the n-th failed attempt the n-th of these pauses, and after the last one always that: 1 to 100 of them, each
    /// of at most 365 days.
    pub fn list(pauses: impl IntoIterator<Item = Duration>) -> Self {
        Self(Kind::List(pauses.into_iter().map(millis).collect()))
    }

    /// Doubles from `base` (1 ms to 365 days) up to 7 h, and each pause is drawn from its upper half ("equal jitter" of
    /// "Exponential Backoff And Jitter", Marc Brooker, 2015).
    pub fn exponential(base: Duration) -> Self {
        Self(Kind::Exponential(Exponential {
            base: millis(base),
            factor: two(),
            max: most(),
            jitter: half(),
        }))
    }

    /// By how much each pause is longer than the one before: 1 to 1,000 (default 2). Not of a list.
    pub fn factor(mut self, factor: f64) -> Self {
        if let Kind::Exponential(exponential) = &mut self.0 {
            exponential.factor = factor;
        }
        self
    }

    /// The longest pause: `base` to 365 days (default 7 h). Not of a list.
    pub fn max(mut self, max: Duration) -> Self {
        if let Kind::Exponential(exponential) = &mut self.0 {
            exponential.max = millis(max);
        }
        self
    }

    /// By which part of itself a pause may be drawn shorter: 0 to 1 (default 0.5). Not of a list.
    pub fn jitter(mut self, jitter: f64) -> Self {
        if let Kind::Exponential(exponential) = &mut self.0 {
            exponential.jitter = jitter;
        }
        self
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn check(&self) -> Result<(), String> {
        let longest = millis(LONGEST);
        match &self.0 {
            Kind::List(pauses) if !(1..=MAX_PAUSES).contains(&pauses.len()) => {
                Err(format!("backoff has {} pauses, not 1 to {MAX_PAUSES}", pauses.len()))
            }
            Kind::List(pauses) => match pauses.iter().position(|pause| *pause > longest) {
                Some(at) => Err(format!("pause {} of backoff is over 365 days", at + 1)),
                None => Ok(()),
            },
            Kind::Exponential(Exponential { base, factor, max, jitter }) => {
                if !(1..=longest).contains(base) {
                    Err("the base of backoff is not between 1 ms and 365 days".to_owned())
                } else if !(1.0..=MAX_FACTOR).contains(factor) {
                    Err(format!("the factor {factor} of backoff is not between 1 and {MAX_FACTOR}"))
                } else if !(*base..=longest).contains(max) {
                    Err("the max of backoff is not between its base and 365 days".to_owned())
                } else if !(0.0..=1.0).contains(jitter) {
                    Err(format!("the jitter {jitter} of backoff is not between 0 and 1"))
                } else {
                    Ok(())
                }
            }
        }
    }

    /// The pause after the attempt with this number failed.
    pub(crate) fn pause(&self, attempt: u32, jitter: &mut Jitter) -> Duration {
        let before = attempt.max(1) - 1;
        match &self.0 {
            Kind::List(pauses) => {
                let at = usize::try_from(before).unwrap_or(usize::MAX).min(pauses.len().saturating_sub(1));
                Duration::from_millis(pauses.get(at).copied().unwrap_or(0))
            }
            Kind::Exponential(Exponential { base, factor, max, jitter: part }) => {
                let grown = Duration::from_millis(*base).as_secs_f64() * factor.powf(f64::from(before));
                let max = Duration::from_millis(*max);
                let most = Duration::try_from_secs_f64(grown).unwrap_or(max).min(max);
                jitter.between(most.mul_f64(1.0 - part), most)
            }
        }
    }
}

impl std::fmt::Display for Backoff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| std::fmt::Error)?)
    }
}

impl FromStr for Backoff {
    type Err = Error;

    /// Reads what its text form shows.
    ///
    /// # Errors
    /// `InvalidArgument` for another text, or for numbers out of range.
    fn from_str(text: &str) -> Result<Self, Error> {
        let kind = serde_json::from_str(text).map_err(|_| {
            Error::invalid(
                "backoff is not a list of milliseconds such as [1000,60000], nor such as \
                 {\"base\":1000,\"factor\":2,\"max\":60000,\"jitter\":0.5}",
            )
        })?;
        let backoff = Self(kind);
        backoff.check().map_err(Error::invalid)?;
        Ok(backoff)
    }
}

/// The pause after the attempt with this number failed, of a task without a back-off of its own: the fourth power of it in
/// seconds, as Sidekiq has it, and drawn from the upper half, so that tasks that failed together do not come back together
/// ("equal jitter"). A passing disturbance costs a second; after a long one a task waits for less than half as long as it
/// lasted, where doubling would wait as long again. With the attempts that a task has by default that is two days.
pub(crate) fn backoff(attempt: u32, jitter: &mut Jitter) -> Duration {
    // More than a hundred would only be cut off.
    let most = Duration::from_secs(u64::from(attempt.clamp(1, 100)).pow(4)).min(MOST);
    jitter.between(most / 2, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::protocol::DEFAULT_MAX_ATTEMPTS;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

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

    #[test]
    fn a_list_goes_on_with_its_last_pause() {
        let backoff = Backoff::list([ms(5), ms(0), ms(70)]);
        let pauses = [1, 2, 3, 4, u32::MAX].map(|attempt| backoff.pause(attempt, &mut Jitter::seeded(1)));
        assert_eq!(pauses, [ms(5), ms(0), ms(70), ms(70), ms(70)]);
    }

    #[test]
    fn an_exponential_one_grows_by_its_factor_up_to_its_max() {
        let fixed = Backoff::exponential(ms(10)).factor(3.0).max(ms(100)).jitter(0.0);
        let pauses = [1, 2, 3, 4, u32::MAX].map(|attempt| fixed.pause(attempt, &mut Jitter::seeded(1)));
        assert_eq!(pauses, [ms(10), ms(30), ms(90), ms(100), ms(100)]);
        let drawn = Backoff::exponential(ms(1_000)).jitter(0.25);
        let mut jitter = Jitter::seeded(1);
        for _ in 0..100 {
            let pause = drawn.pause(2, &mut jitter);
            assert!((ms(1_500)..=ms(2_000)).contains(&pause), "{pause:?}");
        }
    }

    #[test]
    fn its_text_is_read_as_it_was_written() {
        let list = Backoff::list([ms(5), ms(70)]);
        assert_eq!(list.to_string(), "[5,70]");
        let exponential = Backoff::exponential(ms(10)).factor(1.5).max(ms(20)).jitter(0.1);
        for backoff in [list, exponential] {
            assert_eq!(backoff.to_string().parse::<Backoff>().unwrap(), backoff);
        }
        assert_eq!(r#"{"base":10}"#.parse::<Backoff>().unwrap(), Backoff::exponential(ms(10)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let bad = [
            "",
            "5",
            "[]",
            "[-1]",
            "[31536000001]",
            "{}",
            r#"{"base":0}"#,
            r#"{"base":1,"factor":0.5}"#,
            r#"{"base":9,"max":5}"#,
            r#"{"base":1,"jitter":2}"#,
            r#"{"base":1,"more":1}"#,
        ];
        let many = format!("[{}1]", "1,".repeat(MAX_PAUSES));
        for text in bad.into_iter().chain([many.as_str()]) {
            let error = text.parse::<Backoff>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        }
    }
}
