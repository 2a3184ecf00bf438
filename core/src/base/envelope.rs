//! A task's payload and headers as the one value that stores keep.
//!
//! Without headers: a zero byte, then the payload. With headers: a one, the length of the headers in four
//! bytes (little endian), the headers as a JSON object, then the payload. A task that came by the intake
//! has no body at all, which reads as an empty payload.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Headers of a task: short texts that travel with the payload.
pub type Headers = BTreeMap<String, String>;

/// Bytes of a payload and its headers (as JSON) together at most: a queue carries tasks, not files.
pub const MAX_PAYLOAD: usize = 16 << 20;
const PLAIN: u8 = 0;
const WITH_HEADERS: u8 = 1;

/// Puts both into one value. `None` if they have more than [`MAX_PAYLOAD`] bytes.
pub(crate) fn encode(payload: &[u8], headers: &Headers) -> Option<Arc<[u8]>> {
    let text = if headers.is_empty() { Vec::new() } else { serde_json::to_vec(headers).ok()? };
    if payload.len() + text.len() > MAX_PAYLOAD {
        return None;
    }
    let mut body = Vec::with_capacity(5 + text.len() + payload.len());
    if text.is_empty() {
        body.push(PLAIN);
    } else {
        body.push(WITH_HEADERS);
        body.extend_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
        body.extend_from_slice(&text);
    }
    body.extend_from_slice(payload);
    Some(body.into())
}

/// Where the payload begins, and the headers. What no version of this library wrote is all payload.
pub(crate) fn decode(body: &[u8]) -> (usize, Headers) {
    match body {
        [PLAIN, ..] => (1, Headers::new()),
        [WITH_HEADERS, rest @ ..] => with_headers(rest).unwrap_or_default(),
        _ => (0, Headers::new()),
    }
}

fn with_headers(rest: &[u8]) -> Option<(usize, Headers)> {
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let headers = serde_json::from_slice(rest.get(..length)?).ok()?;
    Some((5 + length, headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_come_back_as_they_were() {
        let headers = Headers::from([("content-type".to_owned(), "application/json".to_owned())]);
        for payload in [&b""[..], b"\0", b"\x01\x02", b"hello"] {
            for headers in [&Headers::new(), &headers] {
                let body = encode(payload, headers).unwrap();
                let (start, read) = decode(&body);
                assert_eq!((&body[start..], &read), (payload, headers));
            }
        }
    }

    #[test]
    fn nonsense_is_a_payload() {
        for body in [&b""[..], b"\x01", b"\x01\xff\xff\xff\xff{}", b"\x01\x02\0\0\0no", b"plain text"] {
            let (start, headers) = decode(body);
            assert_eq!((start, headers), (0, Headers::new()), "{body:?}");
        }
    }
}
