//! The keys of rows.

use std::borrow::Cow;

use crate::base::name::{LockKind, LockName};

/// The key under which a lock's row is kept. No exclusive lock's key begins so.
pub(super) fn row_key(name: &LockName) -> Cow<'_, str> {
    match name.kind() {
        LockKind::Exclusive => Cow::Borrowed(name.key()),
        kind => Cow::Owned(format!("stanchion:{}:{}", kind.name(), name.key())),
    }
}

/// Prefix and name of the lock of this kind whose row has this key.
pub(super) fn key_of_row(kind: LockKind, key: &str) -> Option<&str> {
    match kind {
        LockKind::Exclusive => Some(key),
        kind => key.strip_prefix("stanchion:")?.strip_prefix(kind.name())?.strip_prefix(':'),
    }
}
