//! `stanchion enqueue`.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use stanchion::{Enqueued, Error, ErrorKind, Outcome, Task};

use crate::arguments::{EnqueueOrder, Globals};
use crate::exit;
use crate::failure::Failure;
use crate::lines;
use crate::output::print_done;
use crate::report::Report;
use crate::store;
use crate::text::plain;

/// Said if nothing else can be said.
pub const ACCEPTED: &str = "the tasks were accepted";

/// Puts the tasks in, and tells what became of each.
pub fn enqueue(order: &EnqueueOrder, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    // A bad option is wrong for every task, and is told before anything else happens.
    with_options(order, Task::auto()).check().map_err(Failure::from)?;
    if order.lines {
        return lines::enqueue(order, globals, report);
    }
    let tasks = tasks(order)?;
    let results = store::open(globals, report)?.queue(&order.queue).enqueue_many(tasks)?;
    let (mut text, mut tally, mut error) = (String::new(), Tally::default(), None);
    for result in results {
        tally.count(&result);
        match result {
            Ok(task) if globals.json => text.push_str(&format!("{}\n", as_json(&task))),
            Ok(task) => text.push_str(&format!("{} {}\n", task.outcome.name(), plain(&task.id))),
            // An error that is not a full queue is worth more.
            Err(new) if error.as_ref().is_none_or(is_full) => error = Some(new),
            Err(_) => {}
        }
    }
    print_done(text.as_bytes(), ACCEPTED)?;
    match error {
        None => Ok(exit::DONE),
        Some(error) if is_full(&error) && tally.full > 1 => Err(tally.full()),
        Some(error) => Err(error.into()),
    }
}

fn tasks(order: &EnqueueOrder) -> Result<Vec<Task>, Failure> {
    let mut tasks: Vec<Task> =
        order.ids.iter().map(Task::new).map(|task| with_options(order, task)).collect();
    if tasks.is_empty() {
        tasks.push(with_options(order, Task::auto()));
    }
    // The ids first: stdin may be long.
    tasks.iter().try_for_each(Task::check)?;
    let payload = payload(order.payload.as_deref())?;
    let tasks: Vec<Task> = tasks.into_iter().map(|task| task.payload(payload.as_slice())).collect();
    tasks.iter().try_for_each(Task::check)?;
    Ok(tasks)
}

/// The bytes given, or those of stdin.
pub fn payload(given: Option<&OsStr>) -> Result<Vec<u8>, Failure> {
    let mut payload = given.unwrap_or_default().as_bytes().to_vec();
    if payload == b"-" {
        payload.clear();
        // One byte more than is allowed is enough to know that it is too long.
        let read = io::stdin().lock().take(stanchion::MAX_PAYLOAD as u64 + 1).read_to_end(&mut payload);
        read.map_err(|error| Failure::system("reading the payload from stdin failed", &error))?;
    }
    Ok(payload)
}

/// Everything that is the same for all tasks, but the payload.
pub fn with_options(order: &EnqueueOrder, task: Task) -> Task {
    let mut task = task.priority(order.priority).max_attempts(order.max_attempts);
    task = task.on_duplicate(order.on_duplicate);
    if let Some(delay) = order.delay {
        task = task.delay(delay);
    }
    if let Some(due) = order.due {
        task = task.due(due);
    }
    if let Some(expires) = order.expires {
        task = task.expires(expires);
    }
    if let Some(kind) = &order.kind {
        task = task.kind(kind);
    }
    if let Some(timeout) = order.run_timeout {
        task = task.timeout(timeout);
    }
    if let Some(backoff) = &order.backoff {
        task = task.backoff(backoff.clone());
    }
    if let Some(keep_result) = order.keep_result {
        task = task.keep_result(keep_result);
    }
    if let Some(key) = &order.key {
        task = task.key(key);
    }
    order.headers.iter().fold(task, |task, (name, value)| task.header(name, value))
}

/// How many tasks ended how.
#[derive(Debug, Default)]
pub struct Tally {
    outcomes: [u64; 6],
    full: u64,
}

const OUTCOMES: [Outcome; 6] = [
    Outcome::Added,
    Outcome::Kept,
    Outcome::Replaced,
    Outcome::Successor,
    Outcome::Throttled,
    Outcome::Skipped,
];

impl Tally {
    /// Counts one; other errors than a full queue are not counted.
    pub fn count(&mut self, result: &Result<Enqueued, Error>) {
        match result {
            Ok(task) => {
                let place = OUTCOMES.iter().position(|outcome| *outcome == task.outcome);
                if let Some(count) = place.and_then(|place| self.outcomes.get_mut(place)) {
                    *count += 1;
                }
            }
            Err(error) => self.full += u64::from(is_full(error)),
        }
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.outcomes.iter().sum::<u64>() + self.full
    }

    fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rows = OUTCOMES.map(Outcome::name).into_iter().zip(self.outcomes);
        rows.chain([("full", self.full)])
    }

    /// For people: what there was none of is left out.
    pub fn in_words(&self) -> String {
        let some = self.rows().filter(|(_, count)| *count > 0);
        let parts: Vec<String> = some.map(|(word, count)| format!("{count} {word}")).collect();
        if parts.is_empty() { "no tasks".into() } else { parts.join(", ") }
    }

    /// With every count.
    pub fn as_json(&self) -> Value {
        self.rows()
            .map(|(word, count)| (word.to_owned(), count.into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// An error if the queue was full for some.
    pub fn check(&self) -> Result<u8, Failure> {
        if self.full == 0 { Ok(exit::DONE) } else { Err(self.full()) }
    }

    fn full(&self) -> Failure {
        let what =
            format!("the queue is at its limit: {} of {} tasks were not accepted", self.full, self.total());
        let hint = "let the workers catch up, or raise it with `stanchion queues configure --max-len`";
        Failure::new(ErrorKind::QueueFull.name(), exit::FULL, what, hint)
    }
}

fn is_full(error: &Error) -> bool {
    error.kind() == ErrorKind::QueueFull
}

fn as_json(task: &Enqueued) -> Value {
    json!({
        "id": task.id,
        "outcome": task.outcome.name(),
        "version": task.version.get(),
        "due_ms": task.due.map(millis),
    })
}

/// A wall time in milliseconds since 1970.
pub fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
