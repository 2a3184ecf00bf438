//! The keys of a lock, and of a queue. All of one are in one cluster slot.

use std::borrow::Cow;
use std::fmt::Write;

use crate::base::name::{LockKind, LockName, QueueName};
use crate::base::token::Token;
use crate::protocol::{CallId, ClientId};

/// The keys of a lock of any kind. Those of an exclusive one are its own key and its sidecars; the other kinds have
/// no key of their own, since no program but this library's clients can share them.
#[derive(Debug)]
pub(crate) struct LockKeys<'a> {
    /// STRING: the holder's token. Of kinds with permits a ZSET: token -> end of its lease.
    pub(crate) lock: Cow<'a, str>,
    /// Of kinds with permits, HASH: token -> weight, fence, since, owner.
    pub(crate) records: String,
    /// HASH: fence, born, broken, owner, since...
    pub(crate) meta: String,
    /// ZSET: waiting tokens in order of arrival.
    pub(crate) line: String,
    /// HASH: token -> last poll, offered, owner, client, seq; of other kinds the weight comes before the owner.
    pub(crate) waiters: String,
    name: &'a str,
    words: &'static Words,
}

/// What the keys of a kind of lock are called.
#[derive(Debug)]
struct Words {
    holders: &'static str,
    records: &'static str,
    meta: &'static str,
    line: &'static str,
    waiters: &'static str,
    ended: &'static str,
}

const EXCLUSIVE: Words =
    Words { holders: "", records: "", meta: "meta", line: "line", waiters: "waiters", ended: "ended" };
const READ_WRITE: Words = Words {
    holders: "rw",
    records: "rw-records",
    meta: "rw-meta",
    line: "rw-line",
    waiters: "rw-waiters",
    ended: "rw-ended",
};
const SEMAPHORE: Words = Words {
    holders: "semaphore",
    records: "semaphore-records",
    meta: "semaphore-meta",
    line: "semaphore-line",
    waiters: "semaphore-waiters",
    ended: "semaphore-ended",
};

const CACHED: Words = Words {
    holders: "cached",
    records: "",
    meta: "cached-meta",
    line: "cached-line",
    waiters: "cached-waiters",
    ended: "cached-ended",
};
/// What the key of a cached value is called.
const CACHED_VALUE: &str = "cached-value";

fn words(kind: LockKind) -> &'static Words {
    match kind {
        LockKind::Exclusive => &EXCLUSIVE,
        LockKind::ReadWrite => &READ_WRITE,
        LockKind::Semaphore => &SEMAPHORE,
        LockKind::Cached => &CACHED,
    }
}

/// What the key of the holders of a kind is called; `None` if it is the lock's own key.
pub(crate) fn holders_word(kind: LockKind) -> Option<&'static str> {
    Some(words(kind).holders).filter(|word| !word.is_empty())
}

/// Prefix and name of the lock whose holders have this key.
pub(crate) fn lock_of_holders(kind: LockKind, key: &str) -> Option<&str> {
    let Some(word) = holders_word(kind) else { return Some(key) };
    let rest = key.strip_prefix("stanchion:")?;
    match rest.strip_prefix("tag-") {
        Some(tagged) => tagged.strip_prefix(word)?.strip_prefix(':'),
        None => rest.strip_prefix(word)?.strip_prefix(":{")?.strip_suffix('}'),
    }
}

impl<'a> LockKeys<'a> {
    pub(crate) fn new(name: &'a LockName) -> Self {
        let key = name.key();
        let words = words(name.kind());
        let exclusive = name.kind() == LockKind::Exclusive;
        Self {
            lock: if exclusive { Cow::Borrowed(key) } else { Cow::Owned(sidecar(words.holders, key)) },
            records: if words.records.is_empty() { String::new() } else { sidecar(words.records, key) },
            meta: sidecar(words.meta, key),
            line: sidecar(words.line, key),
            waiters: sidecar(words.waiters, key),
            name: key,
            words,
        }
    }

    /// HASH: a cached value, until when it is fresh, and how long it took to compute.
    pub(crate) fn value(&self) -> String {
        sidecar(CACHED_VALUE, self.name)
    }

    /// STRING: exists while this token counts as ended.
    pub(crate) fn ended(&self, token: &Token) -> String {
        with_suffix(self.words.ended, self.name, &[":", token.as_str()])
    }
}

