//! Names of locks and queues with the keys they stand for, and ids of tasks.

use std::fmt;
use std::sync::Arc;

use crate::base::error::Error;
pub use crate::base::shown::MAX_NAME_BYTES;
use crate::base::shown::shown;

/// Longest prefix, in bytes.
const MAX_PREFIX_BYTES: usize = 128;
/// Keys that begin so are this library's own.
const RESERVED: &str = "stanchion:";

/// The two prefixes of a client: what is put before a lock's and a queue's name to make its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    lock: Arc<str>,
    queue: Arc<str>,
}

impl Prefixes {
    pub(crate) fn parse(lock: &str, queue: &str) -> Result<Self, Error> {
        for (option, prefix) in [("lock_prefix", lock), ("queue_prefix", queue)] {
            if prefix.len() > MAX_PREFIX_BYTES {
                return Err(Error::invalid(format!("{option} is over {MAX_PREFIX_BYTES} bytes long")));
            }
            if prefix.contains(['{', '}']) || prefix.contains(char::is_control) {
                return Err(Error::invalid(format!("{option} has a brace or a control character in it")));
            }
        }
        if lock == queue {
            return Err(Error::invalid("lock_prefix and queue_prefix are the same; they must differ"));
        }
        Ok(Self { lock: lock.into(), queue: queue.into() })
    }

    /// The exclusive lock called `name`. No two names of any kind share a key.
    pub(crate) fn lock_name(&self, name: &str) -> Result<LockName, Error> {
        self.name_of_kind(LockKind::Exclusive, name)
    }

    /// The lock of this kind called `name`. No two names of any kind share a key.
    pub(crate) fn name_of_kind(&self, kind: LockKind, name: &str) -> Result<LockName, Error> {
        check(name).map_err(|problem| Error::invalid(problem).during("lock", &shown(name)))?;
        let key: Arc<str> = format!("{}{name}", self.lock).into();
        if key.starts_with(RESERVED) {
            return Err(Error::invalid(format!("keys that begin with {RESERVED:?} are reserved"))
                .during("lock", name));
        }
        if self.queue.len() > self.lock.len() && key.starts_with(&*self.queue) {
            return Err(Error::invalid(format!("with this prefix the name would be a queue's ({key})"))
                .during("lock", name));
        }
        Ok(LockName { key, prefix: self.lock.len(), kind })
    }

    /// The lock of this kind with this key, if the key has our prefix.
    pub(crate) fn lock_of_key(&self, kind: LockKind, key: &str) -> Option<LockName> {
        self.name_of_kind(kind, key.strip_prefix(&*self.lock)?).ok()
    }

    pub(crate) fn lock_prefix(&self) -> &str {
        &self.lock
    }

    /// The limiter called `name`. Its keys are sidecars of the lock of that name, so that all of a name are in one slot.
    pub(crate) fn limiter_name(&self, name: &str) -> Result<LimiterName, Error> {
        self.lock_name(name).map(LimiterName).map_err(|error| error.rather_during("limiter", &shown(name)))
    }

    /// The limiter that a stored key belongs to, if it is one of ours.
    pub(crate) fn limiter_of_key(&self, key: &str) -> Option<LimiterName> {
        self.limiter_name(key.strip_prefix(&*self.lock)?).ok()
    }

    /// The queue called `name`. No two names of any kind share a key.
    pub(crate) fn queue_name(&self, name: &str) -> Result<QueueName, Error> {
        check(name).map_err(|problem| Error::invalid(problem).during("queue", &shown(name)))?;
        let key: Arc<str> = format!("{}{name}", self.queue).into();
        if key.starts_with(RESERVED) {
            return Err(Error::invalid(format!("keys that begin with {RESERVED:?} are reserved"))
                .during("queue", name));
        }
        if self.lock.len() > self.queue.len() && key.starts_with(&*self.lock) {
            return Err(Error::invalid(format!("with this prefix the name would be a lock's ({key})"))
                .during("queue", name));
        }
        Ok(QueueName { key, prefix: self.queue.len() })
    }

    /// The queue that a stored key belongs to, if it is one of ours.
    pub(crate) fn queue_of_key(&self, key: &str) -> Option<QueueName> {
        self.queue_name(key.strip_prefix(&*self.queue)?).ok()
    }

    pub(crate) fn queue_prefix(&self) -> &str {
        &self.queue
    }
}

/// The kind of a lock. Each kind has a namespace of its own: a semaphore and a lock of the same name do not exclude
/// each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockKind {
    /// One holder.
    Exclusive,
    /// Many readers, or one writer.
    ReadWrite,
    /// As many holders as it has permits.
    Semaphore,
    /// The caller that computes a cached value.
    Cached,
}

impl LockKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Exclusive, Self::ReadWrite, Self::Semaphore, Self::Cached];

    /// The stable name, the same in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "lock",
            Self::ReadWrite => "rw_lock",
            Self::Semaphore => "semaphore",
            Self::Cached => "cached",
        }
    }

    /// Whether several may hold parts of it.
    pub(crate) const fn has_permits(self) -> bool {
        matches!(self, Self::ReadWrite | Self::Semaphore)
    }
}

/// A checked lock name with its kind and its key. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LockName {
    key: Arc<str>,
    prefix: usize,
    kind: LockKind,
}

impl LockName {
    /// What it is the name of.
    pub fn kind(&self) -> LockKind {
        self.kind
    }

