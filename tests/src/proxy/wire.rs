//! The Redis protocol, as far as one has to understand it to pass it on piece by piece.

use std::io::{self, BufRead};

/// Reads an array of bulk strings; returns it as it came, and taken apart.
pub(super) fn read_request(reader: &mut impl BufRead) -> io::Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut raw = Vec::new();
    let count = read_line(reader, &mut raw)?;
    let mut args = Vec::new();
    for _ in 0..number(&count)? {
        let length = read_line(reader, &mut raw)?;
        let body = read_body(reader, &mut raw, number(&length)?)?;
        args.push(body);
    }
    Ok((raw, args))
}

/// Reads one reply or push of RESP2 or RESP3.
pub(super) fn read_frame(reader: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<()> {
    let line = read_line(reader, raw)?;
    let parts = match line.first() {
        Some(b'$' | b'=' | b'!') => {
            if !line.starts_with(b"$-") {
                read_body(reader, raw, number(&line)?)?;
            }
            0
        }
        Some(b'*' | b'~' | b'>') if line.get(1) != Some(&b'-') => number(&line)?,
        Some(b'%') => 2 * number(&line)?,
        Some(b'|') => 2 * number(&line)? + 1,
        _ => 0,
    };
    for _ in 0..parts {
        read_frame(reader, raw)?;
    }
    Ok(())
}

/// Reads a line, and returns it without its end.
fn read_line(reader: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let start = raw.len();
    if reader.read_until(b'\n', raw)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(raw[start..].trim_ascii_end().to_vec())
}

fn read_body(reader: &mut impl BufRead, raw: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length + 2];
    reader.read_exact(&mut body)?;
    raw.extend_from_slice(&body);
    body.truncate(length);
    Ok(body)
}

/// The number after the type of a line.
fn number(line: &[u8]) -> io::Result<usize> {
    let text = line.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
