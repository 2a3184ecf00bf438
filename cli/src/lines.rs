//! `stanchion enqueue --lines`: a task for every line of stdin.

use std::io::{self, BufRead, BufReader, Read};
use std::mem;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use stanchion::blocking::Queue;
use stanchion::{ErrorKind, MAX_PAYLOAD, Task};

use crate::arguments::{EnqueueOrder, Globals};
use crate::enqueue::{ACCEPTED, Tally, with_options};
use crate::exit;
use crate::failure::Failure;
use crate::output::print_done;
use crate::process::{ENDING, Signals};
use crate::report::Report;
use crate::store;

/// Tasks that are sent together.
const BATCH: usize = 1_000;
/// Bytes that are collected before they are sent.
const BATCH_BYTES: usize = 4 << 20;
/// What is read at once.
const READ_BYTES: usize = 256 << 10;
/// How often signals are looked for while no line comes.
const LOOK: Duration = Duration::from_millis(50);

/// Puts a task in for every line, and prints how many ended how: also if it ends with an error, or is told to end.
pub fn enqueue(order: &EnqueueOrder, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let client = store::open(globals, report)?;
    // From here on a signal is ours to handle; until here it simply ended this process.
    let signals = Signals::catch(&ENDING)?;
    let began = Instant::now();
    let mut sender = Sender { queue: client.queue(&order.queue), tally: Tally::default() };
    let result = send_all(order, &mut sender, &signals, report);
    let tally = sender.tally;
    report.end_count();
    let took = began.elapsed().as_secs_f64();
    report.note(&format!("{} tasks sent in {took:.1} s", tally.total()));
    let text = if globals.json { tally.as_json().to_string() } else { tally.in_words() };
    let printed = print_done(format!("{text}\n").as_bytes(), ACCEPTED);
    match result? {
        exit::DONE => printed.and(tally.check()),
        signalled => printed.map(|()| signalled),
    }
}

/// Sends lines as they come, until there are no more, or a signal comes: then those that were read by then.
fn send_all(
    order: &EnqueueOrder,
    sender: &mut Sender,
    signals: &Signals,
    report: &Report,
) -> Result<u8, Failure> {
    let batches = read_lines()?;
    loop {
        match batches.recv_timeout(LOOK) {
            Ok(batch) => sender.send(order, batch?, report)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(exit::DONE),
        }
        if let Some(code) = signals.ending() {
            // One may lie ready, and the reader may have another.
            for batch in batches.try_iter().take(2) {
                sender.send(order, batch?, report)?;
            }
            return Ok(code);
        }
    }
}

/// A line and its number.
type Line = (u64, Vec<u8>);

/// Reads stdin on a thread of its own, so that signals are heard meanwhile. What has come is a batch as soon as there
/// is nothing more to read at once: nobody waits for others' lines.
fn read_lines() -> Result<Receiver<Result<Vec<Line>, Failure>>, Failure> {
    let (batches, received) = sync_channel(1);
    let read = move || {
        let result = read_all(&batches);
        if let Err(failure) = result {
            // Whoever has gone needs no more lines.
            let _ = batches.send(Err(failure));
        }
    };
    let started = thread::Builder::new().name("stdin".into()).spawn(read);
    started.map_err(|error| Failure::system("starting a thread failed", &error))?;
    Ok(received)
}

fn read_all(batches: &SyncSender<Result<Vec<Line>, Failure>>) -> Result<(), Failure> {
    let mut input = BufReader::with_capacity(READ_BYTES, io::stdin());
    let (mut batch, mut bytes, mut number) = (Vec::new(), 0, 0);
    loop {
        let is_full = batch.len() >= BATCH || bytes >= BATCH_BYTES;
        if is_full || (!batch.is_empty() && !input.buffer().contains(&b'\n')) {
            bytes = 0;
            if batches.send(Ok(mem::take(&mut batch))).is_err() {
                return Ok(());
            }
        }
        let Some(line) = next_line(&mut input, number + 1)? else { return Ok(()) };
        number += 1;
        if !line.is_empty() {
            bytes += line.len();
            batch.push((number, line));
        }
    }
}

/// The next line without its end. Never more of it is read than a payload may have.
fn next_line(input: &mut impl BufRead, number: u64) -> Result<Option<Vec<u8>>, Failure> {
    let mut line = Vec::new();
    let read = input.take(MAX_PAYLOAD as u64 + 2).read_until(b'\n', &mut line);
    if read.map_err(|error| Failure::system("reading stdin failed", &error))? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") {
        line.pop();
    }
    if line.len() > MAX_PAYLOAD {
        return Err(wrong(number, &format!("it is longer than {MAX_PAYLOAD} bytes")));
    }
    Ok(Some(line))
}

fn wrong(number: u64, what: &str) -> Failure {
    let hint = "the lines before it were sent; correct it, or use --auto if lines are not ids";
    Failure::usage(format!("line {number}: {what}"), hint)
}

fn task(order: &EnqueueOrder, line: &[u8], number: u64) -> Result<Task, Failure> {
    let task = match order.auto {
        true => Task::auto(),
        false => Task::new(std::str::from_utf8(line).map_err(|_| wrong(number, "it is not UTF-8"))?),
    };
    let task = with_options(order, task).payload(line);
    task.check().map_err(|error| wrong(number, error.message()))?;
    Ok(task)
}

/// Sends tasks, and counts what became of them.
struct Sender {
    queue: Queue,
    tally: Tally,
}

impl Sender {
    /// A task for each of these lines, up to the first that can be none.
    fn send(&mut self, order: &EnqueueOrder, lines: Vec<Line>, report: &Report) -> Result<(), Failure> {
        let (mut numbers, mut tasks, mut bad) = (Vec::new(), Vec::new(), Ok(()));
        for (number, line) in lines {
            match task(order, &line, number) {
                Ok(task) => {
                    numbers.push(number);
                    tasks.push(task);
                }
                Err(failure) => {
                    bad = Err(failure);
                    break;
                }
            }
        }
        let results = self.queue.enqueue_many(tasks)?;
        results.iter().for_each(|result| self.tally.count(result));
        report.count(format!("{} sent: {}", self.tally.total(), self.tally.in_words()));
        let errors =
            numbers.into_iter().zip(results).filter_map(|(number, result)| Some((number, result.err()?)));
        let Some((number, error)) =
            errors.into_iter().find(|(_, error)| error.kind() != ErrorKind::QueueFull)
        else {
            return bad;
        };
        let mut failure = Failure::from(error);
        failure.what = format!("line {number} and what follows: {}", failure.what);
        Err(failure)
    }
}
