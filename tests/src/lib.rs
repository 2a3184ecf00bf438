//! Shared parts of the tests: a real Redis server, waiting with deadlines, names that never meet.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this crate is only tests")]

use std::sync::atomic::{AtomicU64, Ordering};

pub mod actor;
pub mod cluster;
pub mod faces;
pub mod host;
pub mod probe;
pub mod proxy;
pub mod quorum;
pub mod redis_server;
pub mod resource;
pub mod sentinel;
pub mod stores;
pub mod timed;
pub mod verbs;
pub mod wait;

pub use redis_server::{RedisServer, shared};

/// A name that no other test uses, in this process or another.
pub fn unique(topic: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{topic}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The Rust of the project's README and of the guides: see `build.rs`.
#[cfg(doctest)]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/guides.md"))]
pub struct Guides;
