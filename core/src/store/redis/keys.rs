//! The keys of a lock, of a limiter, and of a queue. All of one are in one cluster slot.

use std::borrow::Cow;
use std::fmt::Write;

use crate::base::name::{LimiterName, LockKind, LockName, QueueName};
use crate::base::token::Token;
use crate::protocol::{CallId, ClientId, LimitKind};

/// A key of a lock. An exclusive lock has its own key and sidecars; the other kinds have no key of their own, since no
/// program but this library's clients can share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKey {
    /// STRING: the holder's token. Of an exclusive lock its own key.
    Lock,
    /// Of kinds with permits, in the place of the lock. ZSET: token -> end of its lease.
    Holders,
    /// Of kinds with permits, HASH: token -> weight, fence, since, owner.
    Records,
    /// HASH: fence, born, broken, owner, since...
    Meta,
    /// ZSET: waiting tokens in order of arrival.
    Line,
    /// HASH: token -> last poll, offered, owner, client, seq; of kinds with permits the weight comes before the owner.
    Waiters,
    /// STRING: exists while a token counts as ended. There is one of each token.
    Ended,
    /// HASH: a cached value, until when it is fresh, and how long it took to compute.
    Value,
}

impl LockKey {
    /// What the scripts call it, and what servers do after the word of the kind.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Lock => ("LOCK", ""),
            Self::Holders => ("HOLDERS", ""),
            Self::Records => ("RECORDS", "records"),
            Self::Meta => ("META", "meta"),
            Self::Line => ("LINE", "line"),
            Self::Waiters => ("WAITERS", "waiters"),
            Self::Ended => ("ENDED", "ended"),
            Self::Value => ("VALUE", "value"),
        }
    }

    /// What the scripts call it.
    pub(crate) const fn name(self) -> &'static str {
        self.names().0
    }

    /// The key of this lock; of [`LockKey::Ended`] that of the token.
    pub(crate) fn of<'a>(self, lock: &'a LockName, token: Option<&Token>) -> Cow<'a, str> {
        let (kind, word) = (holders_word(lock.kind()), self.names().1);
        let kind_and_word = match kind {
            None if word.is_empty() => return Cow::Borrowed(lock.key()),
            None => [word, "", ""],
            Some(kind) if word.is_empty() => [kind, "", ""],
            Some(kind) => [kind, "-", word],
        };
        let suffix = match token {
            Some(token) if self == Self::Ended => [":", token.as_str()],
            _ => ["", ""],
        };
        Cow::Owned(joined(&kind_and_word, lock.key(), &suffix))
    }
}

/// What the key of the holders of a kind is called; `None` if it is the lock's own key.
pub(crate) const fn holders_word(kind: LockKind) -> Option<&'static str> {
    match kind {
        LockKind::Exclusive => None,
        LockKind::ReadWrite => Some("rw"),
        LockKind::Semaphore => Some("semaphore"),
        LockKind::Cached => Some("cached"),
    }
}

/// Prefix and name of the lock whose holders have this key.
pub(crate) fn lock_of_holders(kind: LockKind, key: &str) -> Option<&str> {
    match holders_word(kind) {
        None => Some(key),
        Some(word) => subject(word, key),
    }
}

/// What a sidecar of this kind belongs to.
fn subject<'a>(word: &str, key: &'a str) -> Option<&'a str> {
    let rest = key.strip_prefix("stanchion:")?;
    match rest.strip_prefix("tag-") {
        Some(tagged) => tagged.strip_prefix(word)?.strip_prefix(':'),
        None => rest.strip_prefix(word)?.strip_prefix(":{")?.strip_suffix('}'),
    }
}

/// The keys that a script is given, in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys {
    /// Of one lock. A call that has no use for the key of an ended token leaves it out, and what comes after it.
    OneLock(&'static [LockKey]),
    /// Of several locks, one after the other. The script goes through them by `i`.
    ManyLocks(&'static [LockKey]),
    /// That of a limiter, and that of an ended token: who does not wait leaves it out.
    Limiter,
    /// All of a queue but that of a call.
    WholeQueue,
    /// All of a queue. One without a call leaves its key out.
    QueueCall,
    /// All of a queue but that of a call, and those of its schedules.
    QueueSchedules,
    /// All of a queue but that of a call, and those of its results. One without a result leaves those out.
    QueueResults,
    /// All of a queue, and those of its results. One without a result leaves those out.
    QueueCallResults,
    /// All of a queue but that of a call, and these of its flows.
    QueueFlows(&'static [FlowKey]),
    /// All of a queue but that of a call, and those of its results and its flows.
    QueueContents,
}

/// A key of a queue's flows, which only their verbs name. check_flows.lua says what is in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKey {
    /// HASH: what is known of each.
    Flows,
    /// HASH: their nodes.
    FlowNodes,
    /// ZSET: since when they live, or when they ended.
    FlowTimes,
}

impl FlowKey {
    pub(crate) const ALL: &'static [Self] = &[Self::Flows, Self::FlowNodes, Self::FlowTimes];

    /// What the scripts call it, and what servers do.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Flows => ("FLOWS", "flows"),
            Self::FlowNodes => ("FLOW_NODES", "flow-nodes"),
            Self::FlowTimes => ("FLOW_TIMES", "flow-times"),
        }
    }
}

