//! Packed values as text and back: "version 5, due 7, reason x". Fields that are zero or empty are left out.

use std::fmt::Write;

use stanchion::store::redis::code::{
    FLOW_FIELDS, LIMIT_FIELDS, NODE_FIELDS, OUTBOX_FIELDS, SCHEDULE_FIELDS, TASK_FIELDS, field,
};
use stanchion::store::redis::packed::{Packed, unpack};

/// The fields of the record's counts.
const COUNTS: [&str; 10] = [
    "counter",
    "sequence",
    "enqueued",
    "acked",
    "retried",
    "died",
    "dead_size",
    "expired_size",
    "ends_at",
    "trim_at",
];
/// The fields of the record's settings; one that is not set is false.
const SETTINGS: [&str; 6] = ["paused", "max_len", "dead_max", "dead_age", "dead_bytes", "intake"];
/// The fields of what the record says of schedules.
const AGENDA: [&str; 2] = ["first_due", "count"];
/// The fields of what the record says of events.
const EVENTS: [&str; 2] = ["events_kept", "last_event"];
/// The fields of what is known of a key; behind them stand the priorities of its tasks that are in line.
const KEY: [&str; 8] = ["running", "held", "tat", "until", "waiting", "in_line", "and", "and_then"];
/// The fields of a message of the outbox.
const MESSAGE: [&str; 4] = ["event", "mark", "retries", "result_size"];
/// How many fields every task has.
const TASK: usize = 13;

/// The names of the fields of a packed value; none if it is not packed.
fn names(key: &str, field: &str) -> Vec<String> {
    let task = |more: &[&str]| {
        let name = |(name, _): &(&str, usize)| name.to_lowercase();
        let mut names: Vec<_> = TASK_FIELDS.iter().filter(|(_, place)| *place <= TASK).map(name).collect();
        names.extend(more.iter().map(|name| (*name).to_owned()));
        names
    };
    match (key, field) {
        ("q:queue", "counts") => COUNTS.map(str::to_owned).to_vec(),
        ("q:queue", "settings") => SETTINGS.map(str::to_owned).to_vec(),
        ("q:queue", "agenda") => AGENDA.map(str::to_owned).to_vec(),
        ("q:queue", "events") => EVENTS.map(str::to_owned).to_vec(),
        ("q:queue", "limits") => LIMIT_FIELDS.iter().map(|(name, _)| name.to_lowercase()).collect(),
        ("q:queue", "flows") => OUTBOX_FIELDS.iter().map(|(name, _)| name.to_lowercase()).collect(),
        ("q:flows", field) if !field.starts_with(['+', '=', '\u{3}', '\u{4}']) => {
            FLOW_FIELDS.iter().map(|(name, _)| name.to_lowercase()).collect()
        }
        ("q:flow-nodes", field) if field.contains('+') => {
            NODE_FIELDS.iter().map(|(name, _)| name.to_lowercase()).collect()
        }
        ("q:state", field) if field.starts_with('=') => MESSAGE.map(str::to_owned).to_vec(),
        ("q:keys", _) => KEY.map(str::to_owned).to_vec(),
        ("q:result", id) if !id.is_empty() => ["version", "result"].map(str::to_owned).to_vec(),
        ("q:schedules", field) if !field.starts_with(['+', '=']) => {
            SCHEDULE_FIELDS.iter().map(|(name, _)| name.to_lowercase()).collect()
        }
        ("q:state", field) if field.starts_with('+') => task(&[
            "backoff",
            "replaces",
            "consumer",
            "has_successor",
            "key",
            "history",
            "cancelled",
            "progress",
            "asked",
            "node",
        ]),
        ("q:state", _) => task(&[
            "backoff",
            "turn",
            "consumer",
            "has_successor",
            "key",
            "history",
            "cancelled",
            "progress",
            "asked",
            "node",
        ]),
        ("q:grave", field) if field.starts_with('r') => {
            let rest = ["key", "history", "cancelled", "progress", "asked", "node"];
            task(&[&["died_at", "id", "consumer", "nameless"][..], &rest].concat())
        }
        _ => Vec::new(),
    }
}

