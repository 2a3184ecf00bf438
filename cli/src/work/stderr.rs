//! What a command writes to its stderr: passed on line by line, the last line kept.

use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::report::Report;
use crate::text::plain;

/// A longer line is passed on in parts.
const LONGEST: u64 = 8 << 10;
/// How long to wait for the last line, if something that the command has started keeps its stderr open.
const PATIENCE: Duration = Duration::from_millis(100);

/// The stderr of one command.
pub struct Stderr {
    last: Arc<Mutex<String>>,
    /// Disconnected when the stream has ended.
    ended: Receiver<()>,
}

impl Stderr {
    /// Gives the command a stderr, and reads it on a thread of its own: it may outlive the command.
    pub fn of(command: &mut Command, report: &Report) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        command.stderr(writer);
        let (sender, ended) = channel::<()>();
        let last = Arc::default();
        let (kept, report) = (Arc::clone(&last), report.clone());
        let forward = move || {
            pass_on(reader, &report, &kept);
            drop(sender);
        };
        thread::Builder::new().name("stderr".into()).spawn(forward)?;
        Ok(Self { last, ended })
    }

    /// The last line that was not blank; empty if there was none.
    pub fn last_line(self) -> String {
        let _ = self.ended.recv_timeout(PATIENCE);
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn pass_on(reader: PipeReader, report: &Report, last: &Mutex<String>) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.by_ref().take(LONGEST).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        report.pass_on(&line);
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = plain(text.trim());
        }
        line.clear();
    }
}
