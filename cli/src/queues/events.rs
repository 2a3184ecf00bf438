//! `stanchion queues events`.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::json;
use stanchion::blocking::Queue;
use stanchion::{ErrorKind, EventPage, TaskEvent};

use crate::arguments::EventsOrder;
use crate::enqueue::millis;
use crate::exit;
use crate::failure::Failure;
use crate::output::print_on;
use crate::process::{ENDING, Signals};
use crate::report::Report;
use crate::text::plain;

/// How often signals are looked for while nothing happens.
const LOOK: Duration = Duration::from_millis(50);
/// Until a store that is gone is asked again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one request waits for events; then comes the next.
const WAIT: Duration = Duration::from_secs(5);

/// Prints the events that are kept; with `--follow` also those that happen, until a signal comes.
pub fn events(queue: &Queue, order: &EventsOrder, report: &Report, json: bool) -> Result<u8, Failure> {
    if order.follow {
        return follow(queue.clone(), order.after, report.clone(), json);
    }
    let mut after = order.after;
    loop {
        let page = next(queue, after, Duration::ZERO)?;
        after = page.cursor;
        if page.events.is_empty() || !show(&page, report, json)? {
            return Ok(exit::DONE);
        }
    }
}

/// Watches and prints on a thread of its own, so that signals are heard meanwhile, also while nobody reads what is printed.
fn follow(queue: Queue, after: u64, report: Report, json: bool) -> Result<u8, Failure> {
    // From here on a signal is ours to handle; who reads what is printed may send one.
    let signals = Signals::catch(&ENDING)?;
    let (sender, ended) = sync_channel(1);
    let watches = move || drop(sender.send(watch(&queue, after, &report, json)));
    thread::Builder::new()
        .name("events".into())
        .spawn(watches)
        .map_err(|error| Failure::system("starting a thread failed", &error))?;
    loop {
        match ended.recv_timeout(LOOK) {
            Ok(end) => return end,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::new("Internal", exit::SYSTEM, "nobody watches the queue any more", ""));
            }
        }
        if let Some(code) = signals.ending() {
            return Ok(code);
        }
    }
}

/// Until nobody reads any more. A store that is gone is waited for.
fn watch(queue: &Queue, mut after: u64, report: &Report, json: bool) -> Result<u8, Failure> {
    let (mut was_there, mut is_gone) = (false, false);
    loop {
        match next(queue, after, WAIT) {
            Ok(page) => {
                (after, was_there, is_gone) = (page.cursor, true, false);
                if !show(&page, report, json)? {
                    return Ok(exit::DONE);
                }
            }
            Err(failure) if was_there && failure.kind == ErrorKind::StoreUnavailable.name() => {
                if !is_gone {
                    report.note(&format!("{}; waiting for the store", failure.what));
                }
                is_gone = true;
                thread::sleep(PAUSE);
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Whether somebody reads it.
fn show(page: &EventPage, report: &Report, json: bool) -> Result<bool, Failure> {
    if page.missed {
        report.note(
            "events were missed: the queue had kept too few of them; `stanchion queues configure --events` keeps more",
        );
    }
    print_on(shown(page, json).as_bytes())
}

fn next(queue: &Queue, after: u64, wait: Duration) -> Result<EventPage, Failure> {
    let error = match queue.events(Some(after), wait) {
        Ok(page) => return Ok(page),
        Err(error) => error,
    };
    // The store may be what cannot do it.
    if error.kind() == ErrorKind::Unsupported && queue.stats().is_ok_and(|stats| stats.settings.events == 0) {
        let name = plain(queue.name());
        let hint =
            format!("`stanchion queues configure {name:?} --events 1000` has it keep some from then on");
        let what = format!("the queue {name:?} keeps no events");
        return Err(Failure::new(error.kind().name(), exit::REFUSED, what, hint));
    }
    Err(error.into())
}

fn shown(page: &EventPage, json: bool) -> String {
    let first = |place| page.missed && place == 0;
    let line = |(place, event)| if json { as_json(event, first(place)) } else { as_text(event) };
    page.events.iter().enumerate().map(line).collect()
}

fn as_text(event: &TaskEvent) -> String {
    let attempt = if event.attempt == 0 { String::new() } else { format!("  attempt {}", event.attempt) };
    let reason = event.reason.as_ref().map(|reason| format!("  {}", plain(reason))).unwrap_or_default();
    let (number, what, id) = (event.number, event.what.name(), plain(&event.id));
    format!("{number:>6}  {}  {what:<9}  {id}{attempt}{reason}\n", when(event.at))
}

fn as_json(event: &TaskEvent, missed: bool) -> String {
    let fields = json!({
        "number": event.number,
        "at_ms": millis(event.at),
        "what": event.what.name(),
        "id": event.id,
        "version": event.version.get(),
        "attempt": event.attempt,
        "reason": event.reason,
        "missed": missed,
    });
    format!("{fields}\n")
}

/// All are equally long.
fn when(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| "-".into(), |time| format!("{time:.3}"))
}