/// The value as text.
pub fn readable(key: &str, field: &str, value: &[u8]) -> String {
    let names = names(key, field);
    if key.starts_with("q:call") {
        let values = unpack(value).expect("a packed call");
        return values.iter().map(plain).collect::<Vec<_>>().join(": ");
    }
    if is_list(key, field) {
        return unpack(value).expect("a packed list").iter().map(plain).collect();
    }
    if names.is_empty() {
        return String::from_utf8_lossy(value).into_owned();
    }
    let whole = unpack(value).unwrap_or_default();
    // A key that has a task in line, and nothing else.
    if let ("q:keys", [Packed::Number(priority)]) = (key, &whole[..]) {
        return format!("in_line {priority}");
    }
    let [Packed::Array(values)] = &whole[..] else { panic!("{key} {field} is not packed: {value:?}") };
    let values = values.iter().map(plain).collect::<Vec<_>>();
    let fields = names.iter().map(String::as_str).zip(values.iter().map(String::as_str));
    // Where a claimed task stood in line shows when it is put back, the name of a body at the body, and when something
    // ends by what lives. Failures show in what `get` says.
    text(fields.filter(|(name, _)| !["turn", "body", "ends_at", "trim_at", "history"].contains(name)))
}

/// Whether it is an owner's list of schedules: its generation and their ids.
fn is_list(key: &str, field: &str) -> bool {
    key == "q:schedules" && field.starts_with('=')
}

/// The name of the body of a packed task, readable; none if it has no body.
pub fn body_of(value: &[u8]) -> Option<String> {
    match &unpack(value).expect("a packed task")[..] {
        [Packed::Array(values)] => match values[field::BODY - 1] {
            Packed::Text(name) => Some(name.escape_ascii().to_string()),
            Packed::Number(0) => None,
            _ => panic!("a body has a name"),
        },
        _ => panic!("a task is an array"),
    }
}

/// Names and values in one line. A setting may be zero, and so may the priority of a task in line.
pub fn text<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    let is_said = |(name, value): &(&str, &str)| match *name {
        name if SETTINGS.contains(&name) => *value != "no",
        name if KEY[5..].contains(&name) => true,
        // No result is another thing than an empty one.
        "result_size" => !["", "no"].contains(value),
        _ => !["", "0", "no"].contains(value),
    };
    for (name, value) in fields.filter(is_said) {
        let comma = if text.is_empty() { "" } else { ", " };
        write!(text, "{comma}{name} {value}").unwrap();
    }
    text
}

fn plain(value: &Packed<'_>) -> String {
    match value {
        Packed::Number(number) => number.to_string(),
        Packed::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Packed::Flag(false) => "no".into(),
        Packed::Flag(true) => "yes".into(),
        Packed::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(" ")),
    }
}

/// The text as it is stored.
pub fn packed(key: &str, field: &str, text: &str) -> Vec<u8> {
    if key.starts_with("q:call") {
        return packed_call(text);
    }
    if is_list(key, field) {
        return packed_arrays(text);
    }
    let names = names(key, field);
    if names.is_empty() {
        return text.as_bytes().to_vec();
    }
    let value_of = |name: &str| {
        text.split(", ").find_map(|field| field.strip_prefix(name)?.strip_prefix(' ')).unwrap_or_default()
    };
    if key == "q:keys"
        && let Some(priority) = text.strip_prefix("in_line ").and_then(|priority| priority.parse::<u8>().ok())
    {
        return vec![priority];
    }
    let said = || names.iter().rposition(|name| !value_of(name).is_empty()).map_or(0, |last| last + 1);
    let count = match key {
        "q:state" if field.starts_with('=') => names.len(),
        "q:state" if field.starts_with('+') => said().max(TASK + 2),
        "q:state" => TASK.max(said()),
        // The priorities of those in line are zero, too.
        "q:keys" => said().max(KEY.len() - 3),
        "q:grave" => said().max(TASK + 5),
        _ => names.len(),
    };
    let count_byte = u8::try_from(count).unwrap();
    let mut bytes = if count < 16 { vec![0x90 | count_byte] } else { vec![0xdc, 0, count_byte] };
    for name in &names[..count] {
        pack(&mut bytes, name, value_of(name));
    }
    bytes
}

/// "7: [[a 100] [24]]": the number, and arrays of words.
fn packed_call(text: &str) -> Vec<u8> {
    let (number, reply) = text.split_once(": ").expect("a number and a reply");
    let mut bytes = Vec::new();
    pack(&mut bytes, "", number);
    bytes.extend(packed_arrays(reply));
    bytes
}

