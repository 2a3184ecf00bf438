//! Tasks, as they are shown.

use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use stanchion::blocking::Queue;
use stanchion::{ClaimedBy, ListOptions, Receipt, TaskFailure, TaskInfo, TaskState};

use super::MOST;
use super::counts::known;
use crate::enqueue::millis;
use crate::exit;
use crate::failure::Failure;
use crate::output::print;
use crate::text::{left, plain, shortened, table};

const HEADINGS: [&str; 7] = ["ID", "STATE", "DUE", "ATTEMPTS", "PRIORITY", "PAYLOAD", "REASON"];
/// How much of a text a table shows.
const CELL: usize = 40;

/// A list of tasks: a table, or a line of JSON for each.
pub struct Listing {
    json: bool,
    rows: Vec<[String; 7]>,
    text: String,
}

impl Listing {
    /// With nothing in it.
    pub fn new(json: bool) -> Self {
        Self { json, rows: Vec::new(), text: String::new() }
    }

    /// Adds one.
    pub fn add(&mut self, task: &TaskInfo) {
        if self.json {
            self.text.push_str(&described(task, true));
        } else {
            self.rows.push(row(task));
        }
    }

    /// What is to be printed.
    pub fn text(self) -> String {
        if self.json { self.text } else { table(HEADINGS, self.rows.into_iter()) }
    }
}

/// Prints the tasks of one state, at most so many. JSON is printed page by page: a queue may be long.
pub fn list(queue: &Queue, mut options: ListOptions, most: usize, json: bool) -> Result<u8, Failure> {
    let (mut listing, mut left) = (Listing::new(json), most);
    loop {
        let listed = queue.list(options.clone().max(left.min(MOST)))?;
        let tasks = &listed.tasks[..listed.tasks.len().min(left)];
        left -= tasks.len();
        tasks.iter().for_each(|task| listing.add(task));
        if json {
            print(std::mem::take(&mut listing.text).as_bytes())?;
        }
        match listed.next {
            Some(next) if left > 0 => options = options.page(next),
            _ => {
                print(if json { String::new() } else { listing.text() }.as_bytes())?;
                return Ok(exit::DONE);
            }
        }
    }
}

/// One task, with everything.
pub fn described(task: &TaskInfo, json: bool) -> String {
    if json {
        return format!("{}\n", as_json(task));
    }
    let mut rows = vec![
        ("ID", plain(&task.id)),
        ("STATE", task.state.name().into()),
        ("VERSION", task.version.to_string()),
        ("DUE", when(task.due)),
        ("PRIORITY", task.priority.to_string()),
        ("ATTEMPTS", format!("{} of {}", task.attempts, task.max_attempts)),
    ];
    rows.extend(task.key.as_ref().map(|key| ("KEY", plain(key))));
    rows.extend(task.kind.as_ref().map(|kind| ("KIND", plain(kind))));
    rows.extend(task.timeout.map(|timeout| ("TIMEOUT", left(timeout))));
    rows.extend(task.backoff.as_ref().map(|backoff| ("BACKOFF", backoff.to_string())));
    rows.extend(task.cancelled.then(|| ("CANCELLED", "it ends with this run".to_owned())));
    rows.extend((!task.progress.is_empty()).then(|| ("PROGRESS", plain(&bytes_text(&task.progress)))));
    rows.extend(task.expires.map(|time| ("EXPIRES", when(time))));
    rows.extend((task.receipt != Receipt::NONE).then(|| ("RECEIPT", task.receipt.to_string())));
    rows.extend((task.state == TaskState::Claimed).then(|| ("LEASE LEFT", left(task.lease_left))));
    rows.extend(task.claimed_by.as_ref().map(|by| ("CLAIMED BY", claimed_by(by))));
    rows.extend(task.died.map(|time| ("DIED", when(time))));
    rows.extend((!task.reason.is_empty()).then(|| ("REASON", plain(&task.reason))));
    let failed = |one: &TaskFailure| ("FAILED", format!("{}: {}", when(one.at), plain(&one.reason)));
    rows.extend(task.failures.iter().map(failed));
    rows.extend(task.successor_due.map(|time| ("SUCCESSOR", when(time))));
    rows.extend(task.headers.iter().map(|(name, value)| ("HEADER", plain(&format!("{name}={value}")))));
    rows.push(("PAYLOAD", plain(&bytes_text(&task.payload))));
    rows.iter().map(|(heading, value)| format!("{:<12}{value}\n", format!("{heading}:"))).collect()
}

