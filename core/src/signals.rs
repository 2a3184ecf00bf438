//! Threads of our own never run a host's signal handlers.

use std::io;
use std::thread::{self, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};

/// Waits for a thread to end, if there is one, and this is another.
pub(crate) fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
        let _ = thread.join();
    }
}

/// Starts a thread with all signals blocked from its first instruction on.
pub(crate) fn spawn_quietly(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let mut before = SigSet::empty();
    // A thread inherits the mask of the one that starts it.
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    spawned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_has_all_signals_blocked_and_the_starter_none_more() {
        let (send, receive) = std::sync::mpsc::channel();
        let before = SigSet::thread_get_mask().unwrap();
        spawn_quietly("test", move || send.send(SigSet::thread_get_mask().unwrap()).unwrap()).unwrap();
        let inside = receive.recv().unwrap();
        assert!(inside.contains(nix::sys::signal::Signal::SIGTERM));
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }
}
