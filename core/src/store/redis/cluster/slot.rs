//! Which slot a key is in.

use crate::store::redis::sending::{self, Sending};

/// How many slots a cluster has.
pub(crate) const COUNT: u16 = 16_384;

/// The slot of a key: that of its hash tag, if it has one that is not empty.
pub(crate) fn of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % COUNT
}

impl Sending<'_> {
    /// The cluster slot of its keys: all of a request are in one.
    pub(crate) fn slot(&self) -> u16 {
        let key = self.command().args_iter().nth(sending::COUNT + 1);
        key.map_or(0, |key| of(sending::bytes(&key)))
    }
}

/// CRC-16/XMODEM, as the cluster specification demands.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8)
            .fold(crc ^ u16::from(*byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Prefixes;
    use crate::protocol::{Holder, Request};
    use crate::store::redis::script::SCRIPTS;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(of(b"foo"), 12_182);
        assert_eq!(of(b"{user1000}.following"), of(b"user1000"));
        assert_eq!(of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % COUNT);
        assert_eq!(of(b"foo{{bar}}zap"), of(b"{bar"));
        assert_eq!(of(b"foo{bar}{zap}"), of(b"bar"));
        assert_eq!(of(b"{"), crc16(b"{") % COUNT);
    }

    #[test]
    fn a_request_goes_to_the_slot_of_its_lock() {
        let name = Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap();
        let request = Request::Holder(Holder { name });
        assert_eq!(Sending::to_a_cluster(&request, &SCRIPTS).slot(), of(b"Lock:a"));
    }

    #[test]
    fn all_keys_of_a_lock_are_in_one() {
        for (lock, meta) in
            [("Lock:a", "stanchion:meta:{Lock:a}"), ("Lock:{a}b", "stanchion:tag-meta:Lock:{a}b")]
        {
            assert_eq!(of(lock.as_bytes()), of(meta.as_bytes()));
        }
    }
}
