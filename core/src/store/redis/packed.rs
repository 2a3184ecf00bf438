//! What scripts pack by cmsgpack: the part of MessagePack that they use.

/// How deep arrays may be nested: a stored reply is the deepest, with two.
const DEPTH: u32 = 4;

/// A packed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packed<'a> {
    /// A number that is not negative.
    Number(u64),
    /// A string.
    Text(&'a [u8]),
    /// A boolean.
    Flag(bool),
    /// An array, with all that is in it.
    Array(Vec<Packed<'a>>),
}

/// The values that stand one after another; `None` if they make no sense.
pub fn unpack(bytes: &[u8]) -> Option<Vec<Packed<'_>>> {
    let mut reader = Reader(bytes);
    let mut values = Vec::new();
    while !reader.0.is_empty() {
        values.push(reader.value(DEPTH)?);
    }
    Some(values)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, length: usize) -> Option<u64> {
        Some(self.take(length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn length(&mut self, length: usize) -> Option<usize> {
        self.number(length)?.try_into().ok()
    }

    fn text(&mut self, length: usize) -> Option<Packed<'a>> {
        self.take(length).map(Packed::Text)
    }

    fn array(&mut self, length: usize, depth: u32) -> Option<Packed<'a>> {
        // Every element takes a byte at least: what comes must be there, before memory is taken for it.
        let depth = depth.checked_sub(1).filter(|_| length <= self.0.len())?;
        (0..length).map(|_| self.value(depth)).collect::<Option<_>>().map(Packed::Array)
    }

    fn value(&mut self, depth: u32) -> Option<Packed<'a>> {
        let first = self.take(1)?[0];
        match first {
            0x00..=0x7f => Some(Packed::Number(first.into())),
            0x90..=0x9f => self.array(usize::from(first & 0x0f), depth),
            0xa0..=0xbf => self.text(usize::from(first & 0x1f)),
            0xc2 | 0xc3 => Some(Packed::Flag(first == 0xc3)),
            0xcc => self.number(1).map(Packed::Number),
            0xcd => self.number(2).map(Packed::Number),
            0xce => self.number(4).map(Packed::Number),
            0xcf => self.number(8).map(Packed::Number),
            0xd9 => self.length(1).and_then(|length| self.text(length)),
            0xda => self.length(2).and_then(|length| self.text(length)),
            0xdb => self.length(4).and_then(|length| self.text(length)),
            0xdc => self.length(2).and_then(|length| self.array(length, depth)),
            0xdd => self.length(4).and_then(|length| self.array(length, depth)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let rows: [(&[u8], Packed<'_>); 9] = [
            (b"\x07", Packed::Number(7)),
            (b"\xcc\xff", Packed::Number(255)),
            (b"\xcd\x01\x00", Packed::Number(256)),
            (b"\xce\x00\x01\x00\x00", Packed::Number(65_536)),
            (b"\xcf\x00\x00\x00\x01\x00\x00\x00\x00", Packed::Number(1 << 32)),
            (b"\xa2hi", Packed::Text(b"hi")),
            (b"\xd9\x02hi", Packed::Text(b"hi")),
            (b"\xc3", Packed::Flag(true)),
            (
                b"\x92\x01\x91\xc2",
                Packed::Array(vec![Packed::Number(1), Packed::Array(vec![Packed::Flag(false)])]),
            ),
        ];
        for (bytes, value) in rows {
            assert_eq!(unpack(bytes), Some(vec![value]));
        }
        assert_eq!(unpack(b"\x01\x02"), Some(vec![Packed::Number(1), Packed::Number(2)]));
    }

    #[test]
    fn nonsense_is_refused_and_takes_no_memory() {
        let deep = [0x91; 64];
        let rows: [&[u8]; 7] = [
            b"\xc1",
            b"\xcf\x00",
            b"\xa5hi",
            b"\xdd\xff\xff\xff\xff",
            b"\xdb\xff\xff\xff\xff",
            b"\x92\x01",
            &deep,
        ];
        for bytes in rows {
            assert_eq!(unpack(bytes), None, "{bytes:?}");
        }
    }
}
