//! The command line, as real processes. Most of it runs on the SQLite store, in a directory of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/enqueue.rs"]
mod enqueue;
#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/harness.rs"]
mod harness;
#[path = "cli/locks.rs"]
mod locks;
#[path = "cli/loss.rs"]
mod loss;
#[path = "cli/metrics.rs"]
mod metrics;
#[path = "cli/queue_notes.rs"]
mod queue_notes;
#[path = "cli/queues.rs"]
mod queues;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/run_kinds.rs"]
mod run_kinds;
#[path = "cli/signals.rs"]
mod signals;
#[path = "cli/space.rs"]
mod space;
#[path = "cli/usage.rs"]
mod usage;
#[path = "cli/work.rs"]
mod work;
#[path = "cli/work_ends.rs"]
mod work_ends;
