//! One task: its command from the start to the verdict.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use stanchion::blocking::Claim;
use stanchion::{DEFAULT_TTL, LossReason};

use super::Crew;
use super::stderr::Stderr;
use crate::exit;
use crate::failure::Failure;
use crate::process::{Child, End, Ending, Kin, Order, Terms, Trouble, supervise};

/// What the task's id takes the place of.
const PLACEHOLDER: &[u8] = b"{}";
/// Longer headers are not passed on: systems refuse to start a command with a longer variable (Linux: 128 KiB).
const MOST_HEADERS: usize = 100_000;

impl Crew {
    /// Runs the command for a task; an error is the reason why the attempt failed.
    pub(super) fn attend(&self, claim: &Claim) -> Result<(), String> {
        // Claimed just before the end was asked for.
        if !self.is_at_work() {
            return put_back(claim);
        }
        let (child, stderr) = match self.start(claim) {
            Ok(started) => started,
            Err(failure) => {
                self.end_with(failure);
                return put_back(claim);
            }
        };
        let Ending { end, stopped } = self.watch(&child, claim);
        match stopped {
            None if end == End::Exit(0) => Ok(()),
            None => Err(match stderr.last_line() {
                line if line.is_empty() => end.to_string(),
                line => format!("{end}: {line}"),
            }),
            // The worker stops: not the task's fault.
            Some(Trouble::Killed | Trouble::Lost(Some(LossReason::Stopped))) => put_back(claim),
            Some(trouble) => Err(format!("stopped: {}", trouble.why())),
        }
    }

    fn start(&self, claim: &Claim) -> Result<(Child<'_>, Stderr), Failure> {
        let words: Vec<OsString> = self.order.command.iter().map(|word| with_id(word, claim.id())).collect();
        let [program, arguments @ ..] = &words[..] else {
            return Err(Failure::usage("no command was given", "put it after --"));
        };
        let failed = |error| Failure::system("preparing a command failed", &error);
        let variables = [
            ("STANCHION_TASK_ID", claim.id().to_owned()),
            ("STANCHION_QUEUE", claim.queue().to_owned()),
            ("STANCHION_KIND", claim.kind().unwrap_or_default().to_owned()),
            ("STANCHION_RECEIPT", claim.receipt().to_string()),
            ("STANCHION_ATTEMPT", claim.attempt().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.clone());
        command.env("STANCHION_MAX_ATTEMPTS", claim.max_attempts().to_string());
        let headers = json!(claim.headers()).to_string();
        match headers.len() <= MOST_HEADERS {
            true => command.env("STANCHION_HEADERS", headers),
            // Not those of another task, whose command has started this worker.
            false => command.env_remove("STANCHION_HEADERS"),
        };
        command.stdin(stdin(claim.payload()).map_err(|error| no_file(&error))?);
        // Ctrl-C is for `stanchion work`, which lets the command finish.
        command.process_group(0);
        let stderr = Stderr::of(&mut command, &self.report).map_err(failed)?;
        let kin = Kin::With(variables.into());
        let child = Child::spawn(&self.nursery, command, kin, "the tasks were put back")?;
        Ok((child, stderr))
    }

    fn watch(&self, child: &Child<'_>, claim: &Claim) -> Ending {
        let terms = Terms {
            kill_after: self.order.kill_after,
            ttl: self.order.lease.unwrap_or(DEFAULT_TTL),
            stop_at: Instant::now().checked_add(self.max_run()),
        };
        let (mut told, mut seen) = (false, false);
        let mut next = |nap| {
            if self.is_killing() && !told {
                told = true;
                return Some(Order::Kill);
            }
            self.nursery.wait(child.pid(), nap, &mut seen);
            None
        };
        supervise(child, claim, &terms, &mut next, &mut |trouble| {
            let (id, why) = (claim.id(), trouble.why());
            self.report.note(&format!("task {id:?}: {why}; its command is being stopped"));
        })
    }
}

/// Gives a task back uncounted. If the store does not answer, the worker goes on trying to settle it.
fn put_back(claim: &Claim) -> Result<(), String> {
    claim.put_back(Duration::ZERO).map_err(|error| format!("it could not be put back: {error}"))
}

fn with_id(word: &OsStr, id: &str) -> OsString {
    let mut rest = word.as_bytes();
    let mut text = Vec::with_capacity(rest.len() + id.len());
    while let Some(at) = rest.windows(PLACEHOLDER.len()).position(|part| part == PLACEHOLDER) {
        text.extend_from_slice(&rest[..at]);
        text.extend_from_slice(id.as_bytes());
        rest = &rest[at + PLACEHOLDER.len()..];
    }
    text.extend_from_slice(rest);
    OsString::from_vec(text)
}

/// A file without a name rather than a pipe: nobody has to wait until the command has read it all.
fn stdin(payload: &[u8]) -> io::Result<Stdio> {
    if payload.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file: File = tempfile::tempfile()?;
    file.write_all(payload)?;
    file.rewind()?;
    Ok(file.into())
}

fn no_file(error: &io::Error) -> Failure {
    let what = format!("making a temporary file in {} failed: {error}", env::temp_dir().display());
    Failure::new(
        "System",
        exit::SYSTEM,
        what,
        "TMPDIR says where; it has to exist, be writable and have room",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_takes_every_place() {
        let replaced = |word: &str| with_id(OsStr::new(word), "a{}b");
        assert_eq!(replaced("{}"), "a{}b");
        assert_eq!(replaced("x={}, {}}{"), "x=a{}b, a{}b}{");
        assert_eq!(replaced("plain {"), "plain {");
    }
}