    /// The name as the user gave it.
    pub fn as_str(&self) -> &str {
        &self.key[self.prefix..]
    }

    /// Prefix and name: the key in the store of an exclusive lock, and what the keys of the other kinds are made
    /// from.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// A checked name of a limiter. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LimiterName(LockName);

impl LimiterName {
    /// The name as the user gave it.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Prefix and name: what its keys are made from.
    pub fn key(&self) -> &str {
        self.0.key()
    }
}

impl fmt::Debug for LimiterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// A checked queue name with its key. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct QueueName {
    key: Arc<str>,
    prefix: usize,
}

impl QueueName {
    /// The name as the user gave it.
    pub fn as_str(&self) -> &str {
        &self.key[self.prefix..]
    }

    /// Prefix and name: the key of the queue's intake.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The queue of this name that has the same prefix. The name has been checked before it was stored.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        Self { key: format!("{}{name}", &self.key[..self.prefix]).into(), prefix: self.prefix }
    }
}

impl fmt::Debug for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// A checked task id, unique among the live tasks of its queue. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// Checks an id: 1 to 512 bytes, no control characters.
    pub(crate) fn parse(id: &str) -> Result<Self, Error> {
        check_text("a task's id", id).map_err(Error::invalid)?;
        Ok(Self(id.into()))
    }

    /// Checks the id of a flow: as that of a task, but without a slash, which stands between it and a node's name in the node's
    /// id. Otherwise node `b/c` of flow `a` and node `c` of flow `a/b` were one task.
    pub(crate) fn of_flow(id: &str) -> Result<Self, Error> {
        check_text("a flow's id", id).map_err(Error::invalid)?;
        if id.contains('/') {
            return Err(Error::invalid(format!("a flow's id must not contain a slash: {id:?}")));
        }
        Ok(Self(id.into()))
    }

    /// An id that a store gave, whatever it is: other programs may have put it there.
    pub(crate) fn stored(id: &[u8]) -> Self {
        Self(String::from_utf8_lossy(id).into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// What tasks have in common that share a limit, such as a tenant.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(Arc<str>);

impl TaskKey {
    /// Checks a key: 1 to 512 bytes, no control characters.
    pub(crate) fn parse(key: &str) -> Result<Self, Error> {
        check_text("a task's key", key).map_err(Error::invalid)?;
        Ok(Self(key.into()))
    }

    /// A key that a store gave.
    pub(crate) fn stored(key: &[u8]) -> Self {
        Self(String::from_utf8_lossy(key).into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Checks the name of an owner: 1 to 512 bytes, no control characters.
pub(crate) fn checked_owner(owner: &str) -> Result<(), Error> {
    check_text("an owner", owner).map_err(Error::invalid)
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("{what} must not be empty"));
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(format!("{what} has at most {MAX_NAME_BYTES} bytes, this one {}", text.len()));
    }
    if text.contains(char::is_control) {
        return Err(format!("{what} must not contain control characters"));
    }
    Ok(())
}

fn check(name: &str) -> Result<(), String> {
    check_text("a name", name)?;
    let braces: Vec<(usize, char)> =
        name.char_indices().filter(|(_, letter)| matches!(letter, '{' | '}')).collect();
    match braces[..] {
        [] => Ok(()),
        [(open, '{'), (close, '}')] if close > open + 1 => Ok(()),
        _ => Err("a name has no braces, or exactly one hash tag such as {user}".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    fn prefixes(lock: &str, queue: &str) -> Prefixes {
        Prefixes::parse(lock, queue).unwrap()
    }

    #[test]
    fn ordinary_names_are_allowed() {
        let names = prefixes("Lock:", "Queue:");
        for name in ["a", "invoice:42", "x:meta", "{user}:1", "a{b}c", "größe", "stanchion:x", "a b"] {
            assert_eq!(names.lock_name(name).unwrap().as_str(), name);
            assert_eq!(names.lock_name(name).unwrap().key(), format!("Lock:{name}"));
        }
    }

    #[test]
    fn bad_names_are_invalid_arguments() {
        let names = prefixes("Lock:", "Queue:");
        let long = "x".repeat(64 * 1024);
        for name in ["", "\0", "a\nb", "{", "}", "{}", "a}{b", "{a}{b}", "{{a}}", "a{", &long] {
            let error = names.lock_name(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name:.10}");
            assert!(error.to_string().len() < 400);
        }
    }

    #[test]
    fn no_lock_has_a_queues_or_a_sidecars_key() {
        assert!(prefixes("", "Queue:").lock_name("Queue:a").is_err());
        assert!(prefixes("app:", "app:q:").lock_name("q:a").is_err());
        assert!(prefixes("", "Queue:").lock_name("stanchion:meta:{a}").is_err());
        assert!(prefixes("stanchion", "Queue:").lock_name(":meta:{a}").is_err());
        assert!(prefixes("Lock:", "").lock_name("a").is_ok());
    }

    #[test]
    fn prefixes_differ_and_have_no_braces() {
        for (lock, queue) in [("a", "a"), ("", ""), ("{a}", "b"), ("a", "b\n")] {
            assert_eq!(Prefixes::parse(lock, queue).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn a_key_leads_back_to_its_name() {
        let names = prefixes("Lock:", "Queue:");
        assert_eq!(names.lock_of_key(LockKind::Exclusive, "Lock:a").unwrap().as_str(), "a");
        assert!(names.lock_of_key(LockKind::Exclusive, "Queue:a").is_none());
    }
}
