//! How long a name may be, and how messages show one that is longer.

/// Longest name, in bytes: long enough for a path or a URL, short enough for every store.
pub const MAX_NAME_BYTES: usize = 512;

/// A name for error messages, or its beginning if it is too long to be one. Messages about a claim have two of them.
pub(crate) fn told(name: &str) -> String {
    if name.len() > 2 * MAX_NAME_BYTES + 1 { shown(name) } else { name.to_owned() }
}

/// The beginning of a name that may be very long or contain anything.
pub(crate) fn shown(name: &str) -> String {
    let mut text: String = name.chars().take(64).collect();
    if text.len() < name.len() {
        text.push('…');
    }
    text
}
