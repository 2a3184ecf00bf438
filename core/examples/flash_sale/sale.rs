//! One sale: starts the processes, tells them to begin together, and collects what they did.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::buyers::Buyers;
use super::ledger::{Ledger, Visit};
use super::process::{NO_LOCK, READY};
use super::report;
use super::store::DemoStore;
use crate::{BUYERS, Outcome, PROCESSES};

/// How often progress is printed.
const PROGRESS: Duration = Duration::from_millis(500);

/// What happened.
pub struct Sale {
    pub ledger: Ledger,
    /// Every buyer who was served, in the order of the ledger.
    pub visits: Vec<Visit>,
    /// How long each buyer waited, shortest first.
    pub waits: Vec<Duration>,
    /// From the start signal until the last buyer was served.
    pub took: Duration,
}

impl Sale {
    pub fn hold(store: &DemoStore, buyers: &Buyers, with_lock: bool) -> Outcome<Self> {
        let folder = store.folder().join(if with_lock { "locked" } else { "unlocked" });
        let ledger = Ledger::create(&folder)?;
        let lock = if with_lock { store.lock_name() } else { NO_LOCK };

        let (said, hear) = mpsc::channel();
        let mut children = Vec::new();
        for process in 1..=PROCESSES {
            let command = buyers.command(store, &folder.display().to_string(), lock, process);
            children.push(Serving::start(command, said.clone())?);
        }
        drop(said);

        let counted = count(&hear, &mut children);
        for child in children {
            child.end(counted.is_err())?;
        }
        let (mut waits, took) = counted?;
        waits.sort_unstable();
        Ok(Self { visits: ledger.journal()?, ledger, waits, took })
    }

    /// The visits that ended with an item.
    pub fn sales(&self) -> impl Iterator<Item = (&Visit, usize)> {
        self.visits.iter().filter_map(|visit| Some((visit, visit.item?)))
    }
}

/// Starts all processes at once when all are ready, then counts buyers until the last one is served.
fn count(hear: &Receiver<Said>, children: &mut [Serving]) -> Outcome<(Vec<Duration>, Duration)> {
    for _ in 0..PROCESSES {
        match hear.recv() {
            Ok(Some(line)) if line == READY => {}
            _ => return Err("a process could not start".into()),
        }
    }
    let begin = Instant::now();
    for child in children.iter_mut() {
        child.process.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(b"go\n"))?;
    }
    let mut waits = Vec::with_capacity(BUYERS);
    let mut next_print = PROGRESS;
    loop {
        match hear.recv_timeout(PROGRESS) {
            Ok(Some(line)) => waits.push(Duration::from_micros(line.parse()?)),
            Ok(None) => {}
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("not every buyer was served".into()),
        }
        let elapsed = begin.elapsed();
        if waits.len() == BUYERS {
            report::progress(elapsed, waits.len());
            return Ok((waits, elapsed));
        }
        if elapsed >= next_print {
            report::progress(elapsed, waits.len());
            next_print = elapsed + PROGRESS;
        }
    }
}

/// A line that a process printed; `None` when it has ended.
type Said = Option<String>;

/// A process that was started, and the thread that hears what it prints.
struct Serving {
    process: Child,
    listener: thread::JoinHandle<()>,
}

impl Serving {
    fn start(mut command: Command, said: Sender<Said>) -> Outcome<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or("no pipe")?;
        let listener = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody listens any more only if the sale was given up.
                let _ = said.send(Some(line));
            }
            let _ = said.send(None);
        });
        Ok(Self { process, listener })
    }

    fn end(mut self, give_up: bool) -> Outcome<()> {
        if give_up {
            let _ = self.process.kill();
        }
        let status = self.process.wait()?;
        let _ = self.listener.join();
        if status.success() || give_up { Ok(()) } else { Err(format!("a process failed: {status}").into()) }
    }
}
