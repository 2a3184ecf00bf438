//! Arguments: checked before anything is sent.

use std::ffi::{c_char, c_void};
use std::mem::size_of;
use std::slice;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::Failure;

/// What stands for "not given" where a number may be missing.
pub(crate) const NONE: i64 = -1;
/// No text is longer: a wrong length is noticed before the memory behind it is read.
const MOST_BYTES: usize = stanchion::MAX_PAYLOAD;
/// Most elements of an array.
pub(crate) const MOST_ITEMS: usize = 1_000_000;

/// Text or bytes that a program passes or gets. `data` need not end with a NUL.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_text {
    /// The bytes; may be NULL if there are none.
    pub data: *const c_char,
    /// How many.
    pub len: usize,
}

/// A header of a task: a name and a value, both UTF-8.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stanchion_header {
    /// Its name.
    pub name: stanchion_text,
    /// Its value.
    pub value: stanchion_text,
}

impl stanchion_text {
    pub(crate) const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    /// A view of text that the library keeps.
    pub(crate) fn of(text: &str) -> Self {
        Self { data: text.as_ptr().cast(), len: text.len() }
    }
}

/// Bytes that a program passes. NULL with the length 0 is empty.
///
/// # Safety
/// `data` is NULL or points to `len` readable bytes, which stay as they are for `'a`.
pub(crate) unsafe fn bytes<'a>(what: &str, data: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::invalid(format!("{what} is NULL and has {len} bytes")));
    }
    if len > MOST_BYTES {
        return Err(Failure::invalid(format!("{what} has more than {MOST_BYTES} bytes ({len})")));
    }
    // SAFETY: as the caller promises; the length was checked.
    Ok(unsafe { slice::from_raw_parts(data.cast(), len) })
}

/// Text that a program passes. NULL with the length 0 is empty.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn text<'a>(what: &str, data: *const c_char, len: usize) -> Result<&'a str, Failure> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(what, data.cast(), len) }?;
    std::str::from_utf8(bytes).map_err(|_| Failure::invalid(format!("{what} is not UTF-8")))
}

/// Text that may be missing: NULL with the length 0.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn option<'a>(
    what: &str,
    data: *const c_char,
    len: usize,
) -> Result<Option<&'a str>, Failure> {
    if data.is_null() && len == 0 {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    unsafe { text(what, data, len) }.map(Some)
}

/// An array that a program passes, copied.
///
/// # Safety
/// `items` is NULL or points to `count` elements, for which any bits are valid.
pub(crate) unsafe fn items<T: Copy>(what: &str, items: *const T, count: usize) -> Result<Vec<T>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if items.is_null() {
        return Err(Failure::invalid(format!("{what} is NULL and has {count} elements")));
    }
    if count > MOST_ITEMS || count > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::invalid(format!("{what} has more than {MOST_ITEMS} elements ({count})")));
    }
    // SAFETY: as the caller promises.
    Ok((0..count).map(|index| unsafe { items.add(index).read_unaligned() }).collect())
}

/// The headers of a task, names and values.
///
/// # Safety
/// As for [`items`], and all texts are as their lengths say.
pub(crate) unsafe fn header_pairs<'a>(
    headers: *const stanchion_header,
    count: usize,
) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    // SAFETY: as the caller promises.
    let headers = unsafe { items("headers", headers, count) }?;
    let pair = |header: &stanchion_header| {
        // SAFETY: as the caller promises.
        unsafe {
            Ok((
                text("a header's name", header.name.data, header.name.len)?,
                text("a header's value", header.value.data, header.value.len)?,
            ))
        }
    };
    headers.iter().map(pair).collect()
}

/// A priority that may be missing.
pub(crate) fn level(priority: i32) -> Result<Option<u8>, Failure> {
    if priority == -1 {
        return Ok(None);
    }
    let wrong = |_| Failure::invalid(format!("priority {priority} is not between 0 and 255"));
    u8::try_from(priority).map(Some).map_err(wrong)
}

/// Milliseconds.
pub(crate) fn span(what: &str, millis: i64) -> Result<Duration, Failure> {
    let span = u64::try_from(millis).map(Duration::from_millis);
    span.map_err(|_| Failure::invalid(format!("{what} {millis} is not a number of milliseconds")))
}

/// Milliseconds that may be missing.
pub(crate) fn optional_span(what: &str, millis: i64) -> Result<Option<Duration>, Failure> {
    if millis == NONE { Ok(None) } else { span(what, millis).map(Some) }
}

/// Milliseconds since 1970.
pub(crate) fn moment(what: &str, millis: i64) -> Result<SystemTime, Failure> {
    let time = UNIX_EPOCH.checked_add(span(what, millis)?);
    time.ok_or_else(|| Failure::invalid(format!("{what} {millis} lies too far in the future")))
}

/// A yes or no.
pub(crate) fn flag(what: &str, value: i32) -> Result<bool, Failure> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Failure::invalid(format!("{what} {value} is neither 0 nor 1"))),
    }
}

/// A yes or no that may be missing.
pub(crate) fn optional_flag(what: &str, value: i32) -> Result<Option<bool>, Failure> {
    if value == -1 { Ok(None) } else { flag(what, value).map(Some) }
}

/// A count that may be missing. One that is too large for its type becomes the largest, which the core refuses.
pub(crate) fn optional_count<T: TryFrom<u64>>(what: &str, value: i64, most: T) -> Result<Option<T>, Failure> {
    if value == NONE {
        return Ok(None);
    }
    let value = u64::try_from(value).map_err(|_| Failure::invalid(format!("{what} {value} is no count")))?;
    Ok(Some(T::try_from(value).unwrap_or(most)))
}

/// A number of the core's as a program sees it.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A duration as a program sees it.
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A time as a program sees it.
pub(crate) fn wall(time: SystemTime) -> i64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn lengths_are_checked_before_memory_is_read() {
        let byte = c"x".as_ptr();
        // SAFETY: nothing is read behind NULL, nor of what is too long.
        unsafe {
            assert_eq!(text("t", ptr::null(), 0).unwrap(), "");
            assert_eq!(text("t", byte, 1).unwrap(), "x");
            assert!(text("t", ptr::null(), 1).is_err());
            assert!(text("t", byte, usize::MAX).is_err());
            assert!(items::<i64>("i", ptr::null(), 3).is_err());
            assert!(items::<i64>("i", ptr::dangling(), usize::MAX).is_err());
            assert_eq!(option("o", ptr::null(), 0).unwrap(), None);
            assert_eq!(option("o", byte, 0).unwrap(), Some(""));
            assert!(text("t", c"\xff".as_ptr(), 1).is_err());
        }
    }

    #[test]
    fn only_minus_one_is_not_given() {
        assert_eq!(optional_span("s", -1).unwrap(), None);
        assert!(optional_span("s", -2).is_err() && span("s", -1).is_err());
        assert!(optional_flag("f", 2).is_err());
        assert_eq!(optional_flag("f", -1).unwrap(), None);
        assert_eq!(optional_count("c", 1 << 40, u32::MAX).unwrap(), Some(u32::MAX));
        assert!(optional_count("c", -7, u32::MAX).is_err());
        assert!(moment("m", i64::MAX).is_ok());
    }
}
