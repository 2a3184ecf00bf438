//! The rules for scripts, checked on the scripts (docs/DESIGN.md, "Script rules"). The samples show that each rule catches
//! what it forbids.
//!
//! - A key has a name in the sources, `KEYS[@NAME]`; what is checked is the text that the server gets. There
//!   `KEYS[n]` is always a literal and always a command's key: managed servers reject anything else, and no key can be built.
//! - TIME at most once, PUBLISH last and by pcall, a first write of the right kind: on every path through a
//!   script, not only in the order of its text.
//! - Numbers become text by `string.format('%.0f', n)` only: everything else keeps 14 digits. A time in seconds and
//!   microseconds may be `string.format('%s%06d', seconds, microseconds)`, or the two joined if the latter has six digits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod lexer;
mod paths;
mod rules;
mod samples;
mod sources;
