//! The keys of a lock. All of them are in one cluster slot.

use crate::name::LockName;
use crate::token::Token;
use crate::verbs::ClientId;

/// The lock's own key and its sidecars.
#[derive(Debug)]
pub(crate) struct LockKeys<'a> {
    /// STRING: the holder's token.
    pub(crate) lock: &'a str,
    /// HASH: fence, born, broken, owner, since...
    pub(crate) meta: String,
    /// ZSET: waiting tokens in order of arrival.
    pub(crate) line: String,
    /// HASH: token -> last poll, offered, client, seq.
    pub(crate) waiters: String,
}

impl<'a> LockKeys<'a> {
    pub(crate) fn new(name: &'a LockName) -> Self {
        let lock = name.key();
        Self {
            lock,
            meta: sidecar("meta", lock),
            line: sidecar("line", lock),
            waiters: sidecar("waiters", lock),
        }
    }

    /// STRING: exists while this token counts as ended.
    pub(crate) fn ended(&self, token: &Token) -> String {
        let mut key = sidecar("ended", self.lock);
        key.push(':');
        key.push_str(token.as_str());
        key
    }
}

/// A key without a hash tag becomes one; a key with one keeps it, under a word of its own, so that
/// `a` and `{a}` have different sidecars.
fn sidecar(kind: &str, key: &str) -> String {
    if key.contains('{') {
        format!("stanchion:tag-{kind}:{key}")
    } else {
        format!("stanchion:{kind}:{{{key}}}")
    }
}

/// The channel on which a client hears hints.
pub(crate) fn channel(client: ClientId) -> String {
    format!("stanchion:wake:{:x}", client.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Prefixes;

    #[test]
    fn sidecars_never_meet() {
        let prefixes = Prefixes::parse("", "Queue:").unwrap();
        let plain = prefixes.lock_name("a").unwrap();
        let tagged = prefixes.lock_name("{a}").unwrap();
        assert_eq!(LockKeys::new(&plain).meta, "stanchion:meta:{a}");
        assert_eq!(LockKeys::new(&tagged).meta, "stanchion:tag-meta:{a}");
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
