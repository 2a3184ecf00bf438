//! `stanchion queues events`.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
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
/// How long one request waits for events; then comes the next.
const WAIT: Duration = Duration::from_secs(60);

/// Prints the events that are kept; with `--follow` also those that happen, until a signal comes.
pub fn events(queue: &Queue, order: &EventsOrder, report: &Report, json: bool) -> Result<u8, Failure> {
    let show = |page: &EventPage| {
        if page.missed {
            report.note(
                "events were missed: the queue had kept too few of them; `stanchion queues configure --events` keeps more",
            );
        }
        print_on(shown(page, json).as_bytes())
    };
    let mut after = order.after;
    // From here on a signal is ours to handle; who reads what is printed may send one.
    let signals = order.follow.then(|| Signals::catch(&ENDING)).transpose()?;
    loop {
        let page = next(queue, after, Duration::ZERO)?;
        after = page.cursor;
        if page.events.is_empty() {
            break;
        }
        if !show(&page)? {
            return Ok(exit::DONE);
        }
    }
    match signals {
        None => Ok(exit::DONE),
        Some(signals) => follow(queue, after, &signals, show),
    }
}

fn follow(
    queue: &Queue,
    after: u64,
    signals: &Signals,
    show: impl Fn(&EventPage) -> Result<bool, Failure>,
) -> Result<u8, Failure> {
    let pages = pages(queue.clone(), after)?;
    loop {
        match pages.recv_timeout(LOOK) {
            Ok(page) => {
                if !show(&page?)? {
                    return Ok(exit::DONE);
                }
            }
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

/// Waits for events on a thread of its own, so that signals are heard meanwhile.
fn pages(queue: Queue, after: u64) -> Result<Receiver<Result<EventPage, Failure>>, Failure> {
    let (sender, received) = sync_channel(1);
    let started = thread::Builder::new().name("events".into()).spawn(move || watch(&queue, after, &sender));
    started.map_err(|error| Failure::system("starting a thread failed", &error))?;
    Ok(received)
}

fn watch(queue: &Queue, mut after: u64, pages: &SyncSender<Result<EventPage, Failure>>) {
    loop {
        let page = next(queue, after, WAIT);
        let failed = page.is_err();
        if let Ok(page) = &page {
            after = page.cursor;
        }
        // Whoever has gone needs no more pages.
        if pages.send(page).is_err() || failed {
            return;
        }
    }
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