impl Keys {
    /// Their names in the script's text, each with what stands for it in `KEYS[...]`.
    pub(crate) fn indexes(self) -> Vec<(String, String)> {
        let numbered = |names: &[&str]| {
            names.iter().zip(1..).map(|(name, place)| ((*name).to_owned(), place.to_string())).collect()
        };
        let of_queue = |more: &[(&'static str, &str)]| {
            numbered(&[&QUEUE_KEYS[..], more].concat().iter().map(|key| key.0).collect::<Vec<_>>())
        };
        let names = |keys: &[FlowKey]| keys.iter().map(|key| key.names()).collect::<Vec<_>>();
        match self {
            Self::OneLock(keys) => numbered(&keys.iter().map(|key| key.name()).collect::<Vec<_>>()),
            Self::ManyLocks(keys) => {
                keys.iter().enumerate().map(|(at, key)| of_each(*key, at, keys.len())).collect()
            }
            Self::Limiter => numbered(&["LIMITER", "ENDED"]),
            Self::WholeQueue => of_queue(&[]),
            Self::QueueCall => of_queue(&[CALL]),
            Self::QueueSchedules => of_queue(&SCHEDULE_KEYS),
            Self::QueueResults => of_queue(&RESULT_KEYS),
            Self::QueueCallResults => of_queue(&[&[CALL][..], &RESULT_KEYS].concat()),
            Self::QueueFlows(keys) => of_queue(&names(keys)),
            Self::QueueContents => of_queue(&[&RESULT_KEYS[..], &names(FlowKey::ALL)].concat()),
        }
    }
}

/// That of each of several locks, which have so many keys each.
fn of_each(key: LockKey, at: usize, count: usize) -> (String, String) {
    let index = match count - 1 - at {
        0 => format!("{count} * i"),
        before => format!("{count} * i - {before}"),
    };
    (format!("{}[i]", key.name()), index)
}

/// A key without a hash tag becomes one; a key with one keeps it, under a word of its own, so that
/// `a` and `{a}` have different sidecars.
fn sidecar(word: &str, key: &str) -> String {
    joined(&[word], key, &[])
}

fn joined(word: &[&str], key: &str, suffix: &[&str]) -> String {
    let mut text = String::new();
    join(&mut text, word, key, suffix);
    text
}

/// Made in every call, so by hand: `format!` takes ten times as long and grows its text in steps.
fn join(text: &mut String, word: &[&str], key: &str, suffix: &[&str]) {
    let (before, after_word, after_key) =
        if key.contains('{') { ("stanchion:tag-", ":", "") } else { ("stanchion:", ":{", "}") };
    let parts = || {
        let middle = [after_word, key, after_key];
        [before].into_iter().chain(word.iter().copied()).chain(middle).chain(suffix.iter().copied())
    };
    text.reserve(parts().map(str::len).sum());
    parts().for_each(|part| text.push_str(part));
}

/// The keys of a queue, in the order in which scripts get them: what the scripts call each, and what servers do. The
/// intake is the queue's own key.
const QUEUE_KEYS: [(&str, &str); 17] = [
    ("INTAKE", ""),
    ("QUEUE", "queue"),
    ("STATE", "state"),
    ("BODY", "body"),
    ("SCHEDULED", "scheduled"),
    ("READY", "ready"),
    ("CLAIMED", "claimed"),
    ("DEAD", "dead"),
    ("GRAVE", "grave"),
    ("WINDOW", "window"),
    ("IDLE", "idle"),
    ("EXPIRED", "expired"),
    ("EVENTS", "events"),
    ("HELD", "held"),
    ("KEY_RECORDS", "keys"),
    ("KEY_WAITS", "key-waits"),
    ("KEY_LIMITS", "key-limits"),
];
/// That of a call.
const CALL: (&str, &str) = ("CALL", "call");
/// Those of a queue's schedules. ZSET: id -> due of its next slot. HASH: id -> packed schedule, the same with \1 before it
/// -> body, an owner with \2 before it -> generation and ids.
const SCHEDULE_KEYS: [(&str, &str); 2] = [("AGENDA", "agenda"), ("SCHEDULES", "schedules")];

/// Those of the results of its tasks: see results.lua.
const RESULT_KEYS: [(&str, &str); 2] = [("RESULT", "result"), ("RESULTS", "results")];

/// How many keys a queue has, without that of a call, and those of schedules and results.
pub(crate) const QUEUE_KEYS_COUNT: usize = QUEUE_KEYS.len();

/// Those keys, one after another: every call names them, so they are written into one text.
pub(crate) fn each_queue_key(queue: &QueueName, mut with: impl FnMut(&str)) {
    let mut text = String::new();
    for (_, word) in QUEUE_KEYS {
        text.clear();
        match word {
            "" => text.push_str(queue.key()),
            word => join(&mut text, &[word], queue.key(), &[]),
        }
        with(&text);
    }
}

/// The keys of a queue's schedules.
pub(crate) fn schedule_keys(queue: &QueueName) -> [String; 2] {
    SCHEDULE_KEYS.map(|(_, word)| sidecar(word, queue.key()))
}

/// The keys of the results of a queue's tasks.
pub(crate) fn result_keys(queue: &QueueName) -> [String; 2] {
    RESULT_KEYS.map(|(_, word)| sidecar(word, queue.key()))
}

/// Those keys of a queue's flows that its script is given.
pub(crate) fn flow_keys(queue: &QueueName, keys: Keys) -> Vec<String> {
    let keys = match keys {
        Keys::QueueFlows(keys) => keys,
        Keys::QueueContents => FlowKey::ALL,
        _ => &[],
    };
    keys.iter().map(|key| sidecar(key.names().1, queue.key())).collect()
}

/// STRING: the number and the reply of the last call in a client's slot.
pub(crate) fn call_key(queue: &QueueName, call: &CallId) -> String {
    let mut key = sidecar(CALL.1, queue.key());
    // Writing to a String cannot fail.
    let _ = write!(key, ":{:x}:{}", call.client.0, call.slot);
    key
}

/// The key of a limiter: a STRING, of a sliding window a ZSET. The scripts say what is in it.
pub(crate) fn limiter_key(limiter: &LimiterName, kind: LimitKind) -> String {
    sidecar(kind.name(), limiter.key())
}

/// Prefix and name of the limiter of a kind that has this key.
pub(crate) fn limiter_of_key(kind: LimitKind, key: &str) -> Option<&str> {
    subject(kind.name(), key)
}

/// STRING: exists while a token of a limiter counts as ended.
pub(crate) fn ended_take_key(limiter: &LimiterName, token: &Token) -> String {
    joined(&["ended"], limiter.key(), &[":", token.as_str()])
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

/// What the channels of all clients begin with.
pub(crate) const CHANNELS: &str = "stanchion:wake:";

/// The channel on which a client hears hints.
pub(crate) fn channel(client: ClientId) -> String {
    format!("{CHANNELS}{:x}", client.0)
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
        assert_eq!(LockKey::Meta.of(&plain, None), "stanchion:meta:{a}");
        assert_eq!(LockKey::Meta.of(&tagged, None), "stanchion:tag-meta:{a}");
    }

    #[test]
    fn holders_lead_back_to_their_lock() {
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        for kind in LockKind::ALL {
            for name in ["a", "mail:{7}"] {
                let lock = prefixes.name_of_kind(kind, name).unwrap();
                let key = |key: LockKey| key.of(&lock, None);
                assert_eq!(lock_of_holders(kind, &key(LockKey::Lock)), Some(lock.key()));
                assert_eq!(holders_word(kind).and(lock_of_holders(kind, &key(LockKey::Meta))), None);
            }
        }
    }

    #[test]
    fn a_queues_record_leads_back_to_it() {
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        for name in ["a", "mail:{7}"] {
            let queue = prefixes.queue_name(name).unwrap();
            let mut keys = Vec::new();
            each_queue_key(&queue, |key| keys.push(key.to_owned()));
            let record = &keys[1];
            assert_eq!(queue_of_record(record), Some(queue.key()));
        }
        assert_eq!(queue_of_record("stanchion:state:{Queue:a}"), None);
    }

    #[test]
    fn limiters_of_a_name_are_in_its_slot_and_have_a_key_of_each_kind() {
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        let keys = |name: &str| {
            let name = prefixes.limiter_name(name).unwrap();
            LimitKind::ALL.map(|kind| limiter_key(&name, kind))
        };
        let plain =
            ["gcra", "fixed-window", "sliding-window"].map(|word| format!("stanchion:{word}:{{Lock:a}}"));
        assert_eq!(keys("a"), plain);
        assert_eq!(keys("a{7}")[0], "stanchion:tag-gcra:Lock:a{7}");
        for name in ["a", "a{7}"] {
            for (kind, key) in LimitKind::ALL.into_iter().zip(keys(name)) {
                assert_eq!(limiter_of_key(kind, &key), Some(&*format!("Lock:{name}")));
            }
        }
        assert_eq!(limiter_of_key(LimitKind::Gcra, "stanchion:meta:{Lock:a}"), None);
    }

    #[test]
    fn a_tagged_name_keeps_its_slot() {
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        let name = prefixes.lock_name("order:{7}:x").unwrap();
        assert_eq!(LockKey::Line.of(&name, None), "stanchion:tag-line:Lock:order:{7}:x");
        let ended = LockKey::Ended.of(&name, Some(&Token::from_bits(1)));
        assert!(ended.starts_with("stanchion:tag-ended:Lock:order:{7}:x:"));
    }
}
