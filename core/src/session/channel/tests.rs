//! Threads that open the channel at once, with a store whose channel is opened and read for as long as the test says.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};

use super::*;
use crate::base::name::{LockKind, LockName, QueueName};
use crate::protocol::{ClientId, Failure, FailureKind, Reply, Request};
use crate::store::Pending;

/// Far longer than anything takes on a loaded machine.
const SOON: Duration = Duration::from_secs(10);

/// A store that is only listened to.
struct Listened {
    /// The channel opens when something comes.
    opens: Mutex<Receiver<()>>,
    /// A read ends when the other side is gone.
    reads: Mutex<Option<Receiver<()>>>,
    reading: Mutex<Option<Sender<()>>>,
}

struct LongRead {
    ends: Receiver<()>,
    begun: Sender<()>,
}

impl Hints for LongRead {
    fn read(&mut self, _: Duration, _: &mut dyn FnMut(u64)) -> Result<(), Failure> {
        let _ = self.begun.send(());
        let _ = self.ends.recv();
        Ok(())
    }
}

impl std::fmt::Debug for Listened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listened")
    }
}

impl Store for Listened {
    fn listen(&self, _: Moment) -> Result<Option<Box<dyn Hints>>, Failure> {
        locked(&self.opens).recv().map_err(|_| refused())?;
        let ends = locked(&self.reads).take().ok_or_else(refused)?;
        let begun = locked(&self.reading).take().ok_or_else(refused)?;
        Ok(Some(Box::new(LongRead { ends, begun })))
    }

    fn close(&self) {}

    fn perform(&self, _: &Request, _: Moment) -> Result<Reply, Failure> {
        Err(refused())
    }

    fn perform_async<'a>(&'a self, _: &'a Request, _: Moment) -> Pending<'a> {
        Box::pin(async { Err(refused()) })
    }

    fn check(&self, _: Moment) -> Result<(), Failure> {
        Ok(())
    }

    fn doctor(&self, _: Moment) -> Result<Vec<crate::Finding>, Failure> {
        Ok(Vec::new())
    }

    fn list(&self, _: LockKind, _: u64, _: Moment) -> Result<(u64, Vec<LockName>), Failure> {
        Ok((0, Vec::new()))
    }

    fn list_queues(&self, _: u64, _: Moment) -> Result<(u64, Vec<QueueName>), Failure> {
        Ok((0, Vec::new()))
    }
}

fn refused() -> Failure {
    Failure::new(FailureKind::NotSent, "not here")
}

/// Whether this thread sleeps, as the system tells it.
#[cfg(target_os = "linux")]
fn sleeps(thread: &Path) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(thread).join("stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
}

/// The channel is read again and again by whoever leads. A thread that waited for another to open it must not have to
/// wait for a moment at which nobody reads: a mutex is not fair, but it may be by chance.
#[cfg(target_os = "linux")]
#[test]
fn who_waits_for_the_opening_does_not_wait_for_the_reading() {
    (0..20).for_each(|_| some_wait_for_the_opening());
}

#[cfg(target_os = "linux")]
fn some_wait_for_the_opening() {
    let (open, opens) = mpsc::channel();
    let (end_read, reads) = mpsc::channel();
    let (begun, reading) = mpsc::channel();
    let store = Arc::new(Listened {
        opens: Mutex::new(opens),
        reads: Mutex::new(Some(reads)),
        reading: Mutex::new(Some(begun)),
    });
    let channel = Channel::new(store, Clock::System, Hub::new(ClientId(1)));
    let (says, said) = mpsc::channel();
    let (opened, open_now) = mpsc::channel();
    let others: Vec<_> = (0..3)
        .map(|_| {
            let (channel, says, opened) = (Arc::clone(&channel), says.clone(), opened.clone());
            thread::spawn(move || {
                says.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
                channel.open();
                // Whoever comes first leads.
                channel.lead(Duration::from_secs(1));
                opened.send(channel.is_open()).unwrap();
            })
        })
        .collect();
    let paths: Vec<_> = (0..3).map(|_| said.recv_timeout(SOON).unwrap()).collect();
    let begun = Instant::now();
    while !paths.iter().all(|path| sleeps(path)) {
        assert!(begun.elapsed() < SOON, "they do not wait for the opening");
        thread::yield_now();
    }
    open.send(()).unwrap();
    reading.recv_timeout(SOON).unwrap();
    // One of the three reads, for long.
    for _ in 0..2 {
        assert!(open_now.recv_timeout(SOON).expect("one waits for the reading to end"));
    }
    drop(end_read);
    assert!(open_now.recv_timeout(SOON).unwrap());
    others.into_iter().for_each(|thread| thread.join().unwrap());
}
