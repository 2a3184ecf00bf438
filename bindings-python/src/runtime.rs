//! The tokio runtime of the asyncio face: our own, so that no other library's settings concern it.

use std::io;
use std::sync::OnceLock;

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::{Pid, getpid};
use tokio::runtime::{Builder, Handle, Runtime};

/// One runtime per process in a line of forks. A list that only grows needs no lock, which a child could
/// inherit locked; an inherited runtime has no threads in the child and is never dropped.
struct Link {
    process: Pid,
    runtime: Runtime,
    next: OnceLock<Box<Link>>,
}

static FIRST: OnceLock<Box<Link>> = OnceLock::new();

/// This process's runtime, made on first use.
pub(crate) fn runtime() -> io::Result<&'static Handle> {
    let mut place = &FIRST;
    loop {
        if let Some(link) = place.get() {
            if link.process == getpid() {
                return Ok(link.runtime.handle());
            }
            place = &link.next;
            continue;
        }
        // If another thread is faster, its runtime counts.
        let link = Box::new(Link { process: getpid(), runtime: start()?, next: OnceLock::new() });
        if let Err(late) = place.set(link) {
            late.runtime.shutdown_background();
        }
    }
}

/// Its thread, and those that it starts, have all signals blocked: handlers are Python's to run.
fn start() -> io::Result<Runtime> {
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let runtime =
        Builder::new_multi_thread().worker_threads(1).thread_name("stanchion-aio").enable_all().build();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    runtime
}
