//! The verbs of cached values: requests to arguments, and what only they answer.

use redis::{Cmd, Value};

use super::millis;
use crate::protocol::{Acquire, StoreValue};

pub(super) fn encode_acquire(command: &mut Cmd, acquire: &Acquire) {
    command
        .arg(acquire.token.as_str())
        .arg(millis(acquire.ttl))
        .arg(acquire.min_fence.get())
        .arg(&*acquire.owner);
    let waiter = acquire.waiter.map(|waiter| format!("{:x} {}", waiter.client.0, waiter.seq));
    command.arg(format!("{:.3}", acquire.early)).arg(waiter.unwrap_or_default());
}

pub(super) fn encode_store_value(command: &mut Cmd, store: &StoreValue) {
    command.arg(store.token.as_str()).arg(store.fence.get()).arg(&*store.value);
    command.arg(millis(store.ttl)).arg(millis(store.stale)).arg(millis(store.took));
    command.arg(u8::from(store.acquire_resent));
}

/// The value in the answer to an acquire.
pub(super) fn value(items: &[Value]) -> Option<Vec<u8>> {
    match items.get(1)? {
        Value::BulkString(bytes) => Some(bytes.clone()),
        _ => None,
    }
}
