//! The native half of the Node package: it converts arguments and results, and lets the core do the rest.
//!
//! Private: programs use the TypeScript facade over it, which has the documentation.

#![cfg_attr(test, allow(dead_code, reason = "the macros of napi register nothing in a test build"))]

mod bridge;
mod cached;
mod claim;
mod client;
mod convert;
mod error;
mod flow;
mod host_loop;
mod lease;
mod limiter;
mod limits;
mod lock;
mod queue;
mod runtime;
mod schedule;
mod task;
mod worker;

use napi_derive::napi;

/// Half of all memory is given by one thread and taken by another, which is where it shines.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use crate::bridge::Bridge;

/// The version of the native half, to be compared with that of the facade.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// For the test that a panic becomes a rejected promise.
#[napi]
#[allow(clippy::panic, reason = "it is there to panic")]
pub fn panic_on_purpose(bridge: Bridge, call: u32) -> napi::Result<()> {
    bridge.start::<()>(call, async { panic!("on purpose") })
}
