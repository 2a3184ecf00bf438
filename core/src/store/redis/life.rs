//! Which life of which server each member of a quorum leads to. A server that restarted may have forgotten leases, and
//! one server under two names would vote twice.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{Cmd, Value};

use crate::base::clock::{Clock, Moment, read_boot_id};
use crate::base::error::{ErrorKind, brief};
use crate::base::wake::locked;
use crate::protocol::{Failure, FailureKind};
use crate::store::redis::era::Era;

/// A server's uptime is measured by a clock that may have been stepped: only what exceeds this counts.
/// A machine whose hardware clock is set to local time is hours off when it starts, and is put right then.
const STEPS_LESS: Duration = Duration::from_secs(24 * 3600);
/// The note of how long a life is known, in ms. Other fields are boots of machines: when each first saw it, in us.
const KNOWN: &str = "known";

/// The servers of a quorum, as the connections of one client find them.
pub(crate) struct Lives {
    clock: Clock,
    boot: String,
    rejoin_after: Duration,
    members: Vec<Place>,
    /// What each leads to now.
    seen: Mutex<Vec<Option<Seen>>>,
}

struct Place {
    name: String,
    /// How often it has led to another life.
    era: AtomicU64,
}

/// A server's life, from its start to its end.
struct Seen {
    run_id: String,
    /// When it was running, at the latest.
    since: Moment,
    /// Whether every lease of a life before it is over.
    settled: bool,
}

/// What one member of a quorum leads to.
#[derive(Clone)]
pub struct Life {
    lives: Arc<Lives>,
    number: usize,
}

impl Lives {
    pub(crate) fn new(places: Vec<String>, rejoin_after: Duration, clock: Clock) -> Arc<Self> {
        let seen = Mutex::new(places.iter().map(|_| None).collect());
        let members = places.into_iter().map(|name| Place { name, era: AtomicU64::new(0) }).collect();
        Arc::new(Self { clock, boot: read_boot_id(), rejoin_after, members, seen })
    }

    pub(crate) fn life(self: &Arc<Self>, number: usize) -> Life {
        Life { lives: Arc::clone(self), number }
    }
}

