//! Work that goes on while servers come and go, and what must be true of it whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use stanchion::{ClaimOptions, Error, ErrorKind, Task};
use stanchion_tests::faces::{AnyClient, AnyLock};
use stanchion_tests::resource::Resource;
use stanchion_tests::wait::{self, eventually, task};

use crate::{fixed, ms};

/// How long work may take to get on after a failover: longer than it takes. A Sentinel of an older server that stood still
/// for two seconds does nothing for half a minute.
pub(crate) const GETS_ON: Duration = Duration::from_secs(90);

/// What may go wrong while the work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing at all: every call succeeds, every write is accepted.
    Nothing,
    /// The store may be away, or have forgotten, and says so.
    Failover,
}

/// Threads that take locks and write under them, and threads that put tasks into queues and do them.
pub(crate) struct Load {
    over: Arc<AtomicBool>,
    resources: Vec<Arc<Resource>>,
    tasks: Arc<Tasks>,
    threads: Vec<wait::Task<()>>,
}

/// What became of the tasks.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub(crate) accepted: AtomicU64,
    pub(crate) done: AtomicU64,
}

impl Load {
    /// Two threads for each lock and two for each queue of these names.
    pub(crate) fn begin(client: &AnyClient, names: &[String], trouble: Trouble) -> Self {
        let mut load =
            Self { over: Arc::default(), resources: Vec::new(), tasks: Arc::default(), threads: Vec::new() };
        for name in names {
            let resource = Arc::new(Resource::default());
            for _ in 0..2 {
                let (lock, resource) = (client.lock(name), Arc::clone(&resource));
                load.repeat(move || lock_and_write(&lock, &resource, trouble));
            }
            load.resources.push(resource);
            let (queue, tasks, mut number) = (client.queue(name), Arc::clone(&load.tasks), 0);
            load.repeat(move || {
                number += 1;
                if trouble.survives(queue.enqueue(Task::new(format!("t{number}")).payload("x"))).is_some() {
                    tasks.accepted.fetch_add(1, Ordering::SeqCst);
                }
                // The pace of the producer.
                thread::sleep(ms(2));
            });
            let (queue, tasks) = (client.queue(name), Arc::clone(&load.tasks));
            load.repeat(move || {
                let options = ClaimOptions::new().max(20).lease(ms(40_000)).wait(ms(3_000));
                for claim in trouble.survives(queue.claim(options)).unwrap_or_default() {
                    assert!(claim.attempt() == 1 || trouble == Trouble::Failover, "{claim:?}");
                    if trouble.survives(claim.ack()).is_some() {
                        tasks.done.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        load.wait_for_progress();
        load
    }

    fn repeat(&mut self, mut work: impl FnMut() + Send + 'static) {
        let over = Arc::clone(&self.over);
        self.threads.push(task(move || {
            while !over.load(Ordering::SeqCst) {
                work();
            }
        }));
    }

    /// Waits until each lock was taken, and a task was done, several times from now on.
    #[track_caller]
    pub(crate) fn wait_for_progress(&self) {
        let writes = |resource: &Arc<Resource>| resource.log().accepted.len();
        let before: Vec<_> = self.resources.iter().map(writes).collect();
        let done = self.tasks.done.load(Ordering::SeqCst);
        eventually(GETS_ON, || {
            self.resources.iter().zip(&before).all(|(resource, before)| writes(resource) >= before + 5)
        });
        eventually(GETS_ON, || self.tasks.done.load(Ordering::SeqCst) >= done + 5);
    }

    /// Ends the work; what became of the tasks.
    pub(crate) fn end(self) -> Arc<Tasks> {
        self.over.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join_within(GETS_ON));
        self.tasks
    }
}

fn lock_and_write(lock: &AnyLock, resource: &Resource, trouble: Trouble) {
    let before = resource.highest();
    let Some(lease) = trouble.survives(lock.acquire(fixed(5_000, 60_000))) else { return };
    let fence = lease.fence();
    // Whatever the servers forgot: otherwise the resource would refuse its rightful holder for ever.
    assert!(fence > before, "the fence {fence} was given after {before}");
    let written = resource.write(fence);
    // A grant that the new master does not know of overlaps with a later one: then the fence protects.
    assert!(written || trouble == Trouble::Failover && resource.highest() > fence);
    trouble.survives(lease.release());
}

impl Trouble {
    /// The value, or nothing if this trouble explains it.
    #[track_caller]
    pub(crate) fn survives<T>(self, result: Result<T, Error>) -> Option<T> {
        use ErrorKind::{Indeterminate, StaleReceipt, StoreUnavailable};
        result
            .inspect_err(|error| {
                let expected = [StoreUnavailable, Indeterminate, StaleReceipt].contains(&error.kind());
                assert!(self == Self::Failover && (error.is_lost() || expected), "{error:?}");
            })
            .ok()
    }
}
