//! Ten years in zones with unlike rules, slot by slot, against the zone data's own arithmetic; what is planned; and what
//! is refused.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use jiff::civil::{DateTime, Time, time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

use super::*;
use crate::protocol::Missed;

const ZONES: [&str; 5] =
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"];
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

fn ms(text: &str) -> WallMillis {
    cron::millis(text.parse().unwrap()).unwrap()
}

fn text(when: &str) -> TimingText {
    TimingText { when: when.into(), tz: "UTC".into(), jitter: 0, starts: None, ends: None }
}

fn timing(when: &str, tz: &str) -> Timing {
    Timing::new(&TimingText { tz: tz.into(), ..text(when) }).unwrap()
}

fn wrong(text: &TimingText) -> String {
    Timing::new(text).unwrap_err()
}

/// When a clock on the wall shows this time on each day: once; one that is skipped at the end of the gap, one that comes
/// twice the first time.
fn each_day(zone: &TimeZone, at: Time, days: i64) -> Vec<WallMillis> {
    let first = DateTime::from_parts(jiff::civil::date(2025, 1, 1), at);
    (0..days)
        .map(|day| {
            let civil = first.checked_add(day.days()).unwrap();
            let zoned = zone.to_ambiguous_zoned(civil);
            let time = match zoned.offset() {
                jiff::tz::AmbiguousOffset::Gap { .. } => {
                    let later = zoned.later().unwrap().timestamp();
                    zone.preceding(later + 1.second()).next().unwrap().timestamp()
                }
                _ => zoned.earlier().unwrap().timestamp(),
            };
            cron::millis(time).unwrap()
        })
        .collect()
}

#[test]
fn fixed_times_come_once_a_day_for_ten_years_in_every_zone() {
    for name in ZONES {
        let zone = TimeZoneDatabase::bundled().get(name).unwrap();
        for (when, at) in [
            ("0 2 * * *", time(2, 0, 0, 0)),
            ("30 2 * * *", time(2, 30, 0, 0)),
            ("15 2 * * *", time(2, 15, 0, 0)),
        ] {
            let (timing, expected) = (timing(when, name), each_day(&zone, at, 3_650));
            let mut cursor = expected[0] - 1;
            for (day, slot) in expected.into_iter().enumerate() {
                let told = || format!("{when} {name} day {day}");
                assert_eq!(timing.next(cursor), Some(slot), "{}", told());
                // From the other side, a second and a day later.
                assert_eq!(timing.last(cursor, slot + 1_000), Some(slot), "{}", told());
                assert_eq!(timing.last(slot, slot + 1_000), None, "{}", told());
                assert_eq!(timing.last(0, slot + 12 * HOUR), Some(slot), "{}", told());
                cursor = slot;
            }
        }
    }
}

#[test]
fn a_period_is_elapsed_time_in_every_zone() {
    for name in ZONES {
        let (timing, start) = (timing("every 36h", name), ms("2025-01-01T00:00:00Z"));
        let mut cursor = start;
        for count in 1..2_434 {
            assert_eq!(timing.next(cursor), Some(start + count * 36 * HOUR));
            cursor += 36 * HOUR;
            assert_eq!(timing.last(start, cursor + 35 * HOUR), Some(cursor));
        }
    }
}

#[test]
fn an_hourly_slot_comes_each_hour_that_passes() {
    for name in ZONES {
        let timing = timing("@hourly", name);
        let mut cursor = ms("2025-01-01T00:00:00Z");
        for _ in 0..20_000 {
            let next = timing.next(cursor).unwrap();
            // Where clocks go by half an hour, the hour of the wall comes half an hour earlier or later.
            assert!((HOUR / 2..=HOUR * 3 / 2).contains(&(next - cursor)), "{name} {cursor}");
            assert_eq!(timing.last(cursor, next), Some(next), "{name} {next}");
            assert_eq!(timing.last(cursor, next - 1), None, "{name} {next}");
            cursor = next;
        }
    }
}

#[test]
fn what_was_missed_is_fired_as_asked() {
    let timing = timing("@hourly", "UTC");
    let (cursor, now) = (ms("2026-01-01T00:00:00Z"), ms("2026-01-01T05:00:30Z"));
    let plan = |missed, now| timing.plan("a", missed, cursor, false, now);
    let hour = |hour| cursor + hour * HOUR;
    let planned =
        |slots, missed, at| Plan { slots, missed, cursor: hour(at), next: Some(hour(at + 1)), delay: 0 };
    assert_eq!(plan(Missed::Last, now), planned(vec![hour(5)], 4, 5));
    assert_eq!(plan(Missed::Skip, now), planned(vec![hour(5)], 4, 5));
    assert_eq!(plan(Missed::Skip, now + 31_000), planned(vec![], 5, 5));
    assert_eq!(plan(Missed::All(3), now), planned(vec![hour(3), hour(4), hour(5)], 2, 5));
    assert_eq!(plan(Missed::All(100), now), planned((1..=5).map(hour).collect(), 0, 5));
    assert_eq!(plan(Missed::Last, hour(1) - 1), planned(vec![], 0, 0));
    assert_eq!(plan(Missed::Last, hour(1)), planned(vec![hour(1)], 0, 1));
}

