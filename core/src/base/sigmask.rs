//! Threads of our own never run a host's signal handlers; nor does a thread of the host's where that would do harm.

use std::io;
use std::thread::{self, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

/// Signals that come while a program goes on: of timers, profilers, children, terminals, and its own. None that ends or
/// stops it, nor one of a fault.
const IN_PASSING: [Signal; 9] = [
    Signal::SIGALRM,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    Signal::SIGCHLD,
    Signal::SIGIO,
    Signal::SIGURG,
    Signal::SIGWINCH,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

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

/// Runs something with these signals blocked. A handler interrupts the read from a socket that has a timeout, also with
/// SA_RESTART (signal(7)), and then the reply is lost.
pub(crate) fn undisturbed<T>(call: impl FnOnce() -> T) -> T {
    struct Restore(SigSet);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = self.0.thread_set_mask();
        }
    }
    let held_back = IN_PASSING.into_iter().collect::<SigSet>();
    let _restore = held_back.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok().map(Restore);
    call()
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
        assert!(inside.contains(Signal::SIGTERM));
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }

    #[test]
    fn signals_wait_until_an_undisturbed_call_has_ended() {
        let before = SigSet::thread_get_mask().unwrap();
        let inside = undisturbed(|| SigSet::thread_get_mask().unwrap());
        assert!(inside.contains(Signal::SIGPROF) && !inside.contains(Signal::SIGINT));
        let panics = || undisturbed(|| panic!("on purpose"));
        std::panic::catch_unwind(panics).unwrap_err();
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }
}
