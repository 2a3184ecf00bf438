//! What happens: two workers, one of which is killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::files::split;
use super::stanchion::Stanchion;
use crate::Outcome;

/// How long the store keeps a task for a worker that is dead, in seconds.
pub const LEASE: &str = "2";
/// A task that is still claimed so long after its worker was stopped is that worker's: a digest takes a few
/// milliseconds.
const SURELY_HELD: Duration = Duration::from_millis(150);
/// So long after the kill, the other worker has done what it had in its hands; the dead one's leases last.
const SURELY_DONE: Duration = Duration::from_millis(500);
/// Nothing is silent for so long, unless something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// One line that a worker's command printed.
pub struct Digest {
    pub path: String,
    pub digest: String,
    pub at: Instant,
}

pub struct Run {
    pub enqueued: u64,
    /// In the order in which they were printed.
    pub digests: Vec<Digest>,
    /// Tasks that were done when the worker was killed.
    pub done_before: u64,
    pub killed_at: Instant,
    /// Files whose tasks the killed worker had.
    pub held: BTreeSet<String>,
    pub took: Duration,
    /// What is not done at the end.
    pub left: u64,
}

impl Run {
    pub fn go(stanchion: &Stanchion, paths: &[String]) -> Outcome<Self> {
        let began = Instant::now();
        let enqueued = stanchion.enqueue(paths)?;
        let (said, hear) = mpsc::channel();
        let mut victim = Worker::start(stanchion, &said)?;
        let mut survivor = Worker::start(stanchion, &said)?;
        drop(said);

        let mut digests = Vec::new();
        let caught = catch(stanchion, &victim, &hear, &mut digests, paths.len())?;
        let done_before = stanchion.count("acked")?;
        victim.signal(Signal::SIGKILL)?;
        let killed_at = Instant::now();
        victim.0.wait()?;
        // Some were the other worker's, which has done them by now.
        thread::sleep(SURELY_DONE);
        let held = still_claimed(stanchion, &caught)?;

        // Ends when both have closed their output.
        hear_out(&hear, &mut survivor, &mut digests)?;
        // If the machine stood still for longer than a lease, the worker that was left has lost claims, too: those tasks come
        // back a little later, and it does not wait for what is due later.
        while stanchion.count("scheduled")? > 0 && killed_at.elapsed() < PATIENCE {
            thread::sleep(SURELY_HELD);
            let (said, hear) = mpsc::channel();
            let mut late = Worker::start(stanchion, &said)?;
            drop(said);
            hear_out(&hear, &mut late, &mut digests)?;
        }
        let left = ["ready", "claimed", "scheduled", "dead"].iter().map(|what| stanchion.count(what));
        let left = left.sum::<Outcome<u64>>()?;
        Ok(Self { enqueued, digests, done_before, killed_at, held, took: began.elapsed(), left })
    }
}

/// Takes in what the workers print until they have ended.
fn hear_out(hear: &Receiver<Digest>, last: &mut Worker, digests: &mut Vec<Digest>) -> Outcome<()> {
    while let Some(digest) = next(hear, PATIENCE)? {
        digests.push(digest);
    }
    let status = last.0.wait()?;
    if !status.success() {
        return Err(format!("the worker that was left failed: {status}").into());
    }
    Ok(())
}

/// Stops the worker when a quarter is done, since the other one goes on meanwhile, and makes sure that it has tasks at hand: those that stay claimed
/// although it does nothing.
fn catch(
    stanchion: &Stanchion,
    victim: &Worker,
    hear: &Receiver<Digest>,
    digests: &mut Vec<Digest>,
    files: usize,
) -> Outcome<BTreeSet<(String, u64)>> {
    let mut enough = files / 4;
    while enough < files {
        while digests.len() < enough {
            digests.push(next(hear, PATIENCE)?.ok_or("the workers ended before one could be killed")?);
        }
        victim.signal(Signal::SIGSTOP)?;
        // If that was in the midst of a write, the file is locked until it goes on.
        if let Ok(before) = stanchion.claimed() {
            thread::sleep(SURELY_HELD);
            let after = stanchion.claimed()?;
            let held: BTreeSet<_> = before.intersection(&after).cloned().collect();
            if !held.is_empty() {
                return Ok(held);
            }
        }
        // It was between two tasks.
        victim.signal(Signal::SIGCONT)?;
        enough += files / 20;
    }
    Err("the worker had no task at hand whenever it was stopped".into())
}

/// Those of the tasks that are still claimed by whoever had them.
fn still_claimed(stanchion: &Stanchion, caught: &BTreeSet<(String, u64)>) -> Outcome<BTreeSet<String>> {
    let now = stanchion.claimed()?;
    let held: BTreeSet<String> = caught.intersection(&now).map(|(id, _)| id.clone()).collect();
    // On a machine that is very busy their leases may have ended.
    Ok(if held.is_empty() { caught.iter().map(|(id, _)| id.clone()).collect() } else { held })
}

/// The next digest; none if the workers have ended.
fn next(hear: &Receiver<Digest>, patience: Duration) -> Outcome<Option<Digest>> {
    match hear.recv_timeout(patience) {
        Ok(digest) => Ok(Some(digest)),
        Err(RecvTimeoutError::Disconnected) => Ok(None),
        Err(RecvTimeoutError::Timeout) => Err(format!("the workers were silent for {patience:?}").into()),
    }
}

/// A process that works. Killed when dropped: the demo may have been given up.
struct Worker(Child);

impl Worker {
    fn start(stanchion: &Stanchion, said: &Sender<Digest>) -> Outcome<Self> {
        let arguments = [
            "work",
            stanchion.queue(),
            "-j",
            "4",
            "--until-empty",
            "--lease",
            LEASE,
            "-q",
            "--",
            "sha256sum",
            "{}",
        ];
        let mut process = stanchion.command(&arguments).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or("no pipe")?;
        let said = said.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((path, digest)) = split(&line) {
                    // Nobody listens any more only if the demo was given up.
                    let _ = said.send(Digest { path, digest, at: Instant::now() });
                }
            }
        });
        Ok(Self(process))
    }

    fn signal(&self, signal: Signal) -> Outcome<()> {
        Ok(kill(Pid::from_raw(self.0.id().cast_signed()), signal)?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