#[test]
fn many_missed_slots_come_in_parts_none_twice() {
    let (timing, start) = (timing("every 1s", "UTC"), ms("2026-01-01T00:00:00Z"));
    let now = start + 1_000_500;
    let (mut cursor, mut fired, mut missed) = (start, Vec::new(), 0);
    loop {
        let plan = timing.plan("a", Missed::All(200), cursor, false, now);
        if plan.slots.is_empty() {
            assert_eq!(plan.next, Some(start + 1_001_000));
            break;
        }
        assert!(plan.slots.len() <= crate::protocol::SLOTS_MAX);
        fired.extend(plan.slots);
        missed += plan.missed;
        cursor = plan.cursor;
    }
    assert_eq!(fired, (801..=1_000).map(|second| start + second * 1_000).collect::<Vec<_>>());
    assert_eq!(missed, 800);
}

#[test]
fn a_year_of_missed_seconds_is_planned_without_going_through_them() {
    let (every, start) = (timing("every 1s", "UTC"), ms("2025-01-01T00:00:00Z"));
    let plan = every.plan("a", Missed::Last, start, false, start + 365 * DAY);
    assert_eq!((plan.slots, plan.missed), (vec![start + 365 * DAY], plan::MISSED_MOST));
    let plan =
        timing("* * * * * *", "Europe/Berlin").plan("a", Missed::Last, start, false, start + 365 * DAY);
    assert_eq!((plan.slots, plan.missed), (vec![start + 365 * DAY], plan::MISSED_MOST));
}

#[test]
fn one_that_is_fresh_fires_nothing_and_a_period_keeps_its_beat() {
    let (cursor, now) = (ms("2026-01-01T00:00:00Z"), ms("2026-01-01T05:30:00Z"));
    let fresh = |when| timing(when, "UTC").plan("a", Missed::All(9), cursor, true, now);
    let next = |cursor, next| Plan { slots: vec![], missed: 0, cursor, next: Some(next), delay: 0 };
    assert_eq!(fresh("@hourly"), next(now, cursor + 6 * HOUR));
    assert_eq!(fresh("every 2h"), next(cursor + 4 * HOUR, cursor + 6 * HOUR));
    let begins = timing("every 2h", "UTC").plan("a", Missed::Last, now, true, now);
    assert_eq!(begins, next(now, now + 2 * HOUR));
}

#[test]
fn slots_are_between_starts_and_ends() {
    let (starts, ends) = (ms("2026-01-01T10:30:00Z"), ms("2026-01-01T13:00:00Z"));
    for (when, slots) in [
        ("@hourly", vec!["11:00", "12:00", "13:00"]),
        ("every 1h", vec!["10:30", "11:30", "12:30"]),
        ("at 2026-01-01T10:00:00Z, 2026-01-01T10:30:00Z, 2026-01-01T14:00:00Z", vec!["10:30"]),
    ] {
        let timing =
            Timing::new(&TimingText { starts: Some(starts), ends: Some(ends), ..text(when) }).unwrap();
        let expected: Vec<_> = slots.iter().map(|time| ms(&format!("2026-01-01T{time}:00Z"))).collect();
        assert_eq!(timing.preview("a", ms("2026-01-01T00:00:00Z"), 9), expected, "{when}");
        // All of them at once, from before the beginning and after the end.
        let plan = timing.plan("a", Missed::All(9), ms("2026-01-01T00:00:00Z"), false, ends + DAY);
        assert_eq!((plan.slots, plan.next), (expected, None), "{when}");
    }
}

#[test]
fn the_delay_of_an_id_is_always_the_same_and_no_slot_is_lost() {
    let jittered = Timing::new(&TimingText { jitter: 10 * 60_000, ..text("@hourly") }).unwrap();
    let cursor = ms("2026-01-01T00:00:00Z");
    let mut delays: Vec<u64> = (0..100).map(|number| jittered.delay(&format!("tenant-{number}"))).collect();
    assert!(delays.iter().all(|delay| *delay < 10 * 60_000));
    delays.sort_unstable();
    delays.dedup();
    assert!(delays.len() > 90, "they are spread: {}", delays.len());
    let delay = jittered.delay("a");
    let plan = |now| jittered.plan("a", Missed::Last, cursor, false, now);
    assert_eq!(plan(cursor + HOUR + delay - 1).slots, vec![0; 0]);
    let due = plan(cursor + HOUR + delay);
    assert_eq!((due.slots, due.next), (vec![cursor + HOUR], Some(cursor + 2 * HOUR + delay)));
}

