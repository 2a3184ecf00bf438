//! What happens: both work, one is killed, the other goes on.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use stanchion::blocking::{Client, Queue};
use stanchion::{Missed, Schedule, URL_VARIABLE};

use crate::Outcome;

const SCHEDULE: &str = "tick";
/// The victim is killed in the midst of its so many-th task; how many slots come after that.
const LAST_OF_VICTIM: usize = 2;
const SLOTS_AFTER: usize = 5;
/// Nothing is silent for so long, unless something is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a worker said.
pub struct Said {
    pub by_victim: bool,
    pub is_end: bool,
    /// Of the slot's task.
    pub id: String,
    pub at: Instant,
}

pub struct Run {
    pub victim: String,
    pub said: Vec<Said>,
    /// The task that the victim had when it was killed.
    pub held: String,
    pub killed_at: Instant,
    /// How many slots the schedule has fired.
    pub fired: u64,
    /// How many tasks are left.
    pub left: u64,
}

impl Run {
    pub fn go(
        client: &Client,
        url: &str,
        queue: &str,
        own: &[String],
        victim: &(String, Vec<String>),
    ) -> Outcome<Self> {
        let (said, hear) = mpsc::channel();
        let _survivor = Worker::start(own, url, queue, false, &said)?;
        let mut killed = Worker::start(&victim.1, url, queue, true, &said)?;
        let queue = client.queue(queue);
        queue.schedule(Schedule::new(SCHEDULE, "* * * * * *").missed(Missed::All(60)))?;

        let mut all = Vec::new();
        let mut until = |enough: &dyn Fn(&[Said]) -> bool| listen(&hear, &mut all, enough);
        until(&|all| all.iter().filter(|said| said.by_victim && !said.is_end).count() >= LAST_OF_VICTIM)?;
        killed.0.kill()?;
        killed.0.wait()?;
        let killed_at = Instant::now();
        let after = |all: &[Said]| all.iter().filter(|said| said.is_end && said.at > killed_at).count();
        until(&|all| after(all) >= SLOTS_AFTER)?;
        queue.pause_schedule(SCHEDULE)?;
        let fired = queue.get_schedule(SCHEDULE)?.map_or(0, |schedule| schedule.fired);
        until(&|all| all.iter().filter(|said| said.is_end).count() as u64 >= fired)?;
        let left = settled(&queue)?;
        queue.remove_schedule(SCHEDULE)?;
        let held = all.iter().rfind(|said| said.by_victim).map(|said| said.id.clone()).unwrap_or_default();
        Ok(Self { victim: victim.0.clone(), said: all, held, killed_at, fired, left })
    }
}

/// Hears what the workers say until it is enough.
fn listen(hear: &Receiver<Said>, all: &mut Vec<Said>, enough: &dyn Fn(&[Said]) -> bool) -> Outcome<()> {
    while !enough(all) {
        all.push(hear.recv_timeout(PATIENCE).map_err(|_| "the workers are silent")?);
    }
    Ok(())
}

/// How many tasks are left: the last ack is sent after the last word.
fn settled(queue: &Queue) -> Outcome<u64> {
    let end = Instant::now() + PATIENCE;
    loop {
        let stats = queue.stats()?;
        let left = stats.ready + stats.scheduled + stats.claimed + stats.dead;
        if left == 0 || Instant::now() > end {
            return Ok(left);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A process that works. Killed when dropped.
struct Worker(Child);

impl Worker {
    fn start(
        words: &[String],
        url: &str,
        queue: &str,
        by_victim: bool,
        said: &Sender<Said>,
    ) -> Outcome<Self> {
        let mut command = Command::new(&words[0]);
        // In the environment, not in the arguments: those are for everybody to see.
        command.args(&words[1..]).arg(queue).env(URL_VARIABLE, url).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or("no pipe")?;
        let said = said.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((what, id)) = line.split_once(' ') {
                    let is_end = what == "end";
                    // Nobody listens any more only if the demo was given up.
                    let _ = said.send(Said { by_victim, is_end, id: id.into(), at: Instant::now() });
                }
            }
        });
        Ok(Self(process))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