/// The label, where, and when.
fn claimed_by(by: &ClaimedBy) -> String {
    let mut text = plain(&by.label);
    if by.pid != 0 {
        text += &format!("{}{} pid {}", if text.is_empty() { "" } else { " on " }, plain(&by.host), by.pid);
    }
    by.since.map_or(text.clone(), |since| format!("{text}, {}", when(since)))
}

fn claimed_by_as_json(by: &ClaimedBy) -> Value {
    json!({
        "label": known(&by.label),
        "host": known(&by.host),
        "pid": (by.pid != 0).then_some(by.pid),
        "since_ms": by.since.map(millis),
    })
}

fn failure_as_json(failure: &TaskFailure) -> Value {
    json!({ "at_ms": millis(failure.at), "reason": failure.reason })
}

fn row(task: &TaskInfo) -> [String; 7] {
    [
        shortened(&plain(&task.id), CELL),
        task.state.name().into(),
        when(task.due),
        format!("{}/{}", task.attempts, task.max_attempts),
        task.priority.to_string(),
        shortened(&plain(&bytes_text(&task.payload)), CELL),
        shortened(&plain(&task.reason), CELL),
    ]
}

/// As text; what is none in Base64, marked as such.
fn bytes_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("base64:{}", BASE64_STANDARD.encode(bytes)),
    }
}

/// For JSON: as text, or what is none in Base64. One of both.
pub fn text_or_base64(bytes: &[u8]) -> (Option<&str>, Option<String>) {
    let text = std::str::from_utf8(bytes).ok();
    (text, text.is_none().then(|| BASE64_STANDARD.encode(bytes)))
}

fn as_json(task: &TaskInfo) -> Value {
    let (payload, payload_base64) = text_or_base64(&task.payload);
    let (progress, progress_base64) = text_or_base64(&task.progress);
    let claimed = task.state == TaskState::Claimed;
    let lease_left_ms = u64::try_from(task.lease_left.as_millis()).unwrap_or(u64::MAX);
    json!({
        "id": task.id,
        "state": task.state.name(),
        "version": task.version.get(),
        "due_ms": millis(task.due),
        "priority": task.priority,
        "attempts": task.attempts,
        "max_attempts": task.max_attempts,
        "expires_ms": task.expires.map(millis),
        "receipt": (task.receipt != Receipt::NONE).then_some(task.receipt.get()),
        "lease_left_ms": claimed.then_some(lease_left_ms),
        "reason": (!task.reason.is_empty()).then_some(&task.reason),
        "claimed_by": task.claimed_by.as_ref().map(claimed_by_as_json),
        "died_ms": task.died.map(millis),
        "successor_due_ms": task.successor_due.map(millis),
        "kind": task.kind,
        "key": task.key,
        "timeout_ms": task.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        "backoff": task.backoff.as_ref().and_then(|backoff| serde_json::from_str::<Value>(&backoff.to_string()).ok()),
        "failures": task.failures.iter().map(failure_as_json).collect::<Vec<_>>(),
        "progress": progress.filter(|text| !text.is_empty()),
        "progress_base64": progress_base64,
        "cancelled": task.cancelled,
        "headers": task.headers,
        "size": task.size,
        "payload": payload,
        "payload_base64": payload_base64,
    })
}

/// Seen from now: nobody wants to do sums with two clocks.
fn when(time: SystemTime) -> String {
    match time.duration_since(SystemTime::now()) {
        Ok(until) => format!("in {}", left(until)),
        Err(since) => format!("{} ago", left(since.duration())),
    }
}
