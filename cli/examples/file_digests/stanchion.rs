//! The program `stanchion`, on the demo's store and queue.

use std::collections::BTreeSet;
use std::env;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::Outcome;

pub struct Stanchion {
    program: PathBuf,
    url: String,
    /// Whether `STANCHION_URL` chose the store.
    chosen: bool,
    /// A name of its own: the store may be somebody's.
    queue: String,
    folder: TempDir,
}

impl Stanchion {
    /// The program that was built with this one, on the store that `STANCHION_URL` names, or on a fresh
    /// embedded one in a temporary folder.
    pub fn find() -> Outcome<Self> {
        let here = env::current_exe()?;
        let program = here.ancestors().nth(2).ok_or("this program has no folder")?.join("stanchion");
        if !program.exists() {
            return Err(
                format!("{} is missing; build it first, as `make demo` does", program.display()).into()
            );
        }
        let folder = tempfile::Builder::new().prefix("file-digests-").tempdir()?;
        let queue = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let given = env::var(stanchion::URL_VARIABLE).ok().filter(|url| !url.is_empty());
        let chosen = given.is_some();
        let url = given.unwrap_or_else(|| format!("sqlite:{}", folder.path().join("queue.db").display()));
        if url.starts_with("memory:") {
            return Err(
                "memory: is a store for one process, and this demo has several; use redis:// or sqlite:"
                    .into(),
            );
        }
        Ok(Self { program, url, chosen, queue, folder })
    }

    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// For people; without the part of the URL that may be secret.
    pub fn describe(&self) -> String {
        match self.chosen {
            false => "embedded (SQLite), a fresh file in a temporary folder; no server".into(),
            true => format!("{}, from STANCHION_URL", self.url.split(':').next().unwrap_or_default()),
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // In the environment, not in the arguments: those are for everybody to see.
        command.args(arguments).env(stanchion::URL_VARIABLE, &self.url).stdin(Stdio::null());
        command
    }

    /// Puts a task in for every line; how many were added.
    pub fn enqueue(&self, lines: &[String]) -> Outcome<u64> {
        let path = self.folder.path().join("list");
        File::create(&path)?.write_all((lines.join("\n") + "\n").as_bytes())?;
        let mut command = self.command(&["enqueue", &self.queue, "--lines", "--json", "--quiet"]);
        let counts: Value = serde_json::from_slice(&finish(command.stdin(File::open(path)?))?.stdout)?;
        counts["added"].as_u64().ok_or_else(|| "enqueue did not say how many were added".into())
    }

    /// One of the counts of the queue.
    pub fn count(&self, what: &str) -> Outcome<u64> {
        let output = finish(&mut self.command(&["queues", "stats", &self.queue, "--json"]))?;
        let stats: Value = serde_json::from_slice(&output.stdout)?;
        stats[what].as_u64().ok_or_else(|| format!("the queue's stats do not have {what}").into())
    }

    /// The tasks that are claimed now, each with the number of its delivery.
    pub fn claimed(&self) -> Outcome<BTreeSet<(String, u64)>> {
        let arguments = ["queues", "list", &self.queue, "--state", "claimed", "--json"];
        let output = finish(&mut self.command(&arguments))?;
        let tasks = String::from_utf8_lossy(&output.stdout);
        let task = |line: &str| {
            let task: Value = serde_json::from_str(line)?;
            let id = task["id"].as_str().unwrap_or_default().to_owned();
            Ok((id, task["receipt"].as_u64().unwrap_or_default()))
        };
        tasks.lines().map(task).collect()
    }

    /// Drops what the queue left on a server.
    pub fn tidy(&self) {
        if self.chosen {
            let purged = finish(&mut self.command(&["queues", "purge", &self.queue, "--yes"]));
            let what = if purged.is_ok() { "The empty queue" } else { "The queue" };
            println!("\n   {what} {:?} stays in the store for seven days.", self.queue);
        }
    }
}

fn finish(command: &mut Command) -> Outcome<Output> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if output.status.success() {
        Ok(output)
    } else {
        Err(format!("{command:?} failed: {}", output.status).into())
    }
}