impl Life {
    /// The member's address, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.me().name
    }

    fn me(&self) -> &Place {
        &self.lives.members[self.number]
    }

    /// Connections of an earlier era lead to an earlier life, or to another server.
    pub(crate) fn era(&self) -> Era {
        Era(self.me().era.load(Ordering::SeqCst))
    }

    fn next_era(&self) {
        self.me().era.fetch_add(1, Ordering::SeqCst);
    }

    /// How long it will stay out, as far as is known without asking.
    pub(crate) fn rest(&self) -> Duration {
        let Lives { rejoin_after, clock, .. } = &*self.lives;
        match &locked(&self.lives.seen)[self.number] {
            Some(seen) if !seen.settled => rejoin_after.saturating_sub(clock.now().since(seen.since)),
            _ => Duration::ZERO,
        }
    }

    /// What each new connection is asked first.
    pub(crate) fn question() -> Cmd {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        info
    }

    /// Judges the answer. `Some`: what clients have noted about this life has to be asked, too.
    pub(crate) fn meet(&self, info: &Value) -> Result<Option<Cmd>, Failure> {
        let (run_id, uptime) = self.told(info)?;
        let mut all = locked(&self.lives.seen);
        let is_same = |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| seen.run_id == run_id);
        if let Some(other) = (0..all.len()).find(|number| *number != self.number && is_same(&all[*number])) {
            // What it led to before is not asked any more either.
            if all[self.number].take().is_some() {
                self.next_era();
            }
            let (here, there) = (self.place(), &self.lives.members[other].name);
            let message = format!(
                "{here} and {there} are the same server, which would vote twice; name each server once"
            );
            return Err(Failure::new(FailureKind::Final(ErrorKind::InvalidArgument), message));
        }
        if !is_same(&all[self.number]) {
            self.next_era();
            all[self.number] =
                Some(Seen { run_id: run_id.clone(), since: self.lives.clock.now(), settled: false });
        }
        let Some(seen) = &mut all[self.number] else { return Ok(None) };
        let rejoin_after = self.lives.rejoin_after;
        seen.settled |= rejoin_after.is_zero() || uptime >= rejoin_after + STEPS_LESS;
        if seen.settled {
            return Ok(None);
        }
        let mut question = redis::cmd("HMGET");
        question.arg(notes(&run_id)).arg(KNOWN).arg(&self.lives.boot);
        Ok(Some(question))
    }

    /// Judges the notes; answers also what is to be noted. Nothing here rests on a clock that can be stepped: a machine
    /// measures by its boot clock since when it knows the life, and notes for all that it has known it for long.
    pub(crate) fn judge(&self, notes: &Value) -> (Vec<Cmd>, Result<(), Failure>) {
        let Lives { rejoin_after, clock, boot, .. } = &*self.lives;
        let now = clock.now();
        let mut all = locked(&self.lives.seen);
        let Some(seen) = &mut all[self.number] else { return (Vec::new(), Ok(())) };
        let [vouched, noted] = numbers(notes);
        let noted = noted.filter(|_| !boot.is_empty()).map(|us| Moment::from_nanos(us.saturating_mul(1_000)));
        let is_new = noted.is_none_or(|noted| noted > seen.since);
        seen.since = noted.map_or(seen.since, |noted| noted.min(seen.since));
        let known = now.since(seen.since);
        if vouched.is_some_and(|ms| Duration::from_millis(ms) >= *rejoin_after) {
            seen.settled = true;
            return (Vec::new(), Ok(()));
        }
        if known >= *rejoin_after {
            seen.settled = true;
            return (note(&seen.run_id, KNOWN, known.as_millis()), Ok(()));
        }
        let note = match is_new && !boot.is_empty() {
            true => note(&seen.run_id, boot, u128::from(seen.since.as_micros())),
            false => Vec::new(),
        };
        let message = format!(
            "{} has been seen running for {} so far, and takes part after {rejoin_after:?}: it may have \
             forgotten leases when it started; rejoin_after in the URL sets this time",
            self.place(),
            brief(known),
        );
        (note, Err(Failure::new(FailureKind::NotSent, message)))
    }

    /// What INFO has of a server's life: its `run_id`, and its uptime by its own clock.
    fn told(&self, info: &Value) -> Result<(String, Duration), Failure> {
        let text = match info {
            Value::BulkString(text) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        let field =
            |name: &str| text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()));
        let uptime = field("uptime_in_seconds:").and_then(|seconds| seconds.parse().ok());
        match (field("run_id:").filter(|run_id| !run_id.is_empty()), uptime) {
            (Some(run_id), Some(uptime)) => Ok((run_id, Duration::from_secs(uptime))),
            _ => {
                let message = format!(
                    "{} does not report its run_id and uptime (INFO server), which a quorum needs; allow the user INFO",
                    self.place()
                );
                Err(Failure::new(FailureKind::Final(ErrorKind::Unsupported), message))
            }
        }
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place())
    }
}

/// The key of what clients have noted about a life.
fn notes(run_id: &str) -> String {
    format!("stanchion:quorum:{run_id}")
}

fn note(run_id: &str, field: &str, number: u128) -> Vec<Cmd> {
    let mut write = redis::cmd("HSET");
    write.arg(notes(run_id)).arg(field).arg(number.to_string());
    let mut expire = redis::cmd("PEXPIRE");
    // A server that has run for longer needs no notes.
    expire.arg(notes(run_id)).arg(2 * STEPS_LESS.as_millis() as u64);
    vec![write, expire]
}

fn numbers(notes: &Value) -> [Option<u64>; 2] {
    let number = |index: usize| match notes {
        Value::Array(items) => match items.get(index)? {
            Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        },
        _ => None,
    };
    [number(0), number(1)]
}

#[cfg(test)]
mod tests;
