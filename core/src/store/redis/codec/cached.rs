//! The verbs of cached values: requests to arguments, and what only they answer.

use redis::{Cmd, Value};

use super::millis;
use crate::protocol::{Acquire, StoreValue};
use crate::store::redis::keys::LockKeys;

pub(super) fn encode_acquire(command: &mut Cmd, keys: &LockKeys<'_>, acquire: &Acquire) {
    push_keys(command, keys, &keys.ended(&acquire.token));
    command.arg(acquire.token.as_str()).arg(millis(acquire.ttl)).arg(acquire.min_fence).arg(&*acquire.owner);
    let waiter = acquire.waiter.map(|waiter| format!("{:x} {}", waiter.client.0, waiter.seq));
    command.arg(format!("{:.3}", acquire.early)).arg(waiter.unwrap_or_default());
}

pub(super) fn encode_store_value(command: &mut Cmd, keys: &LockKeys<'_>, store: &StoreValue) {
    push_keys(command, keys, &keys.ended(&store.token));
    command.arg(store.token.as_str()).arg(store.fence).arg(&*store.value);
    command.arg(millis(store.ttl)).arg(millis(store.stale)).arg(millis(store.took));
    command.arg(u8::from(store.acquire_resent));
}

pub(super) fn encode_invalidate(command: &mut Cmd, keys: &LockKeys<'_>) {
    command.arg(5).arg(&*keys.lock).arg(&keys.meta).arg(&keys.line).arg(&keys.waiters).arg(keys.value());
}

fn push_keys(command: &mut Cmd, keys: &LockKeys<'_>, ended: &str) {
    command.arg(6).arg(&*keys.lock).arg(&keys.meta).arg(&keys.line).arg(&keys.waiters);
    command.arg(ended).arg(keys.value());
}

/// The value in the answer to an acquire.
pub(super) fn value(items: &[Value]) -> Option<Vec<u8>> {
    match items.get(1)? {
        Value::BulkString(bytes) => Some(bytes.clone()),
        _ => None,
    }
}
