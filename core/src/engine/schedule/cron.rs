//! Cron texts. How they are read, and what becomes of them when clocks change, is croner's: fixed times run once, a
//! skipped one at the end of the gap, and a repeated one the first time.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::protocol::WallMillis;

/// Longest text.
const MAX_TEXT: usize = 1_000;
/// What the fields are, in their order, with seconds.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0-59"),
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of month", "1-31"),
    ("month", "1-12 or JAN-DEC"),
    ("day of week", "0-7 or SUN-SAT"),
];
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Reads a text of 5 or 6 fields, or a nickname; the error says which field is wrong.
pub(super) fn parse(text: &str) -> Result<Cron, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("a cron text has at most {MAX_TEXT} bytes, this one {}", text.len()));
    }
    let text = match text.strip_prefix('@') {
        Some(_) => nickname(text)?,
        None => text,
    };
    let fields: Vec<&str> = text.split_whitespace().collect();
    if !(5..=6).contains(&fields.len()) {
        return Err(format!(
            "{text:?} has {} fields; a cron text has 5, or 6 with seconds first",
            fields.len()
        ));
    }
    let cron = parser().parse(text).map_err(|error| wrong_field(&fields, &error.to_string()))?;
    // From a leap year on, so that every day there is comes within eight years, also around 2100.
    let any = DateTime::constant(2096, 1, 1, 0, 0, 0, 0);
    match cron.find_next_occurrence(&any, true) {
        Ok(_) => Ok(cron),
        Err(_) => Err(format!("{text:?} never matches: there is no such day")),
    }
}

/// The first time after this one; `None` if there is none.
pub(super) fn next(cron: &Cron, zone: &TimeZone, after: WallMillis) -> Option<WallMillis> {
    let after = whole_second(after)?.to_zoned(zone.clone());
    millis(cron.find_next_occurrence(&after, false).ok()?.timestamp())
}

/// The last time up to this one.
pub(super) fn last(cron: &Cron, zone: &TimeZone, until: WallMillis) -> Option<WallMillis> {
    let until = whole_second(until)?.to_zoned(zone.clone());
    millis(cron.find_previous_occurrence(&until, true).ok()?.timestamp())
}

fn parser() -> CronParser {
    CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build()
}

fn nickname(text: &str) -> Result<&'static str, String> {
    let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    known.map(|(_, text)| *text).ok_or_else(|| {
        let names = NICKNAMES.map(|(name, _)| name).join(", ");
        format!("{text:?} is no nickname of a cron text; there are {names}, and \"every 90s\"")
    })
}

/// Which field it is, found by looking at each alone.
fn wrong_field(fields: &[&str], message: &str) -> String {
    for (at, field) in fields.iter().enumerate() {
        let mut alone = vec!["*"; fields.len()];
        alone[at] = field;
        if parser().parse(&alone.join(" ")).is_err() {
            let (name, range) = FIELDS[at + FIELDS.len() - fields.len()];
            let hint = if fields.len() == 6 { "; of 6 fields the first is the second" } else { "" };
            return format!(
                "field {} ({name}) is {field:?}; it takes {range}, *, lists, ranges and steps{hint}",
                at + 1
            );
        }
    }
    message.to_owned()
}

/// Where an hour comes twice, croner tells the two apart by whole seconds.
fn whole_second(millis: WallMillis) -> Option<Timestamp> {
    time(millis - millis % 1_000)
}

pub(super) fn time(millis: WallMillis) -> Option<Timestamp> {
    Timestamp::from_millisecond(millis.try_into().ok()?).ok()
}

pub(super) fn millis(time: Timestamp) -> Option<WallMillis> {
    time.as_millisecond().try_into().ok()
}
