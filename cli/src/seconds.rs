//! Times on the command line: seconds, with fractions.

use std::time::Duration;

use stanchion::{MAX_TTL, MIN_TTL};

/// Any time that is not negative.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "not a number of seconds such as 30 or 0.5".into())
}

/// A time to wait.
pub fn wait(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| match time <= MAX_TTL {
        true => Ok(time),
        false => Err("over 365 days".into()),
    })
}

/// How long a run may take. Checked here, since the library sees it only when the first task is asked for.
pub fn run_timeout(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| match (Duration::from_millis(1)..=MAX_TTL).contains(&time) {
        true => Ok(time),
        false => Err("not between 0.001 s and 365 days".into()),
    })
}

/// A time for which the store keeps a lease.
pub fn ttl(text: &str) -> Result<Duration, String> {
    kept(text)
}

/// A time for which the store keeps a lock closed. Checked here, since the library sees it only when the
/// command has run already.
pub fn cooldown(text: &str) -> Result<Duration, String> {
    kept(text)
}

fn kept(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| match (MIN_TTL..=MAX_TTL).contains(&time) {
        true => Ok(time),
        false => Err("not between 0.05 s and 365 days".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_fractions() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("3"), Ok(Duration::from_secs(3)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "-1", "NaN", "inf", "-inf", "10s", "18446744073709551616", "1e400", "0x10", " 1"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        for text in ["0", "0.049", "31536001"] {
            assert!(ttl(text).is_err(), "{text}");
            assert!(cooldown(text).is_err(), "{text}");
        }
        for text in ["0", "0.0009", "31536001"] {
            assert!(run_timeout(text).is_err(), "{text}");
        }
        assert!(wait("0").is_ok() && run_timeout("0.001").is_ok());
        assert!(wait("31536001").is_err());
    }
}
