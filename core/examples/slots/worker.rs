//! A worker on the schedule's queue. In every language it has one argument, the queue, finds the store in `STANCHION_URL`,
//! and prints `begin ID` and `end ID` for each task.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use stanchion::blocking::{Claim, Client, Worker};

use crate::Outcome;

/// The first argument of a process that works.
pub const COMMAND: &str = "work";
/// How long the store keeps a task for a worker that is dead.
pub const LEASE: Duration = Duration::from_secs(2);
/// How long a task takes.
pub const WORK: Duration = Duration::from_millis(1_100);

pub fn run(arguments: &[String]) -> Outcome<()> {
    let [queue] = arguments else { return Err("this is for the demo itself".into()) };
    let queue = Client::from_env().open_blocking()?.queue(queue);
    let handler = |claim: &Claim| {
        say(&format!("begin {}\n", claim.id()))?;
        thread::sleep(WORK);
        say(&format!("end {}\n", claim.id()))
    };
    Worker::new(queue, handler).lease(LEASE).run()?;
    Ok(())
}

/// One write: a line is never cut by a kill.
fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}
