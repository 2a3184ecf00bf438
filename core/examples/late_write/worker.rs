//! A worker that sets the price which the payload says. In every language it has two arguments, the queue and the file of
//! the prices, finds the store in `STANCHION_URL`, and prints what happens to its task, a line each:
//!
//! | line | what |
//! |---|---|
//! | `begin FENCE` | it has the task |
//! | `lost REASON` | it was told that its claim is lost: the late one only, which then reads a line before it goes on |
//! | `wrote ROWS` | it has written, and so many rows have changed |
//! | `ack REPLY` | what the queue said to "done": `accepted`, `stale`, or another error |

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Duration;

use stanchion::blocking::{Claim, Client, Worker};
use stanchion::{Error, ErrorKind};

use super::prices::{Price, Prices};
use crate::Outcome;

/// The first arguments of a process that works: it writes at once, or late.
pub const PROMPT: &str = "prompt";
pub const LATE: &str = "late";
/// How long the store keeps a task for a worker that says nothing.
pub const LEASE: Duration = Duration::from_secs(2);
/// Nothing takes so long, unless something is broken.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(is_late: bool, arguments: &[String]) -> Outcome<()> {
    let [queue, file] = arguments else { return Err("this is for the demo itself".into()) };
    let queue = Client::from_env().open_blocking()?.queue(queue);
    let file = file.clone();
    let handler = move |claim: &Claim| set_price(claim, is_late, Path::new(&file));
    Worker::new(queue, handler).lease(LEASE).run()?;
    Ok(())
}

fn set_price(claim: &Claim, is_late: bool, file: &Path) -> Outcome<()> {
    let fence = i64::try_from(claim.receipt().get())?;
    let euros = std::str::from_utf8(claim.payload())?.parse()?;
    say(&format!("begin {fence}\n"))?;
    if is_late {
        claim.wait_lost(PATIENCE);
        say(&format!("lost {}\n", claim.loss().map_or("no", |reason| reason.name())))?;
        // A good handler would end here. This one goes on, when it is told that the other one is done.
        io::stdin().lock().read_line(&mut String::new())?;
    }
    say(&format!("wrote {}\n", Prices::open(file)?.write(Price { euros, fence })?))?;
    let acked = claim.ack_with(claim.payload());
    say(&format!("ack {}\n", reply(&acked)))?;
    Ok(())
}

fn reply(acked: &Result<(), Error>) -> String {
    match acked {
        Ok(()) => "accepted".into(),
        Err(error) if error.kind() == ErrorKind::StaleReceipt => "stale".into(),
        Err(error) => error.to_string(),
    }
}

/// One write: lines never mix.
fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}