/// A key without a hash tag becomes one; a key with one keeps it, under a word of its own, so that
/// `a` and `{a}` have different sidecars.
fn sidecar(kind: &str, key: &str) -> String {
    with_suffix(kind, key, &[])
}

/// Made in every call, so by hand: `format!` takes ten times as long and grows its text in steps.
fn with_suffix(kind: &str, key: &str, suffix: &[&str]) -> String {
    let (before, after_kind, after_key) =
        if key.contains('{') { ("stanchion:tag-", ":", "") } else { ("stanchion:", ":{", "}") };
    let length = before.len() + kind.len() + after_kind.len() + key.len() + after_key.len();
    let mut text = String::with_capacity(length + suffix.iter().map(|part| part.len()).sum::<usize>());
    for part in [before, kind, after_kind, key, after_key].iter().chain(suffix) {
        text.push_str(part);
    }
    text
}

/// The sidecars of a queue, in the order in which scripts get them.
const QUEUE_KINDS: [&str; 11] =
    ["queue", "state", "body", "scheduled", "ready", "claimed", "dead", "grave", "window", "idle", "expired"];

/// All keys of a queue but that of a call: the intake first.
pub(crate) fn queue_keys(queue: &QueueName) -> impl Iterator<Item = String> {
    let sidecars = QUEUE_KINDS.iter().map(|kind| sidecar(kind, queue.key()));
    std::iter::once(queue.key().to_owned()).chain(sidecars)
}

/// STRING: the number and the reply of the last call in a client's slot.
pub(crate) fn call_key(queue: &QueueName, call: &CallId) -> String {
    let mut key = sidecar("call", queue.key());
    // Writing to a String cannot fail.
    let _ = write!(key, ":{:x}:{}", call.client.0, call.slot);
    key
}

/// The intake's key of the queue whose record has this key.
pub(crate) fn queue_of_record(key: &str) -> Option<&str> {
    let plain = key.strip_prefix("stanchion:queue:{").and_then(|rest| rest.strip_suffix('}'));
    plain.or_else(|| key.strip_prefix("stanchion:tag-queue:"))
}

/// A key in the slot of this one that never exists.
pub(crate) fn missing(key: &str) -> String {
    sidecar("none", key)
}

/// The channel on which a client hears hints.
pub(crate) fn channel(client: ClientId) -> String {
    format!("stanchion:wake:{:x}", client.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Prefixes;

    #[test]
    fn sidecars_never_meet() {
        let prefixes = Prefixes::parse("", "Queue:").unwrap();
        let plain = prefixes.lock_name("a").unwrap();
        let tagged = prefixes.lock_name("{a}").unwrap();
        assert_eq!(LockKeys::new(&plain).meta, "stanchion:meta:{a}");
        assert_eq!(LockKeys::new(&tagged).meta, "stanchion:tag-meta:{a}");
    }

    #[test]
    fn holders_lead_back_to_their_lock() {
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        for kind in LockKind::ALL {
            for name in ["a", "mail:{7}"] {
                let lock = prefixes.name_of_kind(kind, name).unwrap();
                let keys = LockKeys::new(&lock);
                assert_eq!(lock_of_holders(kind, &keys.lock), Some(lock.key()));
                assert_eq!(holders_word(kind).and(lock_of_holders(kind, &keys.meta)), None);
            }
        }
    }

    #[test]
    fn a_queues_record_leads_back_to_it() {
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        for name in ["a", "mail:{7}"] {
            let queue = prefixes.queue_name(name).unwrap();
            let record = queue_keys(&queue).nth(1).unwrap();
            assert_eq!(queue_of_record(&record), Some(queue.key()));
        }
        assert_eq!(queue_of_record("stanchion:state:{Queue:a}"), None);
    }

    #[test]
    fn a_tagged_name_keeps_its_slot() {
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        let name = prefixes.lock_name("order:{7}:x").unwrap();
        assert_eq!(LockKeys::new(&name).line, "stanchion:tag-line:Lock:order:{7}:x");
        let token = Token::from_bits(1);
        assert!(LockKeys::new(&name).ended(&token).starts_with("stanchion:tag-ended:Lock:order:{7}:x:"));
    }
}
