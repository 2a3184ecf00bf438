//! `stanchion enqueue --lines`: a task for every line of stdin.

use std::io::{self, BufRead};
use std::time::Instant;

use stanchion::blocking::Queue;
use stanchion::{ErrorKind, Task};

use crate::arguments::{EnqueueOrder, Globals};
use crate::enqueue::{Tally, with_options};
use crate::failure::Failure;
use crate::output::print;
use crate::report::Report;
use crate::store;

/// Tasks that are sent together.
const BATCH: usize = 1_000;
/// Bytes that are collected before they are sent.
const BATCH_BYTES: usize = 4 << 20;

/// Puts a task in for every line, and prints how many ended how: also if it ends with an error.
pub fn enqueue(order: &EnqueueOrder, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let client = store::open(globals, report)?;
    let began = Instant::now();
    let mut sender =
        Sender { queue: client.queue(&order.queue), batch: Vec::new(), bytes: 0, tally: Tally::default() };
    let result = send_all(order, &mut sender, report);
    let tally = sender.tally;
    report.end_count();
    let took = began.elapsed().as_secs_f64();
    report.note(&format!("{} tasks sent in {took:.1} s", tally.total()));
    let text = if globals.json { tally.as_json().to_string() } else { tally.in_words() };
    print(format!("{text}\n").as_bytes())?;
    result.and_then(|()| tally.check())
}

fn send_all(order: &EnqueueOrder, sender: &mut Sender, report: &Report) -> Result<(), Failure> {
    let mut input = io::stdin().lock();
    let (mut line, mut number) = (Vec::new(), 0u64);
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::system("reading stdin failed", &error))? == 0 {
            return sender.send(report);
        }
        number += 1;
        if line.ends_with(b"\n") {
            line.pop();
        }
        if !line.is_empty() {
            sender.add(number, line.len(), task(order, &line, number)?, report)?;
        }
    }
}

fn task(order: &EnqueueOrder, line: &[u8], number: u64) -> Result<Task, Failure> {
    let wrong = |what: &str| {
        let kept = "nothing of its batch was sent; correct it, or use --auto if lines are not ids";
        Failure::usage(format!("line {number}: {what}"), kept)
    };
    let task = match order.auto {
        true => Task::auto(),
        false => Task::new(std::str::from_utf8(line).map_err(|_| wrong("it is not UTF-8"))?),
    };
    let task = with_options(order, task).payload(line);
    task.check().map_err(|error| wrong(error.message()))?;
    Ok(task)
}

/// Collects tasks and sends them.
struct Sender {
    queue: Queue,
    /// Each with the number of its line.
    batch: Vec<(u64, Task)>,
    bytes: usize,
    tally: Tally,
}

impl Sender {
    fn add(&mut self, number: u64, bytes: usize, task: Task, report: &Report) -> Result<(), Failure> {
        self.batch.push((number, task));
        self.bytes += bytes;
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES { self.send(report) } else { Ok(()) }
    }

    fn send(&mut self, report: &Report) -> Result<(), Failure> {
        let (numbers, tasks): (Vec<u64>, Vec<Task>) = self.batch.drain(..).unzip();
        self.bytes = 0;
        let results = self.queue.enqueue_many(tasks)?;
        results.iter().for_each(|result| self.tally.count(result));
        report.count(format!("{} sent: {}", self.tally.total(), self.tally.in_words()));
        let errors =
            numbers.into_iter().zip(results).filter_map(|(number, result)| Some((number, result.err()?)));
        let Some((number, error)) =
            errors.into_iter().find(|(_, error)| error.kind() != ErrorKind::QueueFull)
        else {
            return Ok(());
        };
        let mut failure = Failure::from(error);
        failure.what = format!("line {number} and what follows: {}", failure.what);
        Err(failure)
    }
}