/// "[a 100 [24]]": arrays of words.
fn packed_arrays(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '[' => {
                bytes.push(0x90 | u8::try_from(elements(rest)).unwrap());
                1
            }
            ']' | ' ' => 1,
            _ => {
                let length = rest.find([' ', ']']).unwrap_or(rest.len());
                pack(&mut bytes, "", &rest[..length]);
                length
            }
        };
        rest = &rest[length..];
    }
    bytes
}

/// How many elements the array has that begins here.
fn elements(text: &str) -> usize {
    let (mut depth, mut count) = (0, 0);
    let mut before = ' ';
    for letter in text.chars() {
        match letter {
            '[' if depth == 1 => count += 1,
            ' ' | ']' | '[' => {}
            _ if depth == 1 && [' ', '['].contains(&before) => count += 1,
            _ => {}
        }
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        before = letter;
    }
    count
}

/// Fields that are texts also if they are empty.
const TEXTS: [&str; 18] = [
    "key",
    "node",
    "mark",
    "flow_token",
    "flow_summary",
    "node_name",
    "node_queue",
    "node_options",
    "reason",
    "id",
    "consumer",
    "progress",
    "result",
    "timing",
    "missed",
    "owner",
    "last_task",
    "task_options",
];

fn pack(bytes: &mut Vec<u8>, name: &str, value: &str) {
    let is_text = TEXTS.contains(&name) || (name == "body" && !value.is_empty());
    let is_flag = [
        "nameless",
        "has_successor",
        "history",
        "cancelled",
        "progress",
        "asked",
        "key",
        "key_sweep",
        "result_size",
    ]
    .contains(&name)
        || SETTINGS.contains(&name);
    match value.parse::<u64>() {
        Ok(number) if !is_text => {
            bytes.push(0xcf);
            bytes.extend(number.to_be_bytes());
        }
        _ if value == "yes" => bytes.push(0xc3),
        _ if value == "no" => bytes.push(0xc2),
        _ if value.is_empty() && is_flag => bytes.push(0xc2),
        _ if value.is_empty() && !is_text => bytes.push(0),
        _ => {
            bytes.extend([0xd9, u8::try_from(value.len()).unwrap()]);
            bytes.extend(value.as_bytes());
        }
    }
}

#[test]
fn what_is_packed_reads_the_same() {
    let rows = [
        ("q:queue", "counts", "counter 7, died 300"),
        ("q:queue", "settings", "paused yes, max_len 5"),
        ("q:state", "a", "version 1, due 1700000000000, reason the lease ended, has_successor 1"),
        ("q:state", "+a", "version 1, replaces 1"),
        ("q:grave", "r7", "receipt 7, size 3, died_at 5, id a, nameless yes"),
        ("q:call 0", "", "7: [[a 100 b 101] [24 25]]"),
        ("q:call 0", "", "7: [[]]"),
        ("q:schedules", "a", "serial 5, timing T, missed all:7, next 9, task_options 0 20 0 k0, body_size 1"),
        ("q:schedules", "+a", "b"),
        ("q:schedules", "=app", "[2 a b]"),
        ("q:queue", "agenda", "first_due 7, count 2"),
        ("q:queue", "events", "events_kept 7, last_event 200"),
        ("q:queue", "limits", "max_running 3, key_sweep -"),
        ("q:keys", "k", "running 1, held 2, tat 1700000000000000, in_line 0, and 9"),
        ("q:state", "b", "version 1, due 1700000000000, key k"),
        ("q:state", "+b", "version 1, replaces 1, key k"),
        ("q:body", "a", "version 1"),
        ("q:state", "c", "version 1, node 3 f"),
        ("q:state", "=60", "event 2, mark 3 f, result_size 7"),
        ("q:queue", "flows", "first_message 60, last_message 61, live_flows 1"),
        ("q:flows", "f", "flow_version 30, flow_token 7, flow_created 5, node_count 2, flow_summary s"),
        ("q:flows", "+f", "g"),
        ("q:flow-nodes", "f+0", "node_name a, node_options i0 0 20 0 k0, node_size 1"),
    ];
    for (key, field, text) in rows {
        assert_eq!(readable(key, field, &packed(key, field, text)), text);
    }
}
