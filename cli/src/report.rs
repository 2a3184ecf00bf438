//! What goes to stderr: one line per event, for people or as JSON.

use std::fmt::Write as _;
use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::arguments::Globals;
use crate::failure::Failure;
use crate::text::steers;

/// How events are told.
#[derive(Clone)]
pub struct Report {
    json: bool,
    quiet: bool,
    /// A line that is rewritten in place; only on a terminal.
    counter: ProgressBar,
}

impl Report {
    /// As the arguments ask for it.
    pub fn new(globals: &Globals) -> Self {
        let Globals { json, quiet, .. } = *globals;
        let target = if json || quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let counter = ProgressBar::with_draw_target(None, target);
        // A template without fields but the text cannot be wrong.
        let style = ProgressStyle::with_template("{msg}");
        let counter = style.map_or_else(|_| ProgressBar::hidden(), |style| counter.with_style(style));
        Self { json, quiet, counter }
    }

    /// For errors in the arguments themselves.
    pub fn bare(json: bool) -> Self {
        Self { json, quiet: false, counter: ProgressBar::hidden() }
    }

    /// Whether somebody sees the counter.
    pub fn has_counter(&self) -> bool {
        !self.counter.is_hidden()
    }

    /// Writes the counter, in place.
    pub fn count(&self, text: String) {
        self.counter.set_message(text);
    }

    /// Takes the counter away.
    pub fn end_count(&self) {
        self.counter.finish_and_clear();
        self.counter.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// Tells an error.
    pub fn failure(&self, failure: &Failure) {
        if self.quiet && ["LockTimeout", "Limited"].contains(&failure.kind) {
            return;
        }
        let message = one_line(&failure.message());
        if self.json {
            self.print(
                &json!({ "error": failure.kind, "code": failure.exit, "message": message }).to_string(),
            );
        } else {
            self.print(&format!("stanchion: {message}"));
        }
    }

    /// Tells something that is no error.
    pub fn note(&self, message: &str) {
        if self.quiet {
            return;
        }
        let message = one_line(message);
        if self.json {
            self.print(&json!({ "note": message }).to_string());
        } else {
            self.print(&format!("stanchion: {message}"));
        }
    }

    /// Tells a result, for people or as JSON.
    pub fn summary(&self, text: &str, fields: &Value) {
        match self {
            Self { quiet: true, .. } => {}
            Self { json: true, .. } => self.print(&fields.to_string()),
            _ => self.print(&format!("stanchion: {text}")),
        }
    }

    /// Logs what somebody did, always as JSON, in which nothing steers a terminal.
    pub fn act(&self, fields: &Value) {
        let mut line = String::new();
        for letter in fields.to_string().chars() {
            if steers(letter) {
                // Writing to a String cannot fail.
                let _ = write!(line, "\\u{:04x}", u32::from(letter));
            } else {
                line.push(letter);
            }
        }
        self.print(&line);
    }

    /// Passes on what a command wrote to its stderr.
    pub fn pass_on(&self, bytes: &[u8]) {
        // A closed stderr is nobody's error.
        let write = || drop(io::stderr().write_all(bytes));
        if self.has_counter() && !self.counter.message().is_empty() {
            self.counter.suspend(write);
        } else {
            write();
        }
    }

    /// Writes whole lines, so that those of several processes do not mix.
    fn print(&self, line: &str) {
        self.pass_on(format!("{line}\n").as_bytes());
    }
}

/// Without line ends and what else steers a terminal, and without the credentials of URLs.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|letter| if steers(letter) { ' ' } else { letter }).collect();
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
