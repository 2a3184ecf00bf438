//! The log of what was done: written by a thread of its own, so that nobody waits for whoever reads it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use serde_json::{Value, json};

use crate::report::Report;

/// Lines that wait, at most.
const WAITING: usize = 10_000;

/// See the module.
pub struct Journal {
    lines: SyncSender<Value>,
    lost: AtomicU64,
}

impl Journal {
    /// Begins to write.
    pub fn start(report: Report) -> Self {
        let (lines, heard) = sync_channel::<Value>(WAITING);
        thread::spawn(move || heard.iter().for_each(|line| report.act(&line)));
        Self { lines, lost: AtomicU64::new(0) }
    }

    /// Notes something; if nobody has read for long, that there was something to note.
    pub fn note(&self, line: Value) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let told = lost == 0 || self.lines.try_send(json!({ "lost_lines": lost })).is_ok();
        if !told || self.lines.try_send(line).is_err() {
            let again = if told { 1 } else { lost + 1 };
            self.lost.fetch_add(again, Ordering::Relaxed);
        }
    }
}
