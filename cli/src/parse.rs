//! Values of options that are more than a text or a number.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use stanchion::{Backoff, Missed, OnDuplicate, Rate};

use crate::seconds::seconds;

/// A number, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub Option<u64>);

/// A rate, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit(pub Option<Rate>);

/// How many tasks one request may concern.
pub fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1_000).contains(count));
    count.ok_or_else(|| "not a number from 1 to 1000".into())
}

/// A moment. Without a zone it would mean something else on every machine.
pub fn due(text: &str) -> Result<SystemTime, String> {
    let wrong =
        || "not a time such as 2026-12-24T18:00:00+01:00, 2026-12-24T17:00:00Z or @1798131600".to_owned();
    match text.strip_prefix('@') {
        Some(since) => UNIX_EPOCH.checked_add(seconds(since)?).ok_or_else(wrong),
        None => text.parse::<Timestamp>().map(SystemTime::from).map_err(|_| wrong()),
    }
}

/// What to do with an id that is in the queue already.
pub fn on_duplicate(text: &str) -> Result<OnDuplicate, String> {
    let time = |text: &str| {
        seconds(text).and_then(|time| match time >= Duration::from_millis(1) {
            true => Ok(time),
            false => Err("not at least 0.001 s".into()),
        })
    };
    match text.split_once(':') {
        None if text == "keep" => Ok(OnDuplicate::Keep),
        None if text == "skip" => Ok(OnDuplicate::Skip),
        None if text == "replace" => Ok(OnDuplicate::Replace),
        Some(("debounce", max_wait)) => Ok(OnDuplicate::Debounce { max_wait: time(max_wait)? }),
        Some(("throttle", window)) => Ok(OnDuplicate::Throttle { window: time(window)? }),
        _ => Err("not keep, skip, replace, debounce:SECS or throttle:SECS".into()),
    }
}

/// What becomes of missed slots.
pub fn missed(text: &str) -> Result<Missed, String> {
    let wrong = || "not last, skip or all:N".to_owned();
    match text {
        "last" => Ok(Missed::Last),
        "skip" => Ok(Missed::Skip),
        _ => {
            let most = text.strip_prefix("all:").and_then(|most| most.parse().ok());
            most.map(Missed::All).ok_or_else(wrong)
        }
    }
}

/// Pauses: seconds with commas between them, or JSON as the library reads it.
pub fn backoff(text: &str) -> Result<Backoff, String> {
    if text.starts_with(['[', '{']) {
        return text.parse().map_err(|error: stanchion::Error| error.message().to_owned());
    }
    Ok(Backoff::list(text.split(',').map(seconds).collect::<Result<Vec<_>, _>>()?))
}

/// A header.
pub fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("not NAME=VALUE".into()),
    }
}

/// A number or `none`.
pub fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        "0" => Err("0 would refuse every task; to stop the workers, use `stanchion queues pause`".into()),
        _ => text.parse().map(|limit| Limit(Some(limit))).map_err(|_| "not a number or none".into()),
    }
}

/// A number from one on, or `none`.
pub fn most(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        "0" => Err("with 0 nothing would run; to stop the workers, use `stanchion queues pause`".into()),
        _ => text.parse().map(|limit| Limit(Some(limit))).map_err(|_| "not a number or none".into()),
    }
}

/// As [`most`], of 32 bits.
pub fn small_most(text: &str) -> Result<Limit, String> {
    most(text).and_then(|limit| match limit.0.is_none_or(|most| u32::try_from(most).is_ok()) {
        true => Ok(limit),
        false => Err("not below 2^32".into()),
    })
}

/// So many per time, such as 20/s, 100/10m or 1/500ms.
pub fn rate(text: &str) -> Result<Rate, String> {
    let told = text.split_once('/').and_then(|(count, per)| Some((count.parse().ok()?, period(per)?)));
    let (count, per) = told.ok_or_else(|| "not N/TIME such as 20/s, 100/10m, 5/1h or 1/500ms".to_owned())?;
    Ok(Rate::new(count, per))
}

