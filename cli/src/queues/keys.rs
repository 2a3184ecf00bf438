//! Keys of tasks and their limits, as they are shown and set.

use serde_json::{Value, json};
use stanchion::blocking::Queue;
use stanchion::{KeyInfo, KeyLimits, Rate};

use super::counts::millis;
use crate::arguments::KeyOrder;
use crate::exit;
use crate::failure::Failure;
use crate::output::print;
use crate::text::{left, plain, shortened, table};

/// Keys that one request asks for.
const PAGE: usize = 100;
/// How much of a text a table shows.
const CELL: usize = 40;
const HEADINGS: [&str; 6] = ["KEY", "RUNNING", "IN LINE", "HELD", "OPENS IN", "OWN LIMITS"];

/// Prints the keys. JSON is printed page by page: there may be many.
pub fn list(queue: &Queue, json: bool) -> Result<u8, Failure> {
    let (mut rows, mut from) = (Vec::new(), None);
    loop {
        let page = queue.list_keys(from.as_deref(), PAGE)?;
        if json {
            let lines: String = page.keys.iter().map(|key| format!("{}\n", as_json(key))).collect();
            print(lines.as_bytes())?;
        } else {
            rows.extend(page.keys.iter().map(row));
        }
        from = page.next;
        if from.is_none() {
            let text = if json { String::new() } else { table(HEADINGS, rows.into_iter()) };
            print(text.as_bytes())?;
            return Ok(exit::DONE);
        }
    }
}

/// Gives a key limits of its own, or takes them away, if that is said; and shows it.
pub fn key(queue: &Queue, order: &KeyOrder, json: bool) -> Result<u8, Failure> {
    if order.clear {
        queue.limit_key(&order.key, None)?;
    } else if let Some(limits) = limits(order) {
        queue.limit_key(&order.key, Some(limits))?;
    }
    print(described(&queue.get_key(&order.key)?, json).as_bytes())?;
    Ok(exit::DONE)
}

/// All that it is to have of its own: what is not given is as the queue has it.
fn limits(order: &KeyOrder) -> Option<KeyLimits> {
    let KeyOrder { concurrency, rate, burst, weight, .. } = order;
    if concurrency.is_none() && rate.is_none() && weight.is_none() {
        return None;
    }
    let mut limits = KeyLimits::new();
    limits.concurrency = *concurrency;
    limits.rate = rate.map(|rate| with_burst(rate, *burst));
    Some(weight.map_or(limits, |weight| limits.weight(weight)))
}

/// A rate with the burst that is given beside it.
pub fn with_burst(rate: Rate, burst: Option<u32>) -> Rate {
    burst.map_or(rate, |burst| rate.burst(burst))
}

/// A rate, as it is given, too.
pub fn rate_text(rate: Rate) -> String {
    let per = match (rate.per.as_millis(), rate.per.as_secs()) {
        (1_000, _) => "s".to_owned(),
        (60_000, _) => "m".to_owned(),
        (3_600_000, _) => "h".to_owned(),
        (86_400_000, _) => "d".to_owned(),
        (millis, seconds) if millis % 1_000 != 0 || seconds == 0 => format!("{millis}ms"),
        (_, seconds) if seconds % 86_400 == 0 => format!("{}d", seconds / 86_400),
        (_, seconds) if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        (_, seconds) if seconds % 60 == 0 => format!("{}m", seconds / 60),
        (_, seconds) => format!("{seconds}s"),
    };
    let burst = if rate.burst == 1 { String::new() } else { format!(", burst {}", rate.burst) };
    format!("{}/{per}{burst}", rate.count)
}

/// As JSON.
pub fn rate_as_json(rate: Rate) -> Value {
    json!({ "count": rate.count, "per_ms": millis(rate.per), "burst": rate.burst })
}

fn row(key: &KeyInfo) -> [String; 6] {
    [
        shortened(&plain(&key.key), CELL),
        key.running.to_string(),
        key.in_line.to_string(),
        key.held.to_string(),
        key.opens_in.map_or("-".into(), left),
        own(key),
    ]
}

fn own(key: &KeyInfo) -> String {
    let Some(limits) = key.limits else { return "-".into() };
    let concurrency = limits.concurrency.map(|most| format!("concurrency {most}"));
    let rate = limits.rate.map(|rate| format!("rate {}", rate_text(rate)));
    let weight = format!("weight {}", limits.weight);
    concurrency.into_iter().chain(rate).chain([weight]).collect::<Vec<_>>().join("; ")
}

fn described(key: &KeyInfo, json: bool) -> String {
    if json {
        return format!("{}\n", as_json(key));
    }
    let rows = [
        ("KEY", plain(&key.key)),
        ("RUNNING", key.running.to_string()),
        ("IN LINE", key.in_line.to_string()),
        ("HELD", key.held.to_string()),
        ("OPENS IN", key.opens_in.map_or("-".into(), left)),
        ("OWN LIMITS", own(key)),
    ];
    rows.iter().map(|(heading, value)| format!("{:<12}{value}\n", format!("{heading}:"))).collect()
}

fn as_json(key: &KeyInfo) -> Value {
    let own = |own: KeyLimits| json!({ "concurrency": own.concurrency, "rate": own.rate.map(rate_as_json), "weight": own.weight });
    json!({
        "key": key.key,
        "running": key.running,
        "in_line": key.in_line,
        "held": key.held,
        "opens_in_ms": key.opens_in.map(millis),
        "limits": key.limits.map(own),
    })
}
