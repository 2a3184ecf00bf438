//! The log of what was done: written by a thread of its own, so that nobody waits for whoever reads it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::report::Report;

/// Lines that wait, at most.
const WAITING: usize = 10_000;

/// For how long the end of the program waits for them.
const PATIENCE: Duration = Duration::from_secs(1);

enum Line {
    Did(Value),
    /// All before it are written.
    End(SyncSender<()>),
}

/// See the module.
pub struct Journal {
    lines: SyncSender<Line>,
    lost: AtomicU64,
}

impl Journal {
    /// Begins to write.
    pub fn start(report: Report) -> Self {
        let (lines, heard) = sync_channel(WAITING);
        thread::spawn(move || {
            for line in heard {
                match line {
                    Line::Did(line) => report.act(&line),
                    // Who asked may have gone.
                    Line::End(written) => {
                        let _ = written.send(());
                    }
                }
            }
        });
        Self { lines, lost: AtomicU64::new(0) }
    }

    /// Notes something; if nobody has read for long, that there was something to note.
    pub fn note(&self, line: Value) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let told = lost == 0 || self.lines.try_send(Line::Did(json!({ "lost_lines": lost }))).is_ok();
        if !told || self.lines.try_send(Line::Did(line)).is_err() {
            let again = if told { 1 } else { lost + 1 };
            self.lost.fetch_add(again, Ordering::Relaxed);
        }
    }

    /// Waits until what was noted is written, but not for a reader who has stopped.
    pub fn end(&self) {
        let (written, heard) = sync_channel(1);
        if self.lines.try_send(Line::End(written)).is_ok() {
            let _ = heard.recv_timeout(PATIENCE);
        }
    }
}
