//! What happens: a run is cancelled, another one comes after it, and the first one writes last. Each step waits for what a
//! worker says, none for a time.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use stanchion::blocking::Client;
use stanchion::{Cancelled, Outcome as Enqueued, Task, TaskResult, URL_VARIABLE};

use super::prices::{Price, Prices};
use super::report::Log;
use super::worker::PATIENCE;
use crate::Outcome;

const TASK: &str = "price of the chair";
/// What the first run is to write, and what the second.
pub const MISTAKE: i64 = 10;
pub const RIGHT: i64 = 120;

/// Where everything is.
pub struct Place {
    pub url: String,
    pub queue: String,
    /// Of the prices.
    pub file: PathBuf,
}

/// What happened.
pub struct Story {
    pub cancelled: Cancelled,
    pub enqueued: Enqueued,
    /// The reason that the first run was told.
    pub told: String,
    pub first: Run,
    pub second: Run,
    /// What became of the task that was enqueued anew.
    pub result: TaskResult,
    pub price: Price,
}

/// What became of a run.
pub struct Run {
    pub fence: i64,
    /// How many rows its write has changed.
    pub rows: usize,
    /// What the queue said when it was done.
    pub ack: String,
}

/// The two workers: a language, and the words of a command.
pub fn run(
    place: &Place,
    prices: &Prices,
    late: &(String, Vec<String>),
    prompt: &(String, Vec<String>),
) -> Outcome<Story> {
    let queue = Client::open(&place.url)?.queue(&place.queue);
    let log = Log::new(&late.0, &prompt.0);
    queue.enqueue(Task::new(TASK).payload(MISTAKE.to_string()))?;
    let mut first = Worker::start(&late.1, place)?;
    let first_fence = first.hear("begin")?.parse()?;
    log.begins(1, first_fence);

    let cancelled = queue.cancel(TASK)?;
    log.cancelled(cancelled);
    let enqueued = queue.enqueue(Task::new(TASK).payload(RIGHT.to_string()))?;
    log.enqueued(enqueued.outcome);
    let second = Worker::start(&prompt.1, place)?;
    let told = first.hear("lost")?;
    log.told(&told);

    let second_fence = second.hear("begin")?.parse()?;
    log.begins(2, second_fence);
    let second = second.end(second_fence)?;
    log.wrote(2, RIGHT, &second);

    first.go_on()?;
    let first = first.end(first_fence)?;
    log.wrote(1, MISTAKE, &first);
    let result = queue.result(TASK, Some(enqueued.version), Duration::ZERO)?;
    Ok(Story { cancelled, enqueued: enqueued.outcome, told, first, second, result, price: prices.read()? })
}

/// A process that works. Killed when dropped.
struct Worker {
    process: Child,
    input: ChildStdin,
    heard: Receiver<String>,
}

impl Worker {
    fn start(words: &[String], place: &Place) -> Outcome<Self> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(&place.queue).arg(&place.file);
        // In the environment, not in the arguments: those are for everybody to see.
        command.env(URL_VARIABLE, &place.url).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let input = process.stdin.take().ok_or("no pipe")?;
        let output = process.stdout.take().ok_or("no pipe")?;
        let (say, heard) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody listens any more only if the demo was given up.
                let _ = say.send(line);
            }
        });
        Ok(Self { process, input, heard })
    }

    /// The rest of its next line, which begins with this word.
    fn hear(&self, word: &str) -> Outcome<String> {
        let line = self.heard.recv_timeout(PATIENCE).map_err(|_| format!("a worker did not say {word:?}"))?;
        match line.split_once(' ') {
            Some((first, rest)) if first == word => Ok(rest.into()),
            _ => Err(format!("a worker said {line:?} instead of {word:?}").into()),
        }
    }

    fn go_on(&mut self) -> Outcome<()> {
        Ok(self.input.write_all(b"go on\n")?)
    }

    fn end(self, fence: i64) -> Outcome<Run> {
        Ok(Run { fence, rows: self.hear("wrote")?.parse()?, ack: self.hear("ack")? })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
