//! What goes to stderr: one line per event, for people or as JSON.

use std::io::{self, Write};

use serde_json::json;

use crate::arguments::Globals;
use crate::failure::Failure;

/// How events are told.
#[derive(Clone, Copy)]
pub struct Report {
    json: bool,
    quiet: bool,
}

impl Report {
    /// As the arguments ask for it.
    pub fn new(globals: &Globals) -> Self {
        Self { json: globals.json, quiet: globals.quiet }
    }

    /// For errors in the arguments themselves.
    pub fn bare(json: bool) -> Self {
        Self { json, quiet: false }
    }

    /// Tells an error.
    pub fn failure(&self, failure: &Failure) {
        if self.quiet && failure.kind == "LockTimeout" {
            return;
        }
        let message = one_line(&failure.message());
        if self.json {
            print(&json!({ "error": failure.kind, "code": failure.exit, "message": message }).to_string());
        } else {
            print(&format!("stanchion: {message}"));
        }
    }

    /// Tells something that is no error.
    pub fn note(&self, message: &str) {
        if self.quiet {
            return;
        }
        let message = one_line(message);
        if self.json {
            print(&json!({ "note": message }).to_string());
        } else {
            print(&format!("stanchion: {message}"));
        }
    }
}

/// Writes whole lines, so that those of several processes do not mix. A closed stderr is nobody's error.
fn print(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Without line ends and other control characters, and without the credentials of URLs.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    without_credentials(&text)
}

/// A URL in the wrong place is repeated by the message about it, and may hold a password.
fn without_credentials(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else { return text.to_owned() };
    let end =
        rest.find(|letter: char| letter.is_whitespace() || "'\"`".contains(letter)).unwrap_or(rest.len());
    let (url, after) = rest.split_at(end);
    let shown = url.rsplit_once('@').map_or(url.to_owned(), |(_, place)| format!("***@{place}"));
    format!("{before}://{shown}{}", without_credentials(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_repeated() {
        assert_eq!(
            one_line("bad 'redis://u:p/@w@host/1' and\nx://a:b@c"),
            "bad 'redis://***@host/1' and x://***@c"
        );
        assert_eq!(one_line("plain redis://host/ a@b"), "plain redis://host/ a@b");
    }
}