/// A rate or `none`.
pub fn rate_limit(text: &str) -> Result<RateLimit, String> {
    match text {
        "none" => Ok(RateLimit(None)),
        _ => rate(text).map(|rate| RateLimit(Some(rate))).map_err(|problem| format!("{problem}, or none")),
    }
}

/// A number of units, or one.
fn period(text: &str) -> Option<Duration> {
    let unit = text.find(|letter: char| !letter.is_ascii_digit())?;
    let count: u64 = if unit == 0 { 1 } else { text[..unit].parse().ok()? };
    let millis: u64 = match &text[unit..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    count.checked_mul(millis).map(Duration::from_millis)
}

/// `on` or `off`.
pub fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("not on or off".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_zone() {
        let at = |seconds| Ok(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(due("1970-01-01T00:00:07Z"), at(7));
        assert_eq!(due("1970-01-01T01:00:00+01:00"), at(0));
        assert_eq!(due("@7"), at(7));
        for text in ["", "tomorrow", "7", "@", "@-1", "2026-12-24", "2026-12-24T18:00:00", "@1e300"] {
            assert!(due(text).is_err(), "{text}");
        }
    }

    #[test]
    fn policies_have_their_times() {
        let window = Duration::from_millis(500);
        assert_eq!(on_duplicate("throttle:0.5"), Ok(OnDuplicate::Throttle { window }));
        assert_eq!(on_duplicate("debounce:0.5"), Ok(OnDuplicate::Debounce { max_wait: window }));
        for text in ["", "Keep", "keep:1", "debounce", "debounce:", "throttle:0", "throttle:x"] {
            assert!(on_duplicate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pauses_in_seconds_or_as_json() {
        let text = |told: &str| backoff(told).map(|backoff| backoff.to_string());
        assert_eq!(text("1,0.5,30"), Ok("[1000,500,30000]".into()));
        assert_eq!(text("[1000,0]"), Ok("[1000,0]".into()));
        let exponential = r#"{"base":1000,"factor":3.0,"max":9000,"jitter":0.0}"#;
        assert_eq!(text(exponential), Ok(exponential.into()));
        for told in ["", ",", "1,", "soon", "-1", "1s", "[", "[]", "[-1]", "{}", r#"{"base":0}"#] {
            assert!(backoff(told).is_err(), "{told}");
        }
    }

    #[test]
    fn missed_slots() {
        assert_eq!((missed("last"), missed("all:7")), (Ok(Missed::Last), Ok(Missed::All(7))));
        for text in ["", "all", "all:", "all:-1", "none"] {
            assert!(missed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_have_units() {
        let of = |count, millis| Ok(Rate::new(count, Duration::from_millis(millis)));
        assert_eq!((rate("20/s"), rate("100/10m")), (of(20, 1_000), of(100, 600_000)));
        assert_eq!((rate("1/500ms"), rate("3/2d")), (of(1, 500), of(3, 172_800_000)));
        assert_eq!(rate_limit("none"), Ok(RateLimit(None)));
        for text in [
            "",
            "20",
            "/s",
            "20/",
            "20/10",
            "20/x",
            "-1/s",
            "1.5/s",
            "20/s/s",
            "20/-1s",
            "1/99999999999999999d",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert!(most("0").is_err() && most("none") == Ok(Limit(None)) && small_most("4294967296").is_err());
    }

    #[test]
    fn other_values() {
        assert_eq!(header("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(header("=b").is_err() && header("a").is_err());
        assert_eq!((limit("none"), limit("5")), (Ok(Limit(None)), Ok(Limit(Some(5)))));
        assert!(limit("0").is_err() && limit("x").is_err());
        assert!(count("0").is_err() && count("1001").is_err() && count("1000") == Ok(1_000));
    }
}