#[test]
fn a_slots_task_is_named_after_it() {
    assert_eq!(slot_id("nightly", ms("2026-11-27T02:00:00Z")), "nightly@2026-11-27T02:00:00Z");
    assert_eq!(slot_id("a", ms("2026-11-27T02:00:00.5Z")), "a@2026-11-27T02:00:00.5Z");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (when, says) in [
        ("", "when: the text is empty"),
        ("0 3 * *", "has 4 fields"),
        ("0 0 3 * * * 2027", "has 7 fields"),
        ("61 3 * * *", "field 1 (minute) is \"61\"; it takes 0-59"),
        ("0 25 * * *", "field 2 (hour) is \"25\""),
        ("0 3 32 * *", "field 3 (day of month) is \"32\""),
        ("0 3 * FOO *", "field 4 (month) is \"FOO\""),
        ("0 3 * * 8", "field 5 (day of week) is \"8\""),
        (
            "30 2 1 1 * 2027",
            "field 6 (day of week) is \"2027\"; it takes 0-7 or SUN-SAT, *, lists, ranges and steps; of 6 fields the first is the second",
        ),
        ("0 0 30 2 *", "never matches"),
        ("0 0 31 4,6,9,11 *", "never matches"),
        ("@fortnightly", "no nickname"),
        ("every", "field"),
        ("every 5 parsecs", "every \"5 parsecs\": it takes hours"),
        ("every 0s", "not between 100ms"),
        ("every -3h", "negative"),
        ("every 1000000h", "not between"),
        ("every 100.0001ms", "whole number of milliseconds"),
        ("at tomorrow", "time 1 of the list is \"tomorrow\""),
        ("at 2027-01-01T00:00:00Z, 2027-13-01T00:00:00Z", "time 2 of the list"),
    ] {
        let message = wrong(&text(when));
        assert!(message.contains(says), "{when}: {message}");
    }
    let bad_zone = wrong(&TimingText { tz: "Europe/Atlantis".into(), ..text("@daily") });
    assert!(bad_zone.starts_with("tz: \"Europe/Atlantis\""), "{bad_zone}");
    let backwards = wrong(&TimingText { starts: Some(2), ends: Some(1), ..text("@daily") });
    assert_eq!(backwards, "ends: it is before starts");
    let (starts, ends) = (Some(ms("2026-01-01T01:00:00Z")), Some(ms("2026-01-01T02:00:00Z")));
    assert!(wrong(&TimingText { starts, ends, ..text("@daily") }).contains("no slot"));
    assert!(wrong(&TimingText { jitter: DAY + 1, ..text("@daily") }).starts_with("jitter:"));
}

#[test]
fn texts_that_look_odd_and_are_right() {
    for when in [
        "0 0 29 2 *",
        "*/5 * * * * *",
        "0 0 L * *",
        "0 9 * * MON-FRI",
        "@DAILY",
        "0 12 1,15 * 7",
        "every 1h 30m",
        "@every 500ms",
    ] {
        Timing::new(&text(when)).unwrap();
    }
    let leap = timing("0 0 29 2 *", "UTC");
    assert_eq!(leap.next(ms("2097-01-01T00:00:00Z")), Some(ms("2104-02-29T00:00:00Z")));
}

#[test]
fn what_is_stored_is_read_again_and_a_newer_version_is_not() {
    let full =
        TimingText { jitter: 5, starts: Some(1), ends: Some(i64::MAX as u64 / 1_000_000), ..text("@daily") };
    for text in [full, text("every 3s")] {
        let stored = serde_json::to_string(&text).unwrap();
        assert_eq!(serde_json::from_str::<TimingText>(&stored).unwrap(), text);
        assert!(Timing::parse(&stored).is_some(), "{stored}");
    }
    assert!(Timing::parse(r#"{"when":"@daily","tz":"UTC","holidays":"DE"}"#).is_none());
    assert!(Timing::parse(r#"{"when":"@lunar","tz":"UTC"}"#).is_none());
}

#[test]
fn the_zone_data_is_that_of_the_library() {
    // Whatever the system has: a zone that only exists in the data here is found, and its name in any letters.
    assert!(zone("europe/berlin").is_ok());
    let berlin = zone("Europe/Berlin").unwrap();
    let summer: Timestamp = "2026-07-01T00:00:00Z".parse().unwrap();
    assert_eq!(berlin.to_offset(summer).seconds(), 7_200);
}
