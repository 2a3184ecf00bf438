//! The C library: it checks and converts what C programs pass, and lets the blocking face of the core do the rest.
//!
//! `include/stanchion.h` is made from this crate; its documentation is what stands here over each item.

#![allow(non_camel_case_types, reason = "the names are those of the C header")]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic"))]

mod answers;
mod arguments;
mod boundary;
mod cached;
mod cancellation;
mod claim;
mod client;
mod clock;
mod consumers;
mod dead;
mod error;
mod events;
mod flow;
mod flows;
mod fork;
mod handle;
mod holders;
mod inputs;
mod kinds;
mod lease;
mod limiter;
mod limits;
mod listing;
mod lock;
mod manage;
mod metrics;
mod nodes;
mod options;
mod queue;
mod records;
mod result;
mod schedule;
mod schedules;
mod scheduling;
mod settings;
mod shared;
mod task;
mod task_events;
mod tasks;
mod version;
mod waiters;
mod worker;
