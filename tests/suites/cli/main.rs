//! The command line, as real processes. Most of it runs on the SQLite store, in a directory of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod doctor;
mod enqueue;
mod errors;
mod events;
mod flows;
mod harness;
mod limit;
mod locks;
mod loss;
mod metrics;
mod queue_notes;
mod queues;
mod run;
mod run_kinds;
mod running;
mod schedules;
mod signals;
mod space;
mod usage;
mod web;
mod work;
mod work_ends;
